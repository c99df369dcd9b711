/* Words for the cases of expiry. */
#include "words_expiry.h"

#include <stdlib.h>

void t_wait_ms(unsigned ms)
{
	struct timespec time = {ms / 1000, (long)(ms % 1000) * 1000000};
	while (nanosleep(&time, &time) != 0) {
	}
}

int64_t t_now_us(clockid_t clock)
{
	struct timespec time;
	clock_gettime(clock, &time);
	return time.tv_sec * SECOND_US + time.tv_nsec / 1000;
}

int t_retain(suite *t, sheaf_session *s, int64_t ttl_us, int64_t grace_us, int pin)
{
	sheaf_retention r = SHEAF_RETENTION_INIT;
	r.ttl_us = ttl_us;
	r.grace_us = grace_us;
	r.pin = pin;
	return sheaf_session_retain(s, &r, NULL, NULL, &t->err);
}

void t_expire(suite *t, sheaf_session *s)
{
	OK(t_retain(t, s, 1, DAY_US, 0));
	t_wait_ms(5);
}

void t_end(suite *t, sheaf_session *s)
{
	OK(t_retain(t, s, 1, SHEAF_GRACE_NONE, 0));
	t_wait_ms(5);
}

sheaf_session *t_two(suite *t, const char *name)
{
	sheaf_session *s = t_new(t, name);
	SAY(s, "user", "1", .id = "u1");
	SAY(s, "assistant", "2", .id = "a1");
	return s;
}

int t_open_code(suite *t, const char *session, int mode)
{
	sheaf_key key = t_key(t, session);
	sheaf_session_options o = SHEAF_SESSION_OPTIONS_INIT;
	o.mode = mode;
	sheaf_session *s = NULL;
	int rc = sheaf_session_open(&s, t->store, &key, &o, NULL);
	if (rc == 0)
		t_keep(t, s);
	return rc;
}

int t_undelete(suite *t, const char *session, const sheaf_retention *r, int32_t *existed)
{
	sheaf_key key = t_key(t, session);
	return sheaf_store_undelete(t->store, &key, r, existed, &t->err);
}

void t_revive(suite *t, const char *session)
{
	sheaf_retention r = SHEAF_RETENTION_INIT;
	int32_t existed = 7;
	r.ttl_us = SHEAF_TTL_NEVER;
	OK(t_undelete(t, session, &r, &existed));
	EQ(existed, 0);
}

const sheaf_session_info *t_info(suite *t, sheaf_session *s)
{
	return t_head(t, s)->info;
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

char *t_names(suite *t, const sheaf_list *list)
{
	const char *names[32];
	size_t count = list->count < 32 ? list->count : 32;
	char *text = t_format(t, "%s", "");
	for (size_t i = 0; i < count; i++)
		names[i] = t_format(t, "%.*s", (int)list->items[i]->session.len,
		                    list->items[i]->session.ptr);
	qsort(names, count, sizeof(names[0]), by_text);
	for (size_t i = 0; i < count; i++)
		text = t_format(t, "%s%s%s", text, i ? " " : "", names[i]);
	return text;
}

const char *t_sweep(suite *t, int dry_run, size_t limit)
{
	sheaf_expire_options o = SHEAF_EXPIRE_OPTIONS_INIT;
	sheaf_expired *e = NULL;
	o.app = S(t->app);
	o.dry_run = dry_run;
	o.limit = limit;
	OK(sheaf_store_expire(&e, t->store, &o, &t->err));
	CHECK(e != NULL && e->removed != NULL && e->grace != NULL);
	const char *text = t_format(t, "%s | %s%s", t_names(t, e->removed), t_names(t, e->grace),
	                            e->more ? " +" : "");
	sheaf_expired_free(e);
	return text;
}

const sheaf_list *t_list_expired(suite *t)
{
	sheaf_list_options o = SHEAF_LIST_OPTIONS_INIT;
	o.app = S(t->app);
	o.expired = 1;
	return t_list(t, &o);
}
