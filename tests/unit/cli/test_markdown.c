/* Tests of cli/markdown.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "cli/markdown.h"
#include "support/fail_alloc.h"

#include <cmocka.h> /* last: it has a macro of the name of a function in print.h */

/* The lines as text, the styles of runs as <style:text> if asked for. */
static const char *drawn(const char *source, size_t columns, int flags, bool styles)
{
	static buf out = BUF_INIT(SIZE_MAX);
	markdown *m = NULL;
	assert_int_equal(markdown_read(&m, sheaf_str_of(source), columns, flags), 0);
	buf_reset(&out);
	for (size_t i = 0; i < m->count; i++) {
		for (size_t k = 0; k < m->lines[i].count; k++) {
			const markdown_run *run = &m->lines[i].runs[k];
			bool marked = styles && run->style != 0;
			if (marked)
				buf_format(&out, "<%u:", run->style);
			buf_str(&out, run->text);
			buf_str(&out, marked ? SHEAF_STR(">") : SHEAF_STR(""));
		}
		buf_char(&out, '\n');
	}
	buf_nul(&out);
	markdown_free(m);
	return out.ptr;
}

#define assert_drawn(source, columns, expected)                                                    \
	assert_string_equal(drawn(source, columns, 0, false), expected)
#define assert_styled(source, expected) assert_string_equal(drawn(source, 0, 0, true), expected)

static void test_styles(void **state)
{
	(void)state;
	assert_styled("a **b** *c* ~~d~~ `e`", "a <1:b> <2:c> <4:d> <8:e>\n");
	assert_styled("***both***", "<3:both>\n");
	assert_styled("## Of *it*", "<64:## ><32:Of ><34:it>\n");
	assert_styled("[text](http://x.y)", "<16:text><64: (http://x.y)>\n");
	assert_styled("see http://x.y/z.", "see <16:http://x.y/z>.\n");
	assert_styled("<a@b.cd>", "<16:a@b.cd>\n");
	assert_styled("[here](#there)", "<16:here>\n");
	assert_styled("![a cat](cat.png)", "<64:[image: >a cat<64: (cat.png)]>\n");
	assert_styled("```diff\n-a\n+b\n c\n```", "  <256:-a>\n  <128:+b>\n  <8: c>\n");
	assert_styled("a &lt;b&gt; &unknown; &amp;", "a <b> &unknown; &\n");
}

static void test_marks_stay_without_styles(void **state)
{
	(void)state;
	assert_string_equal(drawn("a **b** *c* ~~d~~ `e`", 0, MARKDOWN_MARKS, false),
	                    "a **b** *c* ~~d~~ `e`\n");
}

static void test_blocks(void **state)
{
	(void)state;
	assert_drawn("one\ntwo\n\n\nthree", 0, "one\ntwo\n\nthree\n");
	assert_drawn("- a\n- b\n  - c\n- d\n\nend", 0, "• a\n• b\n  • c\n• d\n\nend\n");
	assert_drawn("- a\n\n- b\n", 0, "• a\n\n• b\n");
	assert_drawn("9. a\n10. b\n-\n- [x] c\n- [ ] d", 0,
	             "9. a\n10. b\n\n• \n• [x] c\n• [ ] d\n");
	assert_drawn("- [x] a\n\n- [ ] b", 0, "• [x] a\n\n• [ ] b\n");
	assert_drawn("> a\n> > b\n\nc", 0, "│ a\n│\n│ │ b\n\nc\n");
	assert_drawn("- > a\n  > b\n- ```\n  c\n\n  d\n  ```", 0, "• │ a\n  │ b\n•   c\n\n    d\n");
	assert_drawn("```\n\ta\tb\n```", 0, "      a   b\n");
	assert_drawn("a\n\n***\n\nb", 10, "a\n\n──────────\n\nb\n");
	assert_drawn("<b>not markup</b>\n<script>", 0, "<b>not markup</b>\n<script>\n");
	assert_drawn("", 0, "");
	assert_drawn("\n\n", 0, "");
}

static void test_wrapping(void **state)
{
	(void)state;
	assert_drawn("one two three four", 9, "one two\nthree\nfour\n");
	assert_drawn("- one two three four", 11, "• one two\n  three\n  four\n");
	/* A word and code that are too long stay whole, or are broken if asked for. */
	assert_drawn("a waytoolongword b", 5, "a\nwaytoolongword\nb\n");
	assert_string_equal(drawn("a waytoolongword b", 5, MARKDOWN_FIT, false),
	                    "a\nwayto\nolong\nword\nb\n");
	assert_drawn("```\nint x = 1234567890;\n```", 8, "  int x = 1234567890;\n");
	assert_string_equal(drawn("```\nint x = 1234567890;\n```", 8, MARKDOWN_FIT, false),
	                    "  int x\n  =\n  123456\n  7890;\n");
	/* Wide characters: between any two, but not before what closes a phrase. */
	assert_drawn("日本語日本語。", 6, "日本語\n日本\n語。\n");
	assert_drawn("ab日本 cd", 6, "ab日本\ncd\n");
	assert_drawn("👩‍👩‍👧 👍🏽 é", 4, "👩‍👩‍👧\n👍🏽 é\n");
}

static void test_tables(void **state)
{
	(void)state;
	const char *table = "| A | B | C |\n|---|--:|:-:|\n| 1 | 2 | x |\n| long words | 日本 |\n";
	assert_drawn(table, 0,
	             "A          │    B │ C\n"
	             "───────────┼──────┼──\n"
	             "1          │    2 │ x\n"
	             "long words │ 日本 │ \n");
	assert_drawn(table, 16,
	             "A     │    B │ C\n"
	             "──────┼──────┼──\n"
	             "1     │    2 │ x\n"
	             "long  │ 日本 │ \n"
	             "words │      │ \n");
	/* Too narrow for a grid: a list. */
	assert_drawn(table, 9, "A\n  1\nB\n  2\nC\n  x\n\nA\n  long\n  words\nB\n  日本\nC\n");
	assert_drawn("> | A |\n> |---|\n> | 1 |\n", 0, "│ A\n│ ─\n│ 1\n");
}

/* What a terminal might obey or hide is not in any run, whatever stands for it. */
static void assert_safe(const markdown *m)
{
	for (size_t i = 0; i < m->count; i++) {
		for (size_t k = 0; k < m->lines[i].count; k++) {
			sheaf_str text = m->lines[i].runs[k].text;
			assert_true(text.len != 0);
			for (size_t at = 0; at < text.len;) {
				uint32_t c = text_next(text, &at);
				assert_true(c != TEXT_BROKEN && !text_spelled(c));
			}
		}
	}
}

static void test_hostile_text_is_spelled_out(void **state)
{
	(void)state;
	static const char *const texts[] = {
		"\033[31mred \033]52;c;ZQ==\a \302\23331m \r \b \177 \342\200\256 \363\240\201\201",
		"&#27;[31m &#x1b;]0;x&#7; &#155; &#x202e; &#0; &#10; &#xd800; &#x110000; &#99999999999;",
		"[a](<http://x/&#27;[31m> \"t&#27;\") ![&#27;](&#27;)",
		"```&#27;\n\033[31m\n```\n    \033]0;x\a\n",
		"| \033 | &#27; |\n|---|---|\n| \302\205 | \376\377 |\n",
		"- \033\n1. &#27;\n> &#x9b;\n# &#27;[2J",
		"`\033[31m` ` &#27; `",
	};
	for (size_t i = 0; i < COUNT_OF(texts); i++) {
		markdown *m = NULL;
		assert_int_equal(markdown_read(&m, sheaf_str_of(texts[i]), 30, 0), 0);
		assert_true(m->count != 0);
		assert_safe(m);
		markdown_free(m);
	}
	assert_drawn("\033[1m &#27;[2m", 0, "^[[1m ^[[2m\n");
}

/* ---- Random texts ------------------------------------------------------ */

static uint64_t seed = 20261115;

static uint32_t dice(uint32_t sides)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(seed >> 33) % sides;
}

static void make_text(buf *out)
{
	static const char *const words[] = {
		"a",
		"word",
		" ",
		"  ",
		"\n",
		"\n\n",
		"\n    ",
		"\t",
		"*",
		"**",
		"_",
		"__",
		"`",
		"```",
		"\n```\n",
		"~~",
		"# ",
		"> ",
		"- ",
		"1. ",
		"\n- ",
		"\n> ",
		"\n1) ",
		"|",
		"\n|",
		"|-|-|\n",
		"---",
		"\n---\n",
		"[",
		"]",
		"(",
		")",
		"![",
		"](x)",
		"[x] ",
		"[a]: b\n",
		"<",
		">",
		"http://x.y",
		"&",
		"&#27;",
		"&#x9b;",
		"&lt;",
		"\033[31m",
		"\r\n",
		"\r",
		"\302\205",
		"\377",
		"日本",
		"。",
		"👩‍👩‍👧",
		"👍🏽",
		"e\314\201",
		"\342\200\215",
		"\342\200\256",
		"\\",
		"| a | b |\n|--|:-:|\n| c |\n",
		"\n        ",
		"supercalifragilistic",
	};
	buf_reset(out);
	for (uint32_t n = dice(60); n > 0; n--)
		buf_str(out, sheaf_str_of(words[dice(COUNT_OF(words))]));
}

/* Columns of a line, counted anew. */
static size_t columns_of(const markdown_line *line)
{
	_cleanup_(buf_free) buf text = BUF_INIT(SIZE_MAX);
	for (size_t i = 0; i < line->count; i++)
		buf_str(&text, line->runs[i].text);
	return text_width(buf_view(&text));
}

/* Whether the line could have been broken at a blank. */
static bool has_blank_inside(const markdown_line *line)
{
	bool word = false;
	for (size_t i = 0; i < line->count; i++) {
		const markdown_run *run = &line->runs[i];
		for (size_t k = 0; k < run->text.len; k++) {
			if (run->text.ptr[k] == ' ' && word && run->style != MARKDOWN_DIM)
				return true;
			word = word || (run->style != MARKDOWN_DIM && run->text.ptr[k] != ' ');
		}
	}
	return false;
}

static void check_widths(const markdown *m, size_t columns, int flags)
{
	for (size_t i = 0; i < m->count; i++) {
		const markdown_line *line = &m->lines[i];
		size_t width = columns_of(line);
		bool code = line->count != 0 &&
		            (line->runs[line->count - 1].style &
		             (MARKDOWN_CODE | MARKDOWN_ADDED | MARKDOWN_REMOVED)) != 0;
		assert_true(line->columns >= width); /* joined runs can only be narrower */
		if (columns == 0 || width <= columns)
			continue;
		if ((flags & MARKDOWN_FIT) != 0)
			assert_true(columns < 2); /* a wide character in one column */
		else
			assert_true(code || !has_blank_inside(line));
	}
}

static void test_random_texts(void **state)
{
	(void)state;
	_cleanup_(buf_free) buf text = BUF_INIT(SIZE_MAX);
	static const size_t widths[] = {0, 1, 2, 5, 12, 40, 80};
	for (int round = 0; round < 3000; round++) {
		markdown *m = NULL;
		size_t columns = widths[dice(COUNT_OF(widths))];
		int flags = (int)dice(4);
		make_text(&text);
		assert_int_equal(markdown_read(&m, buf_view(&text), columns, flags), 0);
		assert_safe(m);
		check_widths(m, columns, flags);
		markdown_free(m);
	}
}

/* ---- Size -------------------------------------------------------------- */

static void fill(buf *out, const char *unit, size_t bytes)
{
	buf_reset(out);
	while (out->len < bytes)
		buf_str(out, sheaf_str_of(unit));
}

/* Each would take a long time, much memory or a deep stack if it were taken as it asks. */
static void test_large_and_deep(void **state)
{
	(void)state;
	static const char *const units[] = {">",         "- ",       "> - ",       "[",    "![",
	                                    "*a_ ",      "`a``",     "|a",         "|a\n", "[a][",
	                                    "&#1;",      "  - a\n",  "a b\n",      "日",   "\t",
	                                    "e\314\201", "\314\201", "http://a.b "};
	_cleanup_(buf_free) buf text = BUF_INIT(SIZE_MAX);
	for (size_t i = 0; i < COUNT_OF(units); i++) {
		/* One of them also too long to be parsed. */
		for (int large = 0; large <= (i == 0); large++) {
			markdown *m = NULL;
			fill(&text, units[i], large ? MARKDOWN_MAX + 1 : MARKDOWN_MAX / 16);
			assert_int_equal(markdown_read(&m, buf_view(&text), 40, MARKDOWN_FIT), 0);
			assert_safe(m);
			check_widths(m, 40, MARKDOWN_FIT);
			markdown_free(m);
		}
	}
}

/* Little text that stands for much is shown as it is. */
static void test_what_would_explode_is_shown_as_source(void **state)
{
	(void)state;
	_cleanup_(buf_free) buf text = BUF_INIT(SIZE_MAX);
	markdown *m = NULL;
	buf_lit(&text, "[a]: http://");
	for (int i = 0; i < 30000; i++)
		buf_char(&text, 'x');
	buf_lit(&text, "\n\n");
	for (int i = 0; i < 10000; i++)
		buf_lit(&text, "[a] ");
	assert_int_equal(markdown_read(&m, buf_view(&text), 80, 0), 0);
	assert_true(m->count > 400 && m->count < 2000);
	assert_int_equal(strncmp(m->lines[0].runs[0].text.ptr, "[a]: http", 9), 0);
	markdown_free(m);

	buf_reset(&text);
	for (int i = 0; i < 10000; i++)
		buf_lit(&text, "|a");
	buf_lit(&text, "\n");
	for (int i = 0; i < 10000; i++)
		buf_lit(&text, "|-");
	for (int i = 0; i < 20000; i++)
		buf_lit(&text, "\n|b|");
	assert_int_equal(markdown_read(&m, buf_view(&text), 80, 0), 0);
	assert_true(m->count < 30000);
	markdown_free(m);
}

static void test_no_memory(void **state)
{
	(void)state;
	const char *text =
		"# a *b*\n\n- c\n\n> d\n\n```\ne\tf\n```\n\n| g | h |\n|---|---|\n| i | j |\n\n[k](l)";
	fail_alloc_install();
	for (size_t n = 1;; n++) {
		markdown *m = NULL;
		fail_alloc_at(n, false);
		int rc = markdown_read(&m, sheaf_str_of(text), 40, 0);
		markdown_free(m);
		if (!fail_alloc_hit())
			break;
		assert_int_equal(rc, SHEAF_NOMEM);
	}
	assert_int_equal(fail_alloc_live(), 0);
	fail_alloc_remove();
}

static void test_colours(void **state)
{
	(void)state;
	_cleanup_(buf_free) buf out = BUF_INIT(SIZE_MAX);
	markdown *m = NULL;
	screen s = {.color = true};
	assert_int_equal(markdown_read(&m, SHEAF_STR("a ***b*** `c`"), 0, 0), 0);
	markdown_put(&s, &out, &m->lines[0]);
	buf_nul(&out);
	assert_string_equal(out.ptr, "a \033[1;3mb\033[m \033[36mc\033[m");
	s.color = false;
	buf_reset(&out);
	markdown_put(&s, &out, &m->lines[0]);
	buf_nul(&out);
	assert_string_equal(out.ptr, "a b c");
	markdown_free(m);
}

static int setup(void **state)
{
	(void)state;
	setenv("LC_ALL", "C.UTF-8", 1);
	text_init();
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_styles),
		cmocka_unit_test(test_marks_stay_without_styles),
		cmocka_unit_test(test_blocks),
		cmocka_unit_test(test_wrapping),
		cmocka_unit_test(test_tables),
		cmocka_unit_test(test_hostile_text_is_spelled_out),
		cmocka_unit_test(test_random_texts),
		cmocka_unit_test(test_large_and_deep),
		cmocka_unit_test(test_what_would_explode_is_shown_as_source),
		cmocka_unit_test(test_no_memory),
		cmocka_unit_test(test_colours),
	};
	return cmocka_run_group_tests(tests, setup, NULL);
}
