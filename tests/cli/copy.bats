# copy: from store to store, broken off and gone on with.

load helper

# many SESSIONS RECORDS BYTES: fills jsonl:from with sessions of so many records.
many() {
	local i
	export SHEAF_BIN
	python3 -c '
import json, sys
for i in range(int(sys.argv[1])):
    message = {"role": "user", "content": [{"type": "text", "text": {"content": "x" * int(sys.argv[2])}}]}
    print(json.dumps({"type": "message", "message": message}))
' "$2" "$3" >records
	for i in $(seq "$1"); do
		sheaf -S jsonl:from new "s$i" >/dev/null
		split -l 500 --filter='"$SHEAF_BIN" -S jsonl:from append '"s$i"' --batch >/dev/null' records
	done
}

# The logs of a store, each with its name.
logs() {
	(cd "$1" && find . -name '*.jsonl' -print0 | sort -z | xargs -0 sha256sum)
}

same() {
	diff <(logs "$1") <(logs "$2")
}

@test "copy: every byte of every session, twice" {
	export SHEAF_STORE=jsonl:from
	make_tree
	sheaf --app shop --user ada new one >/dev/null
	sheaf --app shop --user bob new two >/dev/null
	sheaf fork demo child --at question >/dev/null
	sheaf append child 'on my own' >/dev/null
	unset SHEAF_STORE
	run -0 sheaf copy --all jsonl:from jsonl:to
	has '4 sessions: 4 copied'
	same from to
	run -0 sheaf copy --all jsonl:from jsonl:to
	has '0 copied, 4 there already'
	has '0 records'
	same from to
	sheaf -S jsonl:to check
}

@test "copy: one owner, all of an app, or everybody" {
	sheaf -S jsonl:from --app shop --user ada new one >/dev/null
	sheaf -S jsonl:from --app shop --user bob new two >/dev/null
	sheaf -S jsonl:from new three >/dev/null
	run -0 sheaf copy jsonl:from jsonl:to --app shop --user ada
	has '1 session: 1 copied'
	[ -e to/shop/ada/one.jsonl ]
	[ ! -e to/shop/bob ]
	run -0 sheaf copy jsonl:from jsonl:to --app shop --all
	has '2 sessions: 1 copied, 1 there already'
	run -0 sheaf copy jsonl:from jsonl:to
	has '1 session: 1 copied'
	same from to
	run -0 sheaf copy jsonl:from jsonl:to --app nobody
	has '--all copies everybody'
}

@test "copy: a deleted session arrives as deleted, its forks as they are" {
	export SHEAF_STORE=jsonl:from
	make_tree
	sheaf fork demo child --at question >/dev/null
	sheaf rm demo 2>/dev/null
	unset SHEAF_STORE
	sheaf copy jsonl:from jsonl:to
	same from to
	run -1 sheaf -S jsonl:to show demo
	diff <(sheaf -S jsonl:from cat child) <(sheaf -S jsonl:to cat child)
	sheaf -S jsonl:to rm child
	[ ! -e to/demo.jsonl ]
}

@test "copy: only what is missing is written" {
	export SHEAF_STORE=jsonl:from
	make_tree
	sheaf copy jsonl:from jsonl:to
	sheaf append demo 'one more' >/dev/null
	run -0 sheaf copy jsonl:from jsonl:to
	has '1 extended'
	has '1 record,'
	same from to
}

@test "copy: a conflict is reported and left alone" {
	sheaf -S jsonl:from new demo >/dev/null
	sheaf -S jsonl:from append demo -i a one >/dev/null
	sheaf -S jsonl:from new fine >/dev/null
	sheaf copy jsonl:from jsonl:to --quiet
	sheaf -S jsonl:from append demo -i b two >/dev/null
	sheaf -S jsonl:to append demo -i z zwei >/dev/null
	sheaf -S jsonl:from append fine -i c three >/dev/null
	logs to | grep demo >before
	run -3 sheaf copy jsonl:from jsonl:to
	has 'demo: conflict at @2: another record is there'
	has '1 extended'
	has '1 in conflict'
	logs to | grep demo | diff before -
	sheaf copy jsonl:from jsonl:to --json 2>/dev/null >out || [ $? -eq 3 ]
	py 'd["note"] == "conflict" and d["session"] == "demo" and d["seq"] == 2 and lines[-1]["conflicts"] == 1 and lines[-1]["equal"] == 1' <out
}

@test "copy: a damaged session is named, the others are copied" {
	export SHEAF_STORE=jsonl:from
	make_tree
	sheaf new fine >/dev/null
	sed -i 's/Shall I use SIMD/Shall I use simd/' from/demo.jsonl
	run -5 sheaf copy jsonl:from jsonl:to
	has 'demo: record 5 cannot be read'
	has '1 failed'
	[ -e to/fine.jsonl ]
}

@test "copy: a file of another program is taken in" {
	mkdir from
	cat >from/old.jsonl <<'END'
{"type":"session","id":"old","timestamp":"2026-01-02T03:04:05Z","cwd":"/tmp"}
{"type":"message","id":"m1","parentId":null,"timestamp":"2026-01-02T03:04:06Z","message":{"role":"user","content":[{"type":"text","text":{"content":"hello"}}]}}
END
	run -0 sheaf copy jsonl:from jsonl:to
	has '1 copied'
	sheaf -S jsonl:to show old | grep -q hello
	run -0 sheaf copy jsonl:from jsonl:to
	has '1 there already'
}

@test "copy: killed at any moment, the next run ends it" {
	many 12 2000 300
	sheaf -S jsonl:from fork s1 child1 >/dev/null
	sheaf -S jsonl:from fork s2 a-child >/dev/null
	sheaf -S jsonl:from append a-child 'on its own' >/dev/null
	sheaf -S jsonl:from rm s2 2>/dev/null
	killed=0
	for i in $(seq 40); do
		"$SHEAF_BIN" copy jsonl:from jsonl:to -q 3>&- &
		sleep "0.0$((RANDOM % 8))$((RANDOM % 10))"
		kill -9 $! 2>/dev/null || true
		code=0
		wait $! || code=$?
		[ "$code" -eq 137 ] && killed=$((killed + 1))
		[ "$code" -eq 137 ] || [ "$code" -eq 0 ]
		# The sooner the better: what is there is soon only compared.
		[ $((i % 10)) -ne 0 ] || rm -rf to
	done
	[ "$killed" -ge 10 ]
	"$SHEAF_BIN" copy jsonl:from jsonl:to -q 3>&- &
	sleep 0.03
	kill -9 $! 2>/dev/null || true
	wait $! || true
	run -0 sheaf copy jsonl:from jsonl:to
	has_not conflict
	same from to
	sheaf -S jsonl:to check
}

@test "copy: needs memory for a portion, not for the store" {
	if grep -q __asan_init "$SHEAF_BIN" || grep -q __tsan_init "$SHEAF_BIN"; then
		skip 'a sanitizer keeps what was freed'
	fi
	many 1 20000 5000
	[ "$(stat -c %s from/s1.jsonl)" -gt 100000000 ]
	python3 - "$SHEAF_BIN" <<'END'
import resource, subprocess, sys
subprocess.run([sys.argv[1], "copy", "jsonl:from", "jsonl:to"], check=True)
most = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
sys.exit("%d kB were needed" % most if most > 64 * 1024 else 0)
END
	same from to
}

@test "copy: a bar for people, none for programs" {
	many 3 100 100
	run -0 in_terminal 100 "'$SHEAF_BIN' copy jsonl:from jsonl:to"
	has '/3 sessions'
	has '%'
	has '3 copied'
	run -0 sheaf copy jsonl:from jsonl:other
	has_not '%'
	run -0 in_terminal 100 "'$SHEAF_BIN' copy -q jsonl:from jsonl:third"
	[ -z "$output" ]
}

@test "copy: mistakes" {
	run -2 sheaf copy jsonl:from
	run -2 sheaf copy -S jsonl:x jsonl:from jsonl:to
	run -2 sheaf copy --all --user ada jsonl:from jsonl:to
	run -1 sheaf copy nothing:x jsonl:to
	run -1 sheaf copy jsonl:from 'jsonl:to?readonly=1'
}
