# What the tests of the command share: a store of their own, a quiet environment, JSON checks.
#
# SHEAF_BIN names the binary under test; without it, the one of the preset `dev`.

bats_require_minimum_version 1.5.0

root=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
: "${SHEAF_BIN:=$root/build/dev/bin/sheaf}"
SHEAF_BIN=$(realpath "$SHEAF_BIN")

setup() {
	export HOME=$BATS_TEST_TMPDIR XDG_DATA_HOME=$BATS_TEST_TMPDIR/data
	export LC_ALL=C.UTF-8 TERM=xterm TZ=UTC
	unset CLAUDE_CONFIG_DIR CODEX_HOME PI_CODING_AGENT_DIR GEMINI_CLI_HOME
	unset SHEAF_STORE SHEAF_PAGER PAGER LESS NO_COLOR FORCE_COLOR COLUMNS LANG
	cd "$BATS_TEST_TMPDIR" || return 1
	store=$XDG_DATA_HOME/sheaf
}

sheaf() {
	"$SHEAF_BIN" "$@"
}

# A session with a bit of everything: branches, a label, tools, a compaction.
make_tree() {
	sheaf new "${1:-demo}" --name 'Make it faster' >/dev/null
	sheaf append "${1:-demo}" -i e1 'Make the parser faster' >/dev/null
	sheaf append "${1:-demo}" -i e2 --message-json >/dev/null <<'END'
{"role":"assistant","content":[{"type":"text","text":{"content":"I look first."}},{"type":"tool_use","tool_use":{"id":"t1","name":"read_file","input":{"path":"parse.c"}}}]}
END
	seq 1 40 | sed 's/^/line /' | python3 -c '
import json, sys
result = {"tool_use_id": "t1", "content": sys.stdin.read(), "is_error": False}
print(json.dumps({"role": "tool", "content": [{"type": "tool_result", "tool_result": result}]}))
' | sheaf append "${1:-demo}" -i e3 --message-json >/dev/null
	sheaf append "${1:-demo}" -i e4 -r assistant 'Shall I use SIMD?' >/dev/null
	sheaf append "${1:-demo}" -i e5 -b simd -p e4 'Yes, try it' >/dev/null
	sheaf append "${1:-demo}" -i e6 'No, a table' >/dev/null
	echo '{"compaction":{"summary":"It was slow.","first_kept_entry_id":"e4","tokens_before":1200}}' |
		sheaf append "${1:-demo}" -i e7 --json-body compaction >/dev/null
	sheaf append "${1:-demo}" -i e8 -r assistant 'Done, twice as fast' >/dev/null
	sheaf label "${1:-demo}" e4 question -q
}

# py EXPRESSION: reads JSON lines from stdin into `lines` (`d` is the first) and asserts.
py() {
	python3 -c '
import json, sys
lines = [json.loads(line) for line in sys.stdin]
d = lines[0] if lines else None
if not eval(sys.argv[1]):
    sys.exit("not so: %s\n%s" % (sys.argv[1], json.dumps(lines, indent=1)))
' "$1"
}

# no_controls: fails if stdin holds anything a terminal obeys or hides.
no_controls() {
	python3 -c '
import sys
text = sys.stdin.buffer.read().decode("utf-8")
bad = [c for c in text if (ord(c) < 32 and c not in "\n\t") or 0x7f <= ord(c) < 0xa0
       or c in "\u061c\u200e\u200f\u2028\u2029\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\ufeff"
       or 0xe0000 <= ord(c) <= 0xe007f]
sys.exit("raw: %r" % bad if bad else 0)
'
}

# in_terminal COMMAND…: runs a shell command line in a terminal of $1 columns.
in_terminal() {
	local columns=$1
	shift
	script -qec "stty cols $columns rows 50 -opost; $*" /dev/null </dev/null
}

# has TEXT: the output of `run` holds it.
has() {
	[[ $output == *"$1"* ]] || {
		printf 'no "%s" in:\n%s\n' "$1" "$output"
		return 1
	}
}

has_not() {
	[[ $output != *"$1"* ]] || {
		printf '"%s" is in:\n%s\n' "$1" "$output"
		return 1
	}
}
