/* sheaf label: marks an entry with a word that can stand for its id. */
#include "find.h"
#include "view.h"

static int list_labels(cli *c, sheaf_session *session)
{
	_cleanup_(records_freep) sheaf_records *labels = NULL;
	if (sheaf_session_labels(&labels, session, &c->err) != 0)
		return fail(c);
	_cleanup_(buf_free) buf out = BUF_INIT(SIZE_MAX), text = BUF_INIT(SIZE_MAX);
	for (size_t i = 0; i < labels->count; i++) {
		const sheaf_entry *e = labels->items[i];
		if (c->json) {
			js_open(&out, NULL, '{');
			js_str(&out, "label", e->label);
			js_str(&out, "entry_id", e->id);
			js_u64(&out, "seq", e->seq);
			js_close(&out, '}');
		} else {
			buf_reset(&text);
			buf_lit(&text, "[");
			text_safe(&text, e->label, TEXT_LINE);
			buf_lit(&text, "]");
			print_styled(&c->screen, &out, STYLE_LABEL, buf_view(&text));
			buf_format(&out, " @%llu %s: ", (unsigned long long)e->seq, view_word(e));
			size_t used = text_width(buf_view(&text)) + 32;
			buf_reset(&text);
			view_preview(NULL, &text, e);
			text_cut(&out, buf_view(&text),
			         c->screen.width > used ? c->screen.width - used : 60);
		}
		buf_char(&out, '\n');
	}
	print_out(&out);
	if (labels->count == 0 && !c->json)
		say(c, "no labels");
	return out.status != 0 ? fail_memory(c) : 0;
}

int cmd_label(cli *c)
{
	bool removing = given(c, OPT_DELETE);
	if (c->word_count != 1 && c->word_count != (removing ? 2 : 3))
		return usage(c, removing ? "label -d takes a session and an entry or label"
		                         : "label takes a session, an entry and a label");
	if (!removing && c->word_count == 3 && c->words[2][0] == '\0')
		return usage(c, "a label is not empty; `sheaf label -d` takes one away");
	_cleanup_(session_closep) sheaf_session *session = NULL;
	int rc = c->word_count == 1 ? open_for_reading(c, c->words[0], &session)
	                            : open_for_writing(c, c->words[0], &session);
	if (rc != 0)
		return rc;
	if (c->word_count == 1)
		return removing ? usage(c, "which label?") : list_labels(c, session);
	char id[SHEAF_ID_ROOM];
	if ((rc = find_entry(c, session, c->words[1], id)) != 0)
		return rc;
	sheaf_appended done = SHEAF_APPENDED_INIT;
	sheaf_str label = removing ? (sheaf_str){"", 0} : sheaf_str_of(c->words[2]);
	if (sheaf_session_label(session, sheaf_str_of(id), label, NULL, &done, &c->err) != 0)
		return fail(c);
	if (c->json) {
		_cleanup_(buf_free) buf out = BUF_INIT(SIZE_MAX);
		js_open(&out, NULL, '{');
		js_appended(&out, &done);
		js_text(&out, "entry_id", id);
		js_str(&out, "label", removing ? (sheaf_str){NULL, 0} : label);
		js_close(&out, '}');
		buf_char(&out, '\n');
		print_out(&out);
	} else if (removing) {
		say(c, "%.200s has no label any more", c->words[1]);
	} else {
		say(c, "%.200s is now labelled [%.1000s]", c->words[1], c->words[2]);
	}
	return 0;
}
