# sheaf migrate: what needs no server.

load helper

@test "migrate prints the schema with its prefix, quoted, and connects to nothing" {
	run -0 sheaf migrate --print 'postgres://nowhere.invalid/x?prefix=my_'
	[ "${lines[0]}" = 'BEGIN;' ]
	has 'CREATE TABLE "my_session"'
	has_not '@'
	has_not 'sheaf_session'
}

@test "migrate refuses a prefix that is no plain name" {
	run -2 sheaf migrate --print 'postgres://x/y?prefix=a%22b'
	has 'prefix'
	run -2 sheaf migrate --print 'postgres://x/y?prefix=1a'
	run -2 sheaf migrate --print 'postgres://x/y?prefix=abcdefghijklmnopqrstuvwxyz_abcdef'
}

@test "migrate of a store without a schema says so" {
	run -1 sheaf migrate "jsonl:$store"
	has 'no schema'
}

@test "a map of shards that is not whole is refused" {
	printf 'version 1\n0-4094 postgres://x/y\n' >map
	run -1 sheaf migrate --print "postgres+shards:$PWD/map"
	has 'no place for 4095'
	printf '0-4095 postgres://x/y\n' >map
	run -1 sheaf migrate --print "postgres+shards:$PWD/map"
	has 'no version'
	printf 'version 1\n0-4095 postgres://x/y\n7 postgres://x/z\n' >map
	run -1 sheaf migrate --print "postgres+shards:$PWD/map"
	has 'twice'
}
