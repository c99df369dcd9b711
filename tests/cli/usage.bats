# usage: tokens and what they cost, by turn, model, day and session.

load helper

# A session of two turns and two models, and a fork of it with a model nobody has prices of.
make_usage() {
	sheaf new demo --name 'Make it faster' -q
	sheaf append demo --batch -q <<'END'
{"type":"message","id":"u1","message":{"role":"user","content":"Make it faster"},"turn":"t1"}
{"type":"message","id":"a1","message":{"role":"assistant","content":"I look.","provider":"anthropic","model":"claude-sonnet-4-5","usage":{"input":1000,"cache_write_1h":20000,"cache_write_5m":4000,"output":500}},"turn":"t1"}
{"type":"message","id":"a2","message":{"role":"assistant","content":"Done.","provider":"anthropic","model":"claude-sonnet-4-5","usage":{"input":500,"cache_read":24000,"cache_write_5m":1500,"output":700}},"turn":"t1"}
{"type":"turn_end","turn_end":{"turn":"t1","outcome":"completed","usage":{"input":1500,"output":1200}}}
{"type":"message","id":"a3","message":{"role":"assistant","content":"It is.","provider":"anthropic","model":"claude-sonnet-4-5","usage":{"input":500,"cache_read":25500,"cache_write_5m":1000,"output":900}},"turn":"t2"}
END
	sheaf fork demo side -q
	sheaf append side --message-json -q <<'END'
{"role":"assistant","content":"Hm.","provider":"local","model":"llama","usage":{"input":10,"output":1}}
END
}

@test "usage: the cost table and the metrics at 3 dollars a million, to the cent" {
	sheaf new m -q
	local kind
	for kind in cache_write_5m cache_write_1h cache_read input; do
		echo "{\"role\":\"assistant\",\"content\":\"x\",\"provider\":\"p\",\"model\":\"three\",\"usage\":{\"$kind\":1000000}}" |
			sheaf append m --message-json -t "$kind" -q
	done
	echo '{"format":"sheaf-models","version":1,"groups":[{"provider":"p","models":[{"model":"three","input":"3","cache_read":"0.30","cache_write_5m":"3.75","cache_write_1h":"6","output":"15"}]}]}' >prices.json
	export SHEAF_MODELS=prices.json
	run -0 sheaf usage m --by turn
	[[ ${lines[1]} == cache_write_5m*' $3.75   29% '* ]]
	[[ ${lines[2]} == cache_write_1h*' $6.00   46% ████████████████████' ]]
	[[ ${lines[3]} == cache_read*' $0.3000    2% █' ]]
	[[ ${lines[4]} == input*' $3.00   23% ██████████' ]]
	[[ ${lines[5]} == total*' $13.05' ]]
	# reads 1M of 4M tokens of input, and of 3M that went through the cache
	[ "${lines[6]}" = 'cache: hit rate 25.0%, efficiency 33.3%, 900,000 tokens saved; $2.70 saved gross, -$1.05 net' ]
	unset SHEAF_MODELS
	run -0 sheaf usage m --by turn
	[[ ${lines[5]} == total*' unknown' ]]
}

@test "usage: of a session by model, as it is by default" {
	make_usage
	run --separate-stderr -0 sheaf usage demo
	[[ ${lines[0]} == MODEL*REPLIES*INPUT*'CACHE READ'*'CACHE WRITE'*OUTPUT*'HIT RATE'*COST ]]
	[[ ${lines[1]} == anthropic/claude-sonnet-4-5*3*2,000*49,500*26,500*2,100*63%*'$0.1967' ]]
	[[ ${lines[2]} == total*3*2,000*49,500*26,500*2,100*63%*'$0.1967' ]]
	[ "${lines[3]}" = 'cache: hit rate 63.5%, efficiency 65.1%, 44,550 tokens saved; $0.1337 saved gross, $0.0688 net' ]
	[ -z "$stderr" ]
}

@test "usage: by turn, by day" {
	make_usage
	run -0 sheaf usage demo --by turn
	[[ ${lines[1]} == t1*2*'$0.1703   87% ████████████████████' ]]
	[[ ${lines[2]} == t2*1*'$0.0264   13% ███▏' ]]
	run -0 sheaf usage demo --by day
	[[ ${lines[1]} == 20*-*-*3*'$0.1967' ]]
	run -0 sheaf usage demo --since 2100-01-01
	[ "$output" = 'no usage is recorded' ]
	run -0 sheaf usage demo --before 2100-01-01
	has '$0.1967'
}

@test "usage: a fork's own and inherited part, and a price nobody knows" {
	make_usage
	run --separate-stderr -0 sheaf usage side
	[[ ${lines[2]} == local/llama*1*10*'unknown    0% ▏' ]]
	[[ ${lines[3]} == own*1*10*unknown ]]
	[[ ${lines[4]} == inherited*3*2,000*'$0.1967' ]]
	[[ ${lines[5]} == total*4*2,010*'$0.1967+' ]]
	[ "$stderr" = '+: 1 of 4 replies is of a model without a known price' ]
	run -0 sheaf usage side --by turn
	has '(inherited)'
}

@test "usage: of the store, nothing twice" {
	make_usage
	run --separate-stderr -0 sheaf usage
	[[ ${lines[0]} == SESSION*NAME*REPLIES* ]]
	[[ ${lines[1]} == side*1*10*'unknown    0% ▏' ]]
	[[ ${lines[2]} == demo*'Make it faster'*3*'$0.1967  100% ████████████████████' ]]
	[[ ${lines[3]} == total*4*2,010*'$0.1967+' ]]
	sheaf --app other new x -q
	sheaf usage --all --json | py 'd["sessions"] == 3 and d["total"]["replies"] == 4'
	sheaf usage --by model --json | py '[r["model"] for r in d["rows"]] == ["claude-sonnet-4-5", "llama"] and d["sessions"] == 2'
	run -2 sheaf usage --by turn
	has 'name it'
	run -2 sheaf usage --by week
	run -2 sheaf usage demo --here
}

@test "usage --json: every member, money to the last digit" {
	make_usage
	sheaf usage side --json | py 'd["by"] == "model" and d["unreadable"] == 0 and d["sessions"] == 1'
	sheaf usage side --json | py 'd["total"] == {"replies": 4, "unpriced": 1, "usage": {"input": 2010, "cache_read": 49500, "cache_write_5m": 6500, "cache_write_1h": 20000, "output": 2101, "reasoning": 0}, "hit_rate": 0.634534, "efficiency": 0.651316, "tokens_saved": 44550, "cost": 0.196725, "saved_gross": 0.13365, "saved_net": 0.068775}'
	sheaf usage side --json | py 'd["own"]["cost"] is None and d["inherited"]["cost"] == 0.196725'
	sheaf usage side --json | py 'set(d["rows"][0]) == {"model", "provider", "first", "last", "own", "inherited", "total"}'
	sheaf usage --json | py 'set(d["rows"][0]) == {"session", "app", "user", "name", "first", "last", "own", "inherited", "total"}'
	sheaf usage side --by turn --json | py 'd["rows"][0]["turn"] == "t1"'
}

@test "usage: empty sessions, sessions that are not there, a file that is none" {
	run -0 sheaf usage
	[ "$output" = 'no usage is recorded' ]
	run -1 sheaf usage nothing
	sheaf new demo -q
	sheaf usage demo --json | py 'd["rows"] == [] and d["total"]["cost"] == 0'
	SHEAF_MODELS=missing.json run -1 sheaf usage demo
	has missing.json
	echo '{"format":"sheaf-models","version":1,"groups":[{"provider":"p","models":[{"model":"m","inptu":"3"}]}]}' >bad.json
	SHEAF_MODELS=bad.json run -1 sheaf usage demo
	has '"inptu" of m cannot be read'
	has '$SHEAF_MODELS names the file: bad.json'
}

@test "usage: names from a transcript cannot steer the terminal" {
	sheaf new demo -q
	printf '{"role":"assistant","content":"x","model":"a\\u001b[31mb","usage":{"input":1}}' |
		sheaf append demo --message-json -q
	sheaf usage demo | no_controls
	sheaf usage demo --json | no_controls
}
