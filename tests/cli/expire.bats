# retain, pin, undelete, expire, and what lists say of expired sessions.

load helper

# The ttl counts from the log's mtime, so time can be made to pass.
age() {
	touch -d "-$2" "$store/$1.jsonl"
}

make_expired() {
	sheaf new "$1" >/dev/null
	sheaf append "$1" -i e1 'Hello' >/dev/null
	sheaf retain "$1" --ttl 1h -q
	age "$1" '2 hours'
}

@test "retain: sets, shows and takes away" {
	make_tree
	run -0 sheaf retain demo
	has 'demo does not expire'
	run -0 sheaf retain demo --ttl 30d --grace 12h
	has 'expires 30d after its last record'
	has 'undeleted for 12h'
	sheaf retain demo --json | py 'd["ttl_us"] == 30 * 86400 * 10**6 and d["grace_us"] == 12 * 3600 * 10**6 and not d["pinned"] and not d["expired"] and d["expires"] < d["undelete_until"]'
	run -0 sheaf retain demo --ttl never
	has 'does not expire'
	sheaf retain demo --json --grace none | py 'd["ttl_us"] == 0 and d["grace_us"] == 0 and d["expires"] is None'
	sheaf new short --ttl 90s >/dev/null
	sheaf retain short --json | py 'd["ttl_us"] == 90 * 10**6 and d["grace_us"] == 7 * 86400 * 10**6'
}

@test "retain: mistakes" {
	make_tree
	run -2 sheaf retain demo --ttl soon
	has 'such as 90s, 12h or 30d, or never'
	run -2 sheaf retain demo --ttl 0s
	run -2 sheaf retain demo --ttl 10
	run -2 sheaf retain demo --grace never
	run -1 sheaf retain demo --ttl 999999w
	has '100 years'
	run -2 sheaf new x --ttl never
	run -1 sheaf retain nothing --ttl 1d
	run -2 sheaf retain
	sheaf retain demo --json | py 'd["ttl_us"] == 0'
}

@test "an expired session answers nothing and can be undeleted" {
	make_expired demo
	for command in show path tree context cat watch; do
		run -1 sheaf "$command" demo
		has 'has expired'
		has 'sheaf undelete'
	done
	run -1 sheaf append demo 'late'
	has 'has expired'
	run -1 sheaf fork demo other
	run -1 sheaf pin demo
	run -3 sheaf new demo
	has 'it has expired: sheaf undelete demo, or sheaf rm demo'
	run -0 sheaf ls
	has_not demo
	run -0 sheaf undelete demo
	has 'demo is back'
	run -0 sheaf show demo
	has Hello
	run -0 sheaf undelete demo
	has 'has not expired'
	run -3 sheaf new demo
	has_not 'has expired'
	sheaf undelete demo --json | py 'd == {"session": "demo", "existed": True}'
}

@test "undelete: finds an expired session by a beginning or a name" {
	make_expired long-identifier
	sheaf new other >/dev/null
	sheaf undelete long -q
	age long-identifier '2 hours'
	run -1 sheaf show long
	has 'has expired'
	sheaf undelete long -q
	sheaf rename long-identifier 'The name' -q
	age long-identifier '2 hours'
	sheaf undelete 'The name' --json | py 'd == {"session": "long-identifier", "existed": False}'
	run -1 sheaf undelete nothing
}

@test "pin: keeps a session whatever its ttl" {
	make_tree
	sheaf retain demo --ttl 1h -q
	run -0 sheaf pin demo
	has 'pinned'
	age demo '30 days'
	run -0 sheaf show demo
	run -0 sheaf expire
	[ -f "$store/demo.jsonl" ]
	sheaf pin demo --off --json | py 'd["pinned"] is False'
	age demo '30 days'
	run -1 sheaf show demo
	has 'no session'
}

@test "past its grace a session is as if deleted, and its id is free" {
	make_expired demo
	age demo '30 days'
	run -1 sheaf show demo
	run -1 sheaf undelete demo
	run -0 sheaf ls --expired
	has_not demo
	sheaf new demo >/dev/null
	run -0 sheaf show demo --json
	[ -z "$output" ]
}

@test "expire: removes what is over and nothing else" {
	make_tree keep
	make_expired grace
	make_expired over
	age over '30 days'
	run -0 sheaf expire --dry-run
	has 'would remove 1 session; 1 can still be undeleted'
	has 'grace  (can be undeleted for'
	[ -f "$store/over.jsonl" ]
	sheaf expire -n --json | py 'd["dry_run"] and [s["session"] for s in d["removed"]] == ["over"] and [s["session"] for s in d["grace"]] == ["grace"] and not d["more"]'
	[ "$(sheaf expire -q)" = over ]
	[ ! -e "$store/over.jsonl" ]
	[ -f "$store/grace.jsonl" ] && [ -f "$store/keep.jsonl" ]
	sheaf expire --json | py 'not d["dry_run"] and d["removed"] == [] and len(d["grace"]) == 1'
}

@test "expire: whose and how many" {
	for user in a b; do
		for id in one two; do
			sheaf --app x --user $user new $id --ttl 1s >/dev/null
			touch -d '-30 days' "$store/x/$user/$id.jsonl"
		done
	done
	sheaf expire --json | py 'd["removed"] == []'
	sheaf expire --json --app x --user a --limit 1 | py 'len(d["removed"]) == 1 and d["more"]'
	sheaf expire --json --app x --all --dry-run | py 'len(d["removed"]) == 3'
	sheaf expire --json --all | py 'len(d["removed"]) == 3 and d["removed"][0]["app"] == "x"'
	run -2 sheaf expire --limit many
}

@test "expire: what a fork reads stays" {
	make_expired demo
	sheaf undelete demo -q
	sheaf fork demo copy >/dev/null
	age demo '30 days'
	[ "$(sheaf expire -q)" = demo ]
	run -0 sheaf show copy
	has Hello
}

@test "ls --expired: what expires when" {
	make_tree keep
	make_expired gone
	sheaf new pinned >/dev/null
	sheaf pin pinned -q
	sheaf new soon --ttl 3d >/dev/null
	run -0 sheaf ls --expired
	has '(expired, can be undeleted for'
	has '(pinned)'
	has '(expires in'
	run -0 sheaf ls
	has_not '(pinned)'
	sheaf ls --json --expired | py '{s["session"]: s["expired"] for s in lines} == {"keep": False, "gone": True, "pinned": False, "soon": False}'
	sheaf ls --json | py 'all(not s["expired"] and s["stored"] for s in lines) and len(lines) == 3'
}
