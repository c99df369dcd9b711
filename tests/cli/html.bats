# sheaf export --html, as a command; tests/html opens what it writes in a browser.

load helper

@test "a page is written whole or not at all" {
	make_tree
	sheaf export demo --html -o page.html
	head -c 15 page.html | grep -qx '<!DOCTYPE html>'
	tail -n 1 page.html | grep -qx '</html>'
	[ ! -e page.html.new ]
	sheaf export demo --html | cmp - page.html
	mkdir taken
	run -1 sheaf export demo --html -o taken
	[ ! -e taken.new ]
	run -1 sheaf export nothing --html -o none.html
	[ ! -e none.html ]
	run ! sh -c '"$0" export demo --html >/dev/full' "$SHEAF_BIN"
}

@test "it says how it wants to be asked" {
	make_tree
	run -2 sheaf export demo
	has '--html'
	run -2 sheaf export demo --html --format markdown
	run -2 sheaf export demo --html --install
	run -2 sheaf export demo --html --json
	run -0 --separate-stderr sheaf export demo --html --json -o page.html
	[ "$(jq -r .file <<<"$output")" = page.html ]
	run -1 sheaf export demo --html --branch none -o page.html
	run -2 script -qec "'$SHEAF_BIN' export demo --html" /dev/null
	has 'browser'
}

@test "the path that is asked for comes first, all others are there" {
	make_tree
	path() {
		sheaf export demo --html "$@" | sed -n '/id="path"/,/<.section>/p' | grep -o '<article[^>]* data-id="[^"]*"' |
			sed 's/.*data-id="//; s/"$//' | paste -sd' '
	}
	[ "$(path)" = 'e1 e2 e4 e6 e7 e8' ] # e3 answers e2 and stands in it
	[ "$(path --branch simd)" = 'e1 e2 e4 e5' ]
	[ "$(path --leaf e4)" = 'e1 e2 e4' ]
	sheaf export demo --html --leaf e2 >page.html
	for id in e1 e2 e4 e5 e6 e7 e8; do grep -q "data-id=\"$id\"" page.html; done
	grep -q 'line 40' page.html
}

@test "nothing, a fork, a foreign file and damage have a page, too" {
	sheaf new empty >/dev/null
	sheaf export empty --html | grep -q '<h1>empty</h1>'
	make_tree
	sheaf fork demo --at e4 forked >/dev/null
	sheaf append forked 'Another way' >/dev/null
	sheaf export forked --html >page.html
	grep -q 'Make the parser faster' page.html
	grep -q 'Another way' page.html
	grep -q 'Fork of' page.html
	printf '%s\n' '{"type":"session","version":3,"id":"s","timestamp":"2026-11-14T22:58:25Z","cwd":"/"}' \
		'{"type":"message","id":"a","parentId":null,"timestamp":"2026-11-14T22:58:26Z","message":{"role":"user","content":"Not ours"}}' >foreign.jsonl
	sheaf --store "jsonl:$PWD/foreign.jsonl" export "$(sheaf --store "jsonl:$PWD/foreign.jsonl" ls -q)" --html | grep -q 'Not ours'
	sed -i 's/Shall I use SIMD/Shall I use simd/' "$store/demo.jsonl"
	sheaf export demo --html >damaged.html
	grep -q 'cannot be read' damaged.html
	grep -q 'Make the parser faster' damaged.html # what hangs on it is still on the path
	[ "$(sed -n '/id="path"/,/<.section>/p' damaged.html | grep -c '<article')" -eq 6 ]
}

@test "memory does not grow with what a session holds" {
	sheaf new large >/dev/null
	for i in 1 2 3 4; do
		python3 -c '
import json, sys
for i in range(8):
    result = {"tool_use_id": "t", "content": "a line of output\n" * 60000}
    print(json.dumps({"type": "message", "message": {"role": "tool", "content": [{"type": "tool_result", "tool_result": result}]}}))
' | sheaf append large --batch -d process >/dev/null
	done
	[ "$(stat -c %s "$store/large.jsonl")" -gt 30000000 ]
	run -0 --separate-stderr python3 -c '
import resource, subprocess, sys
subprocess.run([sys.argv[1], "export", "large", "--html", "-o", "large.html"], check=True)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)' "$SHEAF_BIN"
	[ "$(stat -c %s large.html)" -gt 30000000 ]
	# A sanitizer keeps what was freed.
	if ! ldd "$SHEAF_BIN" | grep -qE 'asan|tsan'; then
		[ "$output" -lt 65536 ]
	fi
}
