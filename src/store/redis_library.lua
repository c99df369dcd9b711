#!lua name=sheaf_1
--
-- What a Redis server does for the redis store: one function for each operation,
-- each atomic. The module loads this text where it is missing.
--
-- The first eleven keys of every function on a session are the same, and all have
-- the owner's tag, so they live in one slot:
--   1 h  hash: head, revision, header, … (below)   7 m  hash: queue, what is known of an item
--   2 r  list: records, at seq - base - 1          8 c  hash: queue, an item's content
--   3 k  string: kind and length of each record    9 z  sorted set of the owner: sessions
--   4 i  hash: id of a record to its seq          10 x  sorted set of the owner: when they expire
--   5 f  hash: sessions that read this one, base  11 u  hash of the owner: the user's state
--   6 p  sorted set: queue, order of items
-- Fields of h: h head, d its digest, r revision, b base, c created, n header, o order in lists,
-- s stored, x hidden, k links, t the session's state, w ttl (0: does not expire), g grace, l life,
-- e when the keys vanish, y in the set of the expiring.
--
-- A server that is giving a slot away may have some keys and not others. The declared ones are
-- checked by the server before a function begins; whatever else a function touches it touches
-- first for reading, so that it fails before it has written anything.
--
-- Answers are arrays that begin with a number; the module knows their meaning.

local OK, KNOWN, MISS, NOT_FOUND, GONE, EXISTS, SOURCE_GONE, LIMIT, CONFLICT, BUSY, EXPIRED =
	0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10

local SESSION = { 'h:', 'r:', 'k:', 'i:', 'f:', 'p:', 'm:', 'c:' }
local CHUNK = 500        -- arguments of one command; Lua's stack ends at 8000
local VISITED = 20000    -- records a scan passes over in one call
local STATE_BYTES = 1048576
local QUEUE_ITEMS = 1000

-- The server's own is there only while a function runs.
local function call(...)
	return redis.call(...)
end

local function number(n)
	return string.format('%.0f', n)
end

local function now_us()
	local t = call('TIME')
	return tonumber(t[1]) * 1000000 + tonumber(t[2])
end

-- "{tag}" of any of the keys.
local function tag_of(key)
	return string.match(key, '^{[^}]*}')
end

local function fields(key, ...)
	local got = call('HMGET', key, ...)
	for i = 1, #got do
		got[i] = got[i] or nil
	end
	return got
end

-- Links are kept as "base session\n" …
local function each_link(text)
	return string.gmatch(text or '', '(%d+) ([^\n]*)\n')
end

-- ---- Life -------------------------------------------------------------------

-- Living readers of a session: { {session, base}, … } and the highest base.
local function readers_of(tag, session)
	local all = call('HGETALL', tag .. 'f:' .. session)
	local living, highest = {}, -1
	for i = 1, #all, 2 do
		local got = call('HMGET', tag .. 'h:' .. all[i], 'd', 'x')
		if got[1] and not got[2] then
			living[#living + 1] = { all[i], tonumber(all[i + 1]) }
			highest = math.max(highest, tonumber(all[i + 1]))
		end
	end
	return living, highest
end

-- Lets the keys of a session vanish when its life is over, unless somebody reads it.
local function arm(tag, session)
	local h = tag .. 'h:' .. session
	local got = call('HMGET', h, 'l', 'e', 's', 'x')
	local life = tonumber(got[1] or '0')
	if life > 0 and not got[4] and #readers_of(tag, session) == 0 then
		local at = number(math.floor((tonumber(got[3]) + life) / 1000) + 1)
		call('HSET', h, 'e', at)
		for _, kind in ipairs(SESSION) do
			call('PEXPIREAT', tag .. kind .. session, at)
		end
	elseif got[2] then
		call('HDEL', h, 'e')
		for _, kind in ipairs(SESSION) do
			call('PERSIST', tag .. kind .. session)
		end
	end
end

-- 0 alive, 1 in its grace, 2 over. Takes the fields s, w and g.
local function expired(stored, ttl, grace, now)
	ttl = tonumber(ttl or '0')
	local ends = tonumber(stored or '0') + ttl
	if ttl == 0 or ends > now then
		return 0
	end
	return ends + tonumber(grace) > now and 1 or 2
end

local function wake(tag, session)
	call('SPUBLISH', tag .. 'w:' .. session, '')
end

-- ---- Listing fields ------------------------------------------------------------

-- Puts a session at its place in lists. `was` is its order before, or nil.
local function place(KEYS, session, was, order)
	if was == order then
		return
	end
	if was then
		call('ZREM', KEYS[9], was .. session)
	end
	call('ZADD', KEYS[9], '0', order .. session)
end

-- Notes when a session expires, or that it does not. `was` is whether it was noted before.
local function note_expiry(KEYS, session, was, stored, ttl)
	if ttl > 0 then
		call('ZADD', KEYS[10], number(stored + ttl), session)
		call('HSET', KEYS[1], 'y', '1')
	elseif was then
		call('HDEL', KEYS[1], 'y')
		call('ZREM', KEYS[10], session)
	end
end

-- ---- Appending --------------------------------------------------------------------

-- Whether the records from ARGV[at] on are stored exactly as they are here: a repeat of
-- something whose answer was lost.
local function is_there(KEYS, ARGV, at, rows, first)
	local got = call('HMGET', KEYS[1], 'c', 'n', 'b')
	if got[1] ~= ARGV[11] or (ARGV[1] == '1' and got[2] ~= ARGV[15]) then
		return false
	end
	local base = tonumber(got[3])
	for j = 0, rows - 1 do
		local seq = first + j
		if call('HGET', KEYS[4], ARGV[at + 2 * j + 1]) ~= number(seq) or
		   call('LINDEX', KEYS[2], number(seq - base - 1)) ~= ARGV[at + 2 * j] then
			return false
		end
	end
	return ARGV[1] == '1' or rows > 0
end

-- The total of the user's state with these changes, or nil if that is too much.
local function state_total(key, ARGV, at, count)
	local total = tonumber(call('HGET', key, '') or '0')
	local lengths = {}
	for j = at, at + 3 * count - 1, 3 do
		local name = ARGV[j]
		local before = lengths[name]
		if not before then
			before = call('HSTRLEN', key, name)
			if before > 0 then
				before = before + #name
			end
		end
		local after = ARGV[j + 2] == '1' and #name + #ARGV[j + 1] or 0
		lengths[name] = after
		total = total + after - before
	end
	return total
end

local function state_write(key, ARGV, at, count, total)
	for j = at, at + 3 * count - 1, 3 do
		if ARGV[j + 2] == '1' then
			call('HSET', key, ARGV[j], ARGV[j + 1])
		else
			call('HDEL', key, ARGV[j])
		end
	end
	call('HSET', key, '', number(total))
end

local function push_rows(list, ids, ARGV, at, rows, first)
	local pushed, named = {}, {}
	for j = 0, rows - 1 do
		pushed[#pushed + 1] = ARGV[at + 2 * j]
		if ARGV[at + 2 * j + 1] ~= '' then
			named[#named + 1] = ARGV[at + 2 * j + 1]
			named[#named + 1] = number(first + j)
		end
		if #pushed == CHUNK or j == rows - 1 then
			call('RPUSH', list, unpack(pushed))
			if #named > 0 then
				call('HSET', ids, unpack(named))
			end
			pushed, named = {}, {}
		end
	end
end

-- Takes the place of links: `was` and `is` are texts of links.
local function relink(tag, session, was, is)
	local gone = {}
	for _, link in each_link(was) do
		gone[link] = true
	end
	for base, link in each_link(is) do
		gone[link] = nil
		call('HSET', tag .. 'f:' .. link, session, base)
		arm(tag, link)
	end
	for link in pairs(gone) do
		call('HDEL', tag .. 'f:' .. link, session)
		arm(tag, link)
	end
end

-- Reads what relink() will write.
local function touch_links(tag, text)
	for _, link in each_link(text) do
		for _, kind in ipairs(SESSION) do
			call('EXISTS', tag .. kind .. link)
		end
		readers_of(tag, link)
	end
end

-- What is there already may not have reached a replica, and WAIT waits only for what its own
-- connection has written: so this writes what is there.
local function confirm(KEYS, ARGV, digest)
	if ARGV[25] == '1' then
		call('HSET', KEYS[1], 'd', digest)
	end
end

-- 1 create, 2 repeated, 3 digest expected, or ? to write nothing, 4 source, 5 head, 6 its digest, 7 order, 8 revision,
-- 9 first seq, 10 base, 11 created, 12 ttl (0: does not expire), 13 life, 14 links, 15 header,
-- 16 kinds and lengths, 17 session, 18 ids, 19 rows, 20 user state, 21 how many are staged or '', 22 grace, 23 revive,
-- 24 the session's state or '' if it is as before, 25 a replica is waited for; then the ids, rows as element and id, state as
-- key, value, 1 or 0. Staged rows are in keys 12 to 14.
local function append(KEYS, ARGV)
	local create, session = ARGV[1] == '1', ARGV[17]
	local n_ids, n_rows, n_state = tonumber(ARGV[18]), tonumber(ARGV[19]), tonumber(ARGV[20])
	local first, rows_at = tonumber(ARGV[9]), 26 + n_ids
	local tag, now = tag_of(KEYS[1]), now_us()
	local at = fields(KEYS[1], 'd', 'x', 'o', 'e', 's', 'w', 'g', 'y')

	if at[1] and not at[2] and ARGV[2] == '1' and is_there(KEYS, ARGV, rows_at, n_rows, first) then
		confirm(KEYS, ARGV, at[1])
		return { OK, 1 }
	end
	if at[1] and not create then
		local over = expired(at[5], at[6], at[7], now)
		if at[2] or over == 2 then
			return { GONE }
		elseif over == 1 and ARGV[23] ~= '1' then
			return { EXPIRED }
		end
	end
	if at[1] and not at[2] then
		local known, any = { KNOWN }, false
		for j = 1, n_ids do
			known[j + 1] = call('HGET', KEYS[4], ARGV[25 + j]) or '0'
			any = any or known[j + 1] ~= '0'
		end
		if any then
			confirm(KEYS, ARGV, at[1])
			return known
		end
	end
	if create then
		if at[1] then
			return { EXISTS }
		end
		if ARGV[4] ~= '' then
			local source = call('HMGET', tag .. 'h:' .. ARGV[4], 'd', 'x')
			if not source[1] or source[2] then
				return { SOURCE_GONE }
			end
		end
		if ARGV[3] == '?' then
			return { MISS, '', '' }
		end
		touch_links(tag, ARGV[14])
	elseif not at[1] then
		return { NOT_FOUND }
	elseif at[1] ~= ARGV[3] then
		local got = call('HMGET', KEYS[1], 'h', 't')
		return { MISS, got[1], at[1], got[2] }
	end
	for j = 0, n_rows - 1 do
		if not create and call('HEXISTS', KEYS[4], ARGV[rows_at + 2 * j + 1]) == 1 then
			return { CONFLICT }
		end
	end
	-- A failover may have lost the last of them.
	if ARGV[21] ~= '' and ARGV[21] ~= number(call('LLEN', KEYS[12])) then
		return redis.error_reply('ERR the staged records are not all there')
	end
	local state_at = rows_at + 2 * n_rows
	local total = n_state > 0 and state_total(KEYS[11], ARGV, state_at, n_state)
	if total and total > STATE_BYTES then
		return { LIMIT }
	end

	if ARGV[21] ~= '' then
		for j = 2, 4 do
			call('RENAME', KEYS[10 + j], KEYS[j])
			call('PERSIST', KEYS[j])
		end
	elseif n_rows > 0 then
		push_rows(KEYS[2], KEYS[4], ARGV, rows_at, n_rows, first)
		call('APPEND', KEYS[3], ARGV[16])
	end
	call('HSET', KEYS[1], 'h', ARGV[5], 'd', ARGV[6], 'o', ARGV[7], 'r', ARGV[8], 's',
	     number(now), 'w', ARGV[12], 'g', ARGV[22], 'l', ARGV[13])
	if ARGV[24] ~= '' then
		call('HSET', KEYS[1], 't', ARGV[24])
	end
	if create then
		call('HSET', KEYS[1], 'b', ARGV[10], 'c', ARGV[11], 'n', ARGV[15], 'k', ARGV[14])
		relink(tag, session, '', ARGV[14])
	end
	place(KEYS, session, at[3], ARGV[7])
	note_expiry(KEYS, session, at[8], now, tonumber(ARGV[12]))
	if total then
		state_write(KEYS[11], ARGV, state_at, n_state, total)
	end
	if at[4] or ARGV[13] ~= '0' then
		arm(tag, session)
	end
	wake(tag, session)
	return { OK, 0 }
end

-- Rows for a log that is not there yet: keys 12 to 14. 1 how many are there, 2 first seq, 3 kinds
-- and lengths, 4 rows; then element and id.
local function stage(KEYS, ARGV)
	local before, rows = tonumber(ARGV[1]), tonumber(ARGV[4])
	local have = call('LLEN', KEYS[12])
	if have == before + rows then
		return { OK }
	end
	if have ~= before then
		return { MISS }
	end
	push_rows(KEYS[12], KEYS[14], ARGV, 5, rows, tonumber(ARGV[2]))
	call('APPEND', KEYS[13], ARGV[3])
	for j = 12, 14 do
		call('EXPIRE', KEYS[j], 600)
	end
	return { OK }
end

-- ---- Reading --------------------------------------------------------------------

local function head(KEYS, ARGV)
	local got = fields(KEYS[1], 'h', 'd', 's', 'x', 'b', 'c', 'r', 't', 'n')
	if not got[2] then
		return { NOT_FOUND }
	end
	return { OK, got[1], got[2], got[3], number(now_us()), got[4] or '0', got[5], got[6],
	         got[7], got[8] or '', ARGV[1] == '1' and got[9] or '' }
end

local function find(KEYS, ARGV)
	local seq = call('HGET', KEYS[4], ARGV[1])
	if seq then
		return { OK, seq }
	end
	return { call('EXISTS', KEYS[1]) == 1 and MISS or NOT_FOUND }
end

-- Wanted runs of records: positions from `at` towards `stop`, within the budgets. Returns runs as
-- {first, last}, and where to go on, or nil at the end.
local function plan(key, at, stop, step, wanted, limit, budget)
	local runs, run, taken, bytes, visited = {}, nil, 0, 0, 0
	local from, window = 0, ''
	while (step > 0 and at <= stop) or (step < 0 and at >= stop) do
		local offset = (at - from) * 5
		if offset < 0 or offset >= #window then
			from = step > 0 and at or math.max(at - 499, 0)
			window = call('GETRANGE', key, number(from * 5), number(from * 5 + 2499))
			offset = (at - from) * 5
			if offset >= #window then
				return runs, nil
			end
		end
		local kind, a, b, c, d = string.byte(window, offset + 1, offset + 5)
		if wanted == '' or string.byte(wanted, kind + 1) == 49 then
			local length = a + 256 * (b + 256 * (c + 256 * d))
			if taken == limit or (taken > 0 and bytes + length > budget) then
				return runs, at
			end
			if run and run[2] + step == at then
				run[2] = at
			else
				run = { at, at }
				runs[#runs + 1] = run
			end
			taken, bytes = taken + 1, bytes + length
		elseif visited >= VISITED then
			return runs, at
		end
		visited = visited + 1
		at = at + step
	end
	return runs, nil
end

-- 1 from, 2 backward, 3 limit, 4 wanted kinds as 64 digits or '', 5 bytes, 6 created or '',
-- 7 last seq of the scan or ''. Answers created, last, where to go on or '', seq and element …
local function scan(KEYS, ARGV)
	local got = fields(KEYS[1], 'c', 'b', 'r')
	if not got[1] or (ARGV[6] ~= '' and ARGV[6] ~= got[1]) then
		return { NOT_FOUND }
	end
	local from, base, last = tonumber(ARGV[1]), tonumber(got[2]), tonumber(got[3])
	local backward = ARGV[2] == '1'
	if ARGV[7] ~= '' then
		last = math.min(last, tonumber(ARGV[7]))
	end
	local answer = { OK, got[1], number(last), '' }
	if backward then
		from = math.min(from, last)
	else
		from = math.max(from, base + 1)
	end
	if from <= base or from > last then
		return answer
	end
	local step = backward and -1 or 1
	local runs, on = plan(KEYS[3], from - base - 1, backward and 0 or last - base - 1, step,
	                      ARGV[4], tonumber(ARGV[3]), tonumber(ARGV[5]))
	for _, run in ipairs(runs) do
		local low, high = math.min(run[1], run[2]), math.max(run[1], run[2])
		local rows = call('LRANGE', KEYS[2], number(low), number(high))
		for j = 1, #rows do
			local at = backward and #rows + 1 - j or j
			answer[#answer + 1] = number(base + low + at)
			answer[#answer + 1] = rows[at]
		end
	end
	if on then
		answer[4] = number(base + on + 1)
	end
	return answer
end

-- One session as lists give it: session, head, stored, hidden.
local function add_listed(answer, session, got)
	local n = #answer
	answer[n + 1] = session
	answer[n + 2] = got[1]
	answer[n + 3] = got[2]
	answer[n + 4] = got[3] or '0'
	return #got[1]
end

-- 1 after which member, or '', 2 how many at most, 3 hidden too, 4 bytes. Answers where to go on, or
-- '', the time, then sessions.
local function list(KEYS, ARGV)
	local tag = tag_of(KEYS[9])
	local most, bytes = tonumber(ARGV[2]), 0
	local members = call('ZRANGEBYLEX', KEYS[9], ARGV[1] == '' and '-' or '(' .. ARGV[1], '+',
	                     'LIMIT', 0, most)
	local answer, vanished = { OK, '', number(now_us()) }, {}
	for j, member in ipairs(members) do
		local order, session = string.sub(member, 1, 16), string.sub(member, 17)
		local got = fields(tag .. 'h:' .. session, 'h', 's', 'x', 'o')
		if got[4] ~= order then
			vanished[#vanished + 1] = member
		elseif not got[3] or ARGV[3] == '1' then
			bytes = bytes + add_listed(answer, session, got)
		end
		if j == most or bytes > tonumber(ARGV[4]) then
			answer[2] = member
			break
		end
	end
	if #vanished > 0 then
		call('ZREM', KEYS[9], unpack(vanished))
	end
	return answer
end

-- 1 expired by, 2 how many at most, 3 after how many. Answers after how many to go on, or '', the
-- time, then sessions.
local function expiring(KEYS, ARGV)
	local tag = tag_of(KEYS[10])
	local members = call('ZRANGEBYSCORE', KEYS[10], '-inf', ARGV[1], 'LIMIT', ARGV[3], ARGV[2])
	local answer, vanished = { OK, '', number(now_us()) }, {}
	for _, session in ipairs(members) do
		local got = fields(tag .. 'h:' .. session, 'h', 's', 'x', 'y')
		if not got[4] then
			vanished[#vanished + 1] = session
		elseif not got[3] then
			add_listed(answer, session, got)
		end
	end
	if #vanished > 0 then
		call('ZREM', KEYS[10], unpack(vanished))
	end
	if #members == tonumber(ARGV[2]) then
		answer[2] = number(tonumber(ARGV[3]) + #members - #vanished)
	end
	return answer
end

-- ---- Removing --------------------------------------------------------------------

local function name_readers(answer, tag, living)
	for _, reader in ipairs(living) do
		add_listed(answer, reader[1], fields(tag .. 'h:' .. reader[1], 'h', 's', 'x'))
	end
	return answer
end

-- 1 session, 2 reap, 3 only if it is over. Answers OK, existed; NOT_FOUND, 0; or, where somebody
-- reads it, MISS, existed, highest base that is read, digest, hidden, revision, the time, then the
-- readers.
local function remove(KEYS, ARGV)
	local tag, session = tag_of(KEYS[1]), ARGV[1]
	local at = fields(KEYS[1], 'd', 'x', 'o', 'k', 'r', 's', 'w', 'g')
	if not at[1] then
		return { NOT_FOUND, 0 }
	end
	if ARGV[3] == '1' and (at[2] or expired(at[6], at[7], at[8], now_us()) ~= 2) then
		return { OK, 0 }
	end
	local existed = (ARGV[2] == '1' or not at[2]) and 1 or 0
	if ARGV[2] == '1' and not at[2] then
		return { OK, existed }
	end
	local living, highest = readers_of(tag, session)
	if #living > 0 then
		return name_readers({ MISS, existed, number(highest), at[1], at[2] or '0', at[5],
		                      number(now_us()) }, tag, living)
	end
	touch_links(tag, at[4])
	call('DEL', unpack(KEYS, 1, 8))
	call('ZREM', KEYS[9], at[3] .. session)
	call('ZREM', KEYS[10], session)
	relink(tag, session, at[4], '')
	wake(tag, session)
	return { OK, existed }
end

-- Where the id of a record's element is: after 12 bytes (kind, length of the id, its place in the
-- line, parent), or, when it is not in the line, right there.
local function id_of(element)
	local length, low, high = string.byte(element, 2, 4)
	local at = low + 256 * high
	at = at == 65535 and 13 or 13 + at
	return string.sub(element, at, at + length - 1)
end

-- Hides a session and drops what nobody reads: 1 session, 2 digest expected, 3 highest base that is
-- read, 4 head, 5 digest, 6 order, 7 revision, 8 the session's state.
local function hide(KEYS, ARGV)
	local tag, session = tag_of(KEYS[1]), ARGV[1]
	local at = fields(KEYS[1], 'd', 'o', 'b', 'y')
	local living, highest = readers_of(tag, session)
	if at[1] ~= ARGV[2] or number(highest) ~= ARGV[3] then
		return { MISS }
	end
	local keep = math.max(tonumber(ARGV[7]) - tonumber(at[3]), 0)
	for from = keep, call('LLEN', KEYS[2]) - 1, 64 do
		local ids = {}
		for _, element in ipairs(call('LRANGE', KEYS[2], number(from), number(from + 63))) do
			ids[#ids + 1] = id_of(element)
		end
		call('HDEL', KEYS[4], unpack(ids))
	end
	if keep == 0 then
		call('DEL', KEYS[2], KEYS[3], KEYS[4])
	else
		call('LTRIM', KEYS[2], 0, number(keep - 1))
		call('SET', KEYS[3], call('GETRANGE', KEYS[3], 0, number(keep * 5 - 1)), 'KEEPTTL')
	end
	call('DEL', KEYS[6], KEYS[7], KEYS[8])
	call('HSET', KEYS[1], 'x', '1', 'h', ARGV[4], 'd', ARGV[5], 'o', ARGV[6], 'r', ARGV[7],
	     't', ARGV[8], 'w', '0')
	place(KEYS, session, at[2], ARGV[6])
	note_expiry(KEYS, session, at[4], 0, 0)
	arm(tag, session)
	wake(tag, session)
	return { OK }
end

-- Puts staged rows (keys 12 to 14) in the place of a log: 1 session, 2 digest expected, 3 rows,
-- 4 head, 5 digest, 6 order, 7 revision, 8 base, 9 created, 10 links, 11 header, 12 ttl, 13 life,
-- 14 grace, 15 the session's state.
local function replace(KEYS, ARGV)
	local tag, session = tag_of(KEYS[1]), ARGV[1]
	local at, now = fields(KEYS[1], 'd', 'o', 'k', 'y'), now_us()
	if at[1] == ARGV[5] and at[1] ~= ARGV[2] then
		return { OK } -- a repeat: it is done
	end
	if at[1] ~= ARGV[2] then
		return { at[1] and MISS or NOT_FOUND }
	end
	if ARGV[3] ~= number(call('LLEN', KEYS[12])) then
		return redis.error_reply('ERR the staged records are not all there')
	end
	touch_links(tag, at[3])
	touch_links(tag, ARGV[10])
	for j = 2, 4 do
		if call('EXISTS', KEYS[10 + j]) == 1 then
			call('RENAME', KEYS[10 + j], KEYS[j])
			call('PERSIST', KEYS[j])
		else
			call('DEL', KEYS[j])
		end
	end
	call('HSET', KEYS[1], 'h', ARGV[4], 'd', ARGV[5], 'o', ARGV[6], 'r', ARGV[7], 'b', ARGV[8],
	     'c', ARGV[9], 'k', ARGV[10], 'n', ARGV[11], 'l', ARGV[13],
	     'w', ARGV[12], 'g', ARGV[14], 't', ARGV[15], 's', number(now))
	place(KEYS, session, at[2], ARGV[6])
	note_expiry(KEYS, session, at[4], now, tonumber(ARGV[12]))
	relink(tag, session, at[3], ARGV[10])
	arm(tag, session)
	wake(tag, session)
	return { OK }
end

-- ---- State -------------------------------------------------------------------------

-- Whether a is after b, byte by byte: Lua's own < asks the locale.
local function after(a, b)
	for j = 1, math.min(#a, #b) do
		local x, y = string.byte(a, j), string.byte(b, j)
		if x ~= y then
			return x > y
		end
	end
	return #a > #b
end

-- All names and values of key 1. The empty name holds the bytes of all.
local function state(KEYS, ARGV)
	local answer, all = { OK }, call('HGETALL', KEYS[1])
	for j = 1, #all, 2 do
		if all[j] ~= '' then
			answer[#answer + 1] = all[j]
			answer[#answer + 1] = all[j + 1]
		end
	end
	return answer
end

-- An app's value is kept as time (16 digits), 1 or 0 for deleted, length of the id, id, value.
-- ARGV: name, element …
local function state_apply(KEYS, ARGV)
	local total, writes = tonumber(call('HGET', KEYS[1], '') or '0'), {}
	for j = 1, #ARGV, 2 do
		local name, new = ARGV[j], ARGV[j + 1]
		local old = call('HGET', KEYS[1], name)
		local function stamp(e)
			return string.sub(e, 1, 16) .. string.sub(e, 19, 18 + string.byte(e, 18))
		end
		local function bytes(e)
			return string.sub(e, 17, 17) == '1' and #name + #e - 18 - string.byte(e, 18) or 0
		end
		if not old or after(stamp(new), stamp(old)) then
			total = total + bytes(new) - (old and bytes(old) or 0)
			writes[#writes + 1] = name
			writes[#writes + 1] = new
		end
	end
	if #writes == 0 then
		return { OK }
	end
	if total > STATE_BYTES then
		return { LIMIT }
	end
	for j = 1, #writes, 2 do
		call('HSET', KEYS[1], writes[j], writes[j + 1])
	end
	call('HSET', KEYS[1], '', number(total))
	return { OK }
end

-- ---- The queue ------------------------------------------------------------------------

-- What is known of an item is kept in m as "order priority claims enqueued until token"; beside
-- the items '' counts them, '\1' has the last acknowledged token and '\2' the last item taken back,
-- so that a repeat after a lost answer is answered as the first time.
local function item_of(m, id)
	local text = call('HGET', m, id)
	if not text then
		return nil
	end
	local order, priority, claims, enqueued, to, token =
		string.match(text, '^(%x+) (%-?%d+) (%d+) (%d+) (%d+) (.*)$')
	return { id = id, order = order, priority = priority, claims = tonumber(claims),
	         enqueued = enqueued, to = tonumber(to), token = token }
end

local function item_put(m, item)
	call('HSET', m, item.id, table.concat({ item.order, item.priority, number(item.claims),
	     item.enqueued, number(item.to), item.token }, ' '))
end

local function item_remove(KEYS, item)
	call('ZREM', KEYS[6], item.order .. item.id)
	call('HDEL', KEYS[7], item.id)
	call('HDEL', KEYS[8], 'c' .. item.id, 'e' .. item.id)
end

-- An answer if the session is not there.
local function absent(h)
	local got = call('HMGET', h, 'd', 'x')
	if not got[1] then
		return { NOT_FOUND }
	end
	return got[2] and { GONE } or nil
end

-- What came later with the queue vanishes with the rest.
local function arm_queue(KEYS)
	local at = call('HGET', KEYS[1], 'e')
	for j = 6, 8 do
		if at then
			call('PEXPIREAT', KEYS[j], at)
		end
	end
end

-- Eight elements: id, content, 1 with an environment, environment, priority, claims, enqueued, until.
local function add_item(answer, KEYS, item, now)
	local got = call('HMGET', KEYS[8], 'c' .. item.id, 'e' .. item.id)
	local n = #answer
	answer[n + 1] = item.id
	answer[n + 2] = got[1]
	answer[n + 3] = got[2] and '1' or '0'
	answer[n + 4] = got[2] or ''
	answer[n + 5] = item.priority
	answer[n + 6] = number(item.claims)
	answer[n + 7] = item.enqueued
	answer[n + 8] = item.to > now and number(item.to) or '0'
	return #got[1] + #answer[n + 4]
end

-- 1 id, 2 content, 3 1 with an environment, 4 environment, 5 priority, 6 its order
local function queue_put(KEYS, ARGV)
	local gone = absent(KEYS[1])
	if gone then
		return gone
	end
	local id, item = ARGV[1], item_of(KEYS[7], ARGV[1])
	if item then
		local got = call('HMGET', KEYS[8], 'c' .. id, 'e' .. id)
		local same = got[1] == ARGV[2] and item.priority == ARGV[5] and
			(got[2] and '1' or '0') == ARGV[3] and (got[2] or '') == ARGV[4]
		return { same and KNOWN or CONFLICT }
	end
	if call('ZCARD', KEYS[6]) >= QUEUE_ITEMS then
		return { LIMIT }
	end
	local order = ARGV[6] .. string.format('%016x', call('HINCRBY', KEYS[7], '', 1))
	item_put(KEYS[7], { id = id, order = order, priority = ARGV[5], claims = 0,
	                    enqueued = number(now_us()), to = 0, token = '' })
	call('HSET', KEYS[8], 'c' .. id, ARGV[2])
	if ARGV[3] == '1' then
		call('HSET', KEYS[8], 'e' .. id, ARGV[4])
	end
	call('ZADD', KEYS[6], 0, order .. id)
	arm_queue(KEYS)
	return { OK }
end

-- 1 token, 2 repeated, 3 lease, 4 items, 5 bytes
local function queue_claim(KEYS, ARGV)
	local gone = absent(KEYS[1])
	if gone then
		return gone
	end
	local now, answer, taken, bytes = now_us(), { OK }, {}, 0
	local limit, room, repeated = tonumber(ARGV[4]), tonumber(ARGV[5]), false
	for _, member in ipairs(call('ZRANGE', KEYS[6], 0, -1)) do
		local item = item_of(KEYS[7], string.sub(member, 25))
		if ARGV[2] == '1' and item.token == ARGV[1] then
			repeated = true
			add_item(answer, KEYS, item, now)
		elseif #taken < limit and item.to <= now and bytes then
			local more = call('HSTRLEN', KEYS[8], 'c' .. item.id) + (#taken > 0 and 1 or 0)
			if #taken > 0 and bytes + more > room then
				bytes = nil -- nothing is passed over to fill what is left
			else
				bytes = bytes + more
				taken[#taken + 1] = item
			end
		end
	end
	if repeated then
		return answer
	end
	for _, item in ipairs(taken) do
		item.to, item.token, item.claims = now + tonumber(ARGV[3]), ARGV[1], item.claims + 1
		item_put(KEYS[7], item)
		add_item(answer, KEYS, item, now)
	end
	return answer
end

-- 1 token, 2 repeated
local function queue_ack(KEYS, ARGV)
	local gone = absent(KEYS[1])
	if gone then
		return gone
	end
	local last = call('HGET', KEYS[7], '\1')
	if last and ARGV[2] == '1' and string.match(last, '^%d+ (.*)$') == ARGV[1] then
		return { OK, string.match(last, '^%d+') }
	end
	local count = 0
	for _, member in ipairs(call('ZRANGE', KEYS[6], 0, -1)) do
		local item = item_of(KEYS[7], string.sub(member, 25))
		if item.token == ARGV[1] then
			item_remove(KEYS, item)
			count = count + 1
		end
	end
	if count == 0 then
		return { MISS }
	end
	call('HSET', KEYS[7], '\1', number(count) .. ' ' .. ARGV[1])
	arm_queue(KEYS)
	return { OK, number(count) }
end

-- 1 id, 2 repeated
local function queue_cancel(KEYS, ARGV)
	local gone = absent(KEYS[1])
	if gone then
		return gone
	end
	local item = item_of(KEYS[7], ARGV[1])
	if not item then
		return { OK, ARGV[2] == '1' and call('HGET', KEYS[7], '\2') == ARGV[1] and 1 or 0 }
	end
	if item.to > now_us() then
		return { BUSY }
	end
	item_remove(KEYS, item)
	call('HSET', KEYS[7], '\2', ARGV[1])
	arm_queue(KEYS)
	return { OK, 1 }
end

-- 1 after which member, or '', 2 bytes. Answers where to go on, or '', then items.
local function queue_list(KEYS, ARGV)
	local gone = absent(KEYS[1])
	if gone then
		return gone
	end
	local answer, bytes, now = { OK, '' }, 0, now_us()
	local from = ARGV[1] == '' and '-' or '(' .. ARGV[1]
	for _, member in ipairs(call('ZRANGEBYLEX', KEYS[6], from, '+')) do
		if bytes > tonumber(ARGV[2]) then
			return answer
		end
		bytes = bytes + add_item(answer, KEYS, item_of(KEYS[7], string.sub(member, 25)), now)
		answer[2] = member
	end
	answer[2] = ''
	return answer
end

redis.register_function('sheaf_1_append', append)
redis.register_function('sheaf_1_stage', stage)
redis.register_function{ function_name = 'sheaf_1_head', callback = head, flags = { 'no-writes' } }
redis.register_function{ function_name = 'sheaf_1_find', callback = find, flags = { 'no-writes' } }
redis.register_function{ function_name = 'sheaf_1_scan', callback = scan, flags = { 'no-writes' } }
redis.register_function('sheaf_1_list', list)
redis.register_function('sheaf_1_expiring', expiring)
redis.register_function('sheaf_1_remove', remove)
redis.register_function('sheaf_1_hide', hide)
redis.register_function('sheaf_1_replace', replace)
redis.register_function{ function_name = 'sheaf_1_state', callback = state, flags = { 'no-writes' } }
redis.register_function('sheaf_1_state_apply', state_apply)
redis.register_function('sheaf_1_queue_put', queue_put)
redis.register_function('sheaf_1_queue_claim', queue_claim)
redis.register_function('sheaf_1_queue_ack', queue_ack)
redis.register_function('sheaf_1_queue_cancel', queue_cancel)
redis.register_function{ function_name = 'sheaf_1_queue_list', callback = queue_list,
                         flags = { 'no-writes' } }
