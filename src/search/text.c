/* What a record says to someone who searches: its text, whose it is, and the tools in it. */
#include "base/cleanup.h"
#include "base/utf8.h"
#include "entry/check.h"
#include "entry/members.h"
#include "entry/record.h"
#include "search/search_inside.h"

#define TOOLS_BYTES_MAX 4096u

void text_done(record_text *t)
{
	arena_free(t->a);
	json_free(t->doc);
	buf_free(&t->text);
	buf_free(&t->tools);
}

/* ---- Collecting -------------------------------------------------------------------- */

static void add_text(record_text *t, sheaf_str text)
{
	size_t room = INDEX_TEXT_BYTES_MAX > t->text.len + 1
	                      ? INDEX_TEXT_BYTES_MAX - t->text.len - 1
	                      : 0;
	text = utf8_cut(text, room);
	if (text.len == 0)
		return;
	if (t->text.len != 0)
		buf_char(&t->text, '\n');
	buf_str(&t->text, text);
}

/* The strings and numbers in JSON text that was checked, without the names of members. */
static int add_values(record_text *t, sheaf_str json)
{
	const char *p = json.ptr, *end = json.ptr + json.len;
	while (p < end && t->text.len < INDEX_TEXT_BYTES_MAX) {
		const char *from = p;
		if (*p == '"') {
			const char *quote = json_string_end(p + 1, end);
			if (quote == NULL)
				return 0;
			p = quote + 1;
			sheaf_str value = str_make(from, (size_t)(p - from));
			while (p < end && (*p == ' ' || *p == '\t'))
				p++;
			if (p < end && *p == ':')
				continue;
			sheaf_str plain;
			int rc = check_unescape(&plain, value, t->a);
			if (rc == SHEAF_NOMEM)
				return rc;
			if (rc == 0)
				add_text(t, plain);
		} else if ((*p >= '0' && *p <= '9') || *p == '-') {
			while (p < end && *p != ',' && *p != ']' && *p != '}' && *p != ' ')
				p++;
			add_text(t, str_make(from, (size_t)(p - from)));
		} else {
			p++;
		}
	}
	return 0;
}

static void add_tool(record_text *t, sheaf_str tool)
{
	if (tool.len == 0 || memchr(tool.ptr, '\n', tool.len) != NULL ||
	    t->tools.len + tool.len + 2 > TOOLS_BYTES_MAX)
		return;
	if (t->tools.len == 0)
		buf_char(&t->tools, '\n');
	buf_str(&t->tools, tool);
	buf_char(&t->tools, '\n');
}

/* ---- Messages ------------------------------------------------------------------------- */

/* What a message is made of, to say whose it is. */
typedef struct makeup {
	bool words;
	bool calls;
	bool results;
} makeup;

static int add_call(record_text *t, const sheaf_part *part, const tool_names *names,
                    sheaf_error *err)
{
	int rc = names->told(names->ctx, part->id, part->name, err);
	add_tool(t, part->name);
	add_text(t, part->name);
	if (rc == 0 && part->input.len != 0 && json_check(part->input, JSON_NONE, NULL) == 0)
		rc = add_values(t, part->input) != 0 ? err_nomem(err) : 0;
	else if (rc == 0)
		add_text(t, part->input);
	return rc;
}

static int add_result(record_text *t, const sheaf_part *part, const tool_names *names,
                      sheaf_error *err)
{
	_cleanup_(buf_free) buf tool = BUF_INIT(SIZE_MAX);
	bool found = part->tool_name.len != 0;
	int rc = 0;
	if (found)
		add_tool(t, part->tool_name);
	else if (part->tool_use_id.len != 0)
		rc = names->asked(names->ctx, part->tool_use_id, &tool, &found, err);
	if (rc == 0 && found && tool.len != 0)
		add_tool(t, buf_view(&tool));
	add_text(t, part->text);
	for (size_t i = 0; i < part->part_count; i++)
		if (part->parts[i]->kind == SHEAF_PART_TEXT)
			add_text(t, part->parts[i]->text);
	return rc;
}

static int add_part(record_text *t, const sheaf_part *part, makeup *m, const tool_names *names,
                    sheaf_error *err)
{
	switch (part->kind) {
	case SHEAF_PART_TEXT:
	case SHEAF_PART_THINKING:
		m->words = m->words || part->text.len != 0;
		add_text(t, part->text);
		return 0;
	case SHEAF_PART_TOOL_USE:
		m->calls = true;
		return add_call(t, part, names, err);
	case SHEAF_PART_TOOL_RESULT:
		m->results = true;
		return add_result(t, part, names, err);
	default:
		return 0;
	}
}

static int32_t message_role(sheaf_str role, const makeup *m)
{
	if (str_is(role, SHEAF_ROLE_USER))
		return m->results && !m->words ? SHEAF_HIT_TOOL : SHEAF_HIT_USER;
	if (str_is(role, SHEAF_ROLE_ASSISTANT))
		return m->calls && !m->words ? SHEAF_HIT_CALL : SHEAF_HIT_ASSISTANT;
	if (str_is(role, SHEAF_ROLE_TOOL) || str_is(role, SHEAF_ROLE_BASH))
		return SHEAF_HIT_TOOL;
	if (str_is(role, SHEAF_ROLE_SYSTEM) || str_is(role, SHEAF_ROLE_DEVELOPER))
		return SHEAF_HIT_SYSTEM;
	if (str_is(role, SHEAF_ROLE_BRANCH_SUMMARY) || str_is(role, SHEAF_ROLE_COMPACTION_SUMMARY))
		return SHEAF_HIT_SUMMARY;
	return SHEAF_HIT_OTHER;
}

/* A command a person ran is told by members of its own. */
static int add_bash(record_text *t, sheaf_str message, sheaf_error *err)
{
	static const char *const members[] = {"command", "output"};
	for (size_t i = 0; i < COUNT_OF(members); i++) {
		sheaf_str value = json_member_bytes(message, members[i]);
		if (value.len != 0 && add_values(t, value) != 0)
			return err_nomem(err);
	}
	return 0;
}

static int add_message(record_text *t, const sheaf_message_view *m, const tool_names *names,
                       sheaf_error *err)
{
	makeup made = {false, false, false};
	int rc = 0;
	for (size_t i = 0; rc == 0 && i < m->part_count; i++)
		rc = add_part(t, m->parts[i], &made, names, err);
	if (rc == 0 && str_is(m->role, SHEAF_ROLE_BASH))
		rc = add_bash(t, m->json, err);
	t->out.role = message_role(m->role, &made);
	return rc;
}

/* ---- Records ----------------------------------------------------------------------------- */

/* Custom data reaches nobody unless it says so. */
static int add_custom(record_text *t, const sheaf_entry *e, sheaf_error *err)
{
	sheaf_str inside = members_inside(members_find(e->body, "custom"));
	sheaf_str content = members_find(inside, "content");
	t->out.role = SHEAF_HIT_OTHER;
	if (!str_is(members_find(inside, "in_context"), "true") || content.ptr == NULL)
		return 0;
	return add_values(t, content) != 0 ? err_nomem(err) : 0;
}

static int add_entry(record_text *t, const sheaf_entry *e, const tool_names *names,
                     sheaf_error *err)
{
	if (e->kind == SHEAF_KIND_CUSTOM)
		return add_custom(t, e, err);
	if (e->kind == SHEAF_KIND_MESSAGE)
		return e->message != NULL ? add_message(t, e->message, names, err) : 0;
	t->out.role = SHEAF_HIT_SUMMARY;
	add_text(t, e->text);
	return 0;
}

static int scan_line(record *r, sheaf_str line, record_text *t)
{
	return record_has_crc(line) ? record_scan(r, line, t->a)
	                            : record_scan_foreign(r, line, t->a, &t->doc, NULL);
}

int text_of_record(record_text *t, sheaf_str line, uint64_t seq, const tool_names *names,
                   sheaf_error *err)
{
	record r;
	sheaf_entry e = {0};
	arena_free(t->a);
	t->a = arena_new();
	t->any = false;
	if (t->a == NULL)
		return err_nomem(err);
	if (t->text.max == 0) {
		t->text = (buf)BUF_INIT(SIZE_MAX);
		t->tools = (buf)BUF_INIT(SIZE_MAX);
	}
	buf_reset(&t->text);
	buf_reset(&t->tools);
	t->out = (index_doc){.seq = seq};
	int rc = scan_line(&r, line, t);
	if (rc == 0)
		rc = entry_read(&e, &r, 0, true, t->a, &t->doc, NULL);
	if (rc != 0)
		return rc == SHEAF_NOMEM ? err_nomem(err) : 0;
	rc = add_entry(t, &e, names, err);
	if (rc == 0)
		rc = buf_status(&t->text, err);
	if (rc == 0)
		rc = buf_status(&t->tools, err);
	t->any = rc == 0 && t->text.len != 0;
	t->out.time_us = e.time_us;
	t->out.entry = e.id;
	t->out.agent = e.agent;
	t->out.text = buf_view(&t->text);
	t->out.tools = buf_view(&t->tools);
	return rc;
}
