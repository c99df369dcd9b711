#!/bin/sh
# Runs a command in an empty directory of its own, which is also its HOME and TMPDIR, and removes
# it afterwards. @TMP@ in an argument becomes the directory's path.
tmp=$(mktemp -d "${TMPDIR:-/tmp}/sheaf-test.XXXXXX") || exit 1
trap 'chmod -R u+rwX "$tmp" 2>/dev/null; rm -rf "$tmp"' EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

left=$#
while [ "$left" -gt 0 ]; do
	argument=$1
	shift
	case $argument in
	*@TMP@*) argument=${argument%%@TMP@*}$tmp${argument#*@TMP@} ;;
	esac
	set -- "$@" "$argument"
	left=$((left - 1))
done

cd "$tmp" || exit 1
unset XDG_CONFIG_HOME XDG_DATA_HOME XDG_STATE_HOME XDG_CACHE_HOME XDG_RUNTIME_DIR
HOME=$tmp TMPDIR=$tmp "$@"
