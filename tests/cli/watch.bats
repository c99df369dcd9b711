# watch: records as they come.

load helper

# Runs `sheaf watch "$@"` in the background, its output in the file out.
watch() {
	"$SHEAF_BIN" watch "$@" >out 2>errors 3>&- &
	watcher=$!
}

# until_out COUNT TEXT: waits until the output has so many lines with the text.
until_out() {
	for _ in $(seq 200); do
		[ "$(grep -c -- "$2" out)" -ge "$1" ] && return 0
		sleep 0.05
	done
	cat out errors
	return 1
}

# ends SIGNAL CODE: the watcher does so when it gets the signal.
ends() {
	kill -"$1" "$watcher"
	local code=0
	wait "$watcher" || code=$?
	[ "$code" -eq "$2" ]
}

@test "watch: shows what comes, and ends well when interrupted" {
	make_tree
	watch demo
	sleep 0.3
	sheaf append demo -i e9 'one more' >/dev/null
	until_out 1 'one more'
	sheaf append demo -r assistant -i e10 'and another' >/dev/null
	until_out 1 'and another'
	sheaf label demo e10 last -q
	until_out 1 '"label":"last"'
	! grep -q 'Make the parser faster' out
	ends INT 0
	[ ! -s errors ]
}

@test "watch: --from says where to begin, --json gives the records" {
	make_tree
	watch demo --from 7 --json
	until_out 1 '"id":"e8"'
	sheaf append demo -i e9 'one more' >/dev/null
	until_out 1 '"id":"e9"'
	ends TERM 0
	sheaf cat demo | tail -n +8 >want
	diff want out
	watch demo --from 0 --json
	until_out 1 '"id":"e9"'
	ends INT 0
	sheaf cat demo >want
	diff want out
}

@test "watch: batches come whole" {
	sheaf new demo >/dev/null
	watch demo --json
	sleep 0.2
	printf '%s\n' '{"type":"message","id":"a","message":{"role":"user","content":[]}}' \
		'{"type":"message","id":"b","message":{"role":"user","content":[]}}' |
		sheaf append demo --batch >/dev/null
	until_out 2 '"type":"message"'
	ends INT 0
	py '[l["id"] for l in lines] == ["a", "b"]' <out
}

@test "watch: ends with 1 when the session is deleted" {
	make_tree
	watch demo
	sleep 0.3
	sheaf rm demo
	code=0
	wait "$watcher" || code=$?
	[ "$code" -eq 1 ]
	grep -q deleted errors
}

@test "watch: damaged records are shown as such" {
	make_tree
	sed -i 's/Shall I use SIMD/Shall I use simd/' "$store"/demo.jsonl
	watch demo --from 4 --json
	until_out 1 '"id":"e8"'
	ends INT 0
	py 'd["damaged"] and not any(l.get("damaged") for l in lines[1:])' <out
	watch demo --from 4
	until_out 1 'cannot be read'
	ends INT 0
}

@test "watch: mistakes" {
	sheaf new demo >/dev/null
	run -1 sheaf watch nothing
	run -2 sheaf watch demo --from x
	run -3 sheaf watch demo --from 5
	has 'ends at 0'
}

@test "watch: nothing from a transcript reaches the terminal" {
	sheaf new demo >/dev/null
	printf 'a\033[31mb\033]0;title\007\342\200\256c' | sheaf append demo --mend-text >/dev/null
	sheaf rename demo $'x\033[2J' || true
	watch demo --from 0
	until_out 1 'user'
	ends INT 0
	no_controls <out
}
