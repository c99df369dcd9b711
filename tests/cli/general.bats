# What holds for every command: help, usage, stores, exit codes, errors.

load helper

command_names() {
	sheaf help | sed -nE '/^options/q; s/^  ([a-z]+) +[a-z].*/\1/p'
}

@test "the first example of the README works as written" {
	run -0 sheaf new demo
	[ "$output" = demo ]
	echo hello | sheaf append demo --role user
	run -0 sheaf show demo
	has hello
	has user
	run -0 sheaf check
	has '1 session'
}

@test "bare sheaf says what it is, in less than a screen" {
	run -0 sheaf
	has 'sheaf new demo'
	has 'append'
	[ "${#lines[@]}" -lt 44 ]
	[ ! -e "$store" ]
}

@test "a module that cannot be loaded says why" {
	mkdir bin lib lib/sheaf
	cp "$SHEAF_BIN" bin/sheaf
	cp "$(dirname "$SHEAF_BIN")"/../lib/libsheaf.so* lib/ || true
	echo 'no module' >lib/sheaf/broken.so
	LD_LIBRARY_PATH=$PWD/lib run -1 bin/sheaf -S broken:x ls
	has 'broken.so'
	LD_LIBRARY_PATH=$PWD/lib run -1 bin/sheaf -S absent:x ls
	has 'no store is known for the scheme absent'
}

@test "every command has help, three ways, with its usage and an example" {
	local commands
	commands=$(command_names)
	[ "$(wc -w <<<"$commands")" -ge 18 ]
	for command in $commands; do
		run -0 sheaf help "$command"
		has "usage: sheaf $command"
		has '  $ '
		local by_help=$output
		run -0 sheaf "$command" --help
		[ "$output" = "$by_help" ]
		run -0 sheaf "$command" -h
		[ "$output" = "$by_help" ]
	done
}

@test "the commands people are told of are all there" {
	for command in new append ls show path tree context branch fork label rename rm check repair \
		cat help completion version; do
		sheaf help "$command" >/dev/null
	done
}

@test "help fits 80 columns" {
	sheaf help >all
	for command in $(command_names); do
		sheaf help "$command" >>all
	done
	run awk 'length($0) > 80' all
	[ -z "$output" ]
}

@test "version, as a command and as an option" {
	run -0 sheaf version
	[[ $output =~ ^sheaf\ [0-9]+\.[0-9]+\.[0-9]+ ]]
	run -0 sheaf --version
	[[ $output =~ ^sheaf\ [0-9] ]]
	sheaf version --json | py 'd["version"] == d["library"]'
}

@test "a mistyped command gets a suggestion and exit code 2" {
	run -2 sheaf shwo
	has "'shwo' is not a sheaf command"
	has 'did you mean `sheaf show`?'
	run -2 sheaf list
	has '`sheaf ls`'
	run -2 sheaf xyzzy
	has '`sheaf help`'
	run -2 sheaf help brnach
	has '`sheaf help branch`'
}

@test "commands and options are not abbreviated" {
	run -2 sheaf sho
	run -2 sheaf ls --js
	has 'unknown option --js'
}

@test "wrong usage: exit code 2, one line and a hint on stderr, nothing on stdout" {
	for line in 'append' 'show a b' 'ls --limit x' 'ls --limit' 'new --color=maybe' 'show --nope' \
		'ls -Z' 'rename demo' 'completion tcsh' 'ls --since tomorrow' 'show --json=1' \
		'append demo --durability never x' 'append demo --role nobody x'; do
		# shellcheck disable=SC2086
		run --separate-stderr -2 sheaf $line
		[ -z "$output" ]
		[[ $stderr == 'sheaf: '* ]]
		[[ $stderr == *$'\nhint: '* ]]
		[ "$(wc -l <<<"$stderr")" -eq 2 ]
	done
}

@test "options stand anywhere, take = or a blank, and -- ends them" {
	sheaf -q new demo
	sheaf --json append demo -rassistant --id=a1 -- --not-an-option | py 'd["id"] == "a1"'
	sheaf show demo --json | py 'd["message"]["content"][0]["text"]["content"] == "--not-an-option"'
	sheaf show --full demo >/dev/null
}

@test "errors as JSON on stderr" {
	run --separate-stderr -1 sheaf show nothing --json
	[ -z "$output" ]
	py 'd["error"]["code"] == "NOT_FOUND" and d["error"]["outcome"] == "failed" and d["error"]["message"] and d["error"]["hint"]' <<<"$stderr"
	run --separate-stderr -2 sheaf --json frobnicate
	py 'd["error"]["code"] == "INVALID"' <<<"$stderr"
	sheaf new demo
	run --separate-stderr -3 sheaf new demo --json
	py 'd["error"]["code"] == "EXISTS"' <<<"$stderr"
}

@test "the default store is jsonl in XDG_DATA_HOME, and ~/.local/share without it" {
	sheaf new demo
	[ -f "$store/demo.jsonl" ]
	unset XDG_DATA_HOME
	sheaf new other
	[ -f "$HOME/.local/share/sheaf/other.jsonl" ]
}

@test "--store comes before SHEAF_STORE, which comes before the default" {
	export SHEAF_STORE=jsonl:$BATS_TEST_TMPDIR/env
	sheaf new by-env
	[ -f env/by-env.jsonl ]
	sheaf --store "jsonl:$BATS_TEST_TMPDIR/flag" new by-flag
	[ -f flag/by-flag.jsonl ]
	sheaf -S "jsonl:$BATS_TEST_TMPDIR/flag" ls -q | grep -qx by-flag
	[ ! -e "$store" ]
	run -1 sheaf -S nonsense:x ls
}

@test "apps and users are kept apart" {
	sheaf --app web --user ann new s1
	sheaf --app web --user bob new s1
	sheaf new s1
	sheaf --app web --user ann append s1 'of ann' -q >/dev/null
	sheaf --app web --user ann show s1 | grep -q 'of ann'
	run -0 sheaf --app web --user bob show s1
	has_not 'of ann'
	[ "$(sheaf ls -q | wc -l)" -eq 1 ]
	[ "$(sheaf ls -q --all | wc -l)" -eq 3 ]
	[ "$(sheaf ls -q --all --app web | wc -l)" -eq 2 ]
	run -0 sheaf ls --all
	has web/ann
}

@test "a one-file store needs no session named" {
	make_tree
	cp "$store/demo.jsonl" copy.jsonl
	run -0 sheaf -S "jsonl:$PWD/copy.jsonl" show
	has 'Make the parser faster'
}

@test "the manual page is roff that man accepts" {
	sheaf man >sheaf.1
	head -1 sheaf.1 | grep -q '^\.TH SHEAF 1'
	if command -v groff >/dev/null; then
		run --separate-stderr -0 groff -man -Tascii -P-cbou -ww sheaf.1
		[ -z "$stderr" ]
		has 'COMMANDS'
		has 'EXIT STATUS'
	fi
}

@test "completion: bash completes commands, options, choices and sessions" {
	sheaf new demo
	PATH=$(dirname "$SHEAF_BIN"):$PATH
	complete_words() {
		COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
		_sheaf
		printf '%s\n' "${COMPREPLY[@]}"
	}
	eval "$(sheaf completion bash)"
	complete_words sheaf sho | grep -qx show
	complete_words sheaf show de | grep -qx demo
	complete_words sheaf append demo --exp | grep -qx -- --expect-leaf
	complete_words sheaf append demo --role as | grep -qx assistant
	complete_words sheaf ls --color al | grep -qx always
	complete_words sheaf help re | grep -qx repair
	# The same option of two commands, and a letter that means something else in a third.
	complete_words sheaf todo demo --status in | grep -qx in_progress
	complete_words sheaf plan demo --status ap | grep -qx approved
	complete_words sheaf context demo -f te | grep -qx text
	! complete_words sheaf show -f an | grep -qx anthropic
	# What an option takes is no session.
	[ -z "$(complete_words sheaf chat --model de)" ]
	sheaf completion bash | bash -n
}

@test "completion: zsh and fish" {
	sheaf completion zsh | head -1 | grep -qx '#compdef sheaf'
	sheaf completion fish | grep -q 'complete -c sheaf'
	for command in new append show tree; do
		sheaf completion zsh | grep -q "$command"
		sheaf completion fish | grep -q -- "-a $command "
	done
	if command -v zsh >/dev/null; then sheaf completion zsh | zsh -n; fi
	if command -v fish >/dev/null; then sheaf completion fish | fish -n; fi
}

@test "docs/cli.md shows what happens, and a wrong transcript is noticed" {
	export SHEAF_BIN
	run -0 "$root/tools/check_docs" "$root/docs/cli.md"
	printf '```console\n$ sheaf new demo\ndemo\n$ sheaf new\n01…\n$ sheaf show demo\n…\n```\n' >right.md
	printf '```console\n$ sheaf new demo\nother\n```\n' >wrong.md
	printf '```console\n$ exit 3\n$ echo never\nnever\n```\n' >short.md
	run -0 "$root/tools/check_docs" right.md
	run -1 "$root/tools/check_docs" right.md wrong.md
	has '-other'
	has '+demo'
	run -1 "$root/tools/check_docs" short.md
}
