/* sheaf branch: lists branches, makes and moves them, forgets them. */
#include "base/str.h"
#include "find.h"
#include "opt.h"
#include "shapes.h"
#include "view.h"

static void put_branch(cli *c, sheaf_session *session, buf *out, const sheaf_branch_info *branch,
                       size_t name_width, int seq_width)
{
	_cleanup_(buf_free) buf text = BUF_INIT(SIZE_MAX);
	_cleanup_(records_freep) sheaf_records *leaf = NULL;
	text_safe(&text, branch->name, TEXT_LINE);
	size_t width = text_width(buf_view(&text));
	print_styled(&c->screen, out, STYLE_BRANCH, buf_view(&text));
	text_spaces(out, name_width > width ? name_width - width : 0);
	if (branch->leaf_seq == 0) {
		buf_lit(out, "  before the first entry\n");
		return;
	}
	buf_format(out, "  @%-*llu  ", seq_width, (unsigned long long)branch->leaf_seq);
	if (sheaf_session_get(&leaf, session, branch->leaf, NULL) == 0 && leaf->count == 1) {
		const sheaf_entry *e = leaf->items[0];
		buf_reset(&text);
		buf_format(&text, "%-*s", (int)VIEW_WORD, view_word(e));
		print_styled(&c->screen, out, view_word_style(e), buf_view(&text));
		buf_reset(&text);
		view_preview(NULL, &text, e);
		size_t used = name_width + (size_t)seq_width + VIEW_WORD + 6,
		       have = c->screen.width;
		buf_char(out, ' ');
		text_cut(out, buf_view(&text), have > used + 16 ? have - used : 60);
	}
	buf_char(out, '\n');
}

int show_branches(cli *c, sheaf_session *session)
{
	_cleanup_(head_freep) sheaf_head_view *head = NULL;
	if (sheaf_session_head(&head, session, &c->err) != 0)
		return fail(c);
	_cleanup_(buf_free) buf out = BUF_INIT(SIZE_MAX);
	size_t name_width = 0;
	int seq_width = 1;
	for (uint64_t seq = head->info->revision; seq > 9; seq /= 10)
		seq_width++;
	for (size_t i = 0; i < head->branch_count; i++) {
		size_t width = text_width(head->branches[i]->name);
		name_width = width > name_width ? width : name_width;
	}
	for (size_t i = 0; i < head->branch_count; i++) {
		const sheaf_branch_info *branch = head->branches[i];
		if (!c->json) {
			put_branch(c, session, &out, branch, name_width, seq_width);
			continue;
		}
		js_open(&out, NULL, '{');
		js_str(&out, "name", branch->name);
		js_str(&out, "leaf", branch->leaf);
		js_u64(&out, "leaf_seq", branch->leaf_seq);
		js_close(&out, '}');
		buf_char(&out, '\n');
	}
	print_out(&out);
	return out.status != 0 ? fail_memory(c) : 0;
}

/* Where a branch is to stand; for a new one without a target, where main stands. */
static int find_target(cli *c, sheaf_session *session, char out[SHEAF_ID_ROOM])
{
	const char *name = c->words[1];
	out[0] = '\0';
	if (given(c, OPT_ROOT))
		return c->word_count > 2 ? usage(c, "give a target or --root, not both") : 0;
	if (c->word_count > 2)
		return find_entry(c, session, c->words[2], out);
	char leaf[SHEAF_ID_ROOM];
	if (sheaf_session_leaf(session, sheaf_str_of(name), leaf, NULL) == 0)
		return fail_with(c, SHEAF_EXISTS, "name an entry to move it there, or --root",
		                 "there is a branch '%.64s' already", name);
	if (sheaf_session_leaf(session, (sheaf_str){NULL, 0}, out, &c->err) != 0)
		return fail(c);
	return 0;
}

static int report_move(cli *c, const char *name, const char *leaf, const sheaf_appended *done)
{
	if (!c->json) {
		const char *where = c->word_count > 2 ? c->words[2] : leaf;
		say(c, "branch %.64s is at %s%.200s", name,
		    given(c, OPT_SUMMARY) ? "a summary after " : "",
		    where[0] != '\0' ? where : "the beginning");
		return 0;
	}
	_cleanup_(buf_free) buf out = BUF_INIT(SIZE_MAX);
	js_open(&out, NULL, '{');
	js_appended(&out, done);
	js_text(&out, "branch", name);
	js_text(&out, "leaf", leaf[0] != '\0' ? leaf : NULL);
	js_close(&out, '}');
	buf_char(&out, '\n');
	print_out(&out);
	return 0;
}

static int move(cli *c, sheaf_session *session)
{
	char target[SHEAF_ID_ROOM];
	sheaf_str name = sheaf_str_of(c->words[1]);
	int rc = find_target(c, session, target);
	if (rc != 0)
		return rc;
	sheaf_appended done = SHEAF_APPENDED_INIT;
	if (given(c, OPT_SUMMARY)) {
		rc = sheaf_session_branch_with_summary(session, name, sheaf_str_of(target),
		                                       opt_str(c, OPT_SUMMARY), NULL, &done,
		                                       &c->err);
	} else {
		rc = sheaf_session_branch(session, name, sheaf_str_of(target), NULL, &done,
		                          &c->err);
	}
	if (rc != 0)
		return fail(c);
	/* The summary's own id is what the branch stands at, whatever record came last. */
	if (given(c, OPT_SUMMARY) && sheaf_session_leaf(session, name, target, &c->err) != 0)
		return fail(c);
	return report_move(c, c->words[1], target, &done);
}

static int forget(cli *c, sheaf_session *session)
{
	sheaf_appended done = SHEAF_APPENDED_INIT;
	if (sheaf_session_branch_delete(session, sheaf_str_of(c->words[1]), NULL, &done, &c->err) !=
	    0)
		return fail(c);
	if (!c->json) {
		say(c, "branch %.64s is forgotten; its entries stay", c->words[1]);
		return 0;
	}
	_cleanup_(buf_free) buf out = BUF_INIT(SIZE_MAX);
	js_open(&out, NULL, '{');
	js_appended(&out, &done);
	js_text(&out, "branch", c->words[1]);
	js_bool(&out, "deleted", true);
	js_close(&out, '}');
	buf_char(&out, '\n');
	print_out(&out);
	return 0;
}

int cmd_branch(cli *c)
{
	bool changes = c->word_count > 1, removing = given(c, OPT_DELETE);
	if (!changes && (removing || given(c, OPT_ROOT) || given(c, OPT_SUMMARY)))
		return usage(c, "which branch?");
	if (removing && (c->word_count > 2 || given(c, OPT_ROOT) || given(c, OPT_SUMMARY)))
		return usage(c, "branch -d takes a session and a branch, nothing else");
	if (changes && c->words[1][0] == '\0')
		return usage(c, "the name of a branch is empty");
	_cleanup_(session_closep) sheaf_session *session = NULL;
	int rc = changes ? open_for_writing(c, c->words[0], &session)
	                 : open_for_reading(c, c->words[0], &session);
	if (rc != 0)
		return rc;
	if (!changes)
		return show_branches(c, session);
	return removing ? forget(c, session) : move(c, session);
}
