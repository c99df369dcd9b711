# sheaf tui: driven by its keys in a terminal (tmux), its screen read back from there.

load helper

# What no terminal may obey, and what terminals count differently.
evil=$'\e[31mred\e]52;c;ZXZpbA==\a \u009b31m \u202e\u2066 \x7f \U000e0041 end'
emoji='👩‍👩‍👧 a family 👍🏽 a thumb 🇩🇪 a flag ⚠️ a sign 1️⃣ a key e̵̡͓ marks'
cjk='日本語のとても長い名前のセッション、端末の幅を超える名前です、はい、そうです、まだ続きます'
rtl='שלום עולם, مرحبا بالعالم, and left to right'

# The store goes where writing costs nothing: much is made here, and it is not what is tested.
in_memory() {
	[ ! -w /dev/shm ] || XDG_DATA_HOME=$(mktemp -d /dev/shm/sheaf-tui.XXXXXX)
	store=$XDG_DATA_HOME/sheaf
}

make_sessions() {
	in_memory
	make_tree demo
	local name
	for name in evil emoji cjk rtl; do
		sheaf new "$name" --name "${!name}" -q >/dev/null
		sheaf append "$name" -q "${!name}. ${!name}. ${!name}" >/dev/null
		sheaf append "$name" -q -r assistant "| ${!name} | b |
|---|---|
| ${!name} | 2 |" >/dev/null
	done
	sheaf append codex.7 -c -q 'The connection was refused' >/dev/null
}

in_tmux() {
	tmux -L "tui${terminals:-0}" "$@"
}

close_terminal() {
	in_tmux kill-server 2>/dev/null || true
	terminals=$((${terminals:-0} + 1))
}

teardown() {
	close_terminal
	[[ $XDG_DATA_HOME != /dev/shm/* ]] || rm -rf "$XDG_DATA_HOME"
}

# start COLUMNSxROWS ARGUMENT…: a terminal of that size in which the browser runs, and its first
# screen. All that it sends to the terminal is in the file `raw`.
start() {
	local line size=$1
	shift
	unset TMUX
	export TMUX_TMPDIR=$BATS_TEST_TMPDIR
	printf -v line '%q ' "$SHEAF_BIN" tui "$@"
	in_tmux -f /dev/null new-session -d -s tui -x "${size%x*}" -y "${size#*x}" \
		"tmux -L tui${terminals:-0} wait-for ready; LC_ALL=C.UTF-8 $line; echo \"left with \$?\"; sleep 1000"
	in_tmux set-option -s set-clipboard on
	in_tmux set-option -s escape-time 0
	in_tmux pipe-pane -t tui 'cat >raw'
	in_tmux wait-for -S ready
	wait_for 'sheaf · '
}

screen() {
	in_tmux capture-pane -p -t tui
}

# wait_for TEXT: until it stands on the screen.
wait_for() {
	for _ in $(seq 600); do
		screen | grep -qF -- "$1" && return 0
		sleep 0.02
	done
	printf 'no "%s" on:\n' "$1"
	screen
	return 1
}

wait_gone() {
	for _ in $(seq 600); do
		screen | grep -qF -- "$1" || return 0
		sleep 0.02
	done
	printf 'still "%s" on:\n' "$1"
	screen
	return 1
}

keys() {
	in_tmux send-keys -t tui "$@"
}

type_text() {
	in_tmux send-keys -t tui -l -- "$1"
}

# The line that is chosen: the only one in reverse below the title.
chosen() {
	in_tmux capture-pane -p -e -t tui | sed 1d | grep $'\e\[[0-9;]*7m' | sed -e $'s/\e\[[0-9;]*m//g'
}

# wait_chosen TEXT: until it stands in the line that is chosen.
wait_chosen() {
	for _ in $(seq 600); do
		[[ $(chosen) == *"$1"* ]] && return 0
		sleep 0.02
	done
	printf '"%s" is not chosen, but: %s\n' "$1" "$(chosen)"
	screen
	return 1
}

# columns PATTERN: in which columns of the screen it begins, each once.
columns() {
	screen | python3 -c '
import re, sys, unicodedata
def width(c):
    if unicodedata.category(c) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(c) in "WF" else 1
found = set()
for line in sys.stdin.read().split("\n"):
    for m in re.finditer(sys.argv[1], line):
        found.add(sum(map(width, line[:m.start()])))
print(*sorted(found))' "$1"
}

# wall COLUMN: whether one goes from below the title to above the last line, there and unbroken.
wall() {
	screen | python3 -c '
import sys, unicodedata
def width(c):
    if unicodedata.category(c) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(c) in "WF" else 1
for line in sys.stdin.read().split("\n")[1:-2]:
    at, found = 0, False
    for c in line:
        found = found or (c == "│" and at == int(sys.argv[1]))
        at += width(c)
    if not found:
        sys.exit(line)' "$1"
}

# The screen when nothing happens on it any more. How long ago things were may change meanwhile.
settled() {
	screen >now
	for _ in $(seq 600); do
		mv now earlier
		sleep 0.05
		screen >now
		! cmp -s earlier now || break
	done
	sed -E 's/just now|[0-9]+ minutes? ago/AGO/g; s/ +/ /g' now
}

# Drawing the screen anew must not change it: nothing was left behind, nothing moved.
same_when_drawn_again() {
	settled >before
	keys C-l
	settled >after
	diff before after
}

# ---- Screens -----------------------------------------------------------

@test "the list at 80x24: names, projects, agents, newest first, with a preview below" {
	make_sessions
	start 80x24
	wait_for '1/6'
	wait_chosen 'The connection was refused'
	screen | grep -q 'SESSION .*PROJECT .*AGENT .*CHANGED'
	screen | grep -q 'The connection was refused .*~ .*codex '
	wait_for '1 message · ~ · '
	keys j
	wait_chosen 'שלום'
	keys G
	wait_chosen 'Make it faster'
	wait_for '7 messages · 2 branches · ~ · '
	wait_for 'No, a table'
	keys Tab
	wait_gone '7 messages'
	keys q
	wait_for 'left with 0'
}

@test "the list at 200x50 has the preview beside it" {
	make_sessions
	start 200x50
	wait_for '1/6'
	keys G
	wait_for '7 messages · 2 branches'
	wait_for 'Done, twice as fast'
	wall 100
	keys q
	wait_for 'left with 0'
}

@test "reading: folded, unfolded, jumps, the end and the beginning" {
	make_sessions
	start 80x24 demo
	wait_for 'sheaf · Make it faster · demo'
	wait_for '… 35 more lines'
	wait_chosen 'assistant · '
	wait_for '@9 of 10'
	keys g
	wait_chosen 'user · '
	wait_for '@2 of 10'
	keys Tab Tab
	wait_chosen 'tool · read_file'
	keys Space
	wait_gone '35 more lines'
	wait_for '│ line 18'
	keys C-d C-d C-d
	wait_for '│ line 40'
	wait_gone '│ line 5 '
	keys Space
	wait_for '35 more lines'
	wait_chosen 'tool · read_file'
	keys u
	wait_chosen 'user · '
	wait_for '@7 of 10'
	keys U
	wait_for '@2 of 10'
	keys z
	wait_for 'everything is unfolded'
	wait_for '{"path":"parse.c"}'
	keys z
	wait_for 'everything is folded'
	keys G
	wait_for '@9 of 10'
	wait_for 'Done, twice as fast'
	keys u
	wait_for 'there is none after'
	keys q
	wait_for 'sheaf · sessions'
}

@test "the tree: every branch, and from there to an entry" {
	make_sessions
	start 80x24
	keys G
	wait_chosen 'Make it faster'
	keys t
	wait_for 'tree of Make it faster'
	wait_for '@6 ├─○ user       (simd) Yes, try it'
	wait_chosen '@9 ●'
	keys g j j j j
	wait_chosen '@6 ├─○'
	keys Enter
	wait_chosen 'user · '
	wait_for '@6 of 10'
	wait_for 'Yes, try it'
	# It is read with its own branch, not with main.
	wait_gone 'No, a table'
	keys t
	wait_chosen '@6 ├─○'
	# Back the way one came.
	keys q
	wait_for '@6 of 10'
	keys q
	wait_for 'sheaf · sessions'
}

@test "search: as one types, with snippets, and Enter opens the hit" {
	make_sessions
	start 80x24
	keys /
	wait_for 'words side by side'
	type_text refu
	wait_for 'The connection was refused'
	wait_for '1/1'
	keys C-u
	type_text 'line 33'
	wait_for 'tool read_file · '
	wait_for 'Make it faster'
	keys Enter
	# It is unfolded, and the reader stands where it says so.
	wait_for 'sheaf · Make it faster · demo'
	wait_chosen '│ line 33'
	keys q
	wait_for 'sheaf · search'
	wait_chosen 'tool read_file'
	keys /
	keys C-u
	type_text 'nosuchword'
	wait_for 'nothing found'
	keys Escape
	wait_for 'nothing found'
	keys Escape
	wait_for 'sheaf · sessions'
	# An open quote is no mistake while it is being typed.
	keys /
	type_text '"connection was'
	wait_for '1/1'
	keys Enter
	wait_for 'codex.7'
	keys n
	wait_for 'this is the last hit'
}

@test "search: in any script, and n goes from hit to hit" {
	make_sessions
	start 80x24
	keys /
	type_text 日本語
	wait_for '1/'
	keys Enter
	wait_for 'sheaf · 日本語'
	keys q
	wait_for 'sheaf · search'
	keys / C-u
	type_text 'faster'
	wait_for 'Make the parser faster'
	wait_for '1/2'
	keys Enter
	wait_for ' of 10'
	keys n
	wait_for ' of 10'
	keys N N
	wait_for 'this is the first hit'
}

@test "projects: one of them, and all again" {
	make_sessions
	mkdir -p work/deep
	(cd work/deep && sheaf append other -c -q 'In another directory' >/dev/null)
	start 80x24
	wait_for '1/7'
	keys p
	wait_for '~/work/deep'
	screen | grep -q '~ .*6 sessions'
	keys j
	wait_chosen '~/work/deep'
	keys Enter
	wait_for 'sheaf · sessions of ~/work/deep'
	wait_for '1/1'
	keys /
	type_text connection
	wait_for 'nothing found'
	keys Escape
	wait_gone '/connection'
	keys Escape p
	wait_chosen '~/work/deep'
	keys g Enter
	wait_for '1/7'
	close_terminal
	cd work/deep
	start 80x24 --here
	wait_for 'sheaf · sessions of ~/work/deep'
	wait_for '1/1'
}

@test "help lists the keys" {
	make_sessions
	start 80x24
	keys '?'
	wait_for 'sheaf · help'
	wait_for 'fold or unfold the entry'
	keys G
	wait_chosen 'quit'
	keys q
	wait_for 'sheaf · sessions'
}

@test "an id is copied to the clipboard and shown; nothing else ever is" {
	make_sessions
	sheaf append 'a;b' -c -q 'an odd id' >/dev/null
	start 80x24
	wait_for '1/7'
	keys y
	wait_for 'session a;b has an id that is not copied'
	run in_tmux show-buffer
	[ "$status" -ne 0 ]
	keys j y
	wait_for 'session codex.7 copied'
	for _ in $(seq 100); do
		[ "$(in_tmux show-buffer 2>/dev/null)" = codex.7 ] && break
		sleep 0.02
	done
	[ "$(in_tmux show-buffer)" = codex.7 ]
	keys G Enter
	wait_for '@9 of 10'
	keys y
	wait_for 'entry e8 copied'
	keys Y
	wait_for 'session demo copied'
	for _ in $(seq 100); do
		[ "$(in_tmux show-buffer)" = demo ] && break
		sleep 0.02
	done
	[ "$(in_tmux show-buffer)" = demo ]
}

# ---- Nothing garbles it ------------------------------------------------

@test "emoji, CJK, right-to-left text and escape sequences leave every column in its place" {
	make_sessions
	local size
	for size in 80x24 200x50; do
		close_terminal
		start $size
		wait_for '1/6'
		[ "$(columns 'CHANGED|(?<=  )(just now|\d+ minutes? ago)')" = "$(columns CHANGED)" ] || {
			screen
			false
		}
		local i
		for i in 1 2 3 4 5; do
			keys j
			wait_for "$((i + 1))/6"
			wait_for ' · @'
			[ $size = 80x24 ] || wall 100 || {
				screen
				false
			}
		done
		same_when_drawn_again
		for i in 5 4 3 2; do
			keys k
			wait_for "$i/6"
			keys Enter
			wait_for ' of '
			keys z G g
			[ $size = 200x50 ] || same_when_drawn_again
			keys t
			wait_for 'tree of'
			[ $size = 80x24 ] || same_when_drawn_again
			keys q
			wait_for ' of '
			keys q
			wait_for 'sheaf · sessions'
		done
		screen | sed 's/\xe2\x80\x8e//g' | no_controls
		keys q
		wait_for 'left with 0'
		python3 - <<'END_PYTHON'
raw = open("raw", "rb").read()
for bad in (b"\x1b[31mred", b"\x1b]52", b"\xc2\x9b", "\u202e".encode(), "\u2066".encode(), "\U000e0041".encode()):
    assert bad not in raw, bad
assert "\u200d".encode() not in raw
END_PYTHON
	done
}

@test "the screen follows the size of the terminal, however small" {
	make_sessions
	start 80x24 demo
	wait_for '@9 of 10'
	screen >first
	local size
	for size in 200x50 40x10 20x4 8x2 1x1 80x24; do
		in_tmux resize-window -t tui -x "${size%x*}" -y "${size#*x}"
		keys k j
		[ $size != 200x50 ] || wait_for '· @2'
	done
	keys G '?'
	wait_for 'sheaf · help'
	keys q
	wait_for '@9 of 10'
	keys q
	wait_for 'sheaf · sessions'
	in_tmux resize-window -t tui -x 200 -y 50
	for _ in $(seq 600); do
		wall 100 && break
		sleep 0.02
	done
	wall 100
	same_when_drawn_again
}

# ---- What can go wrong -------------------------------------------------

@test "without a terminal, or on one that cannot place text, it says so" {
	make_sessions
	run -1 sheaf tui </dev/null
	has 'needs a terminal'
	has 'sheaf ls'
	TERM=dumb run in_terminal 80 "$SHEAF_BIN tui; echo left with \$?"
	has "of kind 'dumb'"
	has 'left with 1'
	TERM=nosuchterm run in_terminal 80 "$SHEAF_BIN tui; echo left with \$?"
	has "of kind 'nosuchterm'"
	has 'left with 1'
	run -2 sheaf tui --json
	run -2 sheaf tui --here --project .
	run -1 sheaf tui nosuchsession
	has "there is no session 'nosuchsession'"
}

@test "an error of the store is said on the last line, and one goes on" {
	make_sessions
	start 80x24
	wait_for '1/6'
	rm "$store"/rtl.jsonl
	keys j Enter
	wait_for 'sheaf · sessions'
	screen | tail -1 | grep -qi 'session' || {
		screen
		false
	}
	keys R
	wait_for '/5'
	keys G Enter
	wait_for '@9 of 10'
}

@test "a damaged session can be read as far as it goes" {
	in_memory
	make_tree demo
	sed -i 's/Shall I/Shell I/' "$store"/demo.jsonl
	start 80x24 demo
	wait_for 'this record cannot be read'
	wait_for 'Done, twice as fast'
	keys g
	wait_for 'Make the parser faster'
}

@test "no sessions, and nothing said" {
	in_memory
	start 80x24
	wait_for 'no sessions yet'
	keys Enter t y G
	wait_for 'no sessions yet'
	sheaf new empty -q >/dev/null
	keys R
	wait_for '(empty)'
	keys Enter
	wait_for 'nothing has been said here'
	keys j k G g Space u U y t
	wait_for 'tree of'
	keys j Enter q q
	wait_for 'sheaf · sessions'
}

@test "Ctrl-C leaves, Ctrl-Z stops, a signal that ends it gives the terminal back" {
	make_sessions
	start 80x24
	wait_for '1/6'
	keys C-c
	wait_for 'left with 0'
	close_terminal
	unset TMUX
	export TMUX_TMPDIR=$BATS_TEST_TMPDIR
	in_tmux -f /dev/null new-session -d -s tui -x 80 -y 24 "env PS1='here> ' bash --norc -i"
	wait_for 'here>'
	keys "$SHEAF_BIN tui" Enter
	wait_for '1/6'
	keys C-z
	wait_for Stopped
	keys fg Enter
	wait_for '1/6'
	keys G
	wait_chosen 'Make it faster'
	kill -TERM "$(pgrep -P "$(in_tmux list-panes -F '#{pane_pid}')" -x "$(basename "$SHEAF_BIN")")"
	wait_gone 'sheaf · sessions'
	wait_for 'here>'
	keys 'stty -a | grep -o " echo " | head -1; echo all is well' Enter
	wait_for 'all is well'
}

# ---- How quick it is ---------------------------------------------------

@test "10,000 sessions: on the screen at once, all of them within reach" {
	in_memory
	mkdir sessions
	python3 - <<'END_PYTHON'
import json
for i in range(10000):
    time = "2026-%02d-%02dT%02d:%02d:00.000Z" % (1 + i % 10, 1 + i % 28, i % 24, i % 60)
    with open("sessions/%05d.jsonl" % i, "w") as f:
        f.write(json.dumps({"type": "session", "version": 3, "id": "s%05d" % i, "timestamp": time,
                            "cwd": "/home/user/p%02d" % (i % 37)}) + "\n")
        f.write(json.dumps({"type": "message", "id": "a1", "parentId": None, "timestamp": time,
                            "message": {"role": "user", "content": "Question %d" % i}}) + "\n")
END_PYTHON
	sheaf import sessions -q >/dev/null
	sheaf ls -n 1 >/dev/null # makes the catalogue
	cat >time.py <<'END_PYTHON'
import fcntl, os, pty, struct, sys, termios, time
def start():
    begin = time.perf_counter()
    pid, terminal = pty.fork()
    if pid == 0:
        os.execv(sys.argv[1], [sys.argv[1], "tui"])
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 200, 0, 0))
    seen = b""
    while b"/200+" not in seen: # the end of the first screen: the first of 200 read so far
        seen += os.read(terminal, 65536)
    took = time.perf_counter() - begin
    os.write(terminal, b"q")
    try:
        while os.read(terminal, 65536):
            pass
    except OSError:
        pass
    os.waitpid(pid, 0)
    return took
best = min(start() for _ in range(5)) * 1000
print("# from the command to the first screen: %.1f ms" % best)
sys.exit(best > 300)
END_PYTHON
	python3 time.py "$SHEAF_BIN" >&3
	start 80x24
	wait_for '1/200+'
	keys G
	wait_for '10,000/10,000'
	keys p
	wait_for '37 projects'
	screen | grep -q '/home/user/p.* 27. sessions'
}

# ---- In the docs -------------------------------------------------------

# What docs/tui.md shows is what happens: a block fenced as `tui SIZE KEY…` is the screen after those
# keys, on the laptop that other documents begin with and with one session more. SHEAF_DOCS_WRITE=1 puts what happened into the
# file instead. How long ago something was depends on the day.
@test "docs/tui.md shows what happens" {
	in_memory
	"$root"/tests/support/laptop "$HOME"
	sheaf import --all -q >/dev/null
	mkdir -p work/parser
	(cd work/parser && make_tree demo)
	cat >block.py <<'END_PYTHON'
import os, re, sys
path, step, number = sys.argv[1], sys.argv[2], int(sys.argv[3])
text = open(path, encoding="utf-8").read()
blocks = list(re.finditer(r"^```tui (\S+) ?(.*)\n((?:.*\n)*?)```$", text, re.M))
if number >= len(blocks):
    sys.exit(3)
size, keys, shown = blocks[number].groups()
def plain(screen):
    screen = re.sub(r"just now|yesterday|\d+ \w+ ago|\d{4}-\d\d-\d\d(?!T)", "AGO", screen)
    return "\n".join(line.rstrip() for line in screen.split("\n")).strip("\n")
if step == "keys":
    print(size, keys)
else:
    happened = sys.stdin.read()
    if plain(shown) == plain(happened):
        sys.exit(0)
    if not os.environ.get("SHEAF_DOCS_WRITE"):
        print("shown:\n%s\nhappened:\n%s" % (shown, happened))
        sys.exit(1)
    a, b = blocks[number].span(3)
    happened = "\n".join(line.rstrip() for line in happened.split("\n")).strip("\n") + "\n"
    open(path, "w", encoding="utf-8").write(text[:a] + happened + text[b:])
END_PYTHON
	local block=0 size line pressed key
	while line=$(python3 block.py "$root/docs/tui.md" keys $block); do
		read -r size pressed <<<"$line"
		close_terminal
		start "$size"
		wait_for '1/5'
		for key in $pressed; do
			keys "$key"
		done
		# Until it rests: what takes a while is drawn when the keys do.
		for _ in $(seq 100); do
			screen >happened
			SHEAF_DOCS_WRITE='' python3 block.py "$root/docs/tui.md" compare $block \
				<happened >said && break
			sleep 0.05
		done
		python3 block.py "$root/docs/tui.md" compare $block <happened
		block=$((block + 1))
	done
	[ "$block" -ge 4 ]
}
