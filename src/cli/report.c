/* What check and repair found, put into words. */
#include "report.h"

void report_freep(sheaf_report **report)
{
	sheaf_report_free(*report);
}

static const char *name_of(int32_t what)
{
	static const char *const names[] = {
		[SHEAF_PROBLEM_TORN] = "torn",       [SHEAF_PROBLEM_DAMAGE] = "damage",
		[SHEAF_PROBLEM_FOREIGN] = "foreign", [SHEAF_PROBLEM_KEPT] = "kept",
		[SHEAF_PROBLEM_FORK] = "fork",
	};
	return what > 0 && (size_t)what < COUNT_OF(names) ? names[what] : "problem";
}

static bool is_bad(const sheaf_problem *p)
{
	return p->what == SHEAF_PROBLEM_DAMAGE || p->what == SHEAF_PROBLEM_FORK;
}

bool report_is_bad(const sheaf_report *report)
{
	for (size_t i = 0; i < report->count; i++) {
		if (is_bad(report->problems[i]))
			return true;
	}
	return false;
}

static void put_session(buf *out, const sheaf_problem *p)
{
	if (p->app.len != 0 || p->user.len != 0) {
		text_safe(out, p->app, TEXT_LINE);
		buf_char(out, '/');
		text_safe(out, p->user, TEXT_LINE);
		buf_char(out, '/');
	}
	text_safe(out, p->session, TEXT_LINE);
}

void report_problems(cli *c, const sheaf_report *report)
{
	_cleanup_(buf_free) buf out = BUF_INIT(SIZE_MAX);
	for (size_t i = 0; i < report->count; i++) {
		const sheaf_problem *p = report->problems[i];
		put_session(&out, p);
		buf_lit(&out, ": ");
		print_styled(&c->screen, &out, is_bad(p) ? STYLE_BAD : STYLE_WARN,
		             sheaf_str_of(name_of(p->what)));
		if (p->seq != 0)
			buf_format(&out, " at @%llu", (unsigned long long)p->seq);
		buf_lit(&out, ": ");
		text_safe(&out, p->detail, TEXT_LINE);
		if (p->bytes != 0)
			buf_format(&out, " (%llu bytes at %llu)", (unsigned long long)p->bytes,
			           (unsigned long long)p->offset);
		buf_char(&out, '\n');
	}
	print_out(&out);
}

void report_summary(cli *c, const sheaf_report *report)
{
	_cleanup_(buf_free) buf out = BUF_INIT(SIZE_MAX);
	text_count(&out, report->sessions, "session", "sessions");
	buf_lit(&out, ", ");
	text_count(&out, report->records, "record", "records");
	buf_lit(&out, ", ");
	text_bytes(&out, report->bytes);
	buf_lit(&out, ": ");
	size_t bad = 0;
	for (size_t i = 0; i < report->count; i++)
		bad += is_bad(report->problems[i]);
	if (bad == 0)
		buf_lit(&out, "no damage");
	else
		text_count(&out, bad, "problem", "problems");
	buf_char(&out, '\n');
	print_out(&out);
	if (bad != 0)
		say(c,
		    store_repairs(c)
		            ? "hint: `sheaf repair SESSION` keeps every record that can still be read"
		            : "hint: this store cannot repair: restore it from a backup");
}

void report_json(const sheaf_report *report)
{
	_cleanup_(buf_free) buf b = BUF_INIT(SIZE_MAX);
	js_open(&b, NULL, '{');
	js_u64(&b, "sessions", report->sessions);
	js_u64(&b, "records", report->records);
	js_u64(&b, "bytes", report->bytes);
	js_bool(&b, "damaged", report_is_bad(report));
	js_open(&b, "problems", '[');
	for (size_t i = 0; i < report->count; i++) {
		const sheaf_problem *p = report->problems[i];
		js_open(&b, NULL, '{');
		js_text(&b, "what", name_of(p->what));
		js_str(&b, "app", p->app);
		js_str(&b, "user", p->user);
		js_str(&b, "session", p->session);
		js_u64(&b, "seq", p->seq);
		js_u64(&b, "offset", p->offset);
		js_u64(&b, "bytes", p->bytes);
		js_str(&b, "detail", p->detail);
		js_close(&b, '}');
	}
	js_close(&b, ']');
	js_close(&b, '}');
	buf_char(&b, '\n');
	print_out(&b);
}
