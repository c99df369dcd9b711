# compact: by a text, by a command, planned, undone.

load helper

# u1 a1 u2 a2 …, each of some 50 tokens.
make_talk() {
	sheaf new demo >/dev/null
	for i in $(seq "$1"); do
		sheaf append demo -i "u$i" -q "Question $i $(printf 'and more %.0s' {1..20})" >/dev/null
		sheaf append demo -i "a$i" -q -r assistant "Answer $i $(printf 'and more %.0s' {1..20})" >/dev/null
	done
}

roles() {
	sheaf context demo --json | py "[i['entry_id'] for i in d['items']][-${1:-99}:] == ${2}"
}

@test "compact: a summary from the command line and from stdin" {
	make_talk 4
	run -0 --separate-stderr sheaf compact demo --keep 90 --summary 'It was about parsers.'
	[[ $output =~ ^[0-9a-f-]{36}$ ]]
	[[ $stderr == *'tokens instead of '*'6 messages summed up'* ]]
	roles 2 '["u4", "a4"]'
	sheaf cat demo | py 'lines[-1]["compaction"]["first_kept_entry_id"] == "u4" and lines[-1]["compaction"]["tokens_after"] < lines[-1]["compaction"]["tokens_before"] and lines[-1]["compaction"]["trigger"] == "manual"'
	echo 'All of it.' | sheaf compact demo --keep 0 --summary - --json |
		py 'd["covered"] == 2 and d["kept"] == 0 and d["first_kept"] is None and d["tokens_after"] < d["tokens_before"]'
	sheaf cat demo | py 'lines[-1]["compaction"]["summary"] == "All of it."'
}

@test "compact: a command writes the summary" {
	make_talk 3
	run -0 sheaf compact demo --keep 90 --command 'grep -c "" > seen; echo In short; cat >/dev/null'
	[[ $(<seen) -gt 30 ]]
	sheaf cat demo | py 'lines[-1]["compaction"]["summary"] == "In short"'
	run -1 sheaf compact demo --keep 0 --command 'echo half; exit 3'
	has 'failed (3)'
	run -2 sheaf compact demo --keep 0 --command true
	has 'the summary is empty'
	sheaf cat demo | py 'len([r for r in lines if r["type"] == "compaction"]) == 1'
}

@test "compact: what a command appends meanwhile is kept" {
	make_talk 2
	sheaf compact demo --keep 0 -q --command "'$SHEAF_BIN' append demo -i late -q 'One more thing' >/dev/null; echo Short" >/dev/null
	roles 1 '["late"]'
	sheaf context demo --json | py '[i["role"] for i in d["items"]] == ["compactionSummary", "user"]'
}

@test "compact: the plan and its prompt" {
	make_talk 3
	run -0 --separate-stderr sheaf compact demo --plan --keep 90 --instructions 'Mind the tests.'
	[[ $stderr == '4 messages to be summed up, 2 stay: from u3' ]]
	[[ $output == *'Question 1 and more'*'## Next steps'*'Mind the tests.'* ]]
	[[ $output != *'Question 3'* ]]
	sheaf compact demo --plan --keep 90 --json |
		py 'd["covered"] == ["u1", "a1", "u2", "a2"] and d["first_kept"] == "u3" and d["leaf"] == "a3" and d["kept"] == 2 and d["split"] is False and "Question 1" in d["prompt"]'
	sheaf cat demo | py 'len([r for r in lines if r["type"] == "compaction"]) == 0'
	sheaf append demo -q 'more' >/dev/null
	run -3 sheaf compact demo --keep 90 --summary s --expect-leaf a3
	sheaf compact demo --keep 90 --summary s --expect-leaf @7 -q
}

@test "compact: undo, and undo that" {
	make_talk 3
	sheaf context demo --json >before
	sheaf compact demo --keep 0 --summary 'All.' -q >/dev/null
	run -0 sheaf compact demo --undo
	sheaf context demo --json | python3 -c '
import json, sys
a, b = json.load(open("before")), json.load(sys.stdin)
assert a["items"] == b["items"] and a["prefix_hash"] == b["prefix_hash"]'
	sheaf compact demo --undo --json | py 'd["seq"] == 9'
	sheaf context demo --json | py 'len(d["items"]) == 1'
	sheaf new empty >/dev/null
	run -1 sheaf compact empty --undo
	has 'no compaction to undo'
}

@test "compact: how full the window is" {
	make_talk 2
	run -0 sheaf compact demo --need --window 10000
	[[ ${lines[0]} == *' tokens of 10,000 ('*'%); compaction is due beyond 8,000 tokens' ]]
	[[ ${lines[1]} == *' tokens are estimated' ]]
	sheaf compact demo --need --window 100 --json | py 'd["needed"] is True and d["window"] == 100 and d["limit"] == 80'
	sheaf append demo --message-json -q >/dev/null <<'END'
{"role":"assistant","content":"done","usage":{"input":900,"output":100}}
END
	sheaf compact demo --need --json | py 'd["tokens"] == 1000 and d["counted"] == 1000 and d["needed"] is False'
}

@test "compact: the window of a model of one's own" {
	make_talk 1
	echo '{"model_change":{"provider":"here","model_id":"tiny"}}' | sheaf append demo --json-body model_change -q >/dev/null
	sheaf compact demo --need --json | py 'd["window"] == 200000'
	echo '{"format":"sheaf-models","version":1,"date":"2026-01-01","groups":[{"provider":"here","models":[{"model":"tiny","window":4000}]}]}' >models.json
	SHEAF_MODELS=models.json sheaf compact demo --need --json | py 'd["window"] == 4000'
	SHEAF_MODELS=nowhere.json run ! sheaf compact demo --need
}

@test "compact: on a branch" {
	make_talk 2
	sheaf branch demo side a1 -q
	sheaf compact demo -b side --keep 0 --summary 'Side.' -q >/dev/null
	sheaf context demo --json | py 'len(d["items"]) == 4'
	sheaf context demo -b side --json | py 'len(d["items"]) == 1'
	sheaf compact demo -b side --undo -q >/dev/null
	sheaf context demo -b side --json | py 'len(d["items"]) == 2'
	run -1 sheaf compact demo -b nowhere --undo
}

@test "compact: mistakes" {
	make_talk 1
	run -2 sheaf compact demo
	has 'where does the summary come from'
	run -2 sheaf compact demo --undo --need
	run -2 sheaf compact
	run -2 sheaf compact demo --keep many --plan
	run -1 sheaf compact ghost --need
	run ! sheaf compact demo --summary 'All of it is within what is kept'
	has 'nothing to compact'
	run ! sheaf compact demo --keep 0 --summary "$(printf 'a very long summary %.0s' {1..100})"
	has 'would not be smaller'
	sheaf cat demo | py 'len([r for r in lines if r["type"] == "compaction"]) == 0'
}

@test "compact: what was said cannot command the terminal" {
	sheaf new demo >/dev/null
	printf 'red \033[31m here, %s' "$(printf 'and more %.0s' {1..20})" | sheaf append demo -q >/dev/null
	sheaf append demo -q -r assistant yes >/dev/null
	script -qec "$SHEAF_BIN compact demo --plan --keep 0 --no-pager" /dev/null | tr -d '\r' | no_controls
	sheaf compact demo --plan --keep 0 --json | no_controls
}
