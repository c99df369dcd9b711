/* Reading a conversation: entries as lines, folded or not, and a reader who is at one of them. */
#include <stdio.h>

#include "base/mem.h"
#include "base/str.h"
#include "tui.h"

#define AROUND 8u   /* entries that are read along with one, to both sides */
#define CALLS 32u   /* and before it, for the names of tools that answer */
#define CONTEXT 3   /* lines above an entry that was jumped to */
#define BRANCHES 8u /* that are tried for an entry which is not on main */

/* ---- Passages ---------------------------------------------------------- */

static void forget_passages(transcript *r)
{
	for (size_t i = 0; i < PASSAGES; i++) {
		lines_done(&r->passages[i].text);
		r->passages[i].there = false;
	}
}

static bool is_open(const transcript *r, uint64_t seq)
{
	uint64_t turned;
	bool other = map_get(&r->turned, str_make((const char *)&seq, sizeof(seq)), &turned) &&
	             turned != 0;
	return r->unfolded != other;
}

static void turn(transcript *r, uint64_t seq)
{
	uint64_t turned = 0;
	int ok = 1;
	if (r->turned_keys == NULL && (r->turned_keys = arena_new()) == NULL)
		return;
	/* The map keeps the key that it was given last. */
	sheaf_str key = arena_dup(r->turned_keys, str_make((const char *)&seq, sizeof(seq)), &ok);
	if (!ok)
		return;
	(void)map_get(&r->turned, key, &turned);
	(void)map_set(&r->turned, key, !turned);
}

static void forget_turned(transcript *r)
{
	map_free(&r->turned);
	arena_free(r->turned_keys);
	r->turned = (map)MAP_INIT;
	r->turned_keys = NULL;
}

static sheaf_str label_of(const transcript *r, uint64_t seq)
{
	for (size_t i = 0; r->labels != NULL && i < r->labels->count; i++) {
		if (r->labels->items[i]->seq == seq)
			return r->labels->items[i]->label;
	}
	return (sheaf_str){NULL, 0};
}

static void take_call(void *ctx, size_t i, const sheaf_entry *entry)
{
	(void)i;
	view_note(&((transcript *)ctx)->view, entry);
}

static void take_passage(void *ctx, size_t i, const sheaf_entry *found)
{
	transcript *r = ctx;
	passage *p = &r->passages[i % PASSAGES];
	sheaf_entry entry = *found;
	entry.label = label_of(r, entry.seq);
	lines_done(&p->text);
	p->there = true;
	p->i = i;
	p->user = entry.message != NULL && str_is(entry.message->role, SHEAF_ROLE_USER);
	str_copy_cut(p->id, sizeof(p->id), entry.id);
	r->view.full = is_open(r, entry.seq);
	r->view.gap = false;
	view_entry_put(&r->view, &entry);
	buf_char(&r->view.out, '\n');
	/* The text goes over whole; the view starts an empty one. */
	p->text.text = r->view.out;
	r->view.out = (buf)BUF_INIT(SIZE_MAX);
	if (lines_break(&p->text, r->columns) != 0)
		p->text.count = 0;
}

/* An entry as it is shown; NULL with an error on the status line. */
static passage *passage_at(tui *t, size_t i)
{
	transcript *r = &t->transcript;
	passage *p = &r->passages[i % PASSAGES];
	sheaf_error err = {0};
	if (p->there && p->i == i)
		return p;
	if (!path_has(&r->path, r->session, i, &err)) {
		tui_fail(t, &err);
		return NULL;
	}
	size_t first = i + AROUND, last = i > AROUND ? i - AROUND : 0;
	(void)path_has(&r->path, r->session, first + CALLS, NULL);
	if (first >= r->path.count)
		first = r->path.count - 1;
	size_t calls = first + CALLS < r->path.count ? first + CALLS : r->path.count - 1;
	t->page.screen.width = r->columns;
	int rc = 0;
	if (calls > first)
		rc = path_read(&r->path, r->session, calls, first + 1, take_call, r, &err);
	if (rc == 0)
		rc = path_read(&r->path, r->session, first, last, take_passage, r, &err);
	if (rc != 0)
		tui_fail(t, &err);
	return p->there && p->i == i && p->text.count != 0 ? p : NULL;
}

/* ---- Lines ------------------------------------------------------------- */

static bool line_down(tui *t, spot *s)
{
	passage *p = passage_at(t, s->i);
	if (p == NULL)
		return false;
	if (s->line + 1 < p->text.count) {
		s->line++;
		return true;
	}
	if (s->i == 0 || passage_at(t, s->i - 1) == NULL)
		return false;
	*s = (spot){s->i - 1, 0};
	return true;
}

static bool line_up(tui *t, spot *s)
{
	transcript *r = &t->transcript;
	sheaf_error err = {0};
	if (s->line > 0) {
		s->line--;
		return true;
	}
	if (!path_has(&r->path, r->session, s->i + 1, &err)) {
		if (err.code != 0)
			tui_fail(t, &err);
		return false;
	}
	passage *p = passage_at(t, s->i + 1);
	if (p == NULL)
		return false;
	*s = (spot){s->i + 1, p->text.count - 1};
	return true;
}

static long by_lines(tui *t, spot *s, long by)
{
	long moved = 0;
	while (moved < by && line_down(t, s))
		moved++;
	while (-moved < -by && line_up(t, s))
		moved--;
	return moved;
}

static bool is_before(spot a, spot b)
{
	return a.i > b.i || (a.i == b.i && a.line < b.line);
}

/* Keeps the reader on the screen, and the screen full. */
static void keep_in_view(tui *t, int rows)
{
	transcript *r = &t->transcript;
	passage *p = passage_at(t, r->at.i);
	if (p != NULL && r->at.line >= p->text.count)
		r->at.line = p->text.count - 1;
	p = passage_at(t, r->top.i);
	if (p != NULL && r->top.line >= p->text.count)
		r->top.line = p->text.count - 1;
	if (is_before(r->at, r->top))
		r->top = r->at;
	spot first = r->at;
	by_lines(t, &first, 1 - (long)rows);
	if (is_before(r->top, first))
		r->top = first;
	spot last = r->top;
	long below = by_lines(t, &last, (long)rows - 1);
	by_lines(t, &r->top, below - ((long)rows - 1));
}

static void draw_line(const tui *t, area in, int row, styled text, int how)
{
	_cleanup_(buf_free) buf marked = BUF_INIT(SIZE_MAX);
	if (t->transcript.found && search_mark(t, text.text, &marked) != 0)
		text.text = buf_view(&marked);
	draw_row(in, row, text, how);
}

void transcript_draw(tui *t, area in)
{
	transcript *r = &t->transcript;
	r->rows = in.rows;
	if (r->columns != (size_t)in.columns) {
		r->columns = (size_t)in.columns;
		forget_passages(r);
	}
	if (!path_has(&r->path, r->session, 0, NULL)) {
		draw_text(in, 0, 0, in.columns, SHEAF_STR("nothing has been said here"), 0);
		return;
	}
	keep_in_view(t, in.rows);
	spot s = r->top;
	for (int row = 0; row < in.rows; row++) {
		passage *p = passage_at(t, s.i);
		if (p == NULL)
			return;
		bool at = s.i == r->at.i && s.line == r->at.line;
		draw_line(t, in, row, lines_at(&p->text, s.line), at ? DRAW_CHOSEN : 0);
		if (!line_down(t, &s))
			return;
	}
}

uint64_t transcript_seq(const tui *t)
{
	const transcript *r = &t->transcript;
	if (r->session == NULL)
		return 0;
	/* Of a path of which nothing was read yet, its leaf. */
	return r->at.i < r->path.count ? r->path.seqs[r->at.i] : r->path.next;
}

void transcript_where(const tui *t, buf *out)
{
	const transcript *r = &t->transcript;
	if (r->head == NULL || r->at.i >= r->path.count)
		return;
	buf_format(out, "@%llu of %llu", (unsigned long long)r->path.seqs[r->at.i],
	           (unsigned long long)r->head->info->revision);
}

/* ---- Opening ----------------------------------------------------------- */

void transcript_done(transcript *r)
{
	forget_passages(r);
	forget_turned(r);
	path_done(&r->path);
	view_done(&r->view);
	sheaf_records_free(r->labels);
	sheaf_head_view_free(r->head);
	sheaf_session_close(r->session);
	*r = (transcript){0};
}

static void stand_at(tui *t, size_t i)
{
	transcript *r = &t->transcript;
	r->at = r->top = (spot){i, 0};
	by_lines(t, &r->top, -CONTEXT);
}

bool transcript_go(tui *t, uint64_t leaf_seq, uint64_t seq)
{
	transcript *r = &t->transcript;
	sheaf_error err = {0};
	size_t i;
	forget_passages(r);
	path_begin(&r->path, leaf_seq);
	if (!path_find(&r->path, r->session, seq, &i, &err)) {
		if (err.code != 0)
			tui_fail(t, &err);
		return false;
	}
	if (r->columns == 0) /* nothing was drawn yet */
		r->columns = (size_t)draw_whole().columns;
	stand_at(t, i);
	return true;
}

/* An entry may be on no branch any more: then what led to it is all there is to show. */
static void go_to(tui *t, uint64_t seq)
{
	const sheaf_head_view *head = t->transcript.head;
	for (size_t i = 0; i < head->branch_count && i < BRANCHES; i++) {
		uint64_t leaf = head->branches[i]->leaf_seq;
		if (leaf >= seq && transcript_go(t, leaf, seq))
			return;
	}
	if (transcript_go(t, seq, seq))
		tui_say(t, "this was left behind and is on no branch; t shows the tree");
}

void transcript_found(tui *t)
{
	transcript *r = &t->transcript;
	r->found = true;
	if (r->at.i >= r->path.count)
		return;
	if (!is_open(r, r->path.seqs[r->at.i])) {
		turn(r, r->path.seqs[r->at.i]);
		r->passages[r->at.i % PASSAGES].there = false;
	}
	stand_at(t, r->at.i);
	passage *p = passage_at(t, r->at.i);
	size_t most = 0;
	/* The heading is not what was said. */
	for (size_t i = 1; p != NULL && i < p->text.count; i++) {
		_cleanup_(buf_free) buf marked = BUF_INIT(SIZE_MAX);
		size_t found = search_mark(t, lines_at(&p->text, i).text, &marked);
		if (found > most) {
			most = found;
			r->at.line = i;
		}
	}
}

/* The end of main: its last entry, from its beginning. */
static void go_to_end(tui *t)
{
	transcript *r = &t->transcript;
	path_begin(&r->path, r->head->branch_count != 0 ? r->head->branches[0]->leaf_seq : 0);
	r->at = r->top = (spot){0, 0};
}

bool transcript_open(tui *t, const sheaf_key *key, uint64_t seq)
{
	transcript *r = &t->transcript;
	transcript next = {.columns = r->columns, .unfolded = r->unfolded};
	sheaf_session_options options = SHEAF_SESSION_OPTIONS_INIT;
	options.mode = SHEAF_OPEN_EXISTING;
	options.readonly = 1;
	sheaf_error err = {0};
	if (sheaf_session_open(&next.session, t->c->store, key, &options, &err) != 0 ||
	    sheaf_session_head(&next.head, next.session, &err) != 0 ||
	    sheaf_session_labels(&next.labels, next.session, &err) != 0) {
		transcript_done(&next);
		tui_fail(t, &err);
		return false;
	}
	/* The tree was of the one before. */
	tui_leave(t, SHOW_TREE);
	treeing_done(&t->tree);
	transcript_done(r);
	*r = next;
	r->view = (view)VIEW_INIT(&t->page, false);
	if (seq != 0)
		go_to(t, seq);
	else
		go_to_end(t);
	return true;
}

/* ---- Keys -------------------------------------------------------------- */

/* To the next entry in a direction that a person said, or to any. */
static void to_entry(tui *t, bool back, bool user)
{
	transcript *r = &t->transcript;
	size_t i = r->at.i;
	sheaf_error err = {0};
	/* Back from within an entry is to its beginning. */
	passage *p = passage_at(t, i);
	if (back && r->at.line > 0 && p != NULL && (p->user || !user)) {
		stand_at(t, i);
		return;
	}
	for (size_t seen = 1;; seen++) {
		if (back ? !path_has(&r->path, r->session, i + 1, &err) : i == 0)
			break;
		i = back ? i + 1 : i - 1;
		p = passage_at(t, i);
		if (p == NULL || (seen % 256 == 0 && tui_wait(t, "looking for it")))
			return;
		if (p->user || !user) {
			stand_at(t, i);
			return;
		}
	}
	tui_say(t, back ? "there is none before" : "there is none after");
}

static void fold(tui *t, bool all)
{
	transcript *r = &t->transcript;
	passage *p = &r->passages[r->at.i % PASSAGES];
	if (all) {
		r->unfolded = !r->unfolded;
		forget_turned(r);
		forget_passages(r);
		tui_say(t, r->unfolded ? "everything is unfolded" : "everything is folded");
	} else if (r->at.i < r->path.count) {
		turn(r, r->path.seqs[r->at.i]);
		p->there = false;
	}
	r->at.line = 0;
	if (r->top.i == r->at.i)
		r->top.line = 0;
}

static void to_beginning(tui *t)
{
	transcript *r = &t->transcript;
	sheaf_error err = {0};
	while (r->path.next != 0) {
		if (!path_has(&r->path, r->session, r->path.count, &err) && err.code != 0) {
			tui_fail(t, &err);
			break;
		}
		if (r->path.next != 0 && tui_wait(t, "reading back to the beginning"))
			break;
	}
	if (r->path.count != 0)
		r->at = r->top = (spot){r->path.count - 1, 0};
}

static void to_end(tui *t)
{
	transcript *r = &t->transcript;
	passage *p = passage_at(t, 0);
	if (p != NULL)
		r->at = (spot){0, p->text.count - 1};
}

static bool move_reader(tui *t, action what)
{
	transcript *r = &t->transcript;
	long page = r->rows > 2 ? r->rows - 1 : 1;
	long by = 0;
	switch (what) {
	case ACT_UP:
	case ACT_DOWN:
		by_lines(t, &r->at, what == ACT_UP ? -1 : 1);
		return true;
	case ACT_PAGE_UP:
	case ACT_PAGE_DOWN:
		by = what == ACT_PAGE_UP ? -page : page;
		break;
	case ACT_HALF_UP:
	case ACT_HALF_DOWN:
		page = page > 1 ? page / 2 : 1;
		by = what == ACT_HALF_UP ? -page : page;
		break;
	case ACT_TOP:
		to_beginning(t);
		return true;
	case ACT_BOTTOM:
		to_end(t);
		return true;
	default:
		return false;
	}
	by_lines(t, &r->at, by);
	by_lines(t, &r->top, by);
	return true;
}

static void copy_id(tui *t, bool session)
{
	transcript *r = &t->transcript;
	if (session) {
		tui_copy(t, "session", r->head->info->session);
		return;
	}
	passage *p = passage_at(t, r->at.i);
	if (p != NULL)
		tui_copy(t, "entry", sheaf_str_of(p->id));
}

static void read_again(tui *t)
{
	sheaf_key key = sheaf_session_key(t->transcript.session);
	char room[3][SHEAF_KEY_PART_BYTES_MAX + 1];
	sheaf_str *parts[] = {&key.app, &key.user, &key.session};
	for (size_t i = 0; i < COUNT_OF(parts); i++) {
		str_copy_cut(room[i], sizeof(room[i]), *parts[i]);
		*parts[i] = sheaf_str_of(room[i]);
	}
	transcript_open(t, &key, transcript_seq(t));
}

void transcript_act(tui *t, action what)
{
	if (move_reader(t, what))
		return;
	switch (what) {
	case ACT_FOLD:
	case ACT_FOLD_ALL:
		fold(t, what == ACT_FOLD_ALL);
		break;
	case ACT_NEXT_ENTRY:
	case ACT_PREVIOUS_ENTRY:
		to_entry(t, what == ACT_PREVIOUS_ENTRY, false);
		break;
	case ACT_NEXT_USER:
	case ACT_PREVIOUS_USER:
		to_entry(t, what == ACT_PREVIOUS_USER, true);
		break;
	case ACT_NEXT_HIT:
	case ACT_PREVIOUS_HIT:
		search_open(t, what == ACT_NEXT_HIT ? 1 : -1);
		break;
	case ACT_TREE:
		if (tree_open(t))
			tui_show(t, SHOW_TREE);
		break;
	case ACT_COPY:
	case ACT_COPY_SESSION:
		copy_id(t, what == ACT_COPY_SESSION);
		break;
	case ACT_RELOAD:
		read_again(t);
		break;
	default:
		break;
	}
}
