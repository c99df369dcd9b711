# What reaches a terminal: escapes, colour, pager, pipes.

load helper

# ESC with colour, OSC 52 (clipboard), OSC 8, C1 CSI and OSC, BEL, BS, CR, DEL, bidi, tags, BOM.
evil=$'\e[31mred\e]52;c;ZXZpbA==\a \e]8;;http://x\e\\link \u009b31m \u009d0;t\u009c \b\r \x7f \u202e\u2066\u061c\u200f \u2028 \U000e0041 \ufeff end'

make_evil() {
	sheaf new demo --name "$evil" -q >/dev/null
	sheaf append demo -i a -q -m "$evil" >/dev/null
	python3 - "$evil" <<'END' | sheaf append demo --batch -q >/dev/null
import json, sys
evil = sys.argv[1]
def message(role, *parts):
    print(json.dumps({"type": "message", "message": {"role": role, "model": evil, "content": list(parts)}}, ensure_ascii=False))
message("assistant", {"type": "thinking", "thinking": {"text": evil}},
        {"type": "tool_use", "tool_use": {"id": "t1", "name": evil, "input": {evil: evil, "x": [evil]}}},
        {"type": "image", "image": {"source": {"type": "url", "media_type": evil, "data": evil}}},
        {"type": "opaque", "opaque": {"provider": evil, "raw": {}}})
message("tool", {"type": "tool_result", "tool_result": {"tool_use_id": "t1", "tool_name": evil, "content": evil}})
print(json.dumps({"type": "custom", "custom": {"custom_type": evil, "data": evil}}, ensure_ascii=False))
print(json.dumps({"type": "model_change", "model_change": {"provider": evil, "model_id": evil}}, ensure_ascii=False))
print(json.dumps({"type": "thinking_level", "thinking_level": {"thinking_level": evil}}, ensure_ascii=False))
print(json.dumps({"type": "branch_summary", "branch_summary": {"summary": evil, "from_id": "a"}}, ensure_ascii=False))
END
	sheaf label demo a "${evil:0:200}" -q
	sheaf branch demo "x${evil:0:20}" a -q || true
}

@test "nothing of a transcript reaches people's output raw" {
	make_evil
	for command in 'ls' 'show demo' 'show demo --full' 'path demo' 'tree demo' 'tree demo --branch main' \
		'context demo' 'branch demo' 'label demo' 'check' 'ls --all'; do
		sheaf $command >out 2>err
		no_controls <out
		no_controls <err
	done
	sheaf show demo | grep -qF '^[[31mred^[]52;c;ZXZpbA==^G'
	sheaf show demo | grep -qF '<U+009B>31m'
	sheaf show demo | grep -qF '<U+202E>'
	sheaf show demo | grep -qF '<U+E0041>'
}

@test "JSON output escapes them and stays the same JSON" {
	make_evil
	for command in 'ls --json' 'show demo --json' 'path demo --json' 'tree demo --json' \
		'context demo --json' 'branch demo --json' 'label demo --json' 'cat demo --json'; do
		sheaf $command >out
		no_controls <out
		py 'True' <out
	done
	sheaf show demo --json | head -1 | python3 -c '
import json, sys
assert json.load(sys.stdin)["message"]["content"][0]["text"]["content"] == sys.argv[1]' "$evil"
}

@test "cat gives the bytes to a pipe and escapes them on a terminal" {
	make_evil
	diff <(sheaf cat demo) <(tail -n +2 "$store/demo.jsonl")
	in_terminal 80 "$SHEAF_BIN --no-pager cat demo a" | tr -d '\r' >out
	no_controls <out
}

@test "messages and errors do not pass on what they quote" {
	make_evil
	for command in show append cat rename; do
		sheaf $command "$evil$evil" x >out 2>err </dev/null || true
		no_controls <out
		no_controls <err
	done
	sheaf "$evil" 2>err || true
	no_controls <err
	sheaf show "--$evil" 2>err || true
	no_controls <err
	sheaf show demo --leaf "$evil" 2>err || true
	no_controls <err
	sheaf rename demo "$evil" 2>err
	no_controls <err
	sheaf label demo a "$evil" 2>err
	no_controls <err
	sheaf rm "x$evil" --force 2>err || true
	no_controls <err
	sheaf --json show "$evil" 2>err || true
	no_controls <err
}

@test "broken bytes and odd locales" {
	sheaf new demo -q
	sheaf append demo -q -m 'grün 日本語 👩‍👩‍👧 ok' >/dev/null
	sheaf show demo | grep -q 'grün 日本語 👩‍👩‍👧 ok'
	LC_ALL=C sheaf show demo | grep -q 'grün'
	sheaf show $'\xff\xfe\x9b' 2>err || true
	no_controls <err
}

@test "no colour in a pipe, unless forced" {
	make_tree
	run -0 sheaf tree demo
	has_not $'\e'
	run -0 sheaf tree demo --color=always
	has $'\e['
	FORCE_COLOR=1 run -0 sheaf tree demo
	has $'\e['
	FORCE_COLOR=1 run -0 sheaf tree demo --color=never
	has_not $'\e'
	FORCE_COLOR=0 run -0 sheaf tree demo
	has_not $'\e'
}

@test "colour on a terminal, but not with NO_COLOR or TERM=dumb" {
	make_tree
	run in_terminal 80 "$SHEAF_BIN --no-pager show demo"
	has $'\e['
	NO_COLOR=1 run in_terminal 80 "$SHEAF_BIN --no-pager show demo"
	has_not $'\e'
	NO_COLOR='' run in_terminal 80 "$SHEAF_BIN --no-pager show demo"
	has $'\e['
	TERM=dumb run in_terminal 80 "$SHEAF_BIN --no-pager show demo"
	has_not $'\e'
	NO_COLOR=1 run in_terminal 80 "$SHEAF_BIN --no-pager show demo --color=always"
	has $'\e['
	run in_terminal 80 "$SHEAF_BIN --no-pager show demo --json"
	has_not $'\e'
}

@test "the pager: only on a terminal, SHEAF_PAGER before PAGER, off by cat, '' and --no-pager" {
	make_tree
	export SHEAF_PAGER='sed s/^/PAGED:/' PAGER='sed s/^/OTHER:/'
	run -0 sheaf show demo
	has_not PAGED
	run in_terminal 80 "$SHEAF_BIN show demo"
	has PAGED:
	run in_terminal 80 "$SHEAF_BIN show demo --no-pager"
	has_not PAGED
	run in_terminal 80 "$SHEAF_BIN show demo --json"
	has_not PAGED
	SHEAF_PAGER=cat run in_terminal 80 "$SHEAF_BIN show demo"
	has_not PAGED
	has_not OTHER
	SHEAF_PAGER='' run in_terminal 80 "$SHEAF_BIN show demo"
	has_not PAGED
	unset SHEAF_PAGER
	run in_terminal 80 "$SHEAF_BIN show demo"
	has OTHER:
}

@test "the pager gets LESS=FRX unless it is set" {
	make_tree
	SHEAF_PAGER='cat >/dev/null; echo "LESS is $LESS"' run in_terminal 80 "$SHEAF_BIN show demo"
	has 'LESS is FRX'
	LESS=i SHEAF_PAGER='cat >/dev/null; echo "LESS is $LESS"' run in_terminal 80 "$SHEAF_BIN show demo"
	has 'LESS is i'
}

@test "messages wait for the pager" {
	for i in 1 2 3; do sheaf new "s$i" -q; done
	SHEAF_PAGER='sleep 0.3; sed s/^/PAGED:/' run -0 in_terminal 80 "$SHEAF_BIN ls -n 2"
	[[ ${lines[2]} == PAGED:* ]]
	[[ ${lines[3]} == 'more: '* ]]
}

@test "an error starts no pager" {
	export SHEAF_PAGER='sed s/^/PAGED:/'
	run in_terminal 80 "$SHEAF_BIN show nothing"
	has "no session 'nothing'"
	has_not PAGED
}

@test "a pager that quits early is no error, and neither is a closed pipe" {
	make_tree
	SHEAF_PAGER='head -1' run -0 in_terminal 80 "$SHEAF_BIN show demo"
	has_not 'sheaf:'
	for i in $(seq 1 20000); do
		echo "{\"type\":\"message\",\"message\":{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":{\"content\":\"message number $i of a long conversation\"}}]}}"
	done | split -l 4000 --filter "$SHEAF_BIN append demo --batch -q >/dev/null"
	SHEAF_PAGER='head -1' run -0 in_terminal 80 "$SHEAF_BIN show demo"
	has_not 'sheaf:'
	(sheaf show demo 2>err || echo "$?" >code) | head -1 >/dev/null
	[ ! -s err ]
	[ "$(cat code)" -eq 141 ]
	(sheaf cat demo 2>err || echo "$?" >code) | head -1 >/dev/null
	[ ! -s err ]
}

@test "a full disk is an error" {
	make_tree
	[ -w /dev/full ] || skip
	run --separate-stderr -1 bash -c '"$0" show demo >/dev/full' "$SHEAF_BIN"
	[[ $stderr == *'cannot write the output'* ]]
}

@test "text is wrapped at words on a terminal, code is not, and nothing in a pipe" {
	sheaf new demo
	local long
	long=$(printf 'word %.0s' $(seq 1 60))
	printf '%s\n```\n%s\n```\n' "$long" "code $long" | sheaf append demo -q
	in_terminal 60 "$SHEAF_BIN --no-pager --color=never show demo" | tr -d '\r' >out
	python3 - <<'END'
lines = open("out").read().split("\n")
code = [l for l in lines if "code" in l]
assert len(code) == 1 and len(code[0]) > 200, code
assert all(len(l) <= 60 for l in lines if l not in code), lines
assert sum(l.startswith("  word") for l in lines) > 4
END
	[ "$(sheaf show demo | grep -c '^  word')" -eq 1 ]
}

@test "widths: ls and tree at 60, 80 and 200 columns on a terminal" {
	make_tree
	sheaf new 日本語 --name '日本語のとても長い名前のセッション、端末の幅を超える名前です、はい、そうです' -q
	sheaf append 日本語 -q '日本語のとても長いメッセージ、端末の幅を超えるメッセージです、はい、そうです。日本語のとても長いメッセージ'
	for width in 60 80 200; do
		for command in 'ls' 'tree demo' 'tree 日本語' 'path demo'; do
			in_terminal $width "$SHEAF_BIN --no-pager --color=never $command" | tr -d '\r' |
				python3 -c '
import sys, unicodedata
def width(s):
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in s)
lines = sys.stdin.read().split("\n")
lines = lines[2:] if lines[0].startswith(("demo", "日本語")) else lines  # a title is shown whole
wide = [l for l in lines if width(l) > int(sys.argv[1])]
sys.exit(repr(wide) if wide else 0)' "$width"
		done
	done
}
