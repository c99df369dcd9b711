/* Finishing and reading back messages, for the tests of both. */
#ifndef MESSAGE_TEST_H
#define MESSAGE_TEST_H

#include "entry_test.h"

#include "entry/message.h"

/* The message's JSON as a stored record would hold it; checked as one. */
static inline sheaf_str finished(sheaf_message *m)
{
	sheaf_str json;
	sheaf_error err = {0};
	int rc = message_finish(m, &json, &err);
	if (rc != 0)
		fail_msg("message_finish: %s", err.message);
	assert_code(0, json_check(json, JSON_OBJECT, &err));
	assert_str(sheaf_message_json(m), json);
	return json;
}

typedef struct reading {
	arena *a;
	json_doc *doc;
	sheaf_message_view *view;
} reading;

static inline reading read_back(sheaf_str json)
{
	reading r = {arena_new(), NULL, NULL};
	assert_code(0, json_parse(&r.doc, json, NULL));
	assert_code(0, message_read(&r.view, json_root(r.doc), json, r.a, NULL));
	return r;
}

static inline void reading_free(reading *r)
{
	json_free(r->doc);
	arena_free(r->a);
}

#endif
