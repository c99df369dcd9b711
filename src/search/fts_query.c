/* What a person typed into what SQLite is asked, and the part of a text that shows the answer. */
#include "base/cleanup.h"
#include "search/fts.h"

#define SNIPPET_BYTES 180u
#define SNIPPET_BEFORE 50u
#define QUERY_BYTES_MAX 4096u
#define PLACES_MAX 256u

/* ---- Parsing ------------------------------------------------------------------ */

typedef struct reading {
	parsed *q;
	bool pair_tail; /* the last word is the end of a run that is taken in pairs */
	bool lone;
} reading;

static int take_word(void *ctx, const word *w)
{
	reading *r = ctx;
	parsed *q = r->q;
	int ok = 1;
	if (w->same_place)
		return 0;
	if (q->word_count == QUERY_WORDS_MAX)
		return SHEAF_LIMIT;
	q->words[q->word_count++] = arena_dup(q->a, w->text, &ok);
	r->pair_tail = w->tail;
	r->lone = w->lone;
	return ok ? 0 : SHEAF_NOMEM;
}

/* Words that must stand side by side. `prefix`: the last is a beginning. */
static int take_phrase(parsed *q, sheaf_str text, bool prefix, sheaf_error *err)
{
	reading r = {.q = q};
	size_t first = q->word_count;
	int rc = words_each(text, take_word, &r);
	if (rc == SHEAF_NOMEM)
		return err_nomem(err);
	if (rc == SHEAF_LIMIT || q->phrase_count == QUERY_PHRASES_MAX)
		return err_set(err, SHEAF_LIMIT, "a query has at most %u words", QUERY_PHRASES_MAX);
	if (q->word_count == first)
		return 0; /* nothing but punctuation */
	if (r.lone) {
		prefix = true; /* it may be the first of a pair */
	} else if (r.pair_tail) {
		q->word_count--; /* the pair before has it, and what follows may differ */
		prefix = false;
	}
	size_t last = q->words[q->word_count - 1].len;
	if (prefix && last < 2)
		return err_set(err, SHEAF_INVALID, "a beginning needs two letters at least");
	q->phrases[q->phrase_count++] = (phrase){
		.first = first, .count = q->word_count - first, .prefix = prefix};
	return 0;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static int take_terms(parsed *q, sheaf_str text, sheaf_error *err)
{
	for (size_t at = 0; at < text.len;) {
		if (is_blank(text.ptr[at])) {
			at++;
			continue;
		}
		bool quoted = text.ptr[at] == '"';
		size_t begin = at + quoted, end = begin;
		while (end < text.len &&
		       (quoted ? text.ptr[end] != '"'
		               : !is_blank(text.ptr[end]) && text.ptr[end] != '"'))
			end++;
		if (quoted && end == text.len)
			return err_set(err, SHEAF_INVALID, "a quote is open in the query");
		at = end + quoted;
		bool prefix = quoted ? at < text.len && text.ptr[at] == '*'
		                     : end > begin && text.ptr[end - 1] == '*';
		at += quoted && prefix;
		int rc = take_phrase(q, str_make(text.ptr + begin, end - begin), prefix, err);
		if (rc != 0)
			return rc;
	}
	return 0;
}

/* Words are letters and digits, so quotes around them are enough. */
static void write_match(parsed *q)
{
	for (size_t i = 0; i < q->phrase_count; i++) {
		const phrase *p = &q->phrases[i];
		if (i != 0)
			buf_lit(&q->match, " AND ");
		for (size_t k = 0; k < p->count; k++) {
			if (k != 0)
				buf_lit(&q->match, " + ");
			buf_char(&q->match, '"');
			buf_str(&q->match, q->words[p->first + k]);
			buf_char(&q->match, '"');
		}
		if (p->prefix)
			buf_lit(&q->match, " *");
	}
}

int query_parse(parsed *q, sheaf_str text, sheaf_error *err)
{
	memset(q, 0, sizeof(*q));
	q->match = (buf)BUF_INIT(SIZE_MAX);
	if (text.len > QUERY_BYTES_MAX)
		return err_set(err, SHEAF_LIMIT, "a query has at most %u bytes", QUERY_BYTES_MAX);
	q->a = arena_new();
	if (q->a == NULL)
		return err_nomem(err);
	int rc = take_terms(q, text, err);
	if (rc == 0 && q->phrase_count == 0)
		rc = err_set(err, SHEAF_INVALID, "there is no word in the query");
	if (rc != 0)
		return rc;
	write_match(q);
	return buf_status(&q->match, err);
}

void query_free(parsed *q)
{
	arena_free(q->a);
	buf_free(&q->match);
}

/* ---- Where a text matches -------------------------------------------------------- */

typedef struct place {
	size_t begin;
	size_t end;
	size_t phrase;
} place;

/* How far each phrase has come: reached[k] is where a match of its first k + 1 words began. */
typedef struct matching {
	const parsed *q;
	size_t now[QUERY_WORDS_MAX];    /* of the place that is being read; SIZE_MAX: none */
	size_t before[QUERY_WORDS_MAX]; /* of the place before it */
	place places[PLACES_MAX];
	size_t count;
} matching;

static bool word_fits(const parsed *q, const phrase *p, size_t k, sheaf_str text)
{
	sheaf_str wanted = q->words[p->first + k];
	if (p->prefix && k + 1 == p->count)
		return text.len >= wanted.len && memcmp(text.ptr, wanted.ptr, wanted.len) == 0;
	return str_eq(text, wanted);
}

static int match_word(void *ctx, const word *w)
{
	matching *m = ctx;
	const parsed *q = m->q;
	if (!w->same_place) {
		memcpy(m->before, m->now, q->word_count * sizeof(*m->now));
		for (size_t i = 0; i < q->word_count; i++)
			m->now[i] = SIZE_MAX;
	}
	for (size_t i = 0; i < q->phrase_count; i++) {
		const phrase *p = &q->phrases[i];
		for (size_t k = 0; k < p->count; k++) {
			size_t begin = k == 0 ? w->begin : m->before[p->first + k - 1];
			if (begin == SIZE_MAX || !word_fits(q, p, k, w->text))
				continue;
			m->now[p->first + k] = begin;
			if (k + 1 < p->count)
				continue;
			m->places[m->count++] = (place){begin, w->end, i};
			if (m->count == PLACES_MAX)
				return 1;
		}
	}
	return 0;
}

/* How many different phrases a window that begins with place `at` shows. */
static size_t window_worth(const matching *m, size_t at)
{
	uint32_t seen = 0;
	for (size_t i = at; i < m->count; i++) {
		if (m->places[i].end > m->places[at].begin + SNIPPET_BYTES - SNIPPET_BEFORE)
			break;
		seen |= (uint32_t)1 << m->places[i].phrase;
	}
	return (size_t)__builtin_popcount(seen);
}

/* ---- Cutting ------------------------------------------------------------------------ */

static bool is_inner(char c)
{
	return ((unsigned char)c & 0xc0) == 0x80;
}

/* The beginning of a word near `at`, not after `limit`. */
static size_t back_to_word(sheaf_str text, size_t at, size_t limit)
{
	for (size_t i = at; i < limit; i++)
		if (i == 0 || is_blank(text.ptr[i - 1]))
			return i;
	while (at > 0 && is_inner(text.ptr[at]))
		at--;
	return at;
}

static size_t on_to_word(sheaf_str text, size_t at, size_t least)
{
	for (size_t i = at; i > least; i--)
		if (i == text.len || is_blank(text.ptr[i]))
			return i;
	while (at < text.len && is_inner(text.ptr[at]))
		at++;
	return at;
}

static void add_marks(snippet *out, const matching *m, size_t begin, size_t end)
{
	for (size_t i = 0; i < m->count; i++) {
		sheaf_mark mark = {m->places[i].begin, m->places[i].end};
		if (mark.begin < begin || mark.end > end)
			continue;
		mark.begin -= begin;
		mark.end -= begin;
		/* Places come in the order of their ends. */
		while (out->mark_count != 0 && mark.begin <= out->marks[out->mark_count - 1].end) {
			sheaf_mark *last = &out->marks[--out->mark_count];
			mark.begin = mark.begin < last->begin ? mark.begin : last->begin;
		}
		if (out->mark_count < SNIPPET_MARKS_MAX)
			out->marks[out->mark_count++] = mark;
	}
}

void snippet_make(snippet *out, const parsed *q, sheaf_str text)
{
	matching m = {.q = q};
	size_t best = 0, worth = 0;
	for (size_t i = 0; i < q->word_count; i++)
		m.now[i] = SIZE_MAX;
	(void)words_each(text, match_word, &m);
	for (size_t i = 0; i < m.count; i++) {
		size_t is = window_worth(&m, i);
		if (is > worth) {
			worth = is;
			best = i;
		}
	}
	size_t first = m.count != 0 ? m.places[best].begin : 0;
	size_t needed = m.count != 0 ? m.places[best].end : 0;
	size_t begin = first > SNIPPET_BEFORE ? back_to_word(text, first - SNIPPET_BEFORE, first)
	                                      : 0;
	size_t end = begin + SNIPPET_BYTES < text.len ? begin + SNIPPET_BYTES : text.len;
	end = end < needed ? needed : end;
	if (end < text.len)
		end = on_to_word(text, end, needed > begin ? needed : begin);
	*out = (snippet){.text = {text.ptr + begin, end - begin},
	                 .cut_before = begin != 0,
	                 .cut_after = end != text.len};
	add_marks(out, &m, begin, end);
}
