# sheaf context --format: the request a provider gets, held against its rules.

load helper

formats='anthropic openai-chat openai-responses gemini'

# check FORMAT BODY: exit code 0 if the body keeps the rules of the format.
check() {
	printf '%s' "$2" | sheaf context - --check --format "$1"
}

@test "every format is one line of JSON that keeps its rules" {
	make_tree
	for format in $formats; do
		sheaf context demo --format "$format" --model m1 >body 2>err
		[ "$(wc -l <body)" -eq 1 ]
		py 'isinstance(d, dict)' <body
		run -0 sheaf context demo --format "$format" --model m1 --check
		has "ok: "
		has "that keep the rules of $format"
		# What is printed is what is checked.
		run -0 sheaf context - --format "$format" --check <body
		sheaf context demo --format "$format" --model m1 2>/dev/null | cmp - body
	done
}

@test "text is what it is without a format" {
	make_tree
	diff <(sheaf context demo) <(sheaf context demo --format text)
}

@test "a model has to come from somewhere" {
	make_tree
	run --separate-stderr -2 sheaf context demo --format openai-chat
	[ -z "$output" ]
	[[ $stderr == *model* ]]
	echo '{"model_change":{"provider":"openai","model_id":"m7"}}' |
		sheaf append demo --json-body model_change >/dev/null
	sheaf context demo --format openai-chat | py 'd["model"] == "m7"'
	sheaf context demo --format openai-chat --model m8 | py 'd["model"] == "m8"'
	# Of another provider, it is none that this one knows.
	run --separate-stderr -2 sheaf context demo --format anthropic
	[[ $stderr == *'m7, is of openai'* ]]
	sheaf context demo --format anthropic --model m9 | py 'd["model"] == "m9"'
}

@test "system text: given, or from a file" {
	make_tree
	sheaf context demo -f openai-chat -m m1 --system 'Be brief.' |
		py 'd["messages"][0] == {"role": "system", "content": "Be brief."}'
	printf 'From a file.\n\n' >system.txt
	sheaf context demo -f openai-responses -m m1 --system @system.txt |
		py 'd["instructions"] == "From a file."'
	run -1 sheaf context demo -f gemini -m m1 --system @nothing
	has "cannot read 'nothing'"
}

@test "tools: names, descriptions, and schemas byte for byte" {
	make_tree
	cat >tools.json <<'END'
[ {"name": "read_file", "description": "Reads \"it\".", "schema": {"type":"object",  "z":1.50,"a":[{"]":"}"}]}},
  {"name": "now"} ]
END
	sheaf context demo -f openai-chat -m m1 --tools tools.json >body
	grep -qF '{"type":"object",  "z":1.50,"a":[{"]":"}"}]}' body
	py '[t["function"]["name"] for t in d["tools"]] == ["read_file", "now"]' <body
	py 'd["tools"][0]["function"]["description"] == "Reads \"it\"."' <body
	for broken in '{}' '[1]' '[{"name":""}]' '[{"name":"x","schema":7}]' '[' ''; do
		echo "$broken" >tools.json
		run --separate-stderr -2 sheaf context demo -f openai-chat -m m1 --tools tools.json
		[ -z "$output" ]
		[[ $stderr == *--tools* ]]
	done
	run -1 sheaf context demo -f openai-chat -m m1 --tools nothing.json
}

@test "as of any entry, on any branch" {
	make_tree
	sheaf context demo -f openai-chat -m m1 --leaf e1 |
		py '[m["content"] for m in d["messages"]] == ["Make the parser faster"]'
	sheaf context demo -f openai-chat -m m1 --branch simd |
		py 'd["messages"][-1]["content"] == "Yes, try it"'
	sheaf context demo -f openai-chat -m m1 --without-compaction |
		py 'len(d["messages"]) > 4'
}

@test "notes go to stderr, with --json into the object" {
	sheaf new demo -q
	sheaf append demo -q -i u 'Go' >/dev/null
	sheaf append demo -q -i a --message-json >/dev/null <<'END'
{"role":"assistant","content":[{"type":"tool_use","tool_use":{"id":"t1","name":"bash","input":{}}}]}
END
	sheaf append demo -q -i v 'And?' >/dev/null
	run --separate-stderr -0 sheaf context demo -f openai-chat -m m1
	[[ $stderr == *'note: @2: '*t1* ]]
	run --separate-stderr -0 sheaf context demo -f openai-chat -m m1 --quiet
	[ -z "$stderr" ]
	run --separate-stderr -0 sheaf context demo -f openai-chat -m m1 --json
	[ -z "$stderr" ]
	py 'd["notes"][0]["what"] == "interrupted" and d["notes"][0]["entry_id"] == "a"' <<<"$output"
	py 'd["format"] == "openai-chat" and d["provider"] == "openai" and d["model"] == "m1"' <<<"$output"
	py 'd["tokens"] > 10 and d["path"].endswith("/chat/completions")' <<<"$output"
	# The body inside is the body outside.
	sheaf context demo -f openai-chat -m m1 2>/dev/null >body
	python3 -c '
import json, sys
assert json.load(open("body")) == json.loads(sys.argv[1])["body"]' "$output"
}

@test "--check names what is broken, and where" {
	local good='{"model":"m","messages":[{"role":"user","content":"Hi"}]}'
	local bad='{"model":"m","messages":[{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"user","content":"Hi"}]}'
	run -0 check openai-chat "$good"
	run --separate-stderr -1 check openai-chat "$bad"
	[[ $output == 'messages['*']'*': '*'('*')' ]]
	[[ $stderr == *'of openai-chat'*'broken'* ]]
	printf '%s' "$bad" | sheaf context - --check -f openai-chat --json >out 2>err || [ $? -eq 1 ]
	py 'd["violations"][0]["rule"] and d["violations"][0]["where"]' <out
	py 'd["error"]["code"] == "CONTEXT"' <err
	run -1 check openai-chat 'no json'
	run -1 check gemini "$good"
}

@test "hostile bodies do not reach the terminal" {
	sheaf new demo -q
	sheaf append demo -q -m $'\e[31m \u009b31m \u202e end' >/dev/null
	in_terminal 80 "$SHEAF_BIN --no-pager context demo -f openai-chat -m m1" | tr -d '\r' >out
	no_controls <out
	# A pipe gets the bytes as they are.
	sheaf context demo -f openai-chat -m m1 | grep -qF $'\u202e'
}

@test "an estimate of its tokens, and the budget" {
	sheaf new demo -q
	head -c 40000 /dev/zero | tr '\0' x >long
	sheaf append demo -q Go >/dev/null
	for i in 1 2 3; do
		echo '{"role":"assistant","content":[{"type":"tool_use","tool_use":{"id":"t'$i'","name":"bash","input":{}}}]}' |
			sheaf append demo -q --message-json >/dev/null
		python3 -c '
import json, sys
result = {"tool_use_id": sys.argv[1], "content": open("long").read()}
print(json.dumps({"role": "tool", "content": [{"type": "tool_result", "tool_result": result}]}))' "t$i" |
			sheaf append demo -q --message-json >/dev/null
	done
	sheaf append demo -q 'And now?' >/dev/null
	run --separate-stderr -0 sheaf context demo -f openai-chat -m m1 --tokens
	[[ $stderr =~ about\ [0-9,]+\ tokens ]]
	run --separate-stderr -1 sheaf context demo -f openai-chat -m m1 --bytes 60000
	[ -z "$output" ]
	run --separate-stderr -0 sheaf context demo -f openai-chat -m m1 --bytes 60000 --elide outputs
	[ "${#output}" -le 60000 ]
	[[ $stderr == *'note: '* ]]
	run -0 sheaf context demo -f openai-chat -m m1 --bytes 60000 --elide images,outputs --check
	run -2 sheaf context demo -f openai-chat -m m1 --elide everything
}

@test "options that belong to a request need a format" {
	make_tree
	for option in --check '--system x' '--tools x' '--thinking low' '--cache off' '--bytes 9' '--elide images' --tokens; do
		run -2 sheaf context demo $option
		has 'needs a --format'
	done
	run -2 sheaf context demo --format martian
	has 'anthropic'
}
