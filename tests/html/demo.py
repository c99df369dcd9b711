"""A conversation to look at, with a bit of everything: branches, tools, an edit, a compaction."""
import json

MODEL = {"provider": "anthropic", "model": "claude-sonnet-4-5"}


def text(words):
    return {"type": "text", "text": {"content": words}}


def thinking(words):
    return {"type": "thinking", "thinking": {"text": words}}


def call(id, name, **input):
    return {"type": "tool_use", "tool_use": {"id": id, "name": name, "input": input}}


def answer(id, words, failed=False):
    return {"role": "tool", "content": [{"type": "tool_result", "tool_result": {
        "tool_use_id": id, "content": words, "is_error": failed}}]}


def user(words):
    return {"role": "user", "content": [text(words)]}


def assistant(*parts, read=0, write=0, out=0):
    return {"role": "assistant", "content": list(parts), **MODEL,
            "usage": {"input": 14, "cache_read": read, "cache_write_5m": write, "output": out}}


BEFORE = """static size_t skip_string(const char *p, const char *end)
{
	while (p < end && *p != '"')
		p += *p == '\\\\' ? 2 : 1;
	return p - begin;
}"""
AFTER = """static size_t skip_string(const char *p, const char *end)
{
	const char *begin = p;
	while (end - p >= 16) {
		unsigned at = first_special(_mm_loadu_si128((const __m128i *)p));
		p += at;
		if (at < 16)
			break;
	}
	while (p < end && *p != '"')
		p += *p == '\\\\' ? 2 : 1;
	return p - begin;
}"""

TRUNK = [
    ("ask", user("Our JSON parser takes 40% of the request time. Can you make it faster **without** a new dependency?\n\n"
                 "The benchmark is `make bench`; please keep the tests green.")),
    ("look", assistant(
        thinking("First measure, then decide. The profile will say whether strings or numbers dominate. A table for the "
                 "blanks might be enough; SIMD only if strings are the hot spot."),
        text("I will measure first, so that we change what matters."),
        call("t1", "Bash", command="make bench && perf report --stdio | head -6", description="Profile the benchmark"),
        read=5200, write=1900, out=148)),
    ("profile", answer("t1", "\x1b[1mparse 1.0 MB: 9.8 ms (102 MB/s)\x1b[0m\n\n 61.2%  bench  skip_string\n 21.7%  bench  skip_blanks\n"
                             "  8.9%  bench  parse_number\n  3.1%  bench  intern_key")),
    ("plan", assistant(
        text("61% of the time goes into **one loop** that looks at a string byte by byte. Two ways to go on:\n\n"
             "| way | expected | risk |\n|---|--:|---|\n| a table of special bytes | 1.4× | none |\n| 16 bytes at a time (SSE2) | 3–4× | small, x86 only |\n\n"
             "SSE2 is part of every x86-64, and the loop keeps its plain form for the last bytes and for other machines. Shall I?"),
        read=7100, write=420, out=205)),
]
SIDE = [
    ("table", user("Try the table first, please.")),
    ("table-edit", assistant(text("A table of 256 flags, filled at compile time."),
                             call("t9", "Bash", command="make bench"), read=7500, write=260, out=96)),
    ("table-bench", answer("t9", "parse 1.0 MB: 7.2 ms (139 MB/s)")),
    ("table-end", assistant(text("1.36×, as expected. The rest is still one byte at a time."), read=7800, write=120, out=41)),
]
MAIN = [
    ("go", user("Yes, go for SSE2.")),
    ("edit", assistant(
        thinking("Keep `begin`: it is used for the length. The tail loop must stay as it is."),
        text("Sixteen bytes at a time, then the old loop for what is left:"),
        call("t2", "Edit", file_path="src/parse.c", old_string=BEFORE, new_string=AFTER),
        call("t3", "Bash", command="make check"), read=7500, write=640, out=312)),
    ("edited", answer("t2", "The file src/parse.c has been updated.")),
    ("checked", answer("t3", "test_strings … \x1b[32mok\x1b[0m\ntest_escapes … \x1b[31mFAILED\x1b[0m\n  \"a\\\\\\\"b\" → expected 4 bytes, got 3\n"
                             "make: *** [check] Error 1", failed=True)),
    ("fix", assistant(
        text("Good that there is a test: a backslash *at the end* of a block was taken for the end of the string. "
             "The block loop must leave an escape to the loop below:\n\n"
             "```c\nif (at < 16 && p[0] == '\\\\')\n\tbreak; /* the loop below knows escapes */\n```"),
        call("t4", "Bash", command="make check bench"), read=8600, write=540, out=188)),
    ("fixed", answer("t4", "41 tests … \x1b[32mok\x1b[0m\nparse 1.0 MB: 2.7 ms (370 MB/s)")),
    ("done", assistant(
        text("Done: **3.6× faster**, all 41 tests are green.\n\n- `skip_string` looks at 16 bytes at a time where SSE2 is there\n"
             "- escapes and the last bytes go through the old loop\n- no new dependency, no change of the interface"),
        read=9300, write=310, out=121)),
]
AFTERWARDS = [
    ("more", user("Great. What would you look at next?")),
    ("next", assistant(text("`skip_blanks`: after this change it is 44% of what is left. Most blanks come as `\": \"` or as a line "
                            "break with an indentation, so one compare for the common case is enough; see "
                            "[the note on blanks](https://example.org/blanks)."), read=2400, write=800, out=92)),
]


def build(sheaf, session="demo"):
    """Makes the session: `sheaf` runs the command with words and a text for its stdin."""
    def add(entries, parent=None, branch=None):
        for id, message in entries:
            words = ["-b", branch] if branch else []
            sheaf("append", session, "-i", id, "--message-json", *words, *(["-p", parent] if parent else []),
                  text=json.dumps(message))
            parent = None

    sheaf("new", session, "--name", "Make the parser faster", "--cwd", "/home/ada/fastjson")
    add(TRUNK)
    sheaf("branch", session, "table", "plan")
    add(SIDE, branch="table")
    add(MAIN)
    sheaf("label", session, "done", "3.6x")
    summary = ("The user wants a faster JSON parser without a new dependency. `skip_string` now looks at 16 bytes at a time (SSE2) "
               "and is 3.6× faster; all tests are green. Next candidate: `skip_blanks`.")
    sheaf("append", session, "-i", "sum", "--json-body", "compaction", text=json.dumps({"compaction": {
        "summary": summary, "first_kept_entry_id": "done", "tokens_before": 21480, "tokens_after": 2310, "trigger": "auto"}}))
    add(AFTERWARDS)
