# branch, fork, label, rename, rm, check and repair.

load helper

@test "branch: lists, makes, moves, forgets" {
	make_tree
	run -0 sheaf branch demo
	[[ ${lines[0]} == main*@9*'twice as fast'* ]]
	[[ ${lines[1]} == simd*@6*'Yes, try it'* ]]
	sheaf branch demo --json | py '[(b["name"], b["leaf"]) for b in lines] == [("main", "e8"), ("simd", "e5")]'
	sheaf branch demo again question
	sheaf branch demo again --json e1 | py 'd["branch"] == "again" and d["leaf"] == "e1"'
	sheaf branch demo fresh
	sheaf branch demo --json | py '{b["name"]: b["leaf"] for b in lines} == {"main": "e8", "simd": "e5", "again": "e1", "fresh": "e8"}'
	sheaf branch demo again -d
	run -0 sheaf branch demo
	has_not again
}

@test "branch: moving main back and going on leaves the rest as it was" {
	make_tree
	sheaf branch demo main e4
	sheaf append demo -i e9 'Neither'
	sheaf cat demo e9 | py 'd["parent_id"] == "e4"'
	sheaf show demo --leaf e8 | grep -q 'twice as fast'
}

@test "branch: --summary and --root" {
	make_tree
	sheaf branch demo main e4 --summary 'The table works.'
	run -0 sheaf context demo
	has 'The table works.'
	sheaf branch demo main --root
	run -0 sheaf show demo --json
	[ -z "$output" ]
	sheaf append demo -i e9 'From the start'
	sheaf cat demo e9 | py 'd["parent_id"] is None'
}

@test "branch: mistakes" {
	make_tree
	run -3 sheaf branch demo simd
	has "branch 'simd' already"
	run -1 sheaf branch demo x nowhere
	run -2 sheaf branch demo main -d
	run -2 sheaf branch demo -d
	run -2 sheaf branch demo x e1 --root
	run -2 sheaf branch demo '' e1
	run -1 sheaf branch nothing
}

@test "a branch can stand for its leaf" {
	make_tree
	sheaf branch demo main simd
	sheaf branch demo --json | py 'lines[0]["leaf"] == "e5"'
}

@test "fork: shares the past, then goes its own way" {
	make_tree
	run -0 sheaf fork demo copy --at question
	[ "$output" = copy ]
	sheaf append copy -i f1 'Only here'
	sheaf show copy | grep -q 'Make the parser faster'
	run -0 sheaf show demo
	has_not 'Only here'
	sheaf ls --json | py '[x["fork_of"] for x in lines if x["session"] == "copy"] == ["demo"]'
	run -0 sheaf tree copy
	has 'fork of demo'
	run -0 sheaf fork demo
	[[ $output =~ ^[0-9a-f]{8}- ]]
	sheaf fork demo named --name 'Another' --json | py 'd == {"session": "named", "app": "", "user": "", "fork_of": "demo"}'
}

@test "fork: mistakes" {
	make_tree
	run -3 sheaf fork demo demo
	run -1 sheaf fork demo x --at nowhere
	run -1 sheaf fork nothing x
	run -2 sheaf fork
}

@test "label: sets, lists, stands for the id, goes" {
	make_tree
	sheaf label demo e1 start
	run -0 sheaf label demo
	has '[start] @2 user: Make the parser faster'
	has '[question] @5'
	sheaf label demo --json | py '[(x["label"], x["entry_id"]) for x in lines] == [("start", "e1"), ("question", "e4")]'
	sheaf cat demo start | py 'd["id"] == "e1"'
	sheaf label demo start first
	sheaf label demo first -d
	run -0 sheaf label demo
	has_not first
	run -1 sheaf label demo nowhere x
	run -2 sheaf label demo e1 ''
	run -2 sheaf label demo e1
	run -2 sheaf label demo -d
	sheaf label demo e1 --json again | py 'd["entry_id"] == "e1" and d["label"] == "again"'
}

@test "rename: the name can stand for the id" {
	make_tree
	run -0 sheaf rename demo 'A better name'
	has "'A better name'"
	sheaf show 'A better name' >/dev/null
	sheaf rename demo '' -q
	run -1 sheaf show 'A better name'
	sheaf rename demo x --json | py 'd["name"] == "x" and d["seq"]'
	run -1 sheaf rename nothing x
}

@test "rm: gone at once; one needs no --force in a script, several do" {
	sheaf new a
	sheaf new b
	sheaf new c
	run --separate-stderr -0 sheaf rm a </dev/null
	[ -z "$output" ]
	[ "$stderr" = 'deleted a' ]
	run -1 sheaf show a
	run -1 sheaf rm a
	run -2 sheaf rm b c
	has '--force'
	sheaf rm b c --force
	[ -z "$(sheaf ls -q)" ]
	sheaf rm --force a
	sheaf new by-name --name 'A name'
	sheaf rm --force 'A name'
	[ -z "$(sheaf ls -q)" ]
	sheaf rm --force --json a | py 'd == {"session": "a", "existed": False, "hidden": False, "forks": []}'
}

@test "rm: on a terminal it asks" {
	sheaf new a
	run script -qec "$SHEAF_BIN rm a" /dev/null <<<n
	has 'Delete it for good? [y/N]'
	sheaf show a >/dev/null
	run script -qec "$SHEAF_BIN rm a" /dev/null <<<y
	run -1 sheaf show a
}

@test "rm: says which forks keep it hidden; --purge erases all" {
	make_tree
	sheaf fork demo kept --at question
	run -0 sheaf rm demo
	has 'kept'
	has 'hidden'
	run -1 sheaf show demo
	sheaf show kept | grep -q 'Make the parser faster'
	run -3 sheaf new demo
	sheaf rm --purge demo
	sheaf show kept | grep -q 'Make the parser faster'
	sheaf new demo
	make_tree other
	sheaf fork other kept2 -q
	sheaf rm other --json | py 'd["hidden"] and d["forks"] == ["kept2"]'
}

@test "check: a whole store in order" {
	make_tree
	make_tree second
	run -0 sheaf check
	has '2 sessions'
	has 'no damage'
	sheaf check demo --json | py 'd["sessions"] == 1 and d["records"] == 10 and d["problems"] == [] and d["damaged"] is False'
	run -1 sheaf check nothing
}

@test "check and repair: damage is found, named, mended, and nothing readable is lost" {
	make_tree
	make_tree second
	# One byte in the middle of a record.
	sed -i 's/Shall I use SIMD/Shall I use SIMX/' "$store/demo.jsonl"
	run -5 sheaf check
	has 'demo: damage at @5'
	has '1 problem'
	sheaf check second
	run -5 sheaf check demo --json
	py 'd["damaged"] and d["problems"][0]["what"] == "damage" and d["problems"][0]["seq"] == 5' <<<"$output"
	run -5 sheaf append demo 'more'
	run -5 sheaf show demo
	run -5 sheaf context demo
	sheaf context demo --allow-damage | grep -q 'twice as fast'
	run -5 sheaf cat demo
	run -0 sheaf repair demo
	has repaired
	run -0 sheaf check
	sheaf append demo 'more'
	sheaf show demo | grep -q 'twice as fast'
	run -0 sheaf repair demo
	has 'needs no repair'
	run -1 sheaf repair nothing
}

@test "check: the torn end of a crash is no damage, and the next writer moves it away" {
	make_tree
	printf '{"type":"message","id":"zz' >>"$store/demo.jsonl"
	run -0 sheaf check
	has torn
	sheaf show demo | grep -q 'twice as fast'
	run -0 sheaf append demo -i e9 'after the crash'
	has 'moved to'
	sheaf show demo | grep -q 'after the crash'
	run -0 sheaf check
}

@test "a foreign file is shown, listed as read-only and never written" {
	mkdir -p "$store"
	cat >"$store/pi.jsonl" <<'END'
{"type":"session","id":"pi","version":1,"timestamp":"2024-01-01T12:00:00Z"}
{"type":"message","id":"m1","parent_id":null,"timestamp":"2024-01-01T12:00:01Z","message":{"role":"user","content":[{"type":"text","text":{"content":"Hello from afar"}}]}}
END
	cp "$store/pi.jsonl" before
	run -0 sheaf show pi
	has 'Hello from afar'
	run -0 sheaf ls
	has '(read-only)'
	run -1 sheaf append pi more
	run -1 sheaf rename pi name
	run -1 sheaf repair pi
	run -0 sheaf check
	has 'pi: foreign'
	cmp before "$store/pi.jsonl"
	run -0 sheaf -S "jsonl:$store/pi.jsonl" tree
	has 'Hello from afar'
}

@test "a session whose header is unreadable is damaged, never empty" {
	make_tree
	sed -i '1s/"version":1/"version":2/' "$store/demo.jsonl"
	cp "$store/demo.jsonl" before
	run -5 sheaf check
	for command in 'show demo' 'append demo more' 'tree demo'; do
		run -5 sheaf $command
	done
	run -0 sheaf ls
	has '(damaged)'
	cmp before "$store/demo.jsonl"
}

@test "what may not be read ends with 4" {
	[ "$(id -u)" -ne 0 ] || skip "root may read everything"
	sheaf new demo
	chmod 000 "$store"
	run -4 sheaf show demo
	chmod 700 "$store"
}
