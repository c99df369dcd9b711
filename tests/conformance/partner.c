/* Other stores, of every kind that is to be had, for cases that need two. */
#include "partner.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

sheaf_key partner_key(suite *t, const char *user, const char *session)
{
	if (t->app[0] == 0) {
		struct timespec now;
		clock_gettime(CLOCK_REALTIME, &now);
		t->app = t_format(t, "copy-%d-%lx%lx", (int)getpid(), (unsigned long)now.tv_sec,
		                  (unsigned long)now.tv_nsec);
	}
	return (sheaf_key){S(t->app), S(user), S(session)};
}

static int say_nothing(void *ctx, sheaf_str line)
{
	(void)ctx;
	(void)line;
	return 0;
}

bool partner_open(suite *t, int number, partner *p)
{
	const char *url = NULL;
	*p = (partner){NULL, ""};
	switch (number) {
	case 0:
		url = "memory:";
		break;
	case 1:
		snprintf(p->directory, sizeof(p->directory), "/tmp/sheaf-copy-XXXXXX");
		CHECK(mkdtemp(p->directory) != NULL);
		url = t_format(t, "jsonl:%s", p->directory);
		break;
	case 2:
		url = getenv("SHEAF_TEST_POSTGRES");
		break;
	default:
		url = getenv("SHEAF_TEST_REDIS");
	}
	/* The servers may be the very ones that are under test. */
	if (url == NULL || url[0] == 0 ||
	    (number >= 2 && strncmp(url, t->url, strcspn(url, ":")) == 0))
		return false;
	if (number == 2)
		OK(sheaf_store_migrate(url, 0, say_nothing, NULL, &t->err));
	OK(sheaf_open(&p->store, url, NULL, &t->err));
	return true;
}

void partner_close(suite *t, partner *p)
{
	sheaf_close(p->store);
	if (p->directory[0] != 0)
		CHECK(system(t_format(t, "rm -rf '%s'", p->directory)) == 0);
}
