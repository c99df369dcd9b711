# queue: add, claim, ack, cancel, ls.

load helper

@test "queue: what is added waits, in order" {
	sheaf new demo >/dev/null
	sheaf queue demo add first thing --id a
	echo 'second thing' | sheaf queue demo add --id b
	printf 'third\n' | sheaf queue demo add - --id c --priority 5
	sheaf queue demo add fourth --id d --priority -5
	run -0 sheaf queue demo
	[[ ${lines[0]} == 'c  5  '*third ]]
	[[ ${lines[1]} == 'a  0  '*'first thing' ]]
	[[ ${lines[2]} == 'b  0  '*'second thing' ]]
	[[ ${lines[3]} == 'd  -5  '*fourth ]]
	sheaf queue demo ls --json | py '[i["id"] for i in lines] == ["c", "a", "b", "d"] and lines[3]["priority"] == -5 and lines[1]["content"] == "first thing" and d["claimed_until"] is None'
}

@test "queue: add prints the id, and repeating it adds nothing" {
	sheaf new demo >/dev/null
	run -0 sheaf queue demo add hello
	[[ $output =~ ^[0-9a-f-]{36}$ ]]
	sheaf queue demo add hello --id "$output" --json | py 'd["existed"] is True'
	sheaf queue demo add other --id x --json | py 'd == {"id": "x", "existed": False}'
	run -3 sheaf queue demo add 'something else' --id x
	[ "$(sheaf queue demo --json | wc -l)" -eq 2 ]
}

@test "queue: claim, ack, and a token that is used up" {
	sheaf new demo >/dev/null
	sheaf queue demo add one --id a --env '{"cwd": "/tmp"}' -q
	sheaf queue demo add two --id b -q
	sheaf queue demo claim --json >claimed
	py <claimed 'len(d["items"]) == 1 and d["items"][0]["content"] == "one" and d["items"][0]["environment"] == {"cwd": "/tmp"} and d["items"][0]["claims"] == 1'
	token=$(python3 -c 'import json; print(json.load(open("claimed"))["token"])')
	run -0 sheaf queue demo
	[[ ${lines[0]} == *claimed*one ]]
	sheaf queue demo ack "$token"
	run -3 sheaf queue demo ack "$token"
	has 'nothing is claimed under this token'
	sheaf queue demo ls --json | py '[i["id"] for i in lines] == ["b"]'
}

@test "queue: claim for people prints the content, and the token on stderr" {
	sheaf new demo >/dev/null
	sheaf queue demo add 'Go on' --id a -q
	run -0 --separate-stderr sheaf queue demo claim --lease 5
	[ "$output" = 'Go on' ]
	[[ $stderr == '1 item for 5 s; when done: sheaf queue demo ack '* ]]
	sheaf queue demo ack "${stderr##* }"
	run -0 sheaf queue demo claim
	has 'nothing waits'
	sheaf queue demo claim --json | py 'd == {"token": None, "items": []}'
}

@test "queue: claim --all merges" {
	sheaf new demo >/dev/null
	sheaf queue demo add Hello --id a --env '{"n":1}' -q
	sheaf queue demo add World --id b --env '{"n":2}' -q
	sheaf queue demo add '!' --id c -q
	sheaf queue demo claim --all --json | py 'd["ids"] == ["a", "b", "c"] and d["content"] == "Hello\nWorld\n!" and d["environment"] == {"n": 2} and d["token"]'
	sheaf queue demo claim --all --json | py 'd == {"token": None, "ids": [], "content": None, "environment": None}'
}

@test "queue: claim -n takes several" {
	sheaf new demo >/dev/null
	for i in 1 2 3; do sheaf queue demo add "$i" --id "$i" -q; done
	sheaf queue demo claim -n 2 --json | py '[i["id"] for i in d["items"]] == ["1", "2"]'
}

@test "queue: a lease that is over gives the item to the next" {
	sheaf new demo >/dev/null
	sheaf queue demo add one --id a -q
	sheaf queue demo claim --lease 1 --json >first
	for _ in $(seq 100); do
		sheaf queue demo claim --json >second
		grep -q '"id":"a"' second && break
		sleep 0.1
	done
	py <second 'd["items"][0]["claims"] == 2'
	run -3 sheaf queue demo ack "$(python3 -c 'import json; print(json.load(open("first"))["token"])')"
	sheaf queue demo ack "$(python3 -c 'import json; print(json.load(open("second"))["token"])')"
}

@test "queue: cancel" {
	sheaf new demo >/dev/null
	sheaf queue demo add one --id a -q
	sheaf queue demo add two --id b -q
	sheaf queue demo cancel b --json | py 'd == {"id": "b", "existed": True}'
	sheaf queue demo cancel b --json | py 'd["existed"] is False'
	sheaf queue demo claim -q
	run -1 sheaf queue demo cancel a
	has 'somebody is working on the item'
}

@test "queue: mistakes" {
	sheaf new demo >/dev/null
	run -2 sheaf queue
	run -2 sheaf queue demo nonsense
	has 'none of ls, add, claim, ack, cancel'
	run -2 sheaf queue demo ack
	run -2 sheaf queue demo cancel
	run -2 sheaf queue demo ls more
	run -2 sheaf queue demo claim --priority 3
	run -2 sheaf queue demo add x --lease 3
	run -2 sheaf queue demo add x --priority high
	run -2 sheaf queue demo claim --lease 0
	run -2 sheaf queue demo add x --env '{'
	run -1 sheaf queue nothing add x
	run -1 sheaf queue nothing
}

@test "queue: goes with its session" {
	sheaf new demo >/dev/null
	sheaf queue demo add 'a secret' -q
	grep -rq 'a secret' "$store"
	sheaf rm -f demo -q
	run -1 grep -r 'a secret' "$store"
	sheaf new demo >/dev/null
	run -0 sheaf queue demo
	has 'nothing waits'
}

@test "queue: a terminal does not obey what waits" {
	sheaf new demo >/dev/null
	printf 'evil \033[31m red \342\200\256' | sheaf queue demo add --id "$(printf 'a\342\200\256b')" --env '"\u001b[31m"' -q
	sheaf queue demo | no_controls
	sheaf queue demo --json | no_controls
	sheaf queue demo claim --json | no_controls
}

@test "queue: check and repair know its file" {
	sheaf new demo >/dev/null
	sheaf queue demo add one --id a -q
	sheaf queue demo add two --id b -q
	sheaf queue demo add three --id c -q
	sed -i 's/"content":"two"/"content":"tWo"/' "$store/.queue/demo.jsonl"
	run -5 sheaf check
	has 'queue'
	run -5 sheaf queue demo
	has 'repair'
	sheaf repair demo -q
	run -0 sheaf check demo
	sheaf queue demo --json | py '[i["id"] for i in lines] == ["a", "c"]'
	ls "$store/.kept" | grep -q 'demo.queue-damaged-'
}
