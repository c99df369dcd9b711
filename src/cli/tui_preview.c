/* The preview of a session: what is known of it, and how it ended. */
#include "base/str.h"
#include "tui.h"

#define ENTRIES 40u /* of its end */

void preview_done(preview *p)
{
	buf_free(&p->of);
	lines_done(&p->text);
}

/* Keys are told apart by a character that none of their parts holds. */
static void put_key(buf *out, const sheaf_session_info *info)
{
	const sheaf_str parts[] = {info->app, info->user, info->session};
	for (size_t i = 0; i < COUNT_OF(parts); i++) {
		buf_str(out, parts[i]);
		buf_char(out, '\0');
	}
}

bool preview_is_of(const preview *p, const sheaf_session_info *info, size_t columns)
{
	_cleanup_(buf_free) buf key = BUF_INIT(SIZE_MAX);
	put_key(&key, info);
	return p->columns == columns && p->revision == info->revision &&
	       str_eq(buf_view(&key), buf_view(&p->of));
}

/* Where the last exchange begins: with what a person said last. */
static size_t last_exchange(const sheaf_records *end)
{
	for (size_t i = end->count; i > 0; i--) {
		const sheaf_message_view *m = end->items[i - 1]->message;
		if (m != NULL && str_is(m->role, SHEAF_ROLE_USER) && m->part_count != 0 &&
		    m->parts[0]->kind == SHEAF_PART_TEXT)
			return i - 1;
	}
	return 0;
}

static void put_head(tui *t, buf *out, const sheaf_head_view *head)
{
	_cleanup_(buf_free) buf text = BUF_INIT(SIZE_MAX), facts = BUF_INIT(SIZE_MAX);
	view_name(&text, head->info);
	print_styled(&t->page.screen, out, STYLE_TITLE, buf_view(&text));
	buf_char(out, '\n');
	buf_reset(&text);
	text_safe(&text, head->info->session, TEXT_ID);
	print_styled(&t->page.screen, out, STYLE_LABEL, buf_view(&text));
	buf_char(out, '\n');
	buf_reset(&text);
	view_facts(&t->page, &facts, head);
	text_wrap(&text, buf_view(&facts), 0, t->page.screen.width);
	print_styled(&t->page.screen, out, STYLE_DIM, buf_view(&text));
	buf_char(out, '\n');
}

static int read_session(tui *t, const sheaf_session_info *info, buf *out, sheaf_error *err)
{
	_cleanup_(session_closep) sheaf_session *session = NULL;
	_cleanup_(head_freep) sheaf_head_view *head = NULL;
	_cleanup_(records_freep) sheaf_records *end = NULL;
	sheaf_session_options options = SHEAF_SESSION_OPTIONS_INIT;
	options.mode = SHEAF_OPEN_EXISTING;
	options.readonly = 1;
	sheaf_key key = {info->app, info->user, info->session};
	int rc = sheaf_session_open(&session, t->c->store, &key, &options, err);
	if (rc == 0)
		rc = sheaf_session_head(&head, session, err);
	if (rc != 0)
		return rc;
	put_head(t, out, head);
	rc = sheaf_session_path(&end, session, (sheaf_str){NULL, 0}, (sheaf_str){NULL, 0}, ENTRIES,
	                        err);
	if (rc != 0)
		return rc;
	_cleanup_(view_done) view v = VIEW_INIT(&t->page, false);
	size_t first = last_exchange(end);
	for (size_t i = 0; i < end->count; i++) {
		if (i < first)
			view_note(&v, end->items[i]);
		else
			view_entry_put(&v, end->items[i]);
	}
	buf_str(out, buf_view(&v.out));
	return 0;
}

void preview_load(tui *t, size_t columns)
{
	preview *p = &t->preview;
	const sheaf_session_info *info = sessions_at(&t->sessions, t->sessions.chosen.at);
	sheaf_error err = {0};
	p->due = false;
	if (info == NULL)
		return;
	buf_reset(&p->of);
	put_key(&p->of, info);
	p->revision = info->revision;
	p->columns = columns;
	t->page.screen.width = columns;
	buf_reset(&p->text.text);
	if (read_session(t, info, &p->text.text, &err) != 0) {
		buf_lit(&p->text.text, "\n");
		_cleanup_(buf_free) buf text = BUF_INIT(SIZE_MAX);
		text_safe_of(&text, err.message, TEXT_LINE);
		print_styled(&t->page.screen, &p->text.text, STYLE_BAD, buf_view(&text));
		buf_lit(&p->text.text, "\n");
	}
	if (lines_break(&p->text, columns) != 0)
		p->text.count = 0;
}
