# import and export: what other agents wrote, in and out again.

load helper

data=$root/tests/data/import

# line ID PARENT TEXT: an entry of a pi session.
line() {
	printf '{"type":"message","id":"%s","parentId":%s,"timestamp":"2026-11-14T10:00:00.000Z","message":{"role":"user","content":"%s"}}\n' "$@"
}

head_line() {
	echo '{"type":"session","version":3,"id":"s1","timestamp":"2026-11-14T10:00:00.000Z","cwd":"/p"}'
}

@test "import --all: everything below the home directory, once" {
	mkdir -p "$HOME/.claude" "$HOME/.pi/agent"
	cp -r "$data/claude-code/2.1.197/projects" "$HOME/.claude/"
	cp -r "$data/pi/0.73.1/sessions" "$HOME/.pi/agent/"
	run -0 --separate-stderr sheaf import --all
	[ "${#lines[@]}" -eq 7 ]
	[[ $stderr == '7 sessions: 7 new, '* ]]
	run -0 sheaf import --all
	[ "$output" = '7 sessions: 0 new, 0 grown, 0 changed, 7 as before; 0 records' ]
	sheaf ls --json | py 'len(lines) == 7 and all(l["modified"].startswith("2026-11-14") for l in lines)'
	run -0 sheaf ls --kind subagent -q
	[ "$output" = claude-code.11111111-1111-4111-8111-111111111111.agent-a09d105b4b643baac ]
	sheaf check
	for file in "$HOME"/.pi/agent/sessions/*/*.jsonl; do
		id=${file##*_}
		sheaf export "pi.${id%.jsonl}" --format pi | cmp - "$file"
	done
	for file in "$HOME"/.claude/projects/*/*.jsonl; do
		id=${file##*/}
		sheaf export "claude-code.${id%.jsonl}" --format claude-code -o out
		cmp out "$file"
	done
}

@test "import: nothing to import is said" {
	run -2 sheaf import
	has 'A PATH, or --all'
	run -0 sheaf import --all
	has 'no agent that is known'
	run -1 sheaf import nowhere.jsonl
	echo '{}' >x.jsonl
	run -1 sheaf import x.jsonl
	has 'sheaf help import'
	run -2 sheaf import --format nonsense x.jsonl
	run -2 sheaf import --all --format pi
	run -0 sheaf import .
	has '0 sessions'
}

@test "import: what grew, what changed, what is broken" {
	{
		head_line
		line a null one
	} >x.jsonl
	sheaf import x.jsonl
	line b '"a"' two >>x.jsonl
	printf '{"type":' >>x.jsonl
	run -0 sheaf import x.jsonl
	has 'grown   pi.s1  1 record, the last line is not whole yet'
	{
		head_line
		line a null uno
		echo '{{{'
	} >x.jsonl
	run -0 sheaf import x.jsonl
	has 'x.jsonl: not what was imported before'
	has 'x.jsonl:3: not JSON'
	has 'changed pi.s1~2'
	sheaf export 'pi.s1~2' -f pi | cmp - x.jsonl
	run -0 sheaf show pi.s1
	has 'one'
	has 'two'
}

@test "import: --dry-run writes nothing, --json says everything" {
	{
		head_line
		line a null one
		echo 'x'
	} >x.jsonl
	sheaf import --dry-run --json x.jsonl |
		py '[l.get("state") for l in lines] == ["new", None, None] and d["records"] == 3 and d["pieces"] == 3'
	[ -z "$(sheaf ls -q)" ]
	sheaf import --json x.jsonl >out
	py 'd["session"] == "pi.s1" and d["kept"] == 2 and not d["partial"]' <out
	py 'lines[1]["line"] == 3 and lines[1]["file"] == "x.jsonl"' <out
	py 'lines[2]["new"] == 1 and lines[2]["problems"] == 1' <out
	sheaf import --json x.jsonl | py 'd["state"] == "same"'
	run -0 --separate-stderr sheaf -q --app shop --user ada import x.jsonl
	[ "$output" = pi.s1 ]
	[ "$(sheaf --app shop --user ada ls -q)" = pi.s1 ]
}

@test "import --watch: as it is written" {
	head_line >x.jsonl
	"$SHEAF_BIN" import --watch x.jsonl >out 2>err 3>&- &
	pid=$!
	for text in one two; do
		line "$text" null "$text" >>x.jsonl
		for _ in $(seq 100); do
			sheaf cat pi.s1 "$text" >/dev/null 2>&1 && break
			sleep 0.1
		done
	done
	kill -INT $pid
	wait $pid
	grep -q '^new' out
	grep -q '^grown' out
	[ "$(sheaf path pi.s1 --json | wc -l)" -eq 1 ]
}

@test "export: to read, and for programs" {
	make_tree
	run -0 --separate-stderr sheaf export demo --format markdown
	[ "${lines[0]}" = '# Make it faster' ]
	has '**Call** read_file'
	has '## Summary of what was said before'
	[[ $stderr == *'left out: entry of another branch (1)'* ]]
	run -0 sheaf export demo --format markdown --branch simd -q
	has 'Yes, try it'
	sheaf export demo --format jsonl -q | py '[l["id"] for l in lines] == ["e1","e2","e3","e4","e6","e7","e8"]'
	sheaf export demo --format jsonl -q | py 'lines[3]["label"] == "question"'
	sheaf export demo --format jsonl --json -o out | py 'd["losses"] == {"entry of another branch": 1} and not d["verbatim"]'
	[ "$(wc -l <out)" -eq 7 ]
	[ ! -e out.new ]
}

@test "export: mistakes" {
	make_tree
	run -2 sheaf export demo
	run -2 sheaf export demo --format nonsense
	run -2 sheaf export demo --format jsonl --json
	run -1 sheaf export nobody --format jsonl
	run -1 sheaf export demo --format jsonl -o nowhere/out
	has 'nowhere/out'
}

@test "import: memory stays bounded, whatever the file's size" {
	if grep -q __asan_init "$SHEAF_BIN" || grep -q __tsan_init "$SHEAF_BIN"; then
		skip 'a sanitizer keeps what was freed'
	fi
	python3 - <<'END'
import json
line = {"type": "message", "id": "", "parentId": None, "timestamp": "2026-11-14T10:00:00.000Z",
        "message": {"role": "user", "content": "x" * 2000}}
with open("x.jsonl", "w") as out:
    out.write('{"type":"session","version":3,"id":"s1","timestamp":"2026-11-14T10:00:00.000Z","cwd":"/p"}\n')
    for i in range(40000):
        line["id"] = "e%d" % i
        out.write(json.dumps(line) + "\n")
        line["parentId"] = line["id"]
    # One that fills a record, and one that no record can hold.
    for size in (7 << 20, 40 << 20):
        line["id"], line["message"]["content"] = "big%d" % size, "y" * size
        out.write(json.dumps(line) + "\n")
END
	cat >run.py <<'END'
import resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True)
peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
print("peak", peak)
sys.exit(peak > 64 << 10)
END
	python3 run.py "$SHEAF_BIN" import x.jsonl
	python3 run.py "$SHEAF_BIN" import x.jsonl
	python3 run.py "$SHEAF_BIN" export pi.s1 --format pi -o out
	cmp out x.jsonl
}

@test "import: memory stays bounded, whatever a file holds" {
	if grep -q __asan_init "$SHEAF_BIN" || grep -q __tsan_init "$SHEAF_BIN"; then
		skip 'a sanitizer keeps what was freed'
	fi
	python3 - <<'END'
head = '{"type":"session","version":3,"id":"%s","timestamp":"2026-11-14T10:00:00.000Z","cwd":"/p"}\n'
big = 20 << 20
def put(name, *parts):
    with open(name, "w") as out:
        for p in parts:
            out.write(p)
put("tiny.jsonl", head % "tiny", "{}\n" * 20000)
put("deep.jsonl", head % "deep", "[" * big, "\n", '{"a":' * (big // 5), "\n")
put("opencode.json", '{"info":{"id":"ses_1"},"messages":[', "[" * big, ',"', "x" * big, '"]}')
put("chatgpt.json", '[{"id":"c","create_time":1,"mapping":{', ",".join(
    '"n%d":{"id":"n%d","parent":"n%d","message":null}' % (i, i, i + 1) for i in range(60000)),
    '},"current_node":"n0","title":"', "x" * big, '"}]')
END
	cat >run.py <<'END'
import resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True)
peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
print("peak", peak)
sys.exit(peak > 64 << 10)
END
	for file in tiny.jsonl deep.jsonl opencode.json chatgpt.json; do
		python3 run.py "$SHEAF_BIN" -S 'jsonl:store?durability=process' import "$file" >out 2>&1
		grep -q "^$file:" out
	done
}

@test "import: names of files are shown without harm" {
	head_line | tee $'a\nb\e[31m.jsonl' >$'\xff.jsonl'
	echo '{{{' | tee -a $'a\nb\e[31m.jsonl' >>$'\xff.jsonl'
	run -0 sheaf import .
	has 'not JSON'
	[[ $output != *$'\e'* ]]
	mkfifo pipe
	run -1 timeout 10 "$SHEAF_BIN" import pipe
	sheaf check
}
