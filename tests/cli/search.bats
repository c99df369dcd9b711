# search: what was said, in every session, and the command that opens it.

load helper

make_sessions() {
	make_tree demo
	mkdir -p work/deep
	(cd work/deep && sheaf new other -q && sheaf append other -i o1 'The parser in src/net/http_server.c is slow' -q)
	sheaf append codex.7 -c -i c1 'connection refused by the parser' -q
}

@test "search: the session, the role, the snippet, and the command that opens it" {
	make_sessions
	run --separate-stderr -0 sheaf search parser faster
	[[ ${lines[0]} == 'Make it faster · demo · ~' ]]
	[[ ${lines[1]} == '  user · '* ]]
	[ "${lines[2]}" = '    Make the parser faster' ]
	[ "${lines[3]}" = '    sheaf show demo --leaf e1 --last 5' ]
	[ ${#lines[@]} -eq 4 ]
	[ -z "$stderr" ]
	run -0 sheaf show demo --leaf e1 --last 5
	has 'Make the parser faster'
}

@test "search: every command it prints opens its hit" {
	make_sessions
	sheaf append "it's" -c -i 'a b' 'quoted zebra' -q
	sheaf append -q --app 'my app' --user 'u/1' s -c -i x1 'an app zebra'
	local command
	while read -r command; do
		run -0 bash -c "sheaf() { '$SHEAF_BIN' \"\$@\"; }; $command"
		has zebra
	done < <(sheaf search zebra --all --json | python3 -c '
import json, sys
for line in sys.stdin: print(json.loads(line)["open"])')
	run -0 sheaf search zebra --all --json
	[ ${#lines[@]} -eq 2 ]
	run -0 sheaf --store "jsonl:$store" search zebra --json
	has " --store jsonl:$store"
}

@test "search: JSON for programs" {
	make_sessions
	run -0 sheaf search '"connection refused"' --json
	py 'd["session"] == "codex.7" and d["entry"] == "c1" and d["role"] == "user" and d["seq"] == 1' <<<"$output"
	py 'd["snippet"][d["marks"][0][0]:d["marks"][0][1]] == "connection refused"' <<<"$output"
	py 'd["open"] == "sheaf show codex.7 --leaf c1 --last 5" and d["score"] > 0' <<<"$output"
	run -0 sheaf search parser -q
	[ "$(sort <<<"$output")" = "$(printf 'codex.7\ndemo\nother')" ]
}

@test "search: filters" {
	make_sessions
	[ "$(sheaf search parser -q --agent codex)" = codex.7 ]
	[ "$(sheaf search parser -q --project work)" = other ]
	[ "$(cd work/deep && sheaf search parser -q --here)" = other ]
	[ "$(sheaf search parse.c --tool read_file -q)" = demo ]
	[ "$(sheaf search twice --role assistant --json | py 'len(lines) == 1 and d["entry"] == "e8"' && echo ok)" = ok ]
	[ "$(sheaf search line -r tool -q)" = demo ]
	run -1 sheaf search parser --since 2100-01-01
	run -1 sheaf search parser --before 2000-01-01
	[ "$(sheaf search parser -n 1 -q | wc -l)" -eq 1 ]
	run -2 sheaf search parser --role nobody
	run -2 sheaf search parser --here --project .
}

@test "search: nothing found, nothing asked" {
	make_sessions
	run --separate-stderr -1 sheaf search nowhere
	[ -z "$output" ]
	[ "$stderr" = 'nothing found' ]
	run -2 sheaf search
	run -2 sheaf search '"open'
	has 'a quote is open'
	run -2 sheaf search '...'
	has 'no word'
}

@test "search: text is never trusted by the terminal" {
	printf 'needle \033[31mred \xe2\x80\xae desrever \x07 end' | sheaf append evil -c -q
	sheaf rename evil "$(printf 'needle \033]0;owned\007')" -q
	run -0 sheaf search needle
	no_controls <<<"$output"
	has '^[[31mred'
	run -0 sheaf search needle --json
	no_controls <<<"$output"
	run -0 in_terminal 60 "$SHEAF_BIN" --color always --no-pager search needle red
	has $'\033[1;31mneedle\033[m'
	has_not $'\033[31mred'
}

@test "search: long hits are wrapped between words, wide characters measured" {
	{ yes 'words before it' | head -20 | tr '\n' ' '; printf '検索エンジンは速い needle '; yes 'and after' | head -30 | tr '\n' ' '; } |
		sheaf append long -c -q
	run -0 in_terminal 40 "$SHEAF_BIN" --color never --no-pager search needle
	python3 -c '
import sys, unicodedata
for line in sys.stdin.read().splitlines():
    width = sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in line)
    if line.startswith("    ") and "sheaf show" not in line and width > 40: sys.exit(line)
' <<<"$output"
	has needle
}

@test "search: follows what is written, renamed, deleted" {
	sheaf append s -c -i e1 'first xylophone' -q
	[ "$(sheaf search xylophone -q)" = s ]
	sheaf append s -i e2 'second marimba' -q
	[ "$(sheaf search marimba -q)" = s ]
	sheaf rename s 'Percussion' -q
	run -0 sheaf search percussion --json
	py 'd["role"] == "title" and d["entry"] is None and d["open"] == "sheaf show s"' <<<"$output"
	sheaf rm s --force -q
	run -1 sheaf search xylophone
	run ! grep -rqi xylophone "$store"
}

@test "search: the index may be deleted, and damage is mended" {
	make_sessions
	sheaf search parser >before
	rm -rf "$store/.search"
	sheaf search parser >after
	diff before after
	local at file=("$store"/.search/index-*.db)
	for ((at = 5000; at < $(stat -c %s "${file[0]}"); at += 4096)); do
		printf 'garbage' | dd of="${file[0]}" bs=1 seek=$at conv=notrunc status=none
	done
	run --separate-stderr -0 sheaf search parser
	[ "$stderr" = 'the search index was damaged and has been made anew' ]
	diff before <(echo "$output")
	run --separate-stderr -0 sheaf search parser
	[ -z "$stderr" ]
	run -0 sheaf search --rebuild
	has 'indexed 3 sessions'
	diff before <(sheaf search parser --rebuild)
}

@test "search: a store that cannot be written to is searched through the cache" {
	make_sessions
	export XDG_CACHE_HOME=$BATS_TEST_TMPDIR/cache
	[ "$(sheaf -S "jsonl:$store?readonly=1" search refused -q)" = codex.7 ]
	[ ! -e "$store/.search" ]
	[ "$(find "$XDG_CACHE_HOME" -name 'index-*.db' | wc -l)" -eq 1 ]
	[ "$(sheaf -S "jsonl:$store/demo.jsonl" search faster -q)" = demo ]
	# Deleting reaches that index too.
	sheaf rm codex.7 --force -q
	run ! grep -rqi refused "$XDG_CACHE_HOME" "$store"
}

@test "search: a library without the module drops the whole index" {
	make_sessions
	sheaf search parser -q >/dev/null
	mkdir bare
	cp -a "$(dirname "$SHEAF_BIN")"/../lib/libsheaf.so* bare/
	ldd "$SHEAF_BIN" | grep -q libsheaf || skip 'the library is linked in'
	LD_LIBRARY_PATH=$PWD/bare ldd "$SHEAF_BIN" | grep -q "$PWD/bare/libsheaf" || skip 'the library cannot be replaced'
	LD_LIBRARY_PATH=$PWD/bare run -1 sheaf search parser
	has 'the module for search is not installed'
	LD_LIBRARY_PATH=$PWD/bare sheaf rm codex.7 --force -q
	run ! ls "$store"/.search/index-*
	[ "$(sheaf search parser -q | wc -l)" -eq 2 ]
}

@test "search: two at once, and one that is killed" {
	local i
	for i in $(seq 1 40); do sheaf append "s$i" -c "parser number $i of many" -q; done
	for i in 1 2 3 4; do sheaf search parser -n 100 -q >"out$i" & done
	sheaf search parser -n 100 -q & sleep 0.02; kill -9 $! 2>/dev/null || true
	wait
	for i in 1 2 3 4; do [ "$(wc -l <"out$i")" -eq 40 ]; done
	[ "$(sheaf search parser -n 100 -q | wc -l)" -eq 40 ]
}
