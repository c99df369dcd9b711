/*
 * Records and their lines: read by looking at fixed places from both ends,
 * written straight into a buffer.
 */
#include "entry/record.h"

#include <string.h>

#include "base/crc.h"
#include "base/err.h"
#include "base/str.h"
#include "base/uuid.h"
#include "entry/check.h"
#include "entry/members.h"

#define CRC_BEGIN ",\"crc\":\""
#define CRC_BEGIN_LEN (sizeof(CRC_BEGIN) - 1)
#define CRC_DIGITS 8u
#define CRC_MEMBER_LEN (CRC_BEGIN_LEN + CRC_DIGITS + 2) /* with the quote and brace after it */

#define TYPE_BYTES_MAX 64u
#define TIMESTAMP_BYTES_MAX 64u

/* ---- Kinds ---------------------------------------------------------------- */

static const struct kind_name {
	const char *name;
	size_t len;
	int32_t kind;
} kinds[] = {
#define KIND(name, kind)                                                                           \
	{                                                                                          \
		name, sizeof(name) - 1, kind                                                       \
	}
	KIND("message", SHEAF_KIND_MESSAGE),
	KIND("turn_end", SHEAF_KIND_TURN_END),
	KIND("label", SHEAF_KIND_LABEL),
	KIND("custom", SHEAF_KIND_CUSTOM),
	KIND("compaction", SHEAF_KIND_COMPACTION),
	KIND("model_change", SHEAF_KIND_MODEL_CHANGE),
	KIND("thinking_level", SHEAF_KIND_THINKING_LEVEL),
	KIND("branch_summary", SHEAF_KIND_BRANCH_SUMMARY),
	KIND("session_info", SHEAF_KIND_SESSION_INFO),
	KIND("leaf", SHEAF_KIND_LEAF),
	KIND("todo", SHEAF_KIND_TODO),
	KIND("plan", SHEAF_KIND_PLAN),
	KIND("summary", SHEAF_KIND_SUMMARY),
	KIND("retention", SHEAF_KIND_RETENTION),
	KIND("lost", SHEAF_KIND_LOST),
	KIND("source", SHEAF_KIND_SOURCE),
	KIND("import", SHEAF_KIND_IMPORT),
	KIND("sync", SHEAF_KIND_SYNC),
	KIND("session", SHEAF_KIND_SESSION),
#undef KIND
};

int32_t record_kind(sheaf_str type, bool has_parent)
{
	for (size_t i = 0; i < COUNT_OF(kinds); i++) {
		if (type.len == kinds[i].len && memcmp(type.ptr, kinds[i].name, type.len) == 0)
			return kinds[i].kind;
	}
	return has_parent ? SHEAF_KIND_OTHER_ENTRY : SHEAF_KIND_OTHER_FACT;
}

bool record_kind_is_fact(int32_t kind)
{
	return kind >= SHEAF_KIND_OTHER_FACT;
}

const char *sheaf_kind_name(int32_t kind)
{
	for (size_t i = 0; i < COUNT_OF(kinds); i++) {
		if (kinds[i].kind == kind)
			return kinds[i].name;
	}
	return record_kind_is_fact(kind) ? "fact" : "entry";
}

/* ---- The crc -------------------------------------------------------------- */

static int hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Whether the line ends in a crc member of the one right shape. */
static bool has_crc_member(sheaf_str line)
{
	if (line.len < CRC_MEMBER_LEN)
		return false;
	const char *member = line.ptr + line.len - CRC_MEMBER_LEN;
	return memcmp(member, CRC_BEGIN, CRC_BEGIN_LEN) == 0 &&
	       memcmp(member + CRC_BEGIN_LEN + CRC_DIGITS, "\"}", 2) == 0;
}

bool record_crc_ok(sheaf_str line)
{
	if (!has_crc_member(line))
		return false;
	size_t covered = line.len - CRC_MEMBER_LEN;
	const char *digits = line.ptr + covered + CRC_BEGIN_LEN;
	uint32_t crc = 0;
	for (size_t i = 0; i < CRC_DIGITS; i++) {
		int value = hex_value(digits[i]);
		if (value < 0)
			return false;
		crc = crc << 4 | (uint32_t)value;
	}
	return crc == crc32c(0, line.ptr, covered);
}

bool record_has_crc(sheaf_str line)
{
	if (line.len < 2 || memcmp(line.ptr + line.len - 2, "\"}", 2) != 0)
		return false;
	const char *quote = memrchr(line.ptr, '"', line.len - 2);
	if (quote == NULL)
		return false;
	size_t before = (size_t)(quote + 1 - line.ptr);
	return before >= CRC_BEGIN_LEN &&
	       memcmp(line.ptr + before - CRC_BEGIN_LEN, CRC_BEGIN, CRC_BEGIN_LEN) == 0;
}

/* ---- Scanning ------------------------------------------------------------- */

typedef struct cursor {
	const char *p;
	const char *end;
	arena *scratch;
	int status; /* SHEAF_NOMEM if that is why something was not taken */
} cursor;

static bool take(cursor *c, const char *literal, size_t len)
{
	if ((size_t)(c->end - c->p) < len || memcmp(c->p, literal, len) != 0)
		return false;
	c->p += len;
	return true;
}

#define TAKE(c, literal) take((c), (literal), sizeof(literal) - 1)

/* A string of 1 to `max` bytes, from after its opening quote over the closing one. */
static bool take_string(cursor *c, size_t max, sheaf_str *out)
{
	const char *quote = memchr(c->p, '"', (size_t)(c->end - c->p));
	if (quote == NULL)
		return false;
	*out = str_make(c->p, (size_t)(quote - c->p));
	if (memchr(out->ptr, '\\', out->len) != NULL) {
		quote = json_string_end(c->p, c->end);
		if (quote == NULL)
			return false;
		c->status = check_unescape(out, str_make(c->p - 1, (size_t)(quote + 2 - c->p)),
		                           c->scratch);
	}
	c->p = quote + 1;
	return c->status == 0 && out->len != 0 && out->len <= max;
}

static bool take_parent(cursor *c, record *out)
{
	if (!TAKE(c, ",\"parent_id\":"))
		return true;
	out->has_parent = true;
	if (TAKE(c, "null"))
		return true;
	return TAKE(c, "\"") && take_string(c, SHEAF_ID_BYTES_MAX, &out->parent_id);
}

static bool take_envelope(cursor *c, record *out)
{
	if (!TAKE(c, "{\"type\":\"") || !take_string(c, TYPE_BYTES_MAX, &out->type) ||
	    !TAKE(c, ",\"id\":\"") || !take_string(c, SHEAF_ID_BYTES_MAX, &out->id) ||
	    !take_parent(c, out) || !TAKE(c, ",\"timestamp\":\"") ||
	    !take_string(c, TIMESTAMP_BYTES_MAX, &out->timestamp))
		return false;
	if (TAKE(c, ",\"branch\":\""))
		return take_string(c, SHEAF_BRANCH_BYTES_MAX, &out->branch);
	return true;
}

/* The number whose digits end where the cursor does; takes them off. */
static bool drop_number(cursor *c, uint64_t *out)
{
	const char *p = c->end;
	while (p > c->p && p[-1] >= '0' && p[-1] <= '9')
		p--;
	if (p == c->end || c->end - p > 20 || (*p == '0' && c->end - p > 1))
		return false;
	uint64_t value = 0;
	for (const char *q = p; q < c->end; q++) {
		uint64_t digit = (uint64_t)(*q - '0');
		if (value > (UINT64_MAX - digit) / 10)
			return false;
		value = value * 10 + digit;
	}
	*out = value;
	c->end = p;
	return true;
}

static bool drop(cursor *c, const char *literal, size_t len)
{
	if ((size_t)(c->end - c->p) < len || memcmp(c->end - len, literal, len) != 0)
		return false;
	c->end -= len;
	return true;
}

#define DROP(c, literal) drop((c), (literal), sizeof(literal) - 1)

/*
 * The frame is read backwards from the line's end, where nothing a body holds
 * can stand: a quote inside a string is escaped, so the text of a body never
 * spells a frame.
 */
static bool drop_frame(cursor *c, record *out)
{
	out->batch_index = 0;
	out->batch_count = 1;
	if (DROP(c, "]")) {
		if (!drop_number(c, &out->batch_count) || !DROP(c, ",") ||
		    !drop_number(c, &out->batch_index) || !DROP(c, ",\"batch\":[") ||
		    out->batch_count < 2 || out->batch_count > SHEAF_BATCH_RECORDS_MAX ||
		    out->batch_index >= out->batch_count)
			return false;
	}
	if (!drop_number(c, &out->seq) || !DROP(c, ",\"seq\":") || out->seq == 0)
		return false;
	cursor before = *c;
	uint64_t parent_seq;
	if (drop_number(&before, &parent_seq) && DROP(&before, ",\"parent_seq\":")) {
		out->parent_seq = parent_seq;
		*c = before;
		return parent_seq != 0 && parent_seq < out->seq && out->parent_id.ptr != NULL;
	}
	return true;
}

/* A known type has a parent or has not, and the header is no record. */
static bool fits_kind(const record *r)
{
	return r->kind != SHEAF_KIND_SESSION && r->has_parent != record_kind_is_fact(r->kind);
}

int record_scan(record *out, sheaf_str line, arena *scratch)
{
	memset(out, 0, sizeof(*out));
	if (line.len > SHEAF_RECORD_BYTES_MAX || !has_crc_member(line))
		return SHEAF_DAMAGED;
	cursor c = {line.ptr, line.ptr + line.len - CRC_MEMBER_LEN, scratch, 0};
	if (!take_envelope(&c, out) || !drop_frame(&c, out))
		return c.status == SHEAF_NOMEM ? SHEAF_NOMEM : SHEAF_DAMAGED;
	/* What is left is the body, with the comma before it. */
	if (c.p < c.end && (c.end - c.p < 2 || *c.p++ != ',' || *c.p != '"'))
		return SHEAF_DAMAGED;
	out->line = line;
	out->body = str_make(c.p, (size_t)(c.end - c.p));
	out->kind = record_kind(out->type, out->has_parent);
	return fits_kind(out) ? 0 : SHEAF_DAMAGED;
}

/* ---- Writing -------------------------------------------------------------- */

/* All that a line is made of. */
typedef struct line {
	sheaf_str type;
	sheaf_str id;
	bool fact;
	sheaf_str parent_id;
	sheaf_str timestamp;
	sheaf_str branch;
	sheaf_str body;
	uint64_t parent_seq;
	uint64_t seq;
	uint64_t batch_index;
	uint64_t batch_count;
} line;

static void write_envelope(buf *out, const line *l)
{
	buf_lit(out, "{\"type\":");
	buf_json(out, l->type);
	buf_lit(out, ",\"id\":");
	buf_json(out, l->id);
	if (!l->fact) {
		buf_lit(out, ",\"parent_id\":");
		if (l->parent_id.len != 0)
			buf_json(out, l->parent_id);
		else
			buf_lit(out, "null");
	}
	buf_lit(out, ",\"timestamp\":\"");
	buf_str(out, l->timestamp);
	buf_lit(out, "\"");
	if (l->branch.len != 0) {
		buf_lit(out, ",\"branch\":");
		buf_json(out, l->branch);
	}
}

static void write_line(buf *out, const line *l)
{
	/* One growth at most; near the buffer's maximum what is really needed decides. */
	if (l->body.len + RECORD_FRAME_BYTES_MAX <= out->max - out->len)
		(void)buf_reserve(out, l->body.len + RECORD_FRAME_BYTES_MAX);
	size_t start = out->len;
	write_envelope(out, l);
	if (l->body.len != 0) {
		buf_lit(out, ",");
		buf_str(out, l->body);
	}
	if (l->parent_seq != 0 && !l->fact && l->parent_id.len != 0) {
		buf_lit(out, ",\"parent_seq\":");
		buf_u64(out, l->parent_seq);
	}
	buf_lit(out, ",\"seq\":");
	buf_u64(out, l->seq);
	if (l->batch_count > 1) {
		buf_lit(out, ",\"batch\":[");
		buf_u64(out, l->batch_index);
		buf_lit(out, ",");
		buf_u64(out, l->batch_count);
		buf_lit(out, "]");
	}
	record_seal(out, start);
}

void record_seal(buf *out, size_t start)
{
	static const char digits[] = "0123456789abcdef";
	if (out->status != 0)
		return;
	uint32_t crc = crc32c(0, buf_view(out).ptr + start, out->len - start);
	char member[CRC_MEMBER_LEN + 1];
	memcpy(member, CRC_BEGIN, CRC_BEGIN_LEN);
	for (size_t i = 0; i < CRC_DIGITS; i++)
		member[CRC_BEGIN_LEN + i] = digits[crc >> (28 - 4 * i) & 15];
	memcpy(member + CRC_BEGIN_LEN + CRC_DIGITS, "\"}\n", 3);
	buf_add(out, member, sizeof(member));
}

void record_write(buf *out, const draft *d, sheaf_str parent_id, uint64_t inherited_parent_seq,
                  uint64_t seq, uint64_t batch_index, uint64_t batch_count)
{
	line l = {d->type,
	          draft_id(d),
	          record_kind_is_fact(d->kind),
	          parent_id,
	          str_make(d->timestamp, CLOCK_TEXT),
	          str_make(d->branch, d->branch_len),
	          buf_view(&d->body),
	          inherited_parent_seq,
	          seq,
	          batch_index,
	          batch_count};
	write_line(out, &l);
}

/* A foreign body has been parsed; ours must pass more than that. */
static int check_foreign(const record *r, sheaf_error *err)
{
	if (r->body.len > SHEAF_BODY_BYTES_MAX)
		return err_set(err, SHEAF_TOO_LARGE, "a record has more than %zu bytes",
		               SHEAF_RECORD_BYTES_MAX);
	_cleanup_(buf_free) buf object = BUF_INIT(SHEAF_RECORD_BYTES_MAX);
	buf_lit(&object, "{");
	buf_str(&object, r->body);
	buf_lit(&object, "}");
	int rc = buf_status(&object, err);
	return rc == 0 ? json_check(buf_view(&object), JSON_OBJECT, err) : rc;
}

int record_renumber(buf *out, const record *r, sheaf_str parent_id, uint64_t inherited_parent_seq,
                    uint64_t seq, uint64_t batch_index, uint64_t batch_count, sheaf_error *err)
{
	sheaf_str timestamp = r->timestamp;
	int64_t time_us;
	int rc = r->seq == 0 ? check_foreign(r, err) : 0;
	if (rc != 0)
		return rc;
	if (timestamp.len > TIMESTAMP_BYTES_MAX || !clock_parse(timestamp, &time_us)) {
		if (r->seq != 0)
			return err_set(err, SHEAF_DAMAGED, "a record has no time");
		timestamp = SHEAF_STR("1970-01-01T00:00:00.000000Z");
	}
	line l = {r->type,    r->id,   record_kind_is_fact(r->kind), parent_id, timestamp,
	          r->branch,  r->body, inherited_parent_seq,         seq,       batch_index,
	          batch_count};
	write_line(out, &l);
	return buf_status(out, err);
}

int record_write_lost(buf *out, uint64_t seq, sheaf_error *err)
{
	char id[UUID_TEXT + 1], timestamp[CLOCK_TEXT + 1];
	int rc = uuid7_new(id, err);
	if (rc != 0)
		return rc;
	clock_format(timestamp, clock_now_us());
	_cleanup_(buf_free) buf body = BUF_INIT(64);
	buf_lit(&body, "\"lost\":{\"seq\":");
	buf_u64(&body, seq);
	buf_lit(&body, "}");
	rc = buf_status(&body, err);
	if (rc != 0)
		return rc;
	line l = {SHEAF_STR("lost"),
	          str_make(id, UUID_TEXT),
	          true,
	          {NULL, 0},
	          str_make(timestamp, CLOCK_TEXT),
	          {NULL, 0},
	          buf_view(&body),
	          0,
	          seq,
	          0,
	          1};
	write_line(out, &l);
	return buf_status(out, err);
}

/* ---- Comparing ------------------------------------------------------------ */

bool record_same(const record *stored, const draft *wanted)
{
	return record_same_but_parent(stored, wanted) && record_same_parent(stored, wanted);
}

bool record_same_but_parent(const record *stored, const draft *wanted)
{
	return str_eq(stored->type, wanted->type) &&
	       str_eq(stored->body, buf_view(&wanted->body)) &&
	       str_eq(stored->branch, str_make(wanted->branch, wanted->branch_len));
}

bool record_same_parent(const record *stored, const draft *wanted)
{
	return !wanted->has_parent ||
	       str_eq(stored->parent_id, str_make(wanted->parent_id, wanted->parent_len));
}
