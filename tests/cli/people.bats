# What people look at: lists by project, conversations laid out as Markdown, usage with bars.

load helper

# terminal COLUMNS COMMAND…: what a terminal of so many columns gets, without colour.
terminal() {
	in_terminal "$1" "NO_COLOR=1 $SHEAF_BIN --no-pager ${*:2}" | tr -d '\r'
}

# fits COLUMNS: no line of stdin is wider.
fits() {
	python3 -c '
import sys, unicodedata
def width(s):
    n, joined = 0, False
    for c in s:
        if unicodedata.combining(c) or c in "\u200d\ufe0f" or "\U0001f3fb" <= c <= "\U0001f3ff" or joined:
            joined = c == "\u200d"
            continue
        n += 2 if unicodedata.east_asian_width(c) in "WF" else 1
    return n
wide = [l for l in sys.stdin.read().split("\n") if width(l) > int(sys.argv[1])]
sys.exit(repr(wide) if wide else 0)' "$1"
}

# Sessions of three projects, some of them imported.
make_projects() {
	mkdir -p work/parser/src work/site
	sheaf new codex.0199aaaa-0000-7000-8000-000000000001 -C "$PWD/work/parser" --name 'Make it faster' -q
	sheaf new codex.0199aaaa-0000-7000-8000-000000000001~2 -C "$PWD/work/parser" -q
	sheaf new claude-code.7e1601ad-fc79-489d-913d-1323c8256c87 -C "$PWD/work/site" -q
	sheaf append claude-code.7e1601ad-fc79-489d-913d-1323c8256c87 -q 'Why is the page white?' >/dev/null
	sheaf new claude-code.7e1601ad-fc79-489d-913d-1323c8256c87.agent-03c89162 -k subagent -C "$PWD/work/site" -q
	sheaf new mine -C "$PWD/work/parser/src" --name 'By hand' -q
	sheaf append codex.0199aaaa-0000-7000-8000-000000000001 -q 'Make it faster' >/dev/null
}

@test "ls: the agent, and a short id that names the session again" {
	make_projects
	run terminal 100 ls
	[[ ${lines[0]} == 'ID '*'NAME '*'AGENT '*'MSGS  MODIFIED '*DIRECTORY ]]
	has '0199aaaa  '
	has '7e1601ad  '
	has 'agent-03c89162  '
	has_not 'codex.'
	has '~/work/parser/src'
	for id in 0199aaaa 7e1601ad agent-03c89162 codex.0199 mine; do
		run -0 sheaf path "$id"
	done
	run -0 sheaf show 7e1601ad
	[ "${lines[0]}" = claude-code.7e1601ad-fc79-489d-913d-1323c8256c87 ]
	run -0 sheaf show 0199aaaa-0000-7000-8000-000000000001
	[[ ${lines[0]} == codex.0199aaaa-0000-7000-8000-000000000001' '* ]]
	sheaf new claude-code.7e1601ae -q
	run sheaf show 7e16
	has 'could be any of 3 sessions'
	# A pipe gets whole ids.
	sheaf ls | grep -q '^codex.0199aaaa-0000-7000-8000-000000000001  *Make it faster  *codex '
}

@test "ls --by project: together, the newest project first" {
	make_projects
	run terminal 80 ls --by project
	[ "$(grep -n '^~' <<<"$output" | cut -d: -f2 | paste -sd' ')" = '~/work/parser ~/work/parser/src ~/work/site' ]
	[[ ${lines[1]} == '~/work/parser' ]]
	[[ ${lines[2]} == '  0199aaaa '*'Make it faster'*codex* ]]
	has_not DIRECTORY
	sheaf ls --by project --json | py '[l["cwd"].rsplit("/", 1)[1] for l in lines] == ["parser", "parser", "src", "site", "site"]'
	run -2 sheaf ls --by day
}

@test "ls: of a directory and below, of this one, of an agent" {
	make_projects
	[ "$(sheaf ls -q --project work/parser | paste -sd' ')" = 'codex.0199aaaa-0000-7000-8000-000000000001 mine codex.0199aaaa-0000-7000-8000-000000000001~2' ]
	[ "$(sheaf ls -q --cwd work/parser | wc -l)" -eq 2 ]
	[ "$(cd work/parser/src && sheaf ls -qH)" = mine ]
	[ "$(sheaf ls -q --here | wc -l)" -eq 5 ]
	[ "$(sheaf ls -q --agent claude-code | wc -l)" -eq 2 ]
	[ -z "$(sheaf ls -q --agent pi)" ]
	run -2 sheaf ls --here --project x
	run -2 sheaf ls --here --cwd x
}

@test "ls: fits terminals of any width" {
	make_projects
	sheaf new opencode.日本語 -C "$PWD/work/site" --name '日本語のとても長い名前のセッション、端末の幅を超える名前です 👩‍👩‍👧 👍🏽' -q
	sheaf new a-long-name-that-somebody-chose-for-a-session -q
	for columns in 50 80 120; do
		terminal $columns ls | fits $columns
		terminal $columns ls --by project | fits $columns
	done
}

# A conversation of the usual Markdown.
make_markdown() {
	sheaf new demo -q >/dev/null
	sheaf append demo -q -r assistant <<'END' >/dev/null
# What to do

Use **bold** and *italic*, `a_name`, ~~not this~~ and [the page](https://example.org/x).

- first, with words that go on until the end of a narrow line and beyond it
  1. inner
- [x] done

| File | Lines |
|------|------:|
| 日本語.c | 12 |
| b.c | 1234 |

> quoted &amp; &#27;[31m

```diff
-old	line
+new line
```
END
}

@test "show: Markdown on a terminal" {
	make_markdown
	run terminal 60 show demo
	has '  # What to do'
	has '  Use **bold** and *italic*, `a_name`, ~~not this~~ and the
  page (https://example.org/x).'
	has '  • first, with words that go on until the end of a narrow
    line and beyond it
    1. inner
  • [x] done'
	has '  File     │ Lines
  ─────────┼──────
  日本語.c │    12
  b.c      │  1234'
	has '  │ quoted & ^[[31m'
	has '    -old    line
    +new line'
	run in_terminal 60 "$SHEAF_BIN --no-pager show demo"
	has $'Use \e[1mbold\e[m and \e[3mitalic\e[m, \e[36ma_name\e[m, \e[9mnot this\e[m and'
	has $'\e[31m-old    line\e[m'
	LC_ALL=C run terminal 60 show demo
	has '  - first'
	has '  File     | Lines'
}

@test "show: a pipe, and what a model sees, have the source" {
	make_markdown
	run -0 sheaf show demo
	has 'Use **bold** and *italic*, `a_name`'
	has '| 日本語.c | 12 |'
	has '> quoted &amp; &#27;[31m'
	run terminal 80 context demo
	has '| 日本語.c | 12 |'
}

@test "show: hostile Markdown stays text, in any width" {
	sheaf new demo -q
	python3 - <<'END' | sheaf append demo -q >/dev/null
esc = "\x1b[31m\x1b]52;c;eA==\x07 \u009b \u202e \U000e0041 \r"
print("# " + esc + "\n\n- " + esc + "\n\n| " + esc.replace("\r", "") + " | b |\n|---|---|\n| &#27;[2J | &#x9b; |\n\n"
      "```" + esc.replace("\r", "") + "\n" + esc + "\n```\n\n[a&#27;b](<http://x/&#27;]0;x>) ![&#7;](&#x202e;)\n\n" + "> " * 300 + "deep\n\n"
      + "- " * 300 + "deep\n\n" + "|a" * 40 + "|\n" + "|-" * 40 + "|\n" + "|b" * 40 + "|\n\n" + "*a **b _c " * 200)
END
	for columns in 20 80; do
		terminal $columns show demo >out
		no_controls <out
		# Colours, and nothing else, are ours.
		in_terminal $columns "$SHEAF_BIN --no-pager show demo" | tr -d '\r' | sed 's/\x1b\[[0-9;]*m//g' >out
		no_controls <out
		[ "$(grep -c deep out)" -ge 2 ]
	done
}

@test "show: text of any script fits the columns" {
	sheaf new demo -q
	python3 - <<'END' | sheaf append demo -q >/dev/null
cjk = "日本語のとても長いメッセージ、端末の幅を超えるメッセージです。" * 5
emoji = "👩‍👩‍👧 👍🏽 ⚠ é " * 20
print(cjk + "\n\n- " + cjk + "\n\n> " + emoji + "\n\n| " + cjk + " | " + emoji + " |\n|---|---|\n| a | " + "word " * 30 + " |")
END
	for columns in 30 80; do
		terminal $columns show demo | tail -n +3 | fits $columns
	done
}

@test "show: a long text is shown at once, as it stands" {
	sheaf new demo -q
	python3 -c 'print("[a]: http://" + "x" * 100 + "\n\n" + "**not bold** http://a.b " * 200000)' | sheaf append demo -q >/dev/null
	SECONDS=0
	terminal 80 show demo >out
	[ "$SECONDS" -lt 10 ]
	grep -qF '**not bold**' out
}

@test "show: edits as the lines that go and come, on a terminal" {
	sheaf new demo -q
	sheaf append demo --batch -q <<'END' >/dev/null
{"type":"message","message":{"role":"assistant","content":[{"type":"tool_use","tool_use":{"id":"1","name":"Edit","input":{"file_path":"a.c","old_string":"same\n\told\nend\n","new_string":"same\n\tnew \u001b[31m\nmore\nend\n"}}}]}}
{"type":"message","message":{"role":"assistant","content":[{"type":"tool_use","tool_use":{"id":"2","name":"MultiEdit","input":{"path":"b.c","edits":[{"oldText":"one","newText":"two"},{"oldText":"three","newText":""}]}}}]}}
{"type":"message","message":{"role":"assistant","content":[{"type":"tool_use","tool_use":{"id":"3","name":"shell","input":{"command":["apply_patch","*** Begin Patch\n*** Update File: c.c\n-gone\n+come\n*** End Patch\n"]}}}]}}
{"type":"message","message":{"role":"assistant","content":[{"type":"tool_use","tool_use":{"id":"4","name":"Edit","input":{"file_path":"d.c","old_string":"a\n","new_string":"1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n13\n14\n15\n"}}}]}}
{"type":"message","message":{"role":"assistant","content":[{"type":"tool_use","tool_use":{"id":"5","name":"Edit","input":{"old_string":5,"new_string":"x"}}}]}}
END
	run terminal 60 show demo
	has '  → Edit(a.c)
  │ -	old
  │ +	new ^[[31m
  │ +more
'
	has '  → MultiEdit(b.c)
  │ -one
  │ +two
  │ @@
  │ -three
'
	has '  → shell()
  │ *** Begin Patch'
	has '  │ +11
  … 4 more lines'
	has '  → Edit(old_string: 5, new_string: x)'
	run in_terminal 60 "$SHEAF_BIN --no-pager show demo"
	has $'\e[31m-one\e[m'
	has $'\e[32m+two\e[m'
	run terminal 60 show demo --full
	has '+15'
	# A pipe has the call as it is.
	run -0 sheaf show demo
	has '→ Edit(file_path: a.c, old_string: same'
}

@test "show: pictures and documents are named, not dumped" {
	sheaf new demo -q
	python3 - <<'END' | sheaf append demo --message-json -q >/dev/null
import json
def media(kind, source): return {"type": kind, kind: {"source": source}}
print(json.dumps({"role": "user", "content": [
    media("image", {"type": "base64", "media_type": "image/png", "data": "QUJD" * 1000}),
    media("image", {"type": "url", "data": "https://example.org/cat.png"}),
    media("image", {"type": "url", "media_type": "image/gif", "data": "data:image/gif;base64," + "QUJD" * 1000}),
    media("document", {"type": "text", "media_type": "text/plain", "data": "secret words " * 1000})]}))
END
	run -0 sheaf show demo
	has '[image image/png, 3.0 kB]'
	has '[image https://example.org/cat.png]'
	has '[image image/gif, 4.0 kB]'
	has '[document text/plain, 13 kB]'
	has_not QUJD
	has_not secret
}

# Replies of three projects, two models, three days.
make_used() {
	local i=0
	for row in 'a /srv/shop 1000 2026-11-01' 'b /srv/shop 3000 2026-11-02' 'c /srv/日本語のとても長い名前のディレクトリ 2000 2026-11-03' 'd /srv/empty 0 2026-11-03'; do
		set -- $row
		sheaf new "codex.$1" -C "$2" --name '名前 👩‍👩‍👧 of it' -q >/dev/null
		[ "$3" -eq 0 ] || echo "{\"type\":\"message\",\"id\":\"r$((i += 1))\",\"timestamp\":\"$4T12:00:00Z\",\"message\":{\"role\":\"assistant\",\"content\":\"x\",\"provider\":\"anthropic\",\"model\":\"claude-sonnet-4-5\",\"usage\":{\"output\":$3}}}" |
			sheaf append "codex.$1" --batch -q >/dev/null
	done
}

@test "usage --by project, day and session, with bars" {
	make_used
	run -0 sheaf usage --by project
	[[ ${lines[0]} == 'PROJECT '*'COST  OF COST' ]]
	[[ ${lines[1]} == '/srv/日本語のとても長い名前のディレクトリ '*'$0.0300   33% ██████████' ]]
	[[ ${lines[2]} == '/srv/shop '*'$0.0600   67% ████████████████████' ]]
	[[ ${lines[3]} == 'total '*'$0.0900' ]]
	sheaf usage --by project --json | py '[r["project"] for r in d["rows"]][1] == "/srv/shop" and d["by"] == "project"'
	run -0 sheaf usage --by session
	[ "$(grep -c '█' <<<"$output")" -eq 3 ]
	LC_ALL=C run -0 sheaf usage --by project
	[[ ${lines[2]} == '/srv/shop '*'  67% ####################' ]]
	run -0 sheaf usage --project /srv/shop --by session
	has_not codex.c
	[[ ${lines[3]} == 'total '*'$0.0600' ]]
	run -0 sheaf usage --agent pi
	[ "$output" = 'no usage is recorded' ]
}

@test "usage: fits terminals of any width, and has colour only there" {
	make_used
	for columns in 40 60 120; do
		for by in session project; do
			terminal $columns usage --by $by | grep -v '^cache' | fits $columns
		done
	done
	terminal 60 usage --by day | grep -qF '50% █'
	run -0 sheaf usage --by day
	has_not $'\e'
	run in_terminal 80 "$SHEAF_BIN --no-pager usage --by day"
	has $'\e[36m█'
}
