# Naming sessions and entries: whole ids, beginnings of them, names, labels, numbers.

load helper

@test "a session by its id, a unique beginning of it, its name" {
	sheaf new alpha-one --name 'First'
	sheaf new alpha-two
	sheaf new beta
	sheaf append alpha-one 'in one' -q
	for name in alpha-one alpha-o 'First'; do
		sheaf show "$name" | grep -q 'in one'
	done
	sheaf append alpha-t 'in two' -q
	sheaf show alpha-two | grep -q 'in two'
}

@test "a whole id comes before a beginning, a beginning before a name" {
	sheaf new abcd
	sheaf new abcdef --name 'nice'
	sheaf new nice-id
	sheaf append abcd 'short' -q
	sheaf show abcd | grep -q 'short'
	sheaf append nice-id 'by id' -q
	sheaf show nice | grep -q 'by id'
}

@test "an ambiguous beginning lists what it could be" {
	sheaf new alpha-one
	sheaf new alpha-two
	run --separate-stderr -2 sheaf show alph
	[ -z "$output" ]
	[[ $stderr == *'2 sessions'* && $stderr == *alpha-one* && $stderr == *alpha-two* ]]
	run --separate-stderr -2 sheaf show alph --json
	py 'sorted(d["error"]["candidates"]) == ["alpha-one", "alpha-two"]' <<<"$stderr"
	sheaf rename alpha-one same -q
	sheaf rename alpha-two same -q
	run -2 sheaf show same
	has '2 sessions'
}

@test "fewer than four characters are no beginning" {
	sheaf new alpha
	run -1 sheaf show alp
	has "no session 'alp'"
	sheaf show alph >/dev/null
}

@test "an entry by id, beginning, label, branch and number" {
	sheaf new demo
	sheaf append demo -i entry-one one -q
	sheaf append demo -i entry-two two -q
	sheaf label demo entry-one start -q
	sheaf branch demo side entry-one -q
	for name in entry-one entry-o start side @1; do
		sheaf cat demo "$name" | py 'd["id"] == "entry-one"'
	done
	run --separate-stderr -2 sheaf cat demo entry-
	[[ $stderr == *'2 entries'* && $stderr == *entry-one* && $stderr == *entry-two* ]]
	run -1 sheaf cat demo @99
	run -1 sheaf show demo --leaf @x
}

@test "generated ids can be told apart on a terminal" {
	for i in 1 2 3 4 5; do sheaf new -q; done
	in_terminal 80 "$SHEAF_BIN ls --no-pager --color=never" | tr -d '\r' | tail -n +2 | awk '{print $1}' >ids
	[ "$(wc -l <ids)" -eq 5 ]
	while read -r id; do
		[ "${#id}" -lt 36 ]
		sheaf show "$id" >/dev/null
	done <ids
}

@test "strange ids are data, not paths or options" {
	for id in '../x' 'a/b' 'ü' '.hidden' 'with space' 'x.jsonl' '%41'; do
		sheaf new -- "$id"
		sheaf append -q -- "$id" "text of $id" >/dev/null
		sheaf show -- "$id" | grep -qF "text of $id"
	done
	[ "$(sheaf ls -q | wc -l)" -eq 7 ]
	[ "$(sheaf new 'two  blanks')" = 'two  blanks' ]
	[ "$(sheaf new $'line\nbreak')" = 'line^Jbreak' ]
	[ ! -e "$XDG_DATA_HOME/x.jsonl" ]
}
