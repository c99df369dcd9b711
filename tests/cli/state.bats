# state: small values of sessions, users and apps.

load helper

@test "state: set, get, list and rm on a session" {
	sheaf new demo
	run -0 sheaf state demo
	has 'no state'
	sheaf state demo set theme dark
	sheaf state demo set limit '{"n": 5}'
	run -0 sheaf state demo get theme
	[ "$output" = '"dark"' ]
	run -0 sheaf state demo
	[ "${lines[0]}" = 'limit = {"n": 5}' ]
	[ "${lines[1]}" = 'theme = "dark"' ]
	sheaf state demo rm theme
	run -1 sheaf state demo get theme
	sheaf state demo --json | py 'd == {"key": "limit", "value": {"n": 5}}'
}

@test "state: without a session the newest one" {
	sheaf new demo
	sheaf state set a 1
	run -0 sheaf state get a
	[ "$output" = 1 ]
	run -0 sheaf state
	[ "$output" = 'a = 1' ]
}

@test "state: user and app values are seen in other sessions" {
	sheaf new one
	sheaf new two
	sheaf state one set user:lang de
	sheaf state one set app:limit 3
	sheaf state one set own 1
	run -0 sheaf state two
	[ "${lines[0]}" = 'app:limit = 3' ]
	[ "${lines[1]}" = 'user:lang = "de"' ]
	[ "${#lines[@]}" = 2 ]
	run -0 sheaf state --scope user
	[ "$output" = 'user:lang = "de"' ]
	sheaf state --scope app set limit 4
	run -0 sheaf state two get app:limit
	[ "$output" = 4 ]
	run -0 sheaf state --scope app get limit
	[ "$output" = 4 ]
	sheaf state --scope app rm limit
	run -1 sheaf state --scope app get limit
	run -0 sheaf state --app other --scope app
	[[ $output != *limit* ]]
}

@test "state: set says where it landed, replay how much it applied" {
	sheaf new demo
	sheaf state demo set --json app:a 1 | py 'd["seq"] == 1 and d["key"] == "app:a" and d["pending"] is False'
	sheaf state demo replay --json | py 'd == {"applied": 1}'
	run -0 sheaf state demo replay
	has '1 value'
}

@test "state: values go back to what they were before a fork" {
	sheaf new demo
	sheaf append demo -i m1 x
	sheaf state demo set a 1
	sheaf append demo -i m2 y
	sheaf state demo set a 2
	sheaf fork demo old --at m2
	run -0 sheaf state old get a
	[ "$output" = 1 ]
}

@test "state: what cannot be is refused" {
	sheaf new demo
	run -2 sheaf state demo set temp:x 1
	run -2 sheaf state demo frob x
	run -2 sheaf state demo get
	run -2 sheaf state --scope user set a 1
	run -2 sheaf state --scope nobody
	run -2 sheaf state demo --scope app
	run -1 sheaf state demo get missing
	run -1 sheaf state nowhere get x
}

@test "state: nothing in a value reaches the terminal as it is" {
	sheaf new demo
	sheaf state demo set evil $'\e[31mred'
	run -0 sheaf state demo
	[[ $output != *$'\e'* ]]
}
