# sheaf chat: in a terminal (tmux) and in a pipe, with a model that runs here.

load helper

# start_server [PORT]
start_server() {
	rm -f url
	python3 "$BATS_TEST_DIRNAME/chat_server.py" url requests.log "${1:-0}" 3>&- &
	server=$!
	for _ in $(seq 600); do
		[ -s url ] && break
		sleep 0.05
	done
	url=$(cat url)
}

setup_chat() {
	start_server
	export TMUX_TMPDIR=$BATS_TEST_TMPDIR
	unset TMUX OPENAI_API_KEY ANTHROPIC_API_KEY GEMINI_API_KEY GOOGLE_API_KEY
	unset SHEAF_MODEL SHEAF_URL SHEAF_FORMAT http_proxy HTTP_PROXY all_proxy ALL_PROXY
}

# Each terminal is a tmux of its own: one that ends takes a moment to be gone.
in_tmux() {
	tmux -L "chat${terminals:-0}" "$@"
}

close_terminal() {
	in_tmux kill-server 2>/dev/null || true
	terminals=$((${terminals:-0} + 1))
}

teardown() {
	close_terminal
	[ -z "${server:-}" ] || kill "$server" 2>/dev/null || true
}

# A terminal of 80 by 50 in which a chat runs; what it leaves behind is in $? of the shell there.
start() {
	printf -v line '%q ' "$SHEAF_BIN" chat "$@"
	in_tmux -f /dev/null new-session -d -s chat -x 80 -y 50 \
		"LC_ALL=C.UTF-8 $line; echo \"left with \$?\"; sleep 1000"
	in_tmux set-option -g history-limit 5000
	wait_for '> '
}

# Everything on the screen and above it, without the empty lines below.
screen() {
	in_tmux capture-pane -p -J -S - -t chat | sed -e :a -e '/^\n*$/{$d;N;ba' -e '}'
}

# wait_for TEXT [TIMES]: until it stands there so often.
wait_for() {
	for _ in $(seq 600); do
		[ "$(screen | grep -cF -- "$1")" -ge "${2:-1}" ] && return 0
		sleep 0.05
	done
	printf 'no "%s" on:\n' "$1"
	screen
	return 1
}

# Until there is a prompt to type at, below everything else.
prompt() {
	for _ in $(seq 600); do
		[ "$(screen | sed -e 's/ *$//' -e '/^$/d' | tail -1)" = '>' ] && return 0
		sleep 0.05
	done
	echo 'no prompt on:'
	screen
	return 1
}

keys() {
	in_tmux send-keys -t chat "$@"
}

say() {
	prompt
	in_tmux send-keys -t chat -l -- "$1"
	keys Enter
}

# The texts of a session, one a line.
texts() {
	sheaf show "$@" --json | python3 -c '
import json, sys
for line in sys.stdin:
    message = json.loads(line).get("message")
    if message:
        said = " ".join(p["text"]["content"] for p in message["content"] if p["type"] == "text")
        print(message["role"] + ": " + said.replace("\n", " "))'
}

# ---- In a terminal -----------------------------------------------------

@test "a conversation: said, answered, left, taken up again" {
	setup_chat
	start demo --url "$url" --model m1
	wait_for 'a new session'
	[ ! -e "$store/demo.jsonl" ] # nothing was said yet
	say 'Make the parser faster.'
	wait_for 'With SIMD, or with a table of 256 bytes?'
	wait_for '@2 ·'
	say /quit
	wait_for 'left with 0'
	wait_for '`sheaf chat demo` goes on from here'
	run -0 texts demo
	[ "$output" = $'user: Make the parser faster.\nassistant: With SIMD, or with a table of 256 bytes?' ]

	close_terminal
	start demo --url "$url"
	wait_for 'Make the parser faster.'
	wait_for 'With SIMD, or with a table of 256 bytes?'
	say 'Then the table.'
	wait_for 'Twice as fast'
	keys C-d
	wait_for 'left with 0'
	[ "$(texts demo | wc -l)" -eq 4 ]
	# The whole conversation was sent, with the model of before.
	tail -1 requests.log | py 'd["model"] == "m1" and len(d["messages"]) == 3'
}

@test "what is typed is there before the model is asked, and after kill -9" {
	setup_chat
	start demo --url "$url" --model m1
	say 'slow, please'
	wait_for word3
	[ "$(texts demo)" = 'user: slow, please' ]
	kill -9 "$(pgrep -P "$(in_tmux list-panes -F '#{pane_pid}')" -x "$(basename "$SHEAF_BIN")")"
	wait_for 'left with 137'
	close_terminal
	start demo --url "$url" --model m1
	wait_for 'slow, please'
	wait_for 'what was said last has no answer; /retry asks for it'
	say 'Then the table.'
	wait_for 'Twice as fast'
	sheaf context demo --format openai-chat --check
}

@test "Ctrl-C stops a reply, keeps what came, and the chat goes on" {
	setup_chat
	start demo --url "$url" --model m1
	say 'slow, please'
	wait_for word5
	keys C-c
	wait_for 'stopped; what came is kept'
	texts demo | grep -q 'assistant: word0 word1 word2'
	say 'Then the table.'
	wait_for 'Twice as fast'
	sheaf context demo --format openai-chat --check
}

@test "Ctrl-C on a line puts it away, the arrow brings it back" {
	setup_chat
	start demo --url "$url" --model m1
	prompt
	keys -l 'half a thought'
	keys C-c
	prompt
	keys C-c
	wait_for 'Ctrl-D or /quit ends the chat'
	prompt
	keys Up
	wait_for '> half a thought' 2
	keys Enter
	wait_for 'You said: half a thought'
}

@test "a server that fails is asked again; nothing is lost when it stays away" {
	setup_chat
	start demo --url "$url" --model m1
	say 'broken, the first time'
	wait_for 'trying again'
	wait_for 'You said: broken, the first time'
	say /quit
	wait_for 'left with'
	close_terminal
	kill "$server"
	start demo --url "$url" --model m1
	say 'Is anybody there?'
	wait_for 'trying again'
	keys C-c
	prompt
	texts demo | grep -q 'user: Is anybody there?'
	# It comes back at the same place.
	start_server "${url##*:}"
	say /retry
	wait_for 'You said: Is anybody there?'
	[ "$(texts demo | grep -c 'user: Is anybody there?')" -eq 1 ]
}

@test "a reply that is cut off is asked for again" {
	setup_chat
	start demo --url "$url" --model m1
	say 'cut it'
	wait_for 'Half of'
	wait_for 'trying again'
	keys C-c
	prompt
	sheaf context demo --format openai-chat --model m1 --check
}

@test "nothing a model says reaches the terminal raw" {
	setup_chat
	start demo --url "$url" --model m1
	say 'Make the parser faster.'
	wait_for '@2 ·'
	in_tmux pipe-pane -t chat 'cat >raw'
	say 'evil, please'
	wait_for '@5 ·'
	wait_for '^[[31mred^[]52;c;ZXZpbA==^G'
	wait_for '<U+009B>31m'
	wait_for '<U+202E>'
	# The screen above is as it was.
	wait_for 'With SIMD, or with a table of 256 bytes?'
	# Of escape sequences the terminal got only those of the line editor and colours.
	python3 - <<'END'
import re
raw = open("raw", "rb").read().decode()
rest = re.sub(r"\x1b\[(\?2004[hl]|[0-9;]*m|[0-9]*[ACJ])", "", raw)
assert "\x1b" not in rest, rest
assert not any(0x80 <= ord(c) < 0xa0 for c in raw)
END
}

@test "tree, branch, label, compact, undo, usage" {
	setup_chat
	start demo --url "$url" --model m1
	say 'Make the parser faster.'
	wait_for '@2 ·'
	say '/label @2 question'
	wait_for '[question]'
	say 'SIMD, please.'
	wait_for 'slower'
	say '/branch table question'
	wait_for 'branch table goes on after @2'
	say 'Then the table.'
	wait_for 'Twice as fast'
	say /tree
	wait_for '(main) Done. It is'
	wait_for '(table) Done. **Twice'
	say /branch
	prompt
	say '/branch 2'
	wait_for "there is no branch '2'; did you mean @2?"
	say '/branch main'
	wait_for 'on branch main'
	say '/branch table'
	say '/compact the table'
	wait_for 'the model now sees this in place of what came before'
	sheaf context demo --branch table | grep -q 'The parser was made faster'
	say /undo
	wait_for 'the model sees again what was summed up'
	sheaf context demo --branch table | grep -q 'Then the table.'
	say /usage
	wait_for 'input  '
	wait_for 'window  '
	say /nonsense
	wait_for 'there is no command /nonsense'
	say '//not a command'
	wait_for 'You said: /not a command'
}

@test "going back to what was said puts it on the line, to be said otherwise" {
	setup_chat
	start demo --url "$url" --model m1
	say 'Make the parser faster.'
	wait_for '@2 ·'
	say 'SIMD, please.'
	wait_for '@5 ·'
	say /undo
	wait_for 'in place of @4'
	wait_for '> SIMD, please.' 2
	keys -l ' Or else?'
	keys Enter
	wait_for 'You said: SIMD, please. Or else?'
	run -0 texts demo
	[ "$(wc -l <<<"$output")" -eq 4 ]
	say '/branch @1'
	wait_for '> Make the parser faster.' 2
	keys C-u
	say 'Then the table.'
	wait_for 'Twice as fast'
	[ "$(texts demo | head -1)" = 'user: Then the table.' ]
	sheaf tree demo | grep -q 'Make the parser faster.'
	# Also a text that begins with a slash: it is no command now.
	say '//etc is full'
	wait_for 'You said: /etc is full'
	say /undo
	wait_for '> //etc is full' 2
	keys Enter
	wait_for 'You said: /etc is full' 2
}

@test "what cannot be stored is on the line again" {
	setup_chat
	start demo --url "$url" --model m1
	say 'Make the parser faster.'
	wait_for '@2 ·'
	prompt
	sheaf rm --force demo
	say 'Is this kept?'
	wait_for 'sheaf: the session was deleted'
	wait_for '> Is this kept?' 2
}

@test "retry asks again and keeps the other answer in the tree" {
	setup_chat
	start demo --url "$url" --model m1
	say 'Make the parser faster.'
	wait_for '@2 ·'
	say '/model m2'
	wait_for 'the model is m2'
	say /retry
	wait_for 'With SIMD' 2
	prompt
	[ "$(sheaf tree demo --json | py 'sum(n["role"] == "assistant" for n in d["nodes"]) == 2')" = '' ]
	tail -1 requests.log | py 'd["model"] == "m2" and len(d["messages"]) == 1'
}

@test "the line editor: wide characters, words, several lines, paste" {
	setup_chat
	start demo --url "$url" --model m1
	prompt
	keys -l '日本語 👩‍👩‍👧 grün'
	# Over the ü and n, then the family as a whole.
	keys Left Left BSpace
	keys Home Right Right Delete
	keys End
	keys -l '!'
	wait_for '> 日本 👩‍👩‍👧 gün!'
	keys C-a
	keys -l 'a '
	keys C-e
	keys Left Left Left Left Left BSpace
	wait_for '> a 日本  gün!'
	keys C-w
	keys C-k
	keys -l 'z'
	keys Enter
	wait_for 'You said: '
	prompt
	keys -l 'one'
	keys M-Enter
	keys -l 'two\'
	keys Enter
	keys -l 'three'
	keys Enter
	wait_for '@5 ·'
	in_tmux set-buffer -b p $'pasted\n\tand this\e[31m'
	prompt
	in_tmux paste-buffer -p -b p -t chat
	wait_for 'and this^[[31m'
	keys Enter
	wait_for '@8 ·'
	sheaf cat demo @4 | grep -qF '"one\ntwo\nthree"'
	sheaf cat demo @7 | grep -qF '"pasted\n\tand this\u001b[31m"'
	# What is typed while a reply comes is the next text.
	say 'slow'
	wait_for word2
	keys -l 'typed ahead'
	keys C-c
	wait_for '> typed ahead'
	# A line longer than the screen is wide wraps, and can be edited at its beginning.
	keys C-u
	keys -l "$(printf 'word %.0s' $(seq 40))"
	keys Home
	keys -l 'X'
	keys Enter
	wait_for "You said: Xword word"
}

@test "the line editor does what a list of characters does, on terminals of any width" {
	setup_chat
	python3 - "$SHEAF_BIN" "$url" <<'END'
import fcntl, json, os, pty, random, select, struct, subprocess, sys, termios, time
program, url = sys.argv[1:]
random.seed(7)
CHARACTERS = ["a", "b", " ", "é", "e\u0301", "日", "漢", "👩‍👩‍👧", "👍🏽", "🙂", "ß"]
KEYS = {"left": ["\x1b[D", "\x02"], "right": ["\x1b[C", "\x06"], "home": ["\x1b[H", "\x01", "\x1bOH"],
        "end": ["\x1b[F", "\x05", "\x1b[4~"], "backspace": ["\x7f", "\x08"], "delete": ["\x1b[3~"],
        "before": ["\x15"], "after": ["\x0b"], "word": ["\x17"], "yank": ["\x19"]}

def change(text, at, killed, key):
    """What a key does to a list of characters, a cursor, and what was cut."""
    if key == "left": at = max(at - 1, 0)
    elif key == "right": at = min(at + 1, len(text))
    elif key == "home": at = 0
    elif key == "end": at = len(text)
    elif key == "backspace" and at > 0: text, at = text[:at - 1] + text[at:], at - 1
    elif key == "delete": text = text[:at] + text[at + 1:]
    elif key == "before" and at > 0: killed, text, at = text[:at], text[at:], 0
    elif key == "after" and at < len(text): killed, text = text[at:], text[:at]
    elif key == "word" and at > 0:
        begin = at
        while begin > 0 and text[begin - 1] == " ": begin -= 1
        while begin > 0 and text[begin - 1] != " ": begin -= 1
        killed, text, at = text[begin:at], text[:begin] + text[at:], begin
    elif key == "yank": text, at = text[:at] + killed + text[at:], at + len(killed)
    return text, at, killed

child, terminal = pty.fork()
if child == 0:
    os.execv(program, [program, "chat", "demo", "--url", url, "--model", "m1"])

def read(seconds):
    data = b""
    while select.select([terminal], [], [], seconds)[0]:
        data += os.read(terminal, 65536)
    return data

def wait(*marks):
    """Until all of them came, one after the other."""
    data, end = b"", time.time() + 20
    for mark in marks:
        while mark not in data:
            assert time.time() < end, (mark, data)
            data += read(0.01)
        data = data.split(mark, 1)[1]

said, killed = [], []
wait(b"> ")
for turn in range(25):
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 10, random.choice([8, 13, 20, 80]), 0, 0))
    text, at = ["x"], 1
    os.write(terminal, b"x")
    for _ in range(60):
        if random.random() < 0.6 and len(text) < 200:
            character = random.choice(CHARACTERS)
            os.write(terminal, character.encode())
            text, at = text[:at] + [character] + text[at:], at + 1
        else:
            key = random.choice(list(KEYS))
            os.write(terminal, random.choice(KEYS[key]).encode())
            text, at, killed = change(text, at, killed, key)
        read(0)
    os.write(terminal, b"\x1b[Fz\r")
    said.append("".join(text + ["z"]))
    wait(b"tokens in", b"> ")
os.write(terminal, b"\x04")
assert os.waitpid(child, 0)[1] == 0
stored = subprocess.run([program, "show", "demo", "--json"], stdout=subprocess.PIPE, check=True).stdout
users = [json.loads(line)["message"] for line in stored.splitlines() if b'"role":"user"' in line]
users = [message["content"][0]["text"]["content"] for message in users]
assert users == said, [pair for pair in zip(users, said) if pair[0] != pair[1]]
END
}

@test "thinking is dimmed, NO_COLOR switches colours off, widths are kept" {
	setup_chat
	start demo --format anthropic --url "$url" --model m1
	say 'Make the parser faster.'
	wait_for 'Let me see.'
	in_tmux capture-pane -p -e -t chat | grep -qF $'\e[2m  Let me see.'
	close_terminal
	NO_COLOR=1 start other --url "$url" --model m1
	say "$(printf 'word %.0s' $(seq 60))"
	wait_for '@2 ·'
	! in_tmux capture-pane -p -e -t chat | grep -qF $'\e['
	[ "$(in_tmux capture-pane -p -t chat | awk 'length > 80' | wc -l)" -eq 0 ]
	[ "$(in_tmux capture-pane -p -t chat | grep -c '^  word')" -ge 2 ]
}

@test "the terminal is left as it was found" {
	setup_chat
	in_tmux -f /dev/null new-session -d -s chat -x 80 -y 50 bash --norc --noprofile
	keys "stty -g >before; $SHEAF_BIN chat demo --url $url --model m1; stty -g >after" Enter
	wait_for 'a new session'
	keys C-d
	for _ in $(seq 100); do
		[ -s after ] && break
		sleep 0.05
	done
	cmp before after
	# Also by a signal.
	keys "clear; $SHEAF_BIN chat demo --url $url --model m1; stty -g >after2" Enter
	prompt
	pkill -TERM -x "$(basename "$SHEAF_BIN")" -P "$(in_tmux list-panes -F '#{pane_pid}')"
	for _ in $(seq 100); do
		[ -s after2 ] && break
		sleep 0.05
	done
	cmp before after2
}

# ---- In a pipe ---------------------------------------------------------

@test "in a pipe every line is said and only answers are printed" {
	setup_chat
	printf 'Make the parser faster.\nfirst\\\nsecond\n' |
		sheaf chat demo --url "$url" --model m1 >out 2>err
	[ "$(cat out)" = $'With SIMD, or with a table of 256 bytes?\nYou said: first\nsecond' ]
	[ ! -s err ]
	echo 'Then the table.' | sheaf chat --continue --url "$url" >out
	grep -qF 'Twice as fast' out
	[ "$(texts demo | wc -l)" -eq 6 ]
	echo 'evil' | sheaf chat demo --url "$url" | no_controls
	# What came of a reply that was given up is none of them.
	run -0 --separate-stderr sheaf chat cut --url "$url" --model m1 <<<'cut once'
	[ "$output" = 'You said: cut once' ]
	run -1 --separate-stderr sheaf chat refused --url "$url" --model m1 <<<'refused'
	[ -z "$output" ]
	[[ $stderr == *'`echo /retry | sheaf chat refused` with the same options asks again'* ]]
	run -0 --separate-stderr sheaf chat silent --url "$url" --model m1 <<<'silent'
	[ -z "$output" ] && [ "$stderr" = 'the model said nothing' ]
	run -0 sheaf usage refused
	has 'no usage is recorded'
}

@test "\$SHEAF_MODELS says how large a window is" {
	setup_chat
	cat >models.json <<'END'
{"format":"sheaf-models","version":1,"groups":[{"provider":"openai","models":[{"model":"m1","window":4000}]}]}
END
	export SHEAF_MODELS=models.json
	printf 'one\n/usage\n' | sheaf chat demo --url "$url" --model m1 >out
	grep -q 'of 4,000 tokens' out
	# So that it is compacted by itself before it is full.
	seq 3000 | tr '\n' ' ' | sheaf append demo -q
	seq 3000 | tr '\n' ' ' | sheaf append demo --role assistant -q
	echo two | sheaf chat demo --url "$url" --model m1 2>err
	grep -q 'summing up' err
	SHEAF_MODELS=none.json run -1 sheaf chat demo --url "$url" --model m1 <<<three
	has none.json
}

@test "a model goes to the provider that has it" {
	setup_chat
	run -4 sheaf chat demo --model gpt-5 </dev/null
	has 'OPENAI_API_KEY'
	ANTHROPIC_API_KEY=x run -4 sheaf chat demo --model gemini-2.5-pro </dev/null
	has 'GEMINI_API_KEY'
	run -4 sheaf chat demo --model claude-sonnet-4-5-20250929 </dev/null
	has 'ANTHROPIC_API_KEY'
}

@test "Ctrl-C in a pipe: what came is printed and kept" {
	setup_chat
	echo 'slow' >said
	run -130 timeout --preserve-status -s INT 1 "$SHEAF_BIN" chat demo --url "$url" --model m1 <said
	has 'word0 word1'
	texts demo | grep -q 'assistant: word0 word1'
}

@test "--json prints the records of each turn" {
	setup_chat
	printf 'one\ntwo\n' | sheaf chat demo --url "$url" --model m1 --json >out
	py 'len(lines) == 4 and [l["message"]["role"] for l in lines] == ["user", "assistant"] * 2' <out
}

@test "the system text stays with the session" {
	setup_chat
	echo one | sheaf chat demo --url "$url" --model m1 --system 'Be brief.' >/dev/null
	echo two | sheaf chat demo --url "$url" >/dev/null
	tail -1 requests.log | py 'd["messages"][0] == {"role": "system", "content": "Be brief."}'
	printf '/system Be long.\nthree\n' | sheaf chat demo --url "$url" >/dev/null
	echo four | sheaf chat demo --url "$url" >/dev/null
	tail -1 requests.log | py 'd["messages"][0]["content"] == "Be long."'
}

@test "mistakes say what to do, and what was said is kept" {
	setup_chat
	run -2 sheaf chat demo --url "$url" </dev/null
	has 'which model? --model NAME, or $SHEAF_MODEL'
	run -4 sheaf chat demo --model m1 </dev/null
	has 'ANTHROPIC_API_KEY'
	run -4 sheaf chat demo --format gemini --model m1 </dev/null
	has 'GEMINI_API_KEY'
	run -1 sheaf chat --continue --url "$url" --model m1 </dev/null
	run -1 sheaf chat nothing --continue --url "$url" --model m1 </dev/null
	has "there is no session 'nothing'"
	[ ! -e "$store/nothing.jsonl" ]
	run -2 sheaf chat demo --format martian --model m1 </dev/null
	OPENAI_API_KEY=wrong run -4 sheaf chat demo --url "$url" --model m1 <<<'Hello?'
	has 'OPENAI_API_KEY'
	[ "$(texts demo)" = 'user: Hello?' ]
	echo /retry | sheaf chat demo --url "$url" --model m1 >out
	grep -q 'You said: Hello?' out
	[ "$(texts demo | wc -l)" -eq 2 ]
	run -1 sheaf chat demo --url "$url" --model m1 --branch nowhere </dev/null
	has "there is no branch 'nowhere'"
}

@test "a conversation is not carried on elsewhere by mistake" {
	setup_chat
	echo one | sheaf chat demo --url "$url" --model m1 >/dev/null
	OPENAI_API_KEY=secret run -2 sheaf chat demo <<<two
	has "this conversation was held at $url"
	run -2 sheaf chat demo <<<two
	has "this conversation was held at $url"
	OPENAI_API_KEY=secret SHEAF_URL=$url run -0 sheaf chat demo <<<two
	# Nor does a session say where a key is sent to.
	echo one | sheaf chat other --format anthropic --url "$url" --model m1 >/dev/null
	run -4 sheaf chat other --format anthropic <<<two
	has ANTHROPIC_API_KEY
}

@test "what is asked for can come from the environment" {
	setup_chat
	export SHEAF_URL=$url SHEAF_MODEL=m9 SHEAF_FORMAT=anthropic
	echo one | sheaf chat demo >out
	grep -q 'You said: one' out
	tail -1 requests.log | py 'd["model"] == "m9" and "max_tokens" in d'
	SHEAF_FORMAT=martian run -2 sheaf chat demo <<<two
	has SHEAF_FORMAT
}

@test "compact: a model writes the summary" {
	setup_chat
	printf 'Make the parser faster.\nSIMD, please.\nThen the table.\n' |
		sheaf chat demo --url "$url" --model m1 >/dev/null
	run -0 --separate-stderr sheaf compact demo --url "$url" --keep 0
	sheaf context demo | grep -q 'The parser was made faster'
	# It was asked once, with the model of before, and nothing of that is in the session.
	tail -1 requests.log | py 'd["model"] == "m1" and len(d["messages"]) == 1'
	sheaf cat demo | py 'lines[-1]["type"] == "compaction" and sum(l["type"] == "message" for l in lines) == 6'
	sheaf compact demo --undo -q >/dev/null
	run -2 sheaf compact demo --url "$url" --summary x
	sheaf cat demo >before
	OPENAI_API_KEY=wrong run -4 sheaf compact demo --url "$url" --model m1 --keep 0
	has 'OPENAI_API_KEY'
	sheaf cat demo | cmp - before
}

# ---- In the docs -------------------------------------------------------

# What README.md and docs/chat.md show is what happens: in a block fenced as chat the first line is the
# command, every line behind a prompt is typed, and the screen must look like the block, with … as
# in tools/check_docs. SHEAF_DOCS_WRITE=1 puts what happened into the file instead.
@test "README.md and docs/chat.md show what happens" {
	setup_chat
	cat >block.py <<'END'
import importlib.machinery, importlib.util, os, re, sys
root, path, step, number, screen = *sys.argv[1:4], int(sys.argv[4]), sys.argv[5:]
path = root + "/" + path
text = open(path, encoding="utf-8").read()
blocks = list(re.finditer(r"^(````?)chat\n(.*?)^\1$", text, re.M | re.S))
if number >= len(blocks):
    sys.exit(3)
block = blocks[number].group(2)
command, shown = block.split("\n", 1)
if step == "command":
    print(command.removeprefix("$ sheaf chat "))
elif step == "typed":
    print("\n".join(line[2:] for line in shown.split("\n") if line.startswith("> ")))
else:
    loader = importlib.machinery.SourceFileLoader("check_docs", root + "/tools/check_docs")
    check_docs = importlib.util.module_from_spec(importlib.util.spec_from_loader("check_docs", loader))
    loader.exec_module(check_docs)
    happened = open(screen[0], encoding="utf-8").read()
    if not check_docs.matches(shown, happened):
        if not os.environ.get("SHEAF_DOCS_WRITE"):
            sys.exit("shown:\n%s\nhappened:\n%s" % (shown, happened))
        a, b = blocks[number].span(2)
        open(path, "w", encoding="utf-8").write(text[:a] + command + "\n" + happened + text[b:])
END
	local file block command address
	for file in docs/chat.md README.md; do
		block=0
		while command=$(python3 block.py "$root" $file command $block); do
			address=$(grep -o 'http://[^ ]*' <<<"$command" || true)
			close_terminal
			start ${command/"$address"/"$url"}
			while IFS= read -r text; do
				say "$text"
			done < <(python3 block.py "$root" $file typed $block)
			wait_for 'left with 0'
			screen | sed -e '/^left with 0$/,$d' -e "s|$url|$address|" -e 's/ *$//' >screen
			python3 block.py "$root" $file compare $block screen
			block=$((block + 1))
		done
		[ "$block" -ge 1 ]
		rm -rf "$store"
	done
}
