# What is special about Redis: the library of functions, levels, slots that move, keys that vanish.

bats_require_minimum_version 1.5.0

root=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
: "${SHEAF_BIN:=$root/build/dev/bin/sheaf}"
: "${SHEAF_BIN_DIR:=$(dirname "$SHEAF_BIN")}"

setup_file() {
	"$root/tools/servers" start "$BATS_FILE_TMPDIR/servers" redis redis-everysec redis-cluster
}

teardown_file() {
	"$root/tools/servers" stop "$BATS_FILE_TMPDIR/servers"
}

setup() {
	eval "$("$root/tools/servers" env "$BATS_FILE_TMPDIR/servers")"
	export HOME=$BATS_TEST_TMPDIR LC_ALL=C.UTF-8
	always=$SHEAF_TEST_REDIS
	everysec=$SHEAF_TEST_REDIS_EVERYSEC
	cluster=$SHEAF_TEST_REDIS_CLUSTER
}

sheaf() {
	"$SHEAF_BIN" "$@"
}

# cli URL COMMAND...: redis-cli to the (first) server of a URL
cli() {
	local port=${1#redis://127.0.0.1:}
	shift
	redis-cli -p "${port%%[,?]*}" "$@"
}

@test "the library is loaded again when a server has lost it" {
	sheaf -S "$everysec" new lost
	sheaf -S "$everysec" append lost -i a one
	cli "$everysec" function flush
	run -0 sheaf -S "$everysec" append lost -i b two
	cli "$everysec" function list | grep sheaf_1
	cli "$everysec" function flush
	run -0 sheaf -S "$everysec" cat lost
	[[ $output == *'"seq":2'* ]]
}

@test "a server that was killed and came back has what was acknowledged" {
	sheaf -S "$always" new back
	sheaf -S "$always" append back -i a one
	"$root/tools/servers" kill "$SHEAF_SERVERS" redis
	"$root/tools/servers" revive "$SHEAF_SERVERS" redis
	run -0 sheaf -S "$always" append back -i b two
	run -0 sheaf -S "$always" cat back
	[[ $output == *'"id":"a"'*'"id":"b"'* ]]
}

@test "a policy that evicts is refused" {
	cli "$everysec" config set maxmemory-policy allkeys-lru
	run -1 sheaf -S "$everysec" ls
	cli "$everysec" config set maxmemory-policy noeviction
	[[ $output == *evict* ]]
	run -0 sheaf -S "$everysec" ls
}

@test "level disk is what appendfsync always gives, and nothing less" {
	run -1 sheaf -S "$everysec?durability=disk" new levels
	[[ $output == *sync* ]]
	run -0 sheaf -S "$everysec?durability=process" new levels
	run -0 sheaf -S "$always?durability=disk" new levels
}

@test "a server that stops syncing while it rewrites its log does not give level disk" {
	cli "$always" config set no-appendfsync-on-rewrite yes
	run -1 sheaf -S "$always?durability=disk" new rewriting
	cli "$always" config set no-appendfsync-on-rewrite no
	[[ $output == *sync* ]]
	run -0 sheaf -S "$always?durability=disk" new rewriting
}

@test "a log of which some staged records are lost is not put in its place" {
	sheaf -S "$always" new staged # loads the library
	local keys=() kind
	for kind in h: r: k: i: f: p: m: c:; do keys+=("{t}$kind"s); done
	keys+=({t}z {t}x {t}u {t}tr:n {t}tk:n {t}ti:n)
	run -0 cli "$always" fcall sheaf_1_stage 14 "${keys[@]}" 0 1 index 1 element id
	run cli "$always" fcall sheaf_1_append 14 "${keys[@]}" 1 0 '' '' head digest order 2 0 0 1 \
		0 0 '' header '' s 0 0 0 2 0 0 state 0
	[[ $output == *'not all there'* ]]
	[ "$(cli "$always" exists '{t}h:s')" = 0 ]
}

@test "where CONFIG is forbidden, disk can be assumed" {
	cli "$always" acl setuser plain on '>pass word' '~*' '&*' +@all -config
	url="redis://plain:pass%20word@${always#redis://}"
	run -1 sheaf -S "$url?durability=disk" ls
	run -0 sheaf -S "$url?durability=disk&assume=disk" new assumed
	run -4 sheaf -S "redis://plain:wrong@${always#redis://}" ls
}

@test "level replica is unknown when no replica answers, and done when it is repeated" {
	run -1 sheaf -S "$everysec?durability=replica" ls
	port=$((20000 + RANDOM % 10000))
	read -r _ primary <<<"$(cli "$everysec" config get port | tr '\n' ' ')"
	redis-server --port "$port" --bind 127.0.0.1 --save '' --dir "$BATS_TEST_TMPDIR" \
		--replicaof 127.0.0.1 "$primary" --daemonize yes --pidfile "$BATS_TEST_TMPDIR/pid" >/dev/null
	for _ in $(seq 100); do
		[[ $(cli "$everysec" info replication) == *state=online* ]] && break
		sleep 0.1
	done
	run -0 sheaf -S "$everysec?durability=replica" new waited
	run -0 sheaf -S "$everysec?durability=replica" append waited -i a one
	kill -STOP "$(cat "$BATS_TEST_TMPDIR/pid")"
	run sheaf -S "$everysec?durability=replica" append waited -i b two
	kill -CONT "$(cat "$BATS_TEST_TMPDIR/pid")"
	[ "$status" -eq 6 ]
	run -0 sheaf -S "$everysec?durability=replica" append waited -i b two
	kill "$(cat "$BATS_TEST_TMPDIR/pid")"
	run -0 sheaf -S "$everysec" cat waited
	[ "$(grep -c '"id":"b"' <<<"$output")" -eq 1 ]
}

@test "owners that look alike are apart, and each is in one slot" {
	for user in 'a' 'a}' '{a' 'a/b' 'a%2Fb' ''; do
		sheaf -S "$cluster" --app '}{' --user "$user" new one
		sheaf -S "$cluster" --app '}{' --user "$user" append one -i x "of <$user>"
	done
	for user in 'a' 'a}' '{a' 'a/b' 'a%2Fb' ''; do
		run -0 sheaf -S "$cluster" --app '}{' --user "$user" cat one
		[[ $output == *"of <$user>"* ]]
		[ "$(grep -c '"seq":1' <<<"$output")" -eq 1 ]
	done
}

# ttl SESSION: of its records, in seconds; -1 if they stay
ttl() {
	cli "$everysec" ttl "{sheaf:%/%}r:$1"
}

@test "keys vanish when nothing reads them, and stay while a fork does" {
	sheaf -S "$everysec?ttl=1000" new source
	sheaf -S "$everysec?ttl=1000" append source -i a one
	[ "$(ttl source)" -gt 900 ]
	sheaf -S "$everysec" fork source reader
	[ "$(ttl source)" -eq -1 ]
	sheaf -S "$everysec" rm reader
	[ "$(ttl source)" -gt 900 ]

	sheaf -S "$everysec?ttl=1" new short
	sheaf -S "$everysec?ttl=1" append short -i a one
	sleep 1.3
	run -1 sheaf -S "$everysec" cat short
	run -0 sheaf -S "$everysec" ls
	[[ $output != *short* ]]
	[ "$(cli "$everysec" --scan --pattern '*:short' | wc -l)" -eq 0 ]
	cli "$everysec" zrange '{sheaf:%/%}z' 0 -1 | { ! grep short; }
	run -0 sheaf -S "$everysec" new short
}

@test "writers follow slots that move" {
	port=${cluster#redis://127.0.0.1:}
	run -0 "$SHEAF_BIN_DIR/test_servers_stress" "$cluster" --level process --rounds 3 \
		--disturb "$root/tests/servers/move_slots ${port%%,*}"
	[[ $output == *', 0 missing'* ]]
}

@test "a flipped bit is found by its checksum" {
	sheaf -S "$everysec" new flipped
	sheaf -S "$everysec" append flipped -i a one
	run -0 sheaf -S "$everysec" check flipped
	cli "$everysec" --raw lindex '{sheaf:%/%}r:flipped' 0 | sed 's/one/onf/' | head -c -1 |
		cli "$everysec" -x lset '{sheaf:%/%}r:flipped' 0
	run -5 sheaf -S "$everysec" check flipped
	[[ $output == *'cannot be read'* ]]
}
