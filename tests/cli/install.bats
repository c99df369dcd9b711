# export --install: a session where another agent looks for it.

load helper

data=$root/tests/data/import
cc=claude-code.11111111-1111-4111-8111-111111111111
project=/home/user/project

take() {
	sheaf import -q "$data/$1" >/dev/null
}

# closed PATH...: nobody else may look into it.
closed() {
	for path in "$@"; do
		[[ $(stat -c %a "$path") == ?00 ]] || {
			stat -c '%n %a' "$path"
			return 1
		}
	done
}

# get EXPRESSION: of the JSON on stdin, `d`.
get() {
	python3 -c 'import json, sys; d = json.load(sys.stdin); print(eval(sys.argv[1]))' "$1"
}

@test "install: every agent's own place, and the command that goes on" {
	take claude-code/2.1.197
	id=01a1dc49-217f-76fa-a951-49582661c6dd
	run -0 --separate-stderr sheaf export $cc -f claude-code --install
	[ "${lines[0]}" = "new     $HOME/.claude/projects/-home-user-project/${cc#*.}.jsonl" ]
	[ "${lines[1]}" = "cd $project && claude --resume ${cc#*.}" ]
	cmp "${lines[0]#new     }" "$data/claude-code/2.1.197/projects/-home-user-project/${cc#*.}.jsonl"
	agent=${cc#*.}/subagents/agent-a09d105b4b643baac.jsonl
	cmp "$HOME/.claude/projects/-home-user-project/$agent" \
		"$data/claude-code/2.1.197/projects/-home-user-project/$agent"
	run -0 --separate-stderr sheaf export $cc -f codex --install
	[ "${lines[0]}" = "new     $HOME/.codex/sessions/2026/11/14/rollout-2026-11-14T22-59-02-$id.jsonl" ]
	[ "${lines[1]}" = "cd $project && codex resume $id" ]
	run -0 --separate-stderr sheaf export $cc -f pi --install
	[ "${lines[0]}" = "new     $HOME/.pi/agent/sessions/--home-user-project--/2026-11-14T22-59-02-655Z_$id.jsonl" ]
	[ "${lines[1]}" = "cd $project && pi --session $id" ]
	run -0 --separate-stderr sheaf export $cc -f gemini-cli --install
	[ "${lines[0]}" = "new     $HOME/.gemini/tmp/project/chats/session-2026-11-14T22-59-01a1dc49.jsonl" ]
	[ "${lines[1]}" = "cd $project && gemini --resume $id" ]
	[ "$(<"$HOME/.gemini/tmp/project/.project_root")" = $project ]
	run -0 --separate-stderr sheaf export $cc -f opencode --install
	[[ ${lines[0]} =~ ^new\ \ \ \ \ ($XDG_DATA_HOME/opencode/sheaf/(ses_[0-9a-zA-Z]{26}).json)$ ]]
	[ "${lines[1]}" = "cd $project && opencode import ${BASH_REMATCH[1]} && opencode --session ${BASH_REMATCH[2]}" ]
	closed "$HOME/.claude" "$HOME/.claude/projects" "$HOME"/.claude/projects/*/*.jsonl \
		"$HOME/.codex/sessions/2026" "$HOME/.gemini" "$HOME/.gemini/tmp/project/.project_root"
	[ -z "$(find "$HOME" -name '.sheaf-*')" ]
}

@test "install: again is as before, other content is never touched" {
	take claude-code/2.1.197
	for format in claude-code codex pi gemini-cli opencode; do
		run -0 --separate-stderr sheaf export $cc -f $format --install
		file=${lines[0]#new     }
		before=$(stat -c '%i %y' "$file")
		run -0 --separate-stderr sheaf export $cc -f $format --install
		[ "${lines[0]}" = "same    $file" ]
		[ "$(stat -c '%i %y' "$file")" = "$before" ]
		echo '{}' >>"$file"
		run -3 sheaf export $cc -f $format --install
		has 'was left as it is'
		has 'sheaf fork'
		[ "$(tail -n 1 "$file")" = '{}' ]
		[ -z "$(find "$HOME" -name '.sheaf-*')" ]
	done
	sheaf export $cc -f pi --install --json 2>&1 >/dev/null | py 'd["error"]["code"] == "CONFLICT"'
}

@test "install: where the agents' own variables say, and import finds it there" {
	take pi/0.73.1/sessions
	id=$(sheaf ls -q | head -n 1)
	export CLAUDE_CONFIG_DIR=$HOME/c/ CODEX_HOME=$HOME/x PI_CODING_AGENT_DIR=$HOME/p GEMINI_CLI_HOME=$HOME/g
	for format in claude-code codex pi gemini-cli; do
		sheaf export "$id" -f $format --install -q >>files
	done
	sed "s|^$HOME/||" files | cut -d/ -f1-2 | tr '\n' ' ' >tops
	[ "$(<tops)" = 'c/projects x/sessions p/sessions g/.gemini ' ]
	[ ! -e .claude ] && [ ! -e .codex ] && [ ! -e .pi ] && [ ! -e .gemini ]
	run -0 sheaf --store "jsonl:$HOME/other" import --all
	has '4 sessions: 4 new'
}

@test "install: a session of no agent, of no directory, of another one" {
	sheaf new mine --cwd '' >/dev/null
	sheaf append mine 'Hello there' >/dev/null
	sheaf append mine -r assistant 'Hi!' >/dev/null
	mkdir -p "a 'b" there
	cd "a 'b"
	run -0 --separate-stderr sheaf export mine -f claude-code --install
	[[ ${lines[1]} == "cd '$HOME/a '\\''b' && claude --resume "*-*-7*-*-* ]]
	name=${HOME//[^a-zA-Z0-9]/-}
	[[ ${lines[0]} == *"/$name-a--b/"* ]]
	run -0 --separate-stderr sheaf export mine -f claude-code --install --cwd ../there
	[[ ${lines[0]} == *"/$name-there/"* ]]
	sheaf export mine -f claude-code --install --cwd ../there --json |
		py 'd["state"] == "same" and d["command"].endswith("claude --resume " + d["id"]) and d["id"] in d["file"]'
	run -1 sheaf export mine -f claude-code --install --cwd nowhere
	run -2 sheaf export mine -f claude-code --cwd .
	run -2 sheaf export mine -f claude-code --install -o x
	run -2 sheaf export mine -f markdown --install
	has 'no agent looks for files of that format'
}

@test "install: two projects of one name have a directory each with Gemini CLI" {
	sheaf new mine >/dev/null
	sheaf append mine 'Hello there' >/dev/null
	mkdir -p a/My_Project b/my-project
	for dir in a/My_Project b/my-project a/My_Project; do
		sheaf export mine -f gemini-cli --install -q --cwd $dir
	done | sed 's|.*/tmp/||; s|/.*||' >names
	[ "$(tr '\n' ' ' <names)" = 'my-project my-project-1 my-project ' ]
	[ "$(<.gemini/tmp/my-project-1/.project_root)" = "$HOME/b/my-project" ]
}

@test "install: an id or a directory that means more than itself goes nowhere else" {
	for id in ../../../evil '--help' 'a b'; do
		echo '{"type":"session","version":3,"id":"'"$id"'","timestamp":"2026-11-14T10:00:00.000Z","cwd":"/p/../../x"}' >x.jsonl
		echo '{"type":"message","id":"a","parentId":null,"timestamp":"2026-11-14T10:00:00.000Z","message":{"role":"user","content":"Hi"}}' >>x.jsonl
		sheaf import x.jsonl -q >/dev/null
		run -0 --separate-stderr sheaf export "pi.$id" -f pi --install
		[[ ${lines[0]} == "new     $HOME/.pi/agent/sessions/--p-..-.."*_????????-????-7???-????-????????????.jsonl ]]
		no_controls <<<"$output"
	done
	[ -z "$(find "$HOME" "$HOME"/.. -maxdepth 1 -name 'evil*')" ]
}

@test "export: a fork is a session of its own, not the one it was made from" {
	take claude-code/2.1.197
	take pi/0.73.1/sessions
	pi=pi.01a1dc48-91dd-754a-b727-3d8f61e55eff
	sheaf fork $cc mine -q >/dev/null
	sheaf export mine -f claude-code -q | py 'len({l["sessionId"] for l in lines}) == 1 and "11111111" not in d["sessionId"]'
	sheaf fork $pi other -q >/dev/null
	sheaf export other -f pi -q | py 'd["id"] != "01a1dc48-91dd-754a-b727-3d8f61e55eff" and len(lines) > 20'
	run -0 --separate-stderr sheaf export $pi -f pi --install
	run -0 --separate-stderr sheaf export other -f pi --install
	[[ ${lines[0]} == new* ]]
}

@test "export: messages in the place of a compaction are messages for pi" {
	take codex/0.135.0
	run -0 --separate-stderr sheaf export codex.01a1dc4f-9557-7792-a2b4-583aecbc89a6 -f pi
	[[ $stderr != *compaction* ]]
	python3 -c '
import json, sys
lines = [json.loads(line) for line in sys.stdin]
after = lines[max(i for i, l in enumerate(lines) if l["type"] == "compaction") + 1:]
users = [l["message"]["content"][0]["text"] for l in after if l.get("message", {}).get("role") == "user"]
assert users[:3] == ["Hello there", "Please use the tool", "Now run two tools"], users
assert users[-1] == "After compaction", users
assert all(b["parentId"] == a["id"] for a, b in zip(after, after[1:])), after
' <<<"$output"
}

@test "export: an image in an answer is an attachment for OpenCode" {
	take pi/0.73.1/sessions
	run -0 --separate-stderr sheaf export pi.01a1dc48-91dd-754a-b727-3d8f61e55eff -f opencode
	[ -z "$stderr" ]
	python3 -c '
import json, sys
parts = [p for m in json.load(sys.stdin)["messages"] for p in m["parts"] if p["type"] == "tool"]
files = [f for p in parts for f in p["state"].get("attachments", [])]
assert len(files) == 1 and files[0]["url"].startswith("data:image/png;base64,"), files
' <<<"$output"
}

@test "export: a format without branches goes on only where its file ends" {
	take codex/0.166.0
	take opencode/1.18.33/export_main.json
	for id in codex.01a1dc49-dd38-7103-bd23-2ca2f89caecb opencode.ses_e23b5fa6cffeFJNzLxh0hGmYnD; do
		format=${id%%.*}
		sheaf export $id -f $format -o whole -q
		sheaf append $id 'Further on' -q >/dev/null
		sheaf export $id -f $format -o more -q
		# All that was there, and what is new behind it.
		python3 - whole more <<-'END'
			import sys
			whole, more = (open(f).read().rstrip().removesuffix("]\n}").rstrip() for f in sys.argv[1:])
			assert more.startswith(whole) and "Further on" in more[len(whole):]
		END
		# A branch from the middle is another conversation.
		middle=$(sheaf path $id --json | sed -n 4p | get 'd["id"]')
		sheaf append $id -b other -p "$middle" 'Turn off here' -q >/dev/null
		sheaf export $id -f $format -b other -o other -q
		grep -q 'Turn off here' other
		! grep -q 'Further on\|trigger auto\|fail the tool' other
		sheaf export $id -f $format -l "$middle" -o early -q
		! grep -q 'Turn off here\|fail the tool' early
	done
	# Codex counts the lines of its second generation.
	sheaf export codex.01a1dc49-dd38-7103-bd23-2ca2f89caecb -f codex -q |
		py '[l["ordinal"] for l in lines] == list(range(len(lines))) and len(lines) == 139'
}

@test "import: what was exported and comes back is not there twice in pi" {
	take pi/0.73.1/sessions
	pi=pi.01a1dc48-91dd-754a-b727-3d8f61e55eff
	sheaf append $pi 'Further on' -q >/dev/null
	file=$(sheaf export $pi -f pi --install -q)
	printf '{"type":"message","id":"zz","parentId":"%s","timestamp":"2026-11-15T10:00:00.000Z","message":{"role":"user","content":"And on"}}\n' \
		"$(tail -n 1 "$file" | get 'd["id"]')" >>"$file"
	run -0 sheaf import "$file"
	has '0 changed, 0 as before; 2 records'
	has_not problem
	[ "$(sheaf tree $pi --no-pager | grep -c 'Further on')" -eq 1 ]
	sheaf export $pi -f pi | cmp - "$file"
}

@test "install: a fork that names another file brings that along" {
	take codex/0.166.0
	fork=codex.01a1dc4c-a58b-7a91-bc09-1eed8ffc41cb
	sheaf export $fork -f codex --install -q
	dir=$HOME/.codex/sessions/2026/11/14
	[ "$(cd "$dir" && echo *)" = "$(cd "$data/codex/0.166.0/sessions/2026/11/14" && echo *)" ]
	base=$dir/rollout-2026-11-14T22-59-50-01a1dc49-dd38-7103-bd23-2ca2f89caecb.jsonl
	echo '{}' >>"$base" # its agent went on
	run -0 --separate-stderr sheaf export $fork -f codex --install
	[[ ${lines[0]} == same* ]]
	[ "$(tail -n 1 "$base")" = '{}' ]
}

@test "install: what was imported from elsewhere below the home directory lies nowhere yet" {
	mkdir came
	cp "$data/gemini-cli/0.61.0/after-compress/session-2026-11-14T23-02-caefd898.jsonl" \
		"$data/opencode/1.18.33/export_main.json" came
	sheaf import "$HOME/came" -q >/dev/null
	for id in gemini-cli.caefd898-195c-44aa-a02f-2f8e07b71f6b opencode.ses_e23b5fa6cffeFJNzLxh0hGmYnD; do
		run -0 --separate-stderr sheaf export $id -f ${id%%.*} --install
		[[ ${lines[0]} == new* ]]
	done
}

@test "install: a session lies where its agent put it, whatever that named it" {
	mkdir -p .codex/sessions/2026/11/15
	file=$HOME/.codex/sessions/2026/11/15/rollout-2026-11-15T00-59-50-01a1dc49-dd38-7103-bd23-2ca2f89caecb.jsonl
	cp "$data"/codex/0.166.0/sessions/2026/11/14/rollout-2026-11-14T22* "$file"
	sheaf import --all -q >/dev/null
	id=codex.01a1dc49-dd38-7103-bd23-2ca2f89caecb
	run -0 --separate-stderr sheaf export $id -f codex --install
	[ "${lines[0]}" = "same    $file" ]
	sheaf append $id 'More' -q >/dev/null
	run -3 sheaf export $id -f codex --install
	has "$file"
	[ "$(find .codex -name '*.jsonl' | wc -l)" -eq 1 ]
}
