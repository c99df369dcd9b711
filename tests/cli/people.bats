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
	for columns in 50 60 80 120 200; do
		terminal $columns ls | fits $columns
		terminal $columns ls --by project | fits $columns
	done
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
	for columns in 40 50 60 80 120 200; do
		for by in model day session project; do
			terminal $columns usage --by $by | grep -v '^cache' | fits $columns
		done
	done
	terminal 60 usage --by day | grep -qF '50% █'
	run -0 sheaf usage --by day
	has_not $'\e'
	run in_terminal 80 "$SHEAF_BIN --no-pager usage --by day"
	has $'\e[36m█'
}
