# todo and plan: ls, add, set.

load helper

@test "todo: add, set, ls" {
	sheaf new demo >/dev/null
	sheaf todo demo add Run the tests --id tests --active 'Running the tests'
	echo 'Write it down' | sheaf todo demo add --id docs
	run -0 sheaf todo demo
	[[ ${lines[0]} == 'pending      tests  Run the tests' ]]
	[[ ${lines[1]} == 'pending      docs  Write it down' ]]
	sheaf todo demo set tests --status in_progress
	sheaf todo demo set docs 'Write it all down' --plan p1 -q
	sheaf todo demo --json | py '[(i["id"], i["status"]) for i in lines] == [("tests", "in_progress"), ("docs", "pending")]'
	sheaf todo demo --json | py 'd["active_form"] == "Running the tests" and d["content"] == "Run the tests" and lines[1]["content"] == "Write it all down" and lines[1]["plan_id"] == "p1"'
	sheaf todo demo set tests --status completed --json | py 'd["item"] == "tests" and d["seq"] == 5'
	sheaf cat demo | py 'len([r for r in lines if r["type"] == "todo"]) == 5'
}

@test "todo: a new one gets an id, and its beginning is enough" {
	sheaf new demo >/dev/null
	run -0 sheaf todo demo add something
	[[ $output =~ ^[0-9a-f-]{36}$ ]]
	sheaf todo demo set "${output:0:30}" --status completed
	sheaf todo demo --json | py 'd["status"] == "completed"'
}

@test "todo: an id that is taken" {
	sheaf new demo >/dev/null
	sheaf todo demo add --id a --active Running -q Run
	sheaf todo demo set a --status completed -q
	run -0 sheaf todo demo add --id a Run
	has 'there already'
	run -0 sheaf todo demo add --id a --active Running Run
	sheaf todo demo add --id a Run --json | py 'd["item"] == "a" and d["existed"] is True and d["seq"] == 2'
	run -3 sheaf todo demo add --id a Walk
	has "another item 'a'"
	run -3 sheaf todo demo add --id a --active Walking Run
	run -3 sheaf todo demo add --id a --plan p1 Run
	run -3 sheaf todo demo add --id a --status pending Run
	sheaf cat demo | py 'len([r for r in lines if r["type"] == "todo"]) == 2'
	sheaf todo demo add --id aa -q Run
	sheaf todo demo --json | py '[(i["id"], i["status"]) for i in lines] == [("a", "completed"), ("aa", "pending")]'
}

@test "plan: an id that is taken" {
	sheaf new demo >/dev/null
	sheaf plan demo add --id p --name Parser -q steps
	run -0 sheaf plan demo add --id p steps
	has 'there already'
	run -0 sheaf plan demo add --id p --name Parser steps
	run -3 sheaf plan demo add --id p 'other steps'
	has "another item 'p'"
	run -3 sheaf plan demo add --id p --name Lexer steps
	run -3 sheaf plan demo add --id p --error none steps
	run -3 sheaf plan demo add --id p --status failed steps
	sheaf cat demo | py 'len([r for r in lines if r["type"] == "plan"]) == 1'
}

@test "todo: mistakes" {
	sheaf new demo >/dev/null
	run -0 sheaf todo demo
	has 'nothing is to be done'
	run -2 sheaf todo
	run -2 sheaf todo demo nonsense
	run -2 sheaf todo demo set
	run -2 sheaf todo demo ls --status pending
	run -2 sheaf todo demo add x --status done
	run -1 sheaf todo demo set nobody --status pending
	has "no item 'nobody'"
	run -2 sheaf todo demo add ''
	run -1 sheaf todo nothing add x
	run -0 sheaf cat demo
	has_not '"todo"'
}

@test "plan: add, set, ls" {
	sheaf new demo >/dev/null
	run -0 sheaf plan demo
	has 'there is no plan'
	sheaf plan demo add '1. measure 2. table' --name Parser --id p1
	run -0 sheaf plan demo
	[[ ${lines[0]} == 'draft        p1  Parser' ]]
	for status in approved executing failed; do
		sheaf plan demo set p1 --status $status -q
	done
	sheaf plan demo set p1 --error 'no time' -q
	sheaf plan demo --json | py 'd["status"] == "failed" and d["error"] == "no time" and d["name"] == "Parser" and d["content"] == "1. measure 2. table"'
	run -2 sheaf plan demo set p1 --status pending
}

@test "todo: a terminal does not obey it" {
	sheaf new demo >/dev/null
	printf 'evil \033[31m red' | sheaf todo demo add --id "$(printf 'a\342\200\256b')" --active "$(printf '\033')" -q
	sheaf todo demo | no_controls
	sheaf todo demo --json | no_controls
}
