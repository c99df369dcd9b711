/* Text into words: folded, identifiers in parts, scripts without blanks in pairs of characters. */
#include <utf8proc.h>

#include "base/cleanup.h"
#include "search/fts.h"

#define PARTS_MAX 8u
#define CHAR_BYTES 4u

typedef struct splitter {
	sheaf_str text;
	word_fn fn;
	void *ctx;
	/* The word that is being read. */
	char fold[WORD_BYTES_MAX + CHAR_BYTES];
	size_t len;
	size_t begin;
	size_t end;
	bool cut;
	/* Where its parts begin: helloWorld has two. */
	size_t part_at[PARTS_MAX];
	size_t part_begin[PARTS_MAX];
	size_t parts;
	bool strange; /* so many parts that it is no identifier */
	char before;  /* 'a' lower, 'A' upper, 0 for the rest */
	/* The character before, of a run that is taken in pairs. */
	char pair[2 * CHAR_BYTES];
	size_t pair_len;
	size_t pair_begin;
	size_t pair_end;
	size_t pair_count;
} splitter;

/* ---- Words ------------------------------------------------------------------ */

static int give_parts(splitter *s)
{
	for (size_t i = 0; i < s->parts; i++) {
		bool last = i + 1 == s->parts;
		size_t at = s->part_at[i], end = last ? s->len : s->part_at[i + 1];
		word w = {.text = {s->fold + at, end - at},
		          .begin = s->part_begin[i],
		          .end = last ? s->end : s->part_begin[i + 1],
		          .same_place = true};
		int rc = w.text.len > 1 ? s->fn(s->ctx, &w) : 0;
		if (rc != 0)
			return rc;
	}
	return 0;
}

static int end_word(splitter *s)
{
	if (s->len == 0)
		return 0;
	word w = {.text = {s->fold, s->len}, .begin = s->begin, .end = s->end};
	int rc = s->fn(s->ctx, &w);
	if (rc == 0 && s->parts > 1 && !s->strange && !s->cut)
		rc = give_parts(s);
	s->len = s->parts = 0;
	s->cut = s->strange = false;
	s->before = 0;
	return rc;
}

static void begin_part(splitter *s, size_t at, size_t begin)
{
	if (s->parts == PARTS_MAX) {
		s->strange = true;
		return;
	}
	s->part_at[s->parts] = at;
	s->part_begin[s->parts++] = begin;
}

static void add_bytes(splitter *s, const char *bytes, size_t len)
{
	s->cut = s->cut || s->len + len > WORD_BYTES_MAX;
	if (s->cut)
		return;
	memcpy(s->fold + s->len, bytes, len);
	s->len += len;
}

/* A letter or digit at `at` of the text; `shape` as in `before`. */
static void note_letter(splitter *s, size_t at, size_t len, char shape)
{
	if (s->len == 0 && !s->cut) {
		s->begin = at;
		s->parts = 0;
		begin_part(s, 0, at);
	} else if (shape == 'A' && s->before != 'A') {
		begin_part(s, s->len, at); /* helloWorld, utf8Name */
	} else if (shape == 'a' && s->before == 'A' && s->len > 1) {
		/* HTTPServer: the capital before belongs to this part, unless it began one. */
		if (s->part_at[s->parts - 1] != s->len - 1)
			begin_part(s, s->len - 1, at - 1);
	}
	s->before = shape;
	s->end = at + len;
}

static void ascii_letter(splitter *s, size_t at, char c)
{
	bool upper = c >= 'A' && c <= 'Z';
	char lower = upper ? (char)(c | 0x20) : c;
	note_letter(s, at, 1, upper ? 'A' : c >= 'a' && c <= 'z' ? 'a' : 0);
	add_bytes(s, &lower, 1);
}

/* ---- Runs that are taken in pairs ------------------------------------------------ */

static int give_pair(splitter *s, bool tail)
{
	word w = {.text = {s->pair, s->pair_len},
	          .begin = s->pair_begin,
	          .end = s->pair_end,
	          .tail = tail,
	          .lone = tail && s->pair_count == 1};
	return s->fn(s->ctx, &w);
}

static int end_run(splitter *s)
{
	int rc = s->pair_len != 0 ? give_pair(s, true) : 0;
	s->pair_len = s->pair_count = 0;
	return rc;
}

static int pair_char(splitter *s, size_t at, size_t len)
{
	const char *c = s->text.ptr + at;
	int rc = 0;
	if (s->pair_len != 0) {
		size_t half = s->pair_len, end = s->pair_end;
		memcpy(s->pair + half, c, len);
		s->pair_len += len;
		s->pair_end = at + len;
		rc = give_pair(s, false);
		s->pair_begin = end;
	} else {
		s->pair_begin = at;
	}
	memcpy(s->pair, c, len);
	s->pair_len = len;
	s->pair_end = at + len;
	s->pair_count++;
	return rc;
}

/* Scripts that put no blanks between words, or glue to a word what is none of it. */
static bool is_unparted(utf8proc_int32_t c)
{
	static const struct {
		utf8proc_int32_t from, to;
	} ranges[] = {
		{0x0e00, 0x0eff},   {0x1000, 0x109f},   {0x1100, 0x11ff}, {0x1780, 0x17ff},
		{0x2e80, 0x2fdf},   {0x3005, 0x3007},   {0x3040, 0x30ff}, {0x3105, 0x318f},
		{0x31a0, 0x31bf},   {0x31f0, 0x31ff},   {0x3400, 0x4dbf}, {0x4e00, 0x9fff},
		{0xa960, 0xa97f},   {0xac00, 0xd7ff},   {0xf900, 0xfaff}, {0xff66, 0xffdc},
		{0x1b000, 0x1b16f}, {0x20000, 0x3ffff},
	};
	if (c < ranges[0].from)
		return false;
	for (size_t i = 0; i < COUNT_OF(ranges); i++)
		if (c >= ranges[i].from && c <= ranges[i].to)
			return true;
	return false;
}

/* ---- Everything that is not ASCII --------------------------------------------------- */

/* Accents, and points that are written or left out as one likes. */
static bool is_accent(utf8proc_int32_t c)
{
	return (c >= 0x0300 && c <= 0x036f) || (c >= 0x0591 && c <= 0x05c7) ||
	       (c >= 0x064b && c <= 0x0652) || c == 0x0640 || c == 0x00ad || c == 0x200d ||
	       c == 0x200c || (c >= 0xfe00 && c <= 0xfe0f);
}

static bool is_wordlike(utf8proc_int32_t c)
{
	utf8proc_category_t category = utf8proc_category(c);
	return (category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_NO) ||
	       category == UTF8PROC_CATEGORY_CO;
}

static void fold_letter(splitter *s, size_t at, size_t len, utf8proc_int32_t c)
{
	utf8proc_int32_t parts[32];
	int boundary = 0;
	utf8proc_ssize_t count = utf8proc_decompose_char(
		c, parts, (utf8proc_ssize_t)COUNT_OF(parts),
		UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT | UTF8PROC_CASEFOLD, &boundary);
	if (count < 0 || count > (utf8proc_ssize_t)COUNT_OF(parts)) {
		parts[0] = c;
		count = 1;
	}
	note_letter(s, at, len, 0);
	for (utf8proc_ssize_t i = 0; i < count; i++) {
		utf8proc_uint8_t bytes[CHAR_BYTES];
		if (is_accent(parts[i]))
			continue;
		utf8proc_ssize_t n = utf8proc_encode_char(parts[i], bytes);
		add_bytes(s, (const char *)bytes, (size_t)n);
	}
}

static int wide_char(splitter *s, size_t at, size_t len, utf8proc_int32_t c)
{
	int rc;
	if (is_accent(c))
		return 0;
	if (!is_wordlike(c)) {
		rc = end_word(s);
		return rc == 0 ? end_run(s) : rc;
	}
	if (is_unparted(c)) {
		rc = end_word(s);
		return rc == 0 ? pair_char(s, at, len) : rc;
	}
	rc = end_run(s);
	if (rc == 0)
		fold_letter(s, at, len, c);
	return rc;
}

static int ascii_char(splitter *s, size_t at, char c)
{
	bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
	if (letter) {
		int rc = end_run(s);
		if (rc == 0)
			ascii_letter(s, at, c);
		return rc;
	}
	int rc = end_word(s);
	return rc == 0 ? end_run(s) : rc;
}

/* The end of what a terminal obeys, which begins with the ESC at `at`: colours are no words. */
static size_t skip_escape(sheaf_str text, size_t at)
{
	if (++at == text.len || text.ptr[at] != '[')
		return at;
	at++;
	while (at < text.len && text.ptr[at] >= 0x20 && text.ptr[at] <= 0x3f)
		at++;
	return at < text.len && text.ptr[at] >= 0x40 && text.ptr[at] <= 0x7e ? at + 1 : at;
}

int words_each(sheaf_str text, word_fn fn, void *ctx)
{
	splitter s = {.text = text, .fn = fn, .ctx = ctx};
	int rc = 0;
	for (size_t at = 0; rc == 0 && at < text.len;) {
		if ((unsigned char)text.ptr[at] < 0x80) {
			rc = ascii_char(&s, at, text.ptr[at]);
			at = text.ptr[at] == '\033' ? skip_escape(text, at) : at + 1;
			continue;
		}
		utf8proc_int32_t c;
		size_t left = text.len - at < CHAR_BYTES ? text.len - at : CHAR_BYTES;
		utf8proc_ssize_t len = utf8proc_iterate((const utf8proc_uint8_t *)text.ptr + at,
		                                        (utf8proc_ssize_t)left, &c);
		if (len <= 0) { /* broken text parts words */
			c = 0xfffd;
			len = 1;
		}
		rc = wide_char(&s, at, (size_t)len, c);
		at += (size_t)len;
	}
	if (rc == 0)
		rc = end_word(&s);
	return rc == 0 ? end_run(&s) : rc;
}
