# new and append: what is written, from where, and what is refused.

load helper

text_of() {
	sheaf cat demo "$1" | python3 -c '
import json, sys
print(json.load(sys.stdin)["message"]["content"][0]["text"]["content"], end="")'
}

@test "new prints the id it was given, or a new one" {
	run -0 sheaf new demo
	[ "$output" = demo ]
	run -0 sheaf new
	[[ $output =~ ^[0-9a-f]{8}-[0-9a-f]{4}-7 ]]
	sheaf new --json other | py 'd == {"session": "other", "app": "", "user": ""}'
}

@test "new: name, directory, kind and parent" {
	sheaf new a --name 'A name' --kind subagent --parent demo
	sheaf ls --json | py 'd["name"] == "A name" and d["kind"] == "subagent" and d["parent_session"] == "demo"'
	sheaf ls --json | py "d['cwd'] == '$PWD'"
	mkdir sub
	sheaf new b --cwd sub
	sheaf ls --json --cwd sub | py "d['session'] == 'b' and d['cwd'] == '$PWD/sub'"
}

@test "new: an id that is taken is refused with exit code 3, an empty one with 2" {
	sheaf new demo
	run -3 sheaf new demo
	has "'demo'"
	run -2 sheaf new ''
}

@test "append: from stdin without its last line break, from arguments, from -m" {
	sheaf new demo
	run -0 sheaf append demo --role user <<<hello
	[ "$(text_of "$output")" = hello ]
	printf 'a\n\nb\n\n' | sheaf append demo -i two
	[ "$(text_of two | od -An -c | tr -d ' \n')" = 'a\n\nb\n' ]
	sheaf append demo -i three some words
	[ "$(text_of three)" = 'some words' ]
	sheaf append demo -i four -m $'exactly\n'
	[ "$(text_of four | od -An -c | tr -d ' \n')" = 'exactly\n' ]
	echo dash | sheaf append demo -i five -
	[ "$(text_of five)" = dash ]
}

@test "append: prints the id; as JSON also where it landed" {
	sheaf new demo
	run -0 sheaf append demo -i my-id x
	[ "$output" = my-id ]
	sheaf append demo --json y | py 'd["seq"] == 2 and d["first_seq"] == 2 and d["existed"] is False and d["durability"] == "disk" and d["id"]'
	sheaf append demo --json --durability process z | py 'd["durability"] in ("process", "disk")'
	run -1 sheaf append demo --durability replica z
}

@test "append: nothing to append is a mistake and leaves nothing behind" {
	sheaf new demo
	run -2 sheaf append demo </dev/null
	run -2 sheaf append demo -m ''
	run -2 sheaf append demo --create -m ''
	run -2 sheaf append made --create </dev/null
	[ ! -e "$store/made.jsonl" ]
	run -2 sheaf append demo -m text and words
}

@test "append: stdin that is a terminal gets a message instead of a hang" {
	sheaf new demo
	run -2 timeout 10 script -qec "$SHEAF_BIN append demo" /dev/null </dev/null
	has 'nothing to append'
}

@test "append: a session that is not there, and --create" {
	run -1 sheaf append nothing hello
	has "no session 'nothing'"
	sheaf append made --create hello
	sheaf append made --create again
	[ "$(sheaf path made | wc -l)" -eq 2 ]
}

@test "append: an id makes it repeatable; other content is a conflict" {
	sheaf new demo
	sheaf append demo -i a hello
	sheaf append demo -i a hello --json | py 'd["existed"] is True and d["seq"] == 1'
	run -3 sheaf append demo -i a other
	[ "$(sheaf cat demo | wc -l)" -eq 1 ]
}

@test "append: --expect-leaf and --expect-revision end with 3 when stale" {
	sheaf new demo
	sheaf append demo -i a --expect-leaf '' first
	sheaf append demo -i b --expect-leaf a second
	run -3 sheaf append demo --expect-leaf a late
	has 'revision 2, leaf b'
	run -3 sheaf append demo --expect-leaf '' late
	run -3 sheaf append demo --expect-revision 1 late
	sheaf append demo --expect-revision 2 third
	run --separate-stderr -3 sheaf append demo --json --expect-revision 2 late
	py 'd["error"]["code"] == "STALE" and d["error"]["revision"] == 3 and d["error"]["leaf"]' <<<"$stderr"
	run -2 sheaf append demo --expect-revision 2 --expect-leaf a x
}

@test "append: parent, branch, root, turn, agent, provider and model" {
	sheaf new demo
	sheaf append demo -i a one
	sheaf append demo -i b two
	sheaf append demo -i c --parent a --branch side other
	sheaf cat demo c | py 'd["parent_id"] == "a" and d["branch"] == "side"'
	sheaf append demo -i d --root fresh
	sheaf cat demo d | py 'd["parent_id"] is None'
	sheaf append demo -i e --turn t1 --agent helper -r assistant --provider acme --model m1 x
	sheaf cat demo e | py 'd["turn"] == "t1" and d["agent"] == "helper" and d["message"]["model"] == "m1" and d["message"]["provider"] == "acme"'
	run -1 sheaf append demo --parent nowhere x
	run -2 sheaf append demo --parent a --root x
}

@test "append: a message as JSON is kept byte for byte" {
	sheaf new demo
	local message='{ "role":"user", "content":[{"type":"text","text":{"content":"a\u0041"}}],"x":1.50 }'
	sheaf append demo --message-json -i a <<<"$message"
	sheaf cat demo a | grep -qF "$message"
	run -2 sheaf append demo --message-json <<<'{"role":"user"'
	run -2 sheaf append demo --message-json <<<'{"role":"king","content":[]}'
	run -2 sheaf append demo --message-json --role user <<<"$message"
}

@test "append: any record by type and body" {
	sheaf new demo
	echo '{"custom":{"custom_type":"note","data":{"k":1}}}' | sheaf append demo --json-body custom -i a
	sheaf cat demo a | py 'd["type"] == "custom" and d["custom"]["data"] == {"k": 1}'
	run -2 sheaf append demo --json-body custom <<<'{"seq":7}'
	run -2 sheaf append demo --json-body custom <<<'nonsense'
}

@test "append: a batch lands whole" {
	sheaf new demo
	run -0 sheaf append demo --batch <<'END'
{"type":"message","id":"a","message":{"role":"user","content":[{"type":"text","text":{"content":"q"}}]}}

{"type":"message","id":"b","message":{"role":"assistant","content":[{"type":"text","text":{"content":"r"}}]}}
{"type":"label","label":{"target_id":"a","label":"start"}}
END
	[ "${lines[0]}" = a ]
	[ "${lines[1]}" = b ]
	[ "${#lines[@]}" -eq 3 ]
	sheaf cat demo b | py 'd["parent_id"] == "a" and d["batch"] == [1, 3]'
	sheaf cat demo start | py 'd["id"] == "a"'
}

@test "append: a batch with a mistake lands not at all, and the line is named" {
	sheaf new demo
	run -2 sheaf append demo --batch <<'END'
{"type":"message","id":"a","message":{"role":"user","content":[]}}
{"type":"message","id":"b","message":{"role":"nobody","content":[]}}
END
	has 'line 2'
	run -2 sheaf append demo --batch <<<'{"id":"a"}'
	has 'line 1'
	run -2 sheaf append demo --batch <<<'not json'
	run -2 sheaf append demo --batch </dev/null
	run -2 sheaf append demo --batch --id a <<<'{}'
	[ "$(sheaf cat demo | wc -l)" -eq 0 ]
}

@test "append: a batch may say parents, branches and times" {
	sheaf new demo
	sheaf append demo -i a one
	sheaf append demo --batch --json <<'END' | py 'd["ids"] == ["b", "c"] and d["seq"] == 3'
{"type":"message","id":"b","parent_id":"a","branch":"side","timestamp":"2020-01-02T03:04:05Z","message":{"role":"user","content":[{"type":"text","text":{"content":"old"}}]}}
{"type":"message","id":"c","parent_id":null,"message":{"role":"user","content":[{"type":"text","text":{"content":"root"}}]}}
END
	sheaf cat demo b | py 'd["timestamp"].startswith("2020-01-02T03:04:05") and d["branch"] == "side"'
	sheaf cat demo c | py 'd["parent_id"] is None'
}

@test "append: broken text is refused, or mended when asked" {
	sheaf new demo
	run -2 sheaf append demo < <(printf 'a\xffb')
	run -0 sheaf append demo --mend-text -i a < <(printf 'a\xffb')
	has '1 broken character'
	[ "$(text_of a)" = $'a\uFFFDb' ]
}

@test "append: too much is refused" {
	sheaf new demo
	run -1 sheaf append demo < <(head -c 17000000 /dev/zero | tr '\0' a)
	[ "$(sheaf cat demo | wc -l)" -eq 0 ]
}
