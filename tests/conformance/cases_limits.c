/* Limits, each from both sides. */
#include <stdio.h>
#include <stdlib.h>

#include "suite.h"

CASE(limit_record_bytes)
{
	sheaf_session *s = t_new(t, "s");
	SAY(s, "user", "0123456789", .id = "r0", .root = 1);
	size_t around = t_get(t, s, "r0")->body.len - 10;
	size_t room = SHEAF_BODY_BYTES_MAX - around;
	char *text = t_fill(t, 'x', room + 1);
	FAILS(TOO_LARGE, TRY_SAY(s, "user", text, .id = "r1", .root = 1));
	EQ(t_revision(t, s), 1);
	text[room] = 0;
	SAY(s, "user", text, .id = "r1", .root = 1);
	const sheaf_entry *e = t_get(t, s, "r1");
	EQ(e->body.len, SHEAF_BODY_BYTES_MAX);
	CHECK(e->line.len <= SHEAF_RECORD_BYTES_MAX);
	EQ(e->message->parts[0]->text.len, room);
	text[room - 1] = 0;
	SAY(s, "user", text, .id = "r2", .root = 1);
	EQ(t_get(t, s, "r2")->body.len, SHEAF_BODY_BYTES_MAX - 1);
	s = t_restart(t, "s");
	EQ(t_get(t, s, "r1")->body.len, SHEAF_BODY_BYTES_MAX);
}

CASE(limit_batch_records)
{
	sheaf_session *s = t_new(t, "s");
	sheaf_batch *b = t_batch(t);
	const char *body = "{\"thinking_level\":{\"thinking_level\":\"x\"}}";
	for (unsigned i = 0; i < SHEAF_BATCH_RECORDS_MAX; i++)
		OK(sheaf_batch_json(b, S("thinking_level"), S(body), NULL, &t->err));
	EQ(sheaf_batch_count(b), SHEAF_BATCH_RECORDS_MAX);
	OK(t_append_batch(t, s, b, (put){0}));
	EQ(t->out.seq, SHEAF_BATCH_RECORDS_MAX);
	sheaf_batch *more = t_batch(t);
	int rc = 0;
	for (unsigned i = 0; i <= SHEAF_BATCH_RECORDS_MAX && rc == 0; i++)
		rc = sheaf_batch_json(more, S("thinking_level"), S(body), NULL, NULL);
	if (rc == 0)
		rc = t_append_batch(t, s, more, (put){0});
	EQ(rc, SHEAF_LIMIT);
	EQ(t_revision(t, s), SHEAF_BATCH_RECORDS_MAX);
}

CASE(limit_batch_bytes)
{
	sheaf_session *s = t_new(t, "s");
	char *text = t_fill(t, 'x', 13 << 20);
	sheaf_batch *b = t_batch(t);
	int rc = 0;
	for (int i = 0; i < 5 && rc == 0; i++)
		rc = t_batch_say(t, b, "user", text, (put){0});
	if (rc == 0)
		rc = t_append_batch(t, s, b, (put){0});
	EQ(rc, SHEAF_TOO_LARGE); /* 65 MiB */
	EQ(t_revision(t, s), 0);
	text[(12 << 20) + (512 << 10)] = 0;
	sheaf_batch *c = t_batch(t);
	for (int i = 0; i < 5; i++)
		ADD(c, "user", text); /* 62.5 MiB */
	OK(t_append_batch(t, s, c, (put){0}));
	EQ(t_revision(t, s), 5);
}

CASE(limit_id_bytes)
{
	sheaf_session *s = t_new(t, "s");
	char *id = t_fill(t, 'i', SHEAF_ID_BYTES_MAX + 1);
	FAILS(LIMIT, TRY_SAY(s, "user", "x", .id = id));
	id[SHEAF_ID_BYTES_MAX] = 0;
	SAY(s, "user", "x", .id = id);
	CSTR(t->out.id, id);
	LEAF(s, id);
	FAILS(STALE, TRY_SAY(s, "user", "y", .expect = SHEAF_EXPECT_LEAF, .leaf = "x"));
	CSTR(t->err.leaf, id);
	SAY(s, "user", "y", .id = "y1", .parent = id);
	LABEL(s, id, "long");
	BRANCH(s, "b", id);
	sheaf_session *f = t_fork(t, s, id, "f");
	LEAF(f, id);
	s = t_restart(t, "s");
	TEXT(t_get(t, s, "y1")->parent_id, id);
	TEXT(t_get(t, s, "long")->id, id);
}

CASE(limit_key_part_bytes)
{
	sheaf_session *s = NULL;
	char *part = t_fill(t, 'k', SHEAF_KEY_PART_BYTES_MAX + 1);
	sheaf_key key = t_key(t, part);
	FAILS(LIMIT, sheaf_session_open(&s, t->store, &key, NULL, &t->err));
	key = t_key_of(t, "", part, "s");
	FAILS(LIMIT, sheaf_session_open(&s, t->store, &key, NULL, &t->err));
	key = (sheaf_key){S(part), S(""), S("s")};
	FAILS(LIMIT, sheaf_session_open(&s, t->store, &key, NULL, &t->err));
	part[SHEAF_KEY_PART_BYTES_MAX] = 0;
	size_t app = strlen(t->app);
	key = t_key_of(t, part + app, part, part);
	s = t_open_in(t, t->store, &key, SHEAF_OPEN_NEW);
	SAY(s, "user", "x", .id = "u1");
	suite_reopen(t);
	s = t_open_in(t, t->store, &key, SHEAF_OPEN_EXISTING);
	IDS(t_path(t, s, NULL), "u1");
	CSTR(sheaf_session_id(s), part);
}

CASE(limit_key_part_counts_encoded)
{
	char encoded[SHEAF_KEY_PART_ROOM];
	char *part = t_fill(t, '/', 69); /* 66 × 3 = 198, then two plain bytes make 200 */
	part[66] = part[67] = part[68] = 'a';
	sheaf_session *s = NULL;
	sheaf_key key = t_key(t, part);
	FAILS(LIMIT, sheaf_session_open(&s, t->store, &key, NULL, &t->err));
	FAILS(LIMIT, sheaf_key_encode(encoded, S(part), &t->err));
	part[68] = 0;
	OK(sheaf_key_encode(encoded, S(part), &t->err));
	EQ(strlen(encoded), 200);
	s = t_new(t, part);
	SAY(s, "user", "x", .id = "u1");
	s = t_restart(t, part);
	IDS(t_path(t, s, NULL), "u1");
	char decoded[SHEAF_KEY_PART_ROOM];
	size_t len = 0;
	OK(sheaf_key_decode(decoded, &len, S(encoded), &t->err));
	BYTES(((sheaf_str){decoded, len}), part, 68);
}

CASE(limit_name_bytes)
{
	sheaf_session *s = t_new(t, "s");
	char *name = t_fill(t, 'n', SHEAF_NAME_BYTES_MAX + 1);
	FAILS(LIMIT, t_rename(t, s, name));
	sheaf_key key = t_key(t, "named");
	sheaf_session_options o = SHEAF_SESSION_OPTIONS_INIT;
	o.name = S(name);
	sheaf_session *other = NULL;
	FAILS(LIMIT, sheaf_session_open(&other, t->store, &key, &o, &t->err));
	EQ(t_revision(t, s), 0);
	name[SHEAF_NAME_BYTES_MAX] = 0;
	OK(t_rename(t, s, name));
	TEXT(t_head(t, s)->info->name, name);
	o.name = S(name);
	OK(sheaf_session_open(&other, t->store, &key, &o, &t->err));
	t_keep(t, other);
	suite_reopen(t);
	TEXT(t_list_mine(t)->items[0]->name, name);
	TEXT(t_list_mine(t)->items[1]->name, name);
}

CASE(limit_label_bytes)
{
	sheaf_session *s = t_new(t, "s");
	SAY(s, "user", "x", .id = "u1");
	SAY(s, "user", "y", .id = "u2");
	char *label = t_fill(t, 'l', SHEAF_NAME_BYTES_MAX + 1);
	FAILS(LIMIT, t_label(t, s, "u1", label));
	EQ(t_revision(t, s), 2);
	label[SHEAF_NAME_BYTES_MAX] = 0;
	LABEL(s, "u1", label);
	TEXT(t_get(t, s, "u1")->label, label);
	TEXT(t_get(t, s, label)->id, "u1");
	BRANCH(s, "b", label);
	LEAF_OF(s, "b", "u1");
	/* A label may stand for a parent, however long it is. */
	SAY(s, "user", "z", .id = "u3", .parent = label);
	TEXT(t_get(t, s, "u3")->parent_id, "u1");
}

CASE(limit_branches)
{
	sheaf_session *s = t_new(t, "s");
	SAY(s, "user", "x", .id = "u1");
	for (unsigned i = 1; i < SHEAF_BRANCHES_MAX; i++)
		BRANCH(s, t_format(t, "b%u", i), "u1");
	EQ(t_head(t, s)->branch_count, SHEAF_BRANCHES_MAX);
	FAILS(LIMIT, t_branch(t, s, "one too many", "u1"));
	FAILS(LIMIT, TRY_SAY(s, "user", "x", .branch = "one too many", .parent = "u1"));
	EQ(t_revision(t, s), SHEAF_BRANCHES_MAX);
	BRANCH(s, "b7", ""); /* moving one makes none */
	OK(sheaf_session_branch_delete(s, S("b9"), NULL, NULL, &t->err));
	BRANCH(s, "now there is room", "u1");
	EQ(t_head(t, s)->branch_count, SHEAF_BRANCHES_MAX);
	s = t_restart(t, "s");
	EQ(t_head(t, s)->branch_count, SHEAF_BRANCHES_MAX);
	LEAF_OF(s, "b7", "");
	LEAF_OF(s, "now there is room", "u1");
	FAILS(LIMIT, t_branch(t, s, "one too many", "u1"));
}

CASE(limit_branch_name)
{
	sheaf_session *s = t_new(t, "s");
	SAY(s, "user", "x", .id = "u1");
	char *name = t_fill(t, 'b', SHEAF_BRANCH_BYTES_MAX + 1);
	FAILS(LIMIT, t_branch(t, s, name, "u1"));
	FAILS(LIMIT, TRY_SAY(s, "user", "x", .branch = name, .parent = "u1"));
	name[SHEAF_BRANCH_BYTES_MAX] = 0;
	BRANCH(s, name, "u1");
	SAY(s, "user", "x", .id = "x1", .branch = name);
	LEAF_OF(s, name, "x1");
	s = t_restart(t, "s");
	LEAF_OF(s, name, "x1");
	TEXT(t_get(t, s, "x1")->branch, name);
}

/* {"custom":{"custom_type":"x","data":[[…]]}} nested `depth` deep in all. */
static char *nested(suite *t, size_t depth)
{
	size_t arrays = depth - 2;
	char *text = t_alloc(t, 64 + 2 * arrays);
	size_t n = (size_t)sprintf(text, "{\"custom\":{\"custom_type\":\"x\",\"data\":");
	memset(text + n, '[', arrays);
	memset(text + n + arrays, ']', arrays);
	strcpy(text + n + 2 * arrays, "}}");
	return text;
}

CASE(limit_depth)
{
	sheaf_session *s = t_new(t, "s");
	FAILS(LIMIT, TRY_JSON(s, "custom", nested(t, SHEAF_DEPTH_MAX + 1)));
	FAILS(LIMIT, TRY_JSON(s, "custom", nested(t, 100000)));
	EQ(t_revision(t, s), 0);
	char *body = nested(t, SHEAF_DEPTH_MAX);
	JSON(s, "custom", body, .id = "deep");
	BYTES(t_get(t, s, "deep")->body, body + 1, strlen(body) - 2);
	/* The typed call counts the levels around the data too. */
	char *data = t_fill(t, '[', 2 * (SHEAF_DEPTH_MAX - 1));
	memset(data + SHEAF_DEPTH_MAX - 1, ']', SHEAF_DEPTH_MAX - 1);
	FAILS(LIMIT, sheaf_session_append_custom(s, S("x"), S(data), NULL, NULL, NULL, &t->err));
	data = t_fill(t, '[', 2 * (SHEAF_DEPTH_MAX - 2));
	memset(data + SHEAF_DEPTH_MAX - 2, ']', SHEAF_DEPTH_MAX - 2);
	OK(sheaf_session_append_custom(s, S("x"), S(data), NULL, NULL, NULL, &t->err));
	EQ(t_revision(t, s), 2);
}

CASE(limit_depth_of_tool_input)
{
	/* Too deep to be embedded: kept as text, and given back. */
	sheaf_session *s = t_new(t, "s");
	char *input = t_fill(t, '[', 400);
	memset(input + 200, ']', 200);
	OK(t_call(t, s, "c1", "f", input, (put){.id = "a1"}));
	TEXT(t_get(t, s, "a1")->message->parts[0]->input, input);
	CHECK(t_contains(t_get(t, s, "a1")->line, "input_text"));
}

CASE(limit_empty_things)
{
	sheaf_session *s = t_new(t, "s");
	SAY(s, "user", "", .id = "u1");
	TEXT(t_get(t, s, "u1")->message->parts[0]->text, "");
	JSON(s, "message", "{\"message\":{\"role\":\"user\",\"content\":[]}}", .id = "u2");
	EQ(t_get(t, s, "u2")->message->part_count, 0);
	COMPACT(s, "", NULL, .id = "c1");
	TEXT(t_get(t, s, "c1")->text, "");
	OK(sheaf_session_append_custom(s, S(""), S(NULL), NULL, NULL, NULL, &t->err));
	OK(sheaf_session_append_model_change(s, S(""), S(""), NULL, NULL, NULL, &t->err));
	EQ(t_revision(t, s), 5);
}
