/* Commands as bytes, keys and their slots, and the elements of answers. */
#include <stdlib.h>

#include "base/clock.h"
#include "store/redis.h"

/* Room before a command for "*COUNT\r\n". */
#define FRONT 24u

/* ---- Commands ----------------------------------------------------------------- */

void rcmd_begin(rcmd *c)
{
	*c = (rcmd){.bytes = BUF_INIT(REDIS_COMMAND_MAX)};
	static const char front[FRONT] = {0};
	buf_add(&c->bytes, front, FRONT);
}

void rcmd_free(rcmd *c)
{
	buf_free(&c->bytes);
}

static void begin_arg(rcmd *c, size_t len)
{
	c->count++;
	buf_char(&c->bytes, '$');
	buf_u64(&c->bytes, len);
	buf_lit(&c->bytes, "\r\n");
}

void rcmd_arg(rcmd *c, sheaf_str arg)
{
	begin_arg(c, arg.len);
	buf_str(&c->bytes, arg);
	buf_lit(&c->bytes, "\r\n");
}

void rcmd_rest(rcmd *c, const rcmd *more)
{
	c->count += more->count;
	if (more->bytes.status != 0)
		c->bytes.status = more->bytes.status;
	else
		buf_add(&c->bytes, more->bytes.ptr + FRONT, more->bytes.len - FRONT);
}

void rcmd_text(rcmd *c, const char *arg)
{
	rcmd_arg(c, sheaf_str_of(arg));
}

void rcmd_u64(rcmd *c, uint64_t value)
{
	char room[24];
	buf digits = {room, 0, sizeof(room), sizeof(room), 0};
	buf_u64(&digits, value);
	rcmd_arg(c, buf_view(&digits));
}

void rcmd_i64(rcmd *c, int64_t value)
{
	char room[24];
	buf digits = {room, 0, sizeof(room), sizeof(room), 0};
	buf_i64(&digits, value);
	rcmd_arg(c, buf_view(&digits));
}

sheaf_str rcmd_bytes(rcmd *c)
{
	if (c->bytes.status != 0)
		return str_make(NULL, 0);
	char room[FRONT];
	buf front = {room, 0, sizeof(room), sizeof(room), 0};
	buf_char(&front, '*');
	buf_u64(&front, c->count);
	buf_lit(&front, "\r\n");
	char *at = c->bytes.ptr + FRONT - front.len;
	memcpy(at, room, front.len);
	return str_make(at, c->bytes.len - FRONT + front.len);
}

/* ---- Keys ------------------------------------------------------------------------ */

/* CRC-16/XMODEM, which gives a key its slot. */
uint16_t redis_slot(const char *tag, size_t len)
{
	unsigned crc = 0;
	for (size_t i = 0; i < len; i++) {
		crc ^= (unsigned)(unsigned char)tag[i] << 8;
		for (int bit = 0; bit < 8; bit++)
			crc = crc & 0x8000u ? (crc << 1 ^ 0x1021u) & 0xffffu : crc << 1 & 0xffffu;
	}
	return (uint16_t)(crc % REDIS_SLOTS);
}

/* Encoded keys and prefixes hold no braces, so the tag is all between these two, and an app (which
 * has no '/') is never an owner. */
void redis_key(buf *out, const rstore *s, sheaf_str owner, const char *kind, sheaf_str session)
{
	buf_char(out, '{');
	buf_str(out, sheaf_str_of(s->prefix));
	buf_str(out, owner);
	buf_char(out, '}');
	buf_str(out, sheaf_str_of(kind));
	buf_str(out, session);
}

static void add_key(rcmd *c, const rstore *s, sheaf_str owner, const char *kind, sheaf_str session)
{
	begin_arg(c, strlen(s->prefix) + owner.len + 2 + strlen(kind) + session.len);
	redis_key(&c->bytes, s, owner, kind, session);
	buf_lit(&c->bytes, "\r\n");
}

static void set_slot(rcmd *c, const rstore *s, sheaf_str owner)
{
	char tag[REDIS_PREFIX_MAX + 2 * SHEAF_KEY_PART_ROOM];
	buf text = {tag, 0, sizeof(tag), sizeof(tag), 0};
	buf_str(&text, sheaf_str_of(s->prefix));
	buf_str(&text, owner);
	c->slot = redis_slot(tag, text.len);
}

void rcmd_session(rcmd *c, const rstore *s, const char *function, const sheaf_store_key *key,
                  const char *stage)
{
	static const char *const of_session[] = {"h:", "r:", "k:", "i:", "f:", "p:", "m:", "c:"};
	static const char *const of_owner[] = {"z", "x", "u"};
	static const char *const staged[] = {"tr:", "tk:", "ti:"};
	sheaf_str none = {"", 0};
	rcmd_begin(c);
	set_slot(c, s, key->owner);
	rcmd_text(c, "FCALL");
	rcmd_text(c, function);
	rcmd_u64(c, COUNT_OF(of_session) + COUNT_OF(of_owner) +
	                    (stage != NULL ? COUNT_OF(staged) : 0));
	for (size_t i = 0; i < COUNT_OF(of_session); i++)
		add_key(c, s, key->owner, of_session[i], key->session);
	for (size_t i = 0; i < COUNT_OF(of_owner); i++)
		add_key(c, s, key->owner, of_owner[i], none);
	for (size_t i = 0; stage != NULL && i < COUNT_OF(staged); i++)
		add_key(c, s, key->owner, staged[i], sheaf_str_of(stage));
}

void rcmd_scope(rcmd *c, const rstore *s, const char *function, sheaf_str scope, const char *kind)
{
	rcmd_begin(c);
	set_slot(c, s, scope);
	rcmd_text(c, "FCALL");
	rcmd_text(c, function);
	rcmd_u64(c, 1);
	add_key(c, s, scope, kind, str_make("", 0));
}

/* ---- Answers ------------------------------------------------------------------------ */

void redis_reply_free(redisReply **reply)
{
	if (*reply != NULL)
		freeReplyObject(*reply);
	*reply = NULL;
}

sheaf_str reply_str(const redisReply *r, size_t i)
{
	if (r->type != REDIS_REPLY_ARRAY || i >= r->elements ||
	    r->element[i]->type != REDIS_REPLY_STRING)
		return str_make("", 0);
	return str_make(r->element[i]->str, r->element[i]->len);
}

int64_t reply_i64(const redisReply *r, size_t i)
{
	if (r->type == REDIS_REPLY_ARRAY && i < r->elements &&
	    r->element[i]->type == REDIS_REPLY_INTEGER)
		return r->element[i]->integer;
	sheaf_str digits = reply_str(r, i); /* hiredis ends strings with a NUL */
	return digits.len != 0 ? strtoll(digits.ptr, NULL, 10) : 0;
}

uint64_t reply_u64(const redisReply *r, size_t i)
{
	int64_t value = reply_i64(r, i);
	return value > 0 ? (uint64_t)value : 0;
}

int reply_code(const redisReply *r)
{
	return (int)reply_i64(r, 0);
}

int redis_not_found(sheaf_error *err)
{
	return err_set(err, SHEAF_NOT_FOUND, "there is no such session");
}

int redis_strange(sheaf_error *err)
{
	return err_set(err, SHEAF_STORAGE, "the redis server gave an answer nobody understands");
}

int64_t redis_deadline(const rstore *s, int64_t deadline_us)
{
	return deadline_us != 0 ? deadline_us : clock_monotonic_us() + s->deadline_us;
}
