# ls, show, path, tree, context and cat.

load helper

@test "ls: newest first, with names, counts and directories" {
	sheaf new first
	sheaf new second --name 'The second'
	sheaf append first 'hello there' -q
	run -0 sheaf ls
	[[ ${lines[0]} == ID*NAME*MSGS*MODIFIED*DIRECTORY* ]]
	[[ ${lines[1]} == first*'hello there'*1*'just now'* ]]
	[[ ${lines[2]} == second*'The second'*0* ]]
}

@test "ls: an empty store" {
	run --separate-stderr -0 sheaf ls
	[ -z "$output" ]
	[ "$stderr" = 'no sessions' ]
	run -0 sheaf ls --json
	[ -z "$output" ]
}

@test "ls: pages by cursor" {
	for i in 1 2 3 4 5; do sheaf new "s$i" -q; done
	sheaf ls --json -n 2 | py '[x.get("session") for x in lines[:2]] == ["s5", "s4"] and "cursor" in lines[2]'
	local cursor seen
	cursor=$(sheaf ls --json -n 2 | python3 -c 'import json,sys; print([json.loads(l) for l in sys.stdin][-1]["cursor"])')
	seen=$(sheaf ls -q -n 2 --cursor "$cursor")
	[ "$seen" = $'s3\ns2' ]
	run --separate-stderr -0 sheaf ls -n 2
	[[ $stderr == 'more: add --cursor '* ]]
	run -2 sheaf ls --cursor nonsense
}

@test "ls: filters" {
	sheaf new a --name one --kind subagent --parent p
	sheaf new b --name two
	mkdir sub
	(cd sub && sheaf new c)
	[ "$(sheaf ls -q --name one)" = a ]
	[ "$(sheaf ls -q --kind subagent)" = a ]
	[ "$(sheaf ls -q --parent p)" = a ]
	[ "$(sheaf ls -q --cwd sub)" = c ]
	[ "$(sheaf ls -q --cwd . | sort)" = $'a\nb' ]
	[ "$(sheaf ls -q --since 1h | wc -l)" -eq 3 ]
	[ -z "$(sheaf ls -q --before 1h)" ]
	[ -z "$(sheaf ls -q --since 2100-01-01)" ]
	[ "$(sheaf ls -q --before 2100-01-01T00:00:00Z | wc -l)" -eq 3 ]
}

@test "ls --json: every member" {
	make_tree
	sheaf ls --json | py 'd["session"] == "demo" and d["name"] == "Make it faster" and d["messages"] == 7 and d["preview"] == "Make the parser faster"'
	sheaf ls --json | py 'set(d) == {"session","app","user","name","kind","parent_session","cwd","preview","created","modified","revision","records","messages","turns","usage","fork_of","base","readonly","damaged","hidden","stored","ttl_us","grace_us","pinned","expired","expires","undelete_until"}'
}

@test "show: headings, text, folded tool output, labels, compaction" {
	make_tree
	run -0 sheaf show demo
	has 'demo  Make it faster'
	has '7 messages · 2 branches'
	has 'user · just now'
	has '  Make the parser faster'
	has '→ read_file(parse.c)'
	has 'tool · read_file'
	has '│ line 1'
	has_not 'line 40'
	has '… 35 more lines'
	has '[question]'
	has 'compaction · keeps from @5'
	has_not 'try it'
}

@test "show: --full, --last, --branch, --leaf" {
	make_tree
	run -0 sheaf show demo --full
	has 'line 40'
	has '{"path":"parse.c"}'
	run -0 sheaf show demo --last 1
	has 'twice as fast'
	has_not 'No, a table'
	run -0 sheaf show demo --branch simd
	has 'Yes, try it'
	has_not 'No, a table'
	run -0 sheaf show demo --leaf question
	has 'SIMD'
	has_not 'table'
	run -1 sheaf show demo --branch nowhere
	run -1 sheaf show demo --leaf nowhere
}

@test "show: without a session, the newest" {
	run -1 sheaf show
	has 'no sessions'
	sheaf new old
	make_tree
	run -0 sheaf show
	has 'Make it faster'
}

@test "show --json: the stored lines of the path" {
	make_tree
	sheaf show demo --json | py '[x["id"] for x in lines] == ["e1","e2","e3","e4","e6","e7","e8"]'
	diff <(sheaf show demo --json | head -1) <(sheaf cat demo e1)
}

@test "show: images, thinking, several answers, errors, unknown parts" {
	sheaf new demo
	sheaf append demo --batch -q <<'END'
{"type":"message","id":"a","message":{"role":"user","content":[{"type":"image","image":{"source":{"type":"base64","media_type":"image/png","data":"iVBORw0KGgoAAAANSUhEUg=="}}},{"type":"document","document":{"source":{"type":"url","media_type":"application/pdf","data":"https://example.org/x.pdf"}}}]}}
{"type":"message","id":"b","message":{"role":"assistant","content":[{"type":"thinking","thinking":{"text":"hm\nhm\nhm\nhm\nhm\nhm\nhm"}},{"type":"tool_use","tool_use":{"id":"t1","name":"ls","input":{}}},{"type":"tool_use","tool_use":{"id":"t2","name":"rm","input":{"a":1,"b":[2]}}},{"type":"weird","weird":{}}]}}
{"type":"message","id":"c","message":{"role":"tool","content":[{"type":"tool_result","tool_result":{"tool_use_id":"t1","content":"fine"}},{"type":"tool_result","tool_result":{"tool_use_id":"t2","content":"denied","is_error":true}}]}}
END
	run -0 sheaf show demo
	has '[image image/png, '
	has '[document application/pdf https://example.org/x.pdf]'
	has 'thinking'
	has '… 4 more lines'
	has '→ rm(a: 1, b: [2])'
	has '← ls'
	has '← rm failed'
	has '[unknown part]'
}

@test "show: a command the user ran" {
	sheaf new demo
	sheaf append demo --message-json -q <<'END'
{"role":"bashExecution","content":[],"command":"make \u001b[31mtest","output":"one\ntwo\n","exitCode":2}
END
	run -0 sheaf show demo
	has '$ make ^[[31mtest'
	has '│ two'
	has 'exit code 2'
	run -0 sheaf tree demo
	has 'bash       (main) $ make ^[[31mtest'
	run -0 sheaf context demo
	has '$ make ^[[31mtest'
}

@test "show: an empty session" {
	sheaf new demo
	run -0 sheaf show demo
	has '0 messages'
	run -0 sheaf show demo --json
	[ -z "$output" ]
}

@test "reading changes no file" {
	make_tree
	sheaf show demo >/dev/null
	local before after
	sum() { find "$store" -type f -exec sha256sum {} + | sort; }
	# Half a record at the end, as a crash leaves it.
	printf '{"type":"message","id":"zz' >>"$store/demo.jsonl"
	before=$(sum)
	for command in show tree path context cat 'branch' 'label'; do
		sheaf $command demo >/dev/null
	done
	sheaf ls >/dev/null
	sheaf check >/dev/null || true
	after=$(sum)
	diff <(echo "$before" | grep 'demo\.jsonl$') <(echo "$after" | grep 'demo\.jsonl$')
}

@test "path: one line an entry, whole ids in a pipe" {
	make_tree
	run -0 sheaf path demo
	[ "${#lines[@]}" -eq 7 ]
	[[ ${lines[0]} == '@2'*'e1'*'user'*'Make the parser faster' ]]
	[[ ${lines[2]} == *'← read_file: line 1 line 2'* ]]
	sheaf path demo --json | py 'len(lines) == 7'
	[ "$(sheaf path demo -n 2 | wc -l)" -eq 2 ]
	[ "$(sheaf path demo -b simd | wc -l)" -eq 5 ]
}

@test "tree: the active path is one column, what branches off stands beside it" {
	make_tree
	COLUMNS=80 sheaf tree demo | tail -n +4 >drawn
	cat >wanted <<'END'
@2 ● user       Make the parser faster
@3 ● assistant  I look first. → read_file(parse.c)
@4 ● tool       ← read_file: line 1 line 2 line 3 line 4 line 5 line 6 line 7 l…
@5 ● assistant  [question] Shall I use SIMD?
@6 ├─○ user       (simd) Yes, try it
@7 ● user       No, a table
@8 ◆ compaction (keeps from @5, 1,200 tokens before) It was slow.
@9 ● assistant  (main) Done, twice as fast
END
	# The width of the cut is tested elsewhere.
	diff <(sed 's/ line 4.*…/…/' drawn) <(sed 's/ line 4.*…/…/' wanted)
}

@test "tree: the path of another branch, side branches of side branches, several roots" {
	sheaf new demo
	sheaf append demo -i a one -q
	sheaf append demo -i b two -q
	sheaf append demo -i c -b x -p a side -q
	sheaf append demo -i d -b x more -q
	sheaf append demo -i e -b y -p c deeper -q
	sheaf append demo -i f --root again -q
	sheaf tree demo | tail -n +4 >drawn
	cat >wanted <<'END'
@1 ○ user       one
@2 ├─○ user       two
@3 ○ user       side
@4 ├─○ user       (x) more
@5 ○ user       (y) deeper

@6 ● user       (main) again
END
	diff drawn wanted
	sheaf tree demo --branch y | tail -n +4 >drawn
	cat >wanted <<'END'
@1 ● user       one
@2 ├─○ user       two
@3 ● user       side
@4 ├─○ user       (x) more
@5 ● user       (y) deeper

@6 ○ user       (main) again
END
	diff drawn wanted
	run -1 sheaf tree demo --branch nowhere
}

@test "tree: a branch before the first entry, and an empty session" {
	sheaf new demo
	run -0 sheaf tree demo
	has '(main) before the first entry'
	sheaf append demo one -q
	sheaf branch demo main --root -q
	run -0 sheaf tree demo
	has '○ user       one'
	has '(main) before the first entry'
}

@test "tree --short keeps what people said and the shape" {
	make_tree
	run -0 sheaf tree demo --short
	has 'Make the parser faster'
	has '⋮ 2 entries'
	has '(simd)'
	has '(main)'
	has_not 'read_file'
}

@test "tree: lines fit the width" {
	make_tree
	for width in 60 80 200; do
		COLUMNS=$width sheaf tree demo | python3 -c '
import sys
too_wide = [line for line in sys.stdin.read().split("\n")[3:] if len(line) > int(sys.argv[1])]
sys.exit(repr(too_wide) if too_wide else 0)' "$width"
	done
	COLUMNS=60 sheaf tree demo | grep -q '…$'
}

@test "tree: ASCII where the locale is not UTF-8" {
	make_tree
	LC_ALL=C sheaf tree demo >drawn
	LC_ALL=C grep -q '^@6 |-o user' drawn
	LC_ALL=C grep -q '^@2 \* user' drawn
	LC_ALL=C grep -q '^@8 # compaction' drawn
	run env LC_ALL=C grep -n '[^ -~]' drawn
	[ -z "$output" ]
}

@test "tree: a deep conversation stays in one column" {
	sheaf new demo
	for i in $(seq 1 3000); do
		echo "{\"type\":\"message\",\"id\":\"n$i\",\"message\":{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":{\"content\":\"m$i\"}}]}}"
	done | sheaf append demo --batch -q >/dev/null
	[ "$(sheaf tree demo | grep -c '^ *@[0-9]* ● user')" -eq 3000 ]
}

@test "tree --json: nodes by number, with parents, branches and the path" {
	make_tree
	sheaf tree demo --json >tree.json
	python3 -m json.tool tree.json >/dev/null
	py '[n["id"] for n in d["nodes"]] == ["e1","e2","e3","e4","e5","e6","e7","e8"]' <tree.json
	py '[n["id"] for n in d["nodes"] if not n["on_path"]] == ["e5"]' <tree.json
	py 'd["nodes"][4]["parent_id"] == "e4" and d["nodes"][3]["label"] == "question"' <tree.json
	py 'sorted(b["name"] for b in d["branches"]) == ["main", "simd"] and d["branches"][0]["leaf"] == "e8"' <tree.json
}

@test "context: what a model sees, resolved through the compaction" {
	make_tree
	run --separate-stderr -0 sheaf context demo
	has 'It was slow.'
	has 'Shall I use SIMD?'
	has 'twice as fast'
	has_not 'Make the parser faster'
	run -0 sheaf context demo --without-compaction
	has 'Make the parser faster'
	has 'line 40'
	run -0 sheaf context demo --leaf e4
	has_not 'twice as fast'
	run -0 sheaf context demo --branch simd
	has 'Yes, try it'
	run -1 sheaf context demo --branch nowhere
}

@test "context: notes go to stderr" {
	sheaf new demo
	sheaf append demo -q --message-json <<<'{"role":"assistant","content":[{"type":"tool_use","tool_use":{"id":"t1","name":"ls","input":{}}}]}'
	sheaf append demo -q 'Go on'
	run --separate-stderr -0 sheaf context demo
	[[ $stderr == *'nobody answered'* ]]
	has 'made up'
	sheaf context demo --json 2>/dev/null | py 'd["notes"][0]["what"] == "interrupted" and d["items"][1]["synthetic"] and d["items"][1]["message"]["content"][0]["tool_result"]["tool_use_id"] == "t1"'
}

@test "context --agent leaves out what is not for it" {
	sheaf new demo
	sheaf append demo -q 'for all'
	sheaf append demo -q --agent a 'for a'
	sheaf append demo -q --agent b 'for b'
	run -0 sheaf context demo --agent a
	has 'for all'
	has 'for a'
	has_not 'for b'
}

@test "context --json: one object" {
	make_tree
	sheaf context demo --json >context.json
	python3 -m json.tool context.json >/dev/null
	py 'd["session"] == "demo" and d["leaf"] == "e8" and d["compaction"] == "e7" and len(d["prefix_hash"]) == 16' <context.json
	py '[i["role"] for i in d["items"]] == ["compactionSummary","assistant","user","assistant"] and d["notes"] == []' <context.json
	py 'd["items"][1]["entry_id"] == "e4" and d["items"][1]["message"]["content"][0]["text"]["content"] == "Shall I use SIMD?"' <context.json
}

@test "cat: the stored bytes, all or one" {
	make_tree
	diff <(sheaf cat demo) <(tail -n +2 "$store/demo.jsonl")
	diff <(sheaf cat demo e4) <(grep '"id":"e4"' "$store/demo.jsonl")
	diff <(sheaf cat demo question) <(sheaf cat demo e4)
	sheaf cat demo | py 'len(lines) == lines[-1]["seq"]'
	run -1 sheaf cat demo nowhere
	run -1 sheaf cat nothing
}
