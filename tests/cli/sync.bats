# pull and push: two stores that both go on.

load helper

# apart: jsonl:here and jsonl:there with a session that both have continued.
apart() {
	sheaf -S jsonl:there new demo --name 'The parser' >/dev/null
	sheaf -S jsonl:there append demo 'Why does it fail?' --id q >/dev/null
	sheaf -S jsonl:here pull jsonl:there >/dev/null
	sheaf -S jsonl:here append demo 'Fix it' --id mine >/dev/null
	sheaf -S jsonl:there append demo 'Write a test' --id theirs >/dev/null
}

@test "pull: copies, extends, says that nothing is new" {
	sheaf -S jsonl:there new demo >/dev/null
	sheaf -S jsonl:there append demo one >/dev/null
	run -0 sheaf -S jsonl:here pull jsonl:there
	has 'copied    demo  +1 entry'
	has '1 session: 1 copied; 1 entry'
	cmp here/demo.jsonl there/demo.jsonl
	run -0 sheaf -S jsonl:here pull jsonl:there
	[ "$output" = '1 session: nothing new' ]
	sheaf -S jsonl:there append demo two >/dev/null
	run -0 sheaf -S jsonl:here pull jsonl:there
	has 'extended  demo  +1 entry'
	cmp here/demo.jsonl there/demo.jsonl
}

@test "pull: both went on" {
	apart
	run -0 sheaf -S jsonl:here pull jsonl:there
	has "merged    demo  +1 entry, both moved: see main@there  The parser"
	run -0 sheaf -S jsonl:here branch demo
	has 'main '
	has 'main@there'
	run -0 sheaf -S jsonl:here tree demo
	has 'Fix it'
	has 'Write a test'
	sheaf -S jsonl:here check
	run -0 sheaf -S jsonl:here pull jsonl:there
	[ "$output" = '1 session: nothing new' ]
}

@test "push: the same over there" {
	apart
	run -0 sheaf -S jsonl:here push jsonl:there --as laptop
	has 'both moved: see main@laptop'
	run -0 sheaf -S jsonl:there cat demo
	has '"mine"'
	run -0 sheaf -S jsonl:here push jsonl:there --as laptop
	[ "$output" = '1 session: nothing new' ]
	run -0 sheaf -S jsonl:here pull jsonl:there
	run -0 sheaf -S jsonl:here pull jsonl:there
	[ "$output" = '1 session: nothing new' ]
}

@test "push: a directory is called after the machine" {
	apart
	run -0 sheaf -S jsonl:here push jsonl:there
	has "main@$(uname -n | cut -d. -f1 | tr -c 'A-Za-z0-9_\n-' - | cut -c1-32)"
}

@test "pull: a dry run writes nothing" {
	apart
	sheaf -S jsonl:there new other >/dev/null
	before=$(cat here/demo.jsonl)
	run -0 sheaf -S jsonl:here pull jsonl:there --dry-run
	has 'merged    demo'
	has 'copied    other'
	has 'nothing was written'
	[ "$before" = "$(cat here/demo.jsonl)" ]
	[ ! -e here/other.jsonl ]
}

@test "pull: named sessions, by any name they have at the source" {
	for s in alpha beta gamma; do
		sheaf -S jsonl:there new "$s-session" --name "the $s" >/dev/null
	done
	run -0 sheaf -S jsonl:here pull jsonl:there alpha 'the beta'
	has '2 sessions: 2 copied'
	[ ! -e here/gamma-session.jsonl ]
	run -1 sheaf -S jsonl:here pull jsonl:there nobody
	run -2 sheaf -S jsonl:here pull jsonl:there alpha --all
	run -2 sheaf -S jsonl:here pull
	run -2 sheaf -S jsonl:here pull jsonl:there --as 'a b'
}

@test "pull: everybody's, an app's, one owner's" {
	sheaf -S jsonl:there --app shop --user ada new one >/dev/null
	sheaf -S jsonl:there --app shop --user bob new two >/dev/null
	sheaf -S jsonl:there new three >/dev/null
	run -0 sheaf -S jsonl:here --app shop --user ada pull jsonl:there
	has '1 session: 1 copied'
	run -0 sheaf -S jsonl:here --app shop pull jsonl:there --all
	has 'copied    shop/bob/two'
	has '2 sessions: 1 copied, 1 with nothing new'
	run -0 sheaf -S jsonl:here pull jsonl:there --all
	has '3 sessions: 1 copied, 2 with nothing new'
}

@test "pull: a conflict is reported, and the others come" {
	apart
	sheaf -S jsonl:here append demo 'one thing' --id x >/dev/null
	sheaf -S jsonl:there append demo 'another' --id x >/dev/null
	sheaf -S jsonl:there new other >/dev/null
	before=$(cat here/demo.jsonl)
	run -3 sheaf -S jsonl:here pull jsonl:there
	has 'demo: conflict: record x has other content here (@4) than there (@4)'
	has 'copied    other'
	has '1 copied, 1 in conflict'
	[ "$before" = "$(cat here/demo.jsonl)" ]
	run -3 sheaf -S jsonl:here pull jsonl:there --json
	has '"did":"conflict","code":"CONFLICT"'
}

@test "pull: for programs" {
	apart
	run -0 --separate-stderr sheaf -S jsonl:here pull jsonl:there --json
	printf '%s\n' "$output" | python3 -c '
import json, sys
session, totals = map(json.loads, sys.stdin)
assert session["did"] == "merged" and session["branch"] == "main@there", session
assert session["entries"] == 1 and session["apart"] == 1, session
assert totals["merged"] == 1 and totals["dry_run"] is False, totals
'
	[ -z "$stderr" ]
	run -0 sheaf -S jsonl:here -q pull jsonl:there
	[ -z "$output" ]
}

@test "pull: text of the source does not reach the terminal as it is" {
	sheaf -S jsonl:there new demo --name $'\e[31mred\u202e' >/dev/null
	run -0 sheaf -S jsonl:here pull jsonl:there
	has '^[[31mred<U+202E>'
}

@test "pull: a source that is not there" {
	run -1 sheaf -S jsonl:here pull jsonl:nowhere
	run -2 sheaf -S jsonl:here pull nonsense
}
