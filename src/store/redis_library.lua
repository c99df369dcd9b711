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
-- s stored, x hidden, k links, l life, e when the keys vanish, y in the set of the expiring.
--
-- A server that is giving a slot away may have some keys and not others. The declared ones are
-- checked by the server before a function begins; whatever else a function touches it touches
-- first for reading, so that it fails before it has written anything.
--
-- Answers are arrays that begin with a number; the module knows their meaning.

local OK, KNOWN, MISS, NOT_FOUND, GONE, EXISTS, SOURCE_GONE, LIMIT, CONFLICT, BUSY =
	0, 1, 2, 3, 4, 5, 6, 7, 8, 9

local SESSION = { 'h:', 'r:', 'k:', 'i:', 'f:', 'p:', 'm:', 'c:' }
local CHUNK = 500        -- arguments of one command; Lua's stack ends at 8000
local VISITED = 20000    -- records a scan passes over in one call
local STATE_BYTES = 1048576

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

-- Notes when a session expires, or that it does not.
local function note_expiry(KEYS, session, stored, ttl)
	if ttl > 0 then
		call('ZADD', KEYS[10], number(stored + ttl), session)
		call('HSET', KEYS[1], 'y', '1')
	elseif call('HDEL', KEYS[1], 'y') == 1 then
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

-- 1 create, 2 repeated, 3 digest expected, or ? to write nothing, 4 source, 5 head, 6 its digest, 7 order, 8 revision,
-- 9 first seq, 10 base, 11 created, 12 ttl (0: does not expire), 13 life, 14 links, 15 header,
-- 16 kinds and lengths, 17 session, 18 ids, 19 rows, 20 user state, 21 staged; then the ids, rows
-- as element and id, state as key, value, 1 or 0. Staged rows are in keys 12 to 14.
local function append(KEYS, ARGV)
	local create, session = ARGV[1] == '1', ARGV[17]
	local n_ids, n_rows, n_state = tonumber(ARGV[18]), tonumber(ARGV[19]), tonumber(ARGV[20])
	local first, rows_at = tonumber(ARGV[9]), 22 + n_ids
	local tag = tag_of(KEYS[1])
	local at = fields(KEYS[1], 'd', 'x', 'o', 'e')

	if at[1] and not at[2] and ARGV[2] == '1' and is_there(KEYS, ARGV, rows_at, n_rows, first) then
		return { OK, 1 }
	end
	if at[2] and not create then
		return { GONE }
	end
	if at[1] and not at[2] then
		local known, any = { KNOWN }, false
		for j = 1, n_ids do
			known[j + 1] = call('HGET', KEYS[4], ARGV[21 + j]) or '0'
			any = any or known[j + 1] ~= '0'
		end
		if any then
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
		return { MISS, call('HGET', KEYS[1], 'h'), at[1] }
	end
	for j = 0, n_rows - 1 do
		if not create and call('HEXISTS', KEYS[4], ARGV[rows_at + 2 * j + 1]) == 1 then
			return { CONFLICT }
		end
	end
	local state_at = rows_at + 2 * n_rows
	local total = n_state > 0 and state_total(KEYS[11], ARGV, state_at, n_state)
	if total and total > STATE_BYTES then
		return { LIMIT }
	end

	local stored = now_us()
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
	     number(stored), 'l', ARGV[13])
	if create then
		call('HSET', KEYS[1], 'b', ARGV[10], 'c', ARGV[11], 'n', ARGV[15], 'k', ARGV[14])
		relink(tag, session, '', ARGV[14])
	end
	place(KEYS, session, at[3], ARGV[7])
	note_expiry(KEYS, session, stored, tonumber(ARGV[12]))
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
	local got = fields(KEYS[1], 'h', 'd', 's', 'x', 'b', 'c', 'r', 'n')
	if not got[2] then
		return { NOT_FOUND }
	end
	return { OK, got[1], got[2], got[3], number(now_us()), got[4] or '0', got[5], got[6],
	         got[7], ARGV[1] == '1' and got[8] or '' }
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
-- '', then sessions.
local function list(KEYS, ARGV)
	local tag = tag_of(KEYS[9])
	local most, bytes = tonumber(ARGV[2]), 0
	local members = call('ZRANGEBYLEX', KEYS[9], ARGV[1] == '' and '-' or '(' .. ARGV[1], '+',
	                     'LIMIT', 0, most)
	local answer, vanished = { OK, '' }, {}
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

-- 1 expired by, 2 how many at most, 3 after how many. Answers how many were passed, or '0' at the
-- end, then sessions.
local function expiring(KEYS, ARGV)
	local tag = tag_of(KEYS[10])
	local members = call('ZRANGEBYSCORE', KEYS[10], '-inf', ARGV[1], 'LIMIT', ARGV[3], ARGV[2])
	local answer, vanished = { OK, '' }, {}
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

-- 1 session, 2 reap. Answers OK, existed; or, where somebody reads it, MISS, existed, highest base
-- that is read, digest, hidden, revision, then the readers.
local function remove(KEYS, ARGV)
	local tag, session = tag_of(KEYS[1]), ARGV[1]
	local at = fields(KEYS[1], 'd', 'x', 'o', 'k', 'r')
	if not at[1] then
		return { OK, 0 }
	end
	local existed = (ARGV[2] == '1' or not at[2]) and 1 or 0
	if ARGV[2] == '1' and not at[2] then
		return { OK, existed }
	end
	local living, highest = readers_of(tag, session)
	if #living > 0 then
		return name_readers({ MISS, existed, number(highest), at[1], at[2] or '0', at[5] }, tag,
		                    living)
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
-- read, 4 head, 5 digest, 6 order, 7 revision.
local function hide(KEYS, ARGV)
	local tag, session = tag_of(KEYS[1]), ARGV[1]
	local at = fields(KEYS[1], 'd', 'o', 'b', 'e')
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
	call('HSET', KEYS[1], 'x', '1', 'h', ARGV[4], 'd', ARGV[5], 'o', ARGV[6], 'r', ARGV[7])
	place(KEYS, session, at[2], ARGV[6])
	note_expiry(KEYS, session, 0, 0)
	arm(tag, session)
	wake(tag, session)
	return { OK }
end

-- Puts staged rows (keys 12 to 14) in the place of a log: 1 session, 2 digest expected, 3 rows,
-- 4 head, 5 digest, 6 order, 7 revision, 8 base, 9 created, 10 links, 11 header, 12 ttl, 13 life.
local function replace(KEYS, ARGV)
	local tag, session = tag_of(KEYS[1]), ARGV[1]
	local at = fields(KEYS[1], 'd', 'o', 'k', 's')
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
	     'c', ARGV[9], 'k', ARGV[10], 'n', ARGV[11], 'l', ARGV[13])
	place(KEYS, session, at[2], ARGV[6])
	note_expiry(KEYS, session, tonumber(at[4]), tonumber(ARGV[12]))
	relink(tag, session, at[3], ARGV[10])
	arm(tag, session)
	wake(tag, session)
	return { OK }
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
