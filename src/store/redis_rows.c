/* Heads and records as the server keeps them. */
#include <stdio.h>

#include "base/crc.h"
#include "store/redis.h"

#define HEAD_MAX ((size_t)256 << 20)
#define ID_APART 0xffffu
#define SECOND_US INT64_C(1000000)
#define LINGER_US (60 * SECOND_US)
#define LIFE_MOST_US (INT64_C(3155760000) * SECOND_US)
#define CRC_BEGIN ",\"crc\":\""
#define CRC_BEGIN_LEN (sizeof(CRC_BEGIN) - 1)
#define CRC_DIGITS 8u
#define CRC_LEN (CRC_BEGIN_LEN + CRC_DIGITS + 2)

/* ---- Heads ---------------------------------------------------------------------- */

static void put_hex(char out[17], uint64_t value)
{
	(void)snprintf(out, 17, "%016llx", (unsigned long long)value);
}

void redis_digest(char out[REDIS_DIGEST + 1], sheaf_str bytes)
{
	put_hex(out, str_hash(bytes));
}

/* Ascending bytes are descending times. */
void redis_order(char out[REDIS_ORDER + 1], int64_t modified_us)
{
	put_hex(out, ~((uint64_t)modified_us ^ UINT64_C(1) << 63));
}

int64_t redis_expiry_us(const sheaf_session_info *info)
{
	return info->pinned ? 0 : info->ttl_us;
}

/* Keys outlive the grace by a little: whoever sweeps can still name what goes. */
int64_t redis_life_us(const rstore *s, const sheaf_session_info *info)
{
	if (info->pinned)
		return 0;
	if (info->ttl_us == 0)
		return s->ttl_us;
	if (info->ttl_us > LIFE_MOST_US || info->grace_us > LIFE_MOST_US - info->ttl_us)
		return 0; /* a hundred years: for ever */
	return info->ttl_us + info->grace_us + LINGER_US;
}

void redis_head_freep(sheaf_head **head)
{
	sheaf_head_free(*head);
}

void rhead_free(rhead *h)
{
	buf_free(&h->bytes);
	buf_free(&h->links);
	buf_free(&h->state);
}

int rhead_make(rhead *h, const sheaf_head *head, bool state, sheaf_error *err)
{
	buf_reset(&h->bytes);
	buf_reset(&h->links);
	buf_reset(&h->state);
	h->bytes.max = h->links.max = h->state.max = HEAD_MAX;
	size_t len = sheaf_head_encode(head, NULL, 0);
	if (buf_reserve(&h->bytes, len) != 0)
		return buf_status(&h->bytes, err);
	h->bytes.len = sheaf_head_encode(head, h->bytes.ptr, len);
	redis_digest(h->digest, buf_view(&h->bytes));
	if (state) {
		len = sheaf_head_state_encode(head, NULL, 0);
		if (buf_reserve(&h->state, len) != 0)
			return buf_status(&h->state, err);
		h->state.len = sheaf_head_state_encode(head, h->state.ptr, len);
	}
	memset(&h->info, 0, sizeof(h->info));
	sheaf_head_info(head, &h->info);
	redis_order(h->order, h->info.modified_us);
	sheaf_str session;
	uint64_t base;
	for (size_t i = 0; sheaf_head_link(head, i, &session, &base); i++) {
		buf_u64(&h->links, base);
		buf_char(&h->links, ' ');
		buf_str(&h->links, session);
		buf_char(&h->links, '\n');
	}
	return buf_status(&h->links, err);
}

int redis_head_decode(sheaf_head *head, sheaf_str bytes, sheaf_str state, sheaf_error *err)
{
	int rc = sheaf_head_decode(head, bytes.ptr, bytes.len, err);
	return rc == 0 ? sheaf_head_state_decode(head, state.ptr, state.len, err) : rc;
}

/* ---- Rows ------------------------------------------------------------------------- */

/*
 * kind, length of the id, where in the line the id is, parent; then the id, if
 * it is not in the line as it is; then the line.
 */
static size_t frame(unsigned char out[REDIS_ELEMENT_FRAME], const sheaf_row *row)
{
	const char *at = row->id.len != 0
	                         ? memmem(row->bytes.ptr,
	                                  row->bytes.len < ID_APART ? row->bytes.len : ID_APART,
	                                  row->id.ptr, row->id.len)
	                         : row->bytes.ptr;
	size_t place = at != NULL ? (size_t)(at - row->bytes.ptr) : ID_APART;
	out[0] = (unsigned char)row->kind;
	out[1] = (unsigned char)row->id.len;
	out[2] = (unsigned char)place;
	out[3] = (unsigned char)(place >> 8);
	for (int i = 0; i < 8; i++)
		out[4 + i] = (unsigned char)(row->parent >> (8 * i));
	return at != NULL ? 0 : row->id.len;
}

void redis_element(buf *out, const sheaf_row *row)
{
	unsigned char front[REDIS_ELEMENT_FRAME];
	size_t apart = frame(front, row);
	buf_add(out, front, sizeof(front));
	buf_add(out, row->id.ptr, apart);
	buf_str(out, row->bytes);
}

void redis_index(buf *out, const sheaf_row *row)
{
	unsigned char entry[REDIS_INDEX_ENTRY];
	entry[0] = (unsigned char)row->kind;
	for (int i = 0; i < 4; i++)
		entry[1 + i] = (unsigned char)(row->bytes.len >> (8 * i));
	buf_add(out, entry, sizeof(entry));
}

void rcmd_row(rcmd *c, const sheaf_row *row)
{
	unsigned char front[REDIS_ELEMENT_FRAME];
	size_t apart = frame(front, row);
	c->count++;
	buf_char(&c->bytes, '$');
	buf_u64(&c->bytes, sizeof(front) + apart + row->bytes.len);
	buf_lit(&c->bytes, "\r\n");
	buf_add(&c->bytes, front, sizeof(front));
	buf_add(&c->bytes, row->id.ptr, apart);
	buf_str(&c->bytes, row->bytes);
	buf_lit(&c->bytes, "\r\n");
	rcmd_arg(c, row->id.len != 0 ? row->id : str_make("", 0));
}

/* The same test as everywhere: the line ends in the checksum of all that precedes it. */
static bool checksum_ok(sheaf_str line)
{
	if (line.len < CRC_LEN)
		return false;
	size_t covered = line.len - CRC_LEN;
	char want[CRC_LEN + 1];
	(void)snprintf(want, sizeof(want), CRC_BEGIN "%08x\"}",
	               (unsigned)crc32c(0, line.ptr, covered));
	return memcmp(line.ptr + covered, want, CRC_LEN) == 0;
}

bool redis_row(sheaf_row *out, uint64_t seq, sheaf_str element)
{
	const unsigned char *p = (const unsigned char *)element.ptr;
	if (element.len < REDIS_ELEMENT_FRAME)
		return false;
	size_t id_len = p[1], place = p[2] | (size_t)p[3] << 8;
	size_t apart = place == ID_APART ? id_len : 0;
	if (element.len < REDIS_ELEMENT_FRAME + apart)
		return false;
	*out = (sheaf_row){.seq = seq, .kind = p[0]};
	for (int i = 0; i < 8; i++)
		out->parent |= (uint64_t)p[4 + i] << (8 * i);
	out->bytes = str_make(element.ptr + REDIS_ELEMENT_FRAME + apart,
	                      element.len - REDIS_ELEMENT_FRAME - apart);
	if (apart == 0 && place + id_len > out->bytes.len)
		return false;
	out->id = str_make(apart != 0 ? element.ptr + REDIS_ELEMENT_FRAME : out->bytes.ptr + place,
	                   id_len);
	out->damaged = !checksum_ok(out->bytes);
	return true;
}

/* ---- What a log amounts to -------------------------------------------------------------- */

typedef struct folding {
	sheaf_head *head;
	map ids;
	struct kept_id **kept;
	size_t count;
	size_t room;
	uint64_t last;
	sheaf_error *err;
} folding;

typedef struct kept_id {
	size_t len;
	char text[];
} kept_id;

static int seq_of(void *ctx, sheaf_str id, uint64_t *seq)
{
	const folding *f = ctx;
	return map_get(&f->ids, id, seq);
}

static int remember(folding *f, sheaf_str id, uint64_t seq)
{
	if (mem_grow((void **)&f->kept, &f->room, f->count + 1, sizeof(*f->kept)) != 0)
		return SHEAF_NOMEM;
	kept_id *copy = mem_alloc(sizeof(*copy) + id.len);
	if (copy == NULL)
		return SHEAF_NOMEM;
	copy->len = id.len;
	memcpy(copy->text, id.ptr, id.len);
	f->kept[f->count++] = copy;
	return map_set(&f->ids, str_make(copy->text, id.len), seq);
}

static int fold_row(void *ctx, const sheaf_row *row)
{
	folding *f = ctx;
	sheaf_row copy = *row;
	if (row->kind != SHEAF_KIND_SESSION && row->seq > f->last)
		return 1;
	if (row->damaged)
		return err_set(f->err, SHEAF_DAMAGED, "a record cannot be read");
	int rc = sheaf_head_fold(f->head, &copy, seq_of, f, f->err);
	if (rc == 0 && copy.id.len != 0 && remember(f, copy.id, copy.seq) != 0)
		rc = err_nomem(f->err);
	return rc;
}

int redis_fold(rstore *s, const sheaf_store_key *key, uint64_t last, sheaf_head *out,
               sheaf_error *err)
{
	folding f = {.head = out, .last = last, .err = err};
	sheaf_scan all = {.size = sizeof(all), .limit = SIZE_MAX, .kinds = SHEAF_KINDS_ALL};
	int rc = redis_header(s, key, fold_row, &f, err);
	if (rc == 0)
		rc = redis_scan(s, key, &all, fold_row, &f, err);
	for (size_t i = 0; i < f.count; i++)
		mem_free(f.kept[i]);
	mem_free(f.kept);
	map_free(&f.ids);
	return rc;
}
