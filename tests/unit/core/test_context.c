/* Tests of sheaf/context.h: what is on a path, and what a compaction leaves of it. */
#include "kit.h"

static sheaf_context_options options(void)
{
	return (sheaf_context_options)SHEAF_CONTEXT_OPTIONS_INIT;
}

/* ---- Paths --------------------------------------------------------------- */

static void test_before_the_first_entry(void **state)
{
	(void)state;
	kit k;
	kit_open(&k);
	const sheaf_context *c = kit_context(&k, NULL);
	assert_int_equal(c->count, 0);
	assert_int_equal(c->note_count, 0);
	assert_null(c->leaf.ptr);
	assert_null(c->compaction);
	uint64_t empty = c->prefix_hash;
	assert_int_not_equal(empty, 0);
	sheaf_context_free(c);

	kit_script(&k, "u1=u:hi a1=a:hello");
	assert_int_equal(sheaf_session_clear(k.s, &k.err), 0);
	kit_items(&k, NULL, "");
	sheaf_context_options o = options();
	o.leaf = SHEAF_STR("");
	kit_items(&k, &o, "");
	o.leaf = SHEAF_STR("a1");
	c = kit_context(&k, &o);
	assert_int_equal(sheaf_context_prefix(c, 0), empty);
	assert_int_equal(sheaf_context_prefix(c, 3), 0);
	sheaf_context_free(c);
	sheaf_context_free(NULL);
	kit_close(&k);
}

static void test_path_of_a_leaf(void **state)
{
	(void)state;
	kit k;
	kit_open(&k);
	kit_script(&k, "s1=s:be u1=u:hi a1=a:hello u2=u:more");
	kit_items(&k, NULL, "s1 u1 a1 u2");
	kit_branch(&k, "other", "a1");
	k.entry.branch = SHEAF_STR("other");
	kit_script(&k, "u3=u:else");
	kit_items(&k, NULL, "s1 u1 a1 u2");

	sheaf_context_options o = options();
	o.branch = SHEAF_STR("other");
	const sheaf_context *c = kit_context(&k, &o);
	assert_string_equal(kit_spell(&k, c), "s1 u1 a1 u3");
	kit_str(c->leaf, "u3");
	assert_true(c->revision >= 6);
	sheaf_context_free(c);

	(void)kit_label(&k, "u1", "start");
	o.leaf = SHEAF_STR("start");
	kit_items(&k, &o, "s1 u1");
	o.leaf = SHEAF_STR("u2");
	kit_items(&k, &o, "s1 u1 a1 u2");

	sheaf_context *none = NULL;
	o.leaf = SHEAF_STR("nothing");
	assert_int_equal(sheaf_session_context(&none, k.s, &o, &k.err), SHEAF_NOT_FOUND);
	o = options();
	o.branch = SHEAF_STR("nowhere");
	assert_int_equal(sheaf_session_context(&none, k.s, &o, NULL), SHEAF_NOT_FOUND);
	o = options();
	o.without = SHEAF_STR("u1");
	assert_int_equal(sheaf_session_context(&none, k.s, &o, &k.err), SHEAF_NOT_FOUND);
	o.without = SHEAF_STR("nothing");
	assert_int_equal(sheaf_session_context(&none, k.s, &o, &k.err), SHEAF_NOT_FOUND);
	assert_int_equal(sheaf_session_context(NULL, k.s, NULL, &k.err), SHEAF_INVALID);
	assert_null(none);
	kit_close(&k);
}

static void test_only_what_a_model_must_see(void **state)
{
	(void)state;
	kit k;
	kit_open(&k);
	kit_script(&k, "u1=u:hi");
	kit_json(&k, "custom", "x1", "{'custom':{'custom_type':'t','data':{'in_context':true}}}");
	kit_json(&k, "custom", "x2",
	         "{'custom':{'custom_type':'t','in_context':true,'content':'see\\nthis'}}");
	kit_json(&k, "custom", "x3",
	         "{'custom':{'custom_type':'t','in_context':false,'content':'no'}}");
	kit_json(&k, "custom", "x4",
	         "{'custom':{'custom_type':'t','in_context':true,'content':"
	         "[{'type':'text','text':{'content':'one'}},"
	         "{'type':'text','text':{'content':'two'}}]}}");
	kit_json(&k, "todo", "f1", "{'todo':{'items':[]}}");
	kit_json(&k, "my_type", "m1", "{'my_type':{'a':1}}");
	assert_int_equal(sheaf_session_branch_with_summary(k.s, SHEAF_STR(""), SHEAF_STR("m1"),
	                                                   SHEAF_STR("tried it"), NULL, NULL,
	                                                   &k.err),
	                 0);
	kit_json(&k, "branch_summary", "b2", "{'branch_summary':{'summary':'','from_id':'u1'}}");
	kit_script(&k, "a1=a:ok");

	const sheaf_context *c = kit_context(&k, NULL);
	assert_string_equal(kit_spell(&k, c), "u1 X(see\nthis) X(one\ntwo) B(tried it) a1");
	assert_int_equal(c->note_count, 0);
	kit_str(c->items[1]->message->role, SHEAF_ROLE_USER);
	assert_int_equal(c->items[1]->message->part_count, 1);
	assert_int_equal(c->items[2]->message->part_count, 2);
	kit_str(c->items[2]->entry->id, "x4");
	kit_str(c->items[3]->message->role, SHEAF_ROLE_BRANCH_SUMMARY);
	kit_str(c->items[3]->message->parts[0]->text, "tried it");
	assert_null(c->items[3]->message->json.ptr);
	sheaf_context_free(c);
	kit_close(&k);
}

/* The rest of a reply says so: with what it goes on it is one message, answered behind. */
static void test_a_reply_in_several_entries(void **state)
{
	(void)state;
	kit k;
	kit_open(&k);
	kit_script(&k, "u1=u:hi");
	k.entry.extra = SHEAF_STR("{\"continues\":true}");
	kit_script(&k, "a0=a:think"); /* goes on nothing: a user's word is before it */
	kit_script(&k, "a1=a:c1 a2=a:c2");
	k.entry.extra = (sheaf_str){NULL, 0};
	kit_script(&k, "t1=t:r1 t2=t:r2 a3=a:one a4=a:two");

	const sheaf_context *c = kit_context(&k, NULL);
	assert_string_equal(kit_spell(&k, c), "u1 a0 t1 t2 a3 a4");
	const sheaf_message_view *m = c->items[1]->message;
	assert_int_equal(m->part_count, 3);
	kit_str(m->parts[0]->text, "think");
	kit_str(m->parts[1]->id, "1");
	kit_str(m->parts[2]->id, "2");
	kit_str(m->json, "{\"role\":\"assistant\",\"content\":["
	                 "{\"type\":\"text\",\"text\":{\"content\":\"think\"}},"
	                 "{\"type\":\"tool_use\",\"tool_use\":{\"id\":\"1\",\"name\":\"bash\","
	                 "\"input\":{\"cmd\":\"ls\"}}},"
	                 "{\"type\":\"tool_use\",\"tool_use\":{\"id\":\"2\",\"name\":\"bash\","
	                 "\"input\":{\"cmd\":\"ls\"}}}]}");
	assert_int_equal(c->note_count, 0);
	sheaf_context_free(c);

	sheaf_context_options o = options();
	o.leaf = SHEAF_STR("a1");
	c = kit_context(&k, &o);
	assert_string_equal(kit_spell(&k, c), "u1 a0 !1");
	assert_int_equal(c->items[1]->message->part_count, 2);
	sheaf_context_free(c);
	kit_close(&k);
}

static void test_message_bytes_are_exact(void **state)
{
	(void)state;
	kit k;
	kit_open(&k);
	static const char json[] = "{'content' : [ {'text':{'content':'h\\u0069'},'type':'text'}],"
				   "'n':1.50,'role':'user'}";
	char body[256];
	(void)snprintf(body, sizeof(body), "{'message':%s}", json);
	kit_json(&k, "message", "u1", body);
	const sheaf_context *c = kit_context(&k, NULL);
	kit_str(c->items[0]->message->json, json);
	kit_str(c->items[0]->message->parts[0]->text, "hi");
	sheaf_context_free(c);
	kit_close(&k);
}

static void test_prompt_before_reply(void **state)
{
	(void)state;
	kit k;
	sheaf_session *other;
	sheaf_key key = sheaf_key_of("s");
	kit_open(&k);
	kit_script(&k, "u1=u:hi");
	/* A prompt is there for everybody before any reply exists. */
	assert_int_equal(sheaf_session_open(&other, k.store, &key, NULL, &k.err), 0);
	sheaf_session *own = k.s;
	k.s = other;
	kit_items(&k, NULL, "u1");
	k.s = own;
	sheaf_session_close(other);
	kit_close(&k);
}

/* ---- Settings ------------------------------------------------------------ */

static void reply_by(kit *k, const char *id, const char *provider, const char *model)
{
	sheaf_message *m = kit_message('a', SHEAF_STR("ok"));
	if (provider != NULL)
		(void)sheaf_message_provider(m, sheaf_str_of(provider));
	if (model != NULL)
		(void)sheaf_message_model(m, sheaf_str_of(model));
	assert_int_equal(kit_put(k, k->s, sheaf_str_of(id), m), 0);
}

static void check_settings(kit *k, const sheaf_context_options *o, const char *provider,
                           const char *model, const char *level)
{
	const sheaf_context *c = kit_context(k, o);
	kit_str(c->provider, provider);
	kit_str(c->model, model);
	kit_str(c->thinking_level, level);
	sheaf_context_free(c);
}

static void model_change(kit *k, const char *id, const char *provider, const char *model)
{
	sheaf_entry_options entry = k->entry;
	entry.id = sheaf_str_of(id);
	assert_int_equal(sheaf_session_append_model_change(k->s, sheaf_str_of(provider),
	                                                   sheaf_str_of(model), &entry, NULL, NULL,
	                                                   &k->err),
	                 0);
}

static void thinking(kit *k, const char *id, const char *level)
{
	sheaf_entry_options entry = k->entry;
	entry.id = sheaf_str_of(id);
	assert_int_equal(sheaf_session_append_thinking_level(k->s, sheaf_str_of(level), &entry,
	                                                     NULL, NULL, &k->err),
	                 0);
}

static void test_settings_from_the_path(void **state)
{
	(void)state;
	kit k;
	kit_open(&k);
	kit_script(&k, "u1=u:hi");
	check_settings(&k, NULL, NULL, NULL, NULL);
	model_change(&k, "m1", "anthropic", "claude");
	thinking(&k, "l1", "high");
	kit_items(&k, NULL, "u1");
	check_settings(&k, NULL, "anthropic", "claude", "high");
	/* A reply says which model was in fact used. */
	reply_by(&k, "a1", "openai", "gpt");
	check_settings(&k, NULL, "openai", "gpt", "high");
	reply_by(&k, "a2", NULL, NULL);
	check_settings(&k, NULL, "openai", "gpt", "high");
	model_change(&k, "m2", "google", "gemini");
	thinking(&k, "l2", "off");
	check_settings(&k, NULL, "google", "gemini", "off");
	/* Of the path, not of the file. */
	kit_branch(&k, "", "a1");
	check_settings(&k, NULL, "openai", "gpt", "high");
	sheaf_context_options o = options();
	o.leaf = SHEAF_STR("l1");
	check_settings(&k, &o, "anthropic", "claude", "high");
	kit_close(&k);
}

static void test_settings_survive_compaction(void **state)
{
	(void)state;
	kit k;
	kit_open(&k);
	model_change(&k, "m1", "anthropic", "claude");
	thinking(&k, "l1", "high");
	kit_script(&k, "u1=u:a a1=a:b u2=u:c");
	assert_int_equal(kit_compact(&k, "z1", "sum", "u2"), 0);
	kit_items(&k, NULL, "S(sum) u2");
	check_settings(&k, NULL, "anthropic", "claude", "high");
	thinking(&k, "l2", "low");
	check_settings(&k, NULL, "anthropic", "claude", "low");
	assert_int_equal(kit_compact(&k, "z2", "all", ""), 0);
	check_settings(&k, NULL, "anthropic", "claude", "low");
	/* One of another tool says nothing of settings: what is kept decides. */
	kit_json(&k, "compaction", "z3", "{'compaction':{'summary':'x','tokens_before':1}}");
	check_settings(&k, NULL, NULL, NULL, NULL);
	model_change(&k, "m2", "openai", "gpt");
	check_settings(&k, NULL, "openai", "gpt", NULL);
	kit_close(&k);
}

/* ---- Compactions --------------------------------------------------------- */

static void test_compaction_decides(void **state)
{
	(void)state;
	kit k;
	kit_open(&k);
	kit_script(&k, "u1=u:a a1=a:b u2=u:c a2=a:d");
	assert_int_equal(kit_compact(&k, "z1", "first", "u2"), 0);
	kit_script(&k, "u3=u:e");
	const sheaf_context *c = kit_context(&k, NULL);
	assert_string_equal(kit_spell(&k, c), "S(first) u2 a2 u3");
	kit_str(c->compaction->id, "z1");
	kit_str(c->items[0]->entry->id, "z1");
	kit_str(c->items[0]->message->role, SHEAF_ROLE_COMPACTION_SUMMARY);
	assert_int_equal(c->note_count, 0);
	sheaf_context_free(c);

	/* Nothing of it is lost, and other branches know nothing of it. */
	sheaf_context_options o = options();
	o.without_compaction = 1;
	kit_items(&k, &o, "u1 a1 u2 a2 u3");
	o = options();
	o.leaf = SHEAF_STR("a2");
	kit_items(&k, &o, "u1 a1 u2 a2");
	kit_branch(&k, "", "a1");
	kit_items(&k, NULL, "u1 a1");
	kit_close(&k);
}

static void test_second_compaction_keeps(void **state)
{
	(void)state;
	kit k;
	kit_open(&k);
	kit_script(&k, "u1=u:a a1=a:b u2=u:c a2=a:d u3=u:e a3=a:f");
	assert_int_equal(kit_compact(&k, "z1", "one", "u2"), 0);
	kit_script(&k, "u4=u:g a4=a:h");
	/* It may keep what the first one kept; what lies between is not forgotten. */
	assert_int_equal(kit_compact(&k, "z2", "two", "u3"), 0);
	kit_script(&k, "u5=u:i");
	kit_items(&k, NULL, "S(two) u3 a3 u4 a4 u5");

	sheaf_context_options o = options();
	o.without = SHEAF_STR("z2");
	kit_items(&k, &o, "S(one) u2 a2 u3 a3 u4 a4 u5");
	o.without = SHEAF_STR("z1");
	kit_items(&k, &o, "S(two) u3 a3 u4 a4 u5");
	(void)kit_label(&k, "z2", "newest");
	o.without = SHEAF_STR("newest");
	kit_items(&k, &o, "S(one) u2 a2 u3 a3 u4 a4 u5");
	o.without_compaction = 1;
	kit_items(&k, &o, "u1 a1 u2 a2 u3 a3 u4 a4 u5");
	/* Even what an older one had left behind. */
	assert_int_equal(kit_compact(&k, "z3", "three", "a1"), 0);
	kit_items(&k, NULL, "S(three) a1 u2 a2 u3 a3 u4 a4 u5");
	kit_close(&k);
}

static void test_keeps_nothing(void **state)
{
	(void)state;
	kit k;
	kit_open(&k);
	kit_script(&k, "u1=u:a a1=a:b");
	assert_int_equal(kit_compact(&k, "z1", "all of it", ""), 0);
	kit_items(&k, NULL, "S(all of it)");
	kit_script(&k, "u2=u:c");
	kit_items(&k, NULL, "S(all of it) u2");
	kit_json(&k, "compaction", "z2",
	         "{'compaction':{'summary':'','first_kept_entry_id':'u2'}}");
	kit_items(&k, NULL, "u2");
	kit_close(&k);
}

static void test_label_then_fork(void **state)
{
	(void)state;
	kit k;
	sheaf_session *fork, *own;
	sheaf_key key = sheaf_key_of("f");
	kit_open(&k);
	kit_script(&k, "u1=u:a a1=a:b");
	(void)kit_label(&k, "u1", "here");
	kit_script(&k, "u2=u:c a2=a:d");
	kit_items(&k, NULL, "u1 a1 u2 a2");
	assert_int_equal(sheaf_session_fork(&fork, k.s, SHEAF_STR("a2"), &key, NULL, &k.err), 0);
	own = k.s;
	k.s = fork;
	kit_items(&k, NULL, "u1 a1 u2 a2");
	kit_script(&k, "u3=u:e");
	kit_items(&k, NULL, "u1 a1 u2 a2 u3");
	sheaf_session_close(fork);
	assert_int_equal(sheaf_session_open(&k.s, k.store, &key, NULL, &k.err), 0);
	kit_items(&k, NULL, "u1 a1 u2 a2 u3");
	sheaf_session_close(k.s);
	k.s = own;
	kit_items(&k, NULL, "u1 a1 u2 a2");
	kit_close(&k);
}

static void test_first_kept_is_label(void **state)
{
	(void)state;
	kit k;
	sheaf_session *fork, *own;
	sheaf_key key = sheaf_key_of("f");
	char body[256];
	kit_open(&k);
	kit_script(&k, "u1=u:a a1=a:b");
	(void)snprintf(body, sizeof(body),
	               "{'compaction':{'summary':'sum','first_kept_entry_id':'%s'}}",
	               kit_label(&k, "u1", "here"));
	kit_script(&k, "u2=u:c a2=a:d");
	kit_json(&k, "compaction", "z1", body);
	kit_script(&k, "u3=u:e");
	const sheaf_context *c = kit_context(&k, NULL);
	assert_string_equal(kit_spell(&k, c), "S(sum) u2 a2 u3");
	assert_int_equal(c->note_count, 0);
	sheaf_context_free(c);
	assert_int_equal(sheaf_session_fork(&fork, k.s, SHEAF_STR(""), &key, NULL, &k.err), 0);
	own = k.s;
	k.s = fork;
	kit_items(&k, NULL, "S(sum) u2 a2 u3");
	sheaf_session_close(fork);
	k.s = own;
	kit_close(&k);
}

static void test_first_kept_cannot_be_found(void **state)
{
	(void)state;
	kit k;
	kit_open(&k);
	kit_script(&k, "u1=u:a a1=a:b");
	kit_branch(&k, "side", "u1");
	k.entry.branch = SHEAF_STR("side");
	kit_script(&k, "v1=u:aside");
	k.entry.branch = SHEAF_STR("");
	kit_script(&k, "u2=u:c");
	static const char *const ids[] = {"nowhere", "v1", "z1", "later"};
	for (size_t i = 0; i < COUNT_OF(ids); i++) {
		char body[256];
		kit_branch(&k, "", "u2");
		(void)snprintf(body, sizeof(body),
		               "{'compaction':{'summary':'s','first_kept_entry_id':'%s'}}", ids[i]);
		char id[8], after[32];
		(void)snprintf(id, sizeof(id), "z%zu", i == 2 ? 1 : i + 10);
		kit_json(&k, "compaction", id, body);
		(void)snprintf(after, sizeof(after), "%s%zu=u:x", i == 3 ? "later" : "w", i);
		if (i == 3)
			(void)strcpy(after, "later=u:x");
		kit_script(&k, after);
		const sheaf_context *c = kit_context(&k, NULL);
		*strchr(after, '=') = '\0';
		char want[64];
		(void)snprintf(want, sizeof(want), "S(s) u1 a1 u2 %s", after);
		assert_string_equal(kit_spell(&k, c), want);
		assert_int_equal(c->note_count, 1);
		assert_int_equal(c->notes[0]->what, SHEAF_NOTE_FIRST_KEPT);
		kit_str(c->notes[0]->detail, ids[i]);
		kit_str(c->notes[0]->entry_id, id);
		sheaf_context_free(c);
	}
	kit_close(&k);
}

/* What is kept is more than the walk looks through before it asks where the first kept is. */
static void test_much_is_kept(void **state)
{
	(void)state;
	enum {
		MANY = 700
	};
	static const struct {
		size_t kept; /* how many before the compaction are kept */
		bool label;
		bool missing;
	} cases[] = {
		{600, false, false}, {256, false, false}, {257, false, false}, {255, false, false},
		{600, true, false},  {256, true, false},  {257, true, false},  {1, true, false},
		{0, true, false},    {700, true, false},  {700, false, false}, {700, false, true},
	};
	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		kit k;
		char id[32], label[SHEAF_ID_ROOM] = "", body[256];
		kit_open(&k);
		for (size_t n = MANY + 1; n-- > 0;) {
			if (n == cases[i].kept && cases[i].label) {
				/* Before the first entry of main, there is one aside. */
				if (n == MANY) {
					kit_branch(&k, "aside", "");
					k.entry.branch = SHEAF_STR("aside");
					kit_script(&k, "aside=u:x");
					k.entry.branch = SHEAF_STR("");
					(void)strcpy(label, kit_label(&k, "aside", "first"));
				} else {
					(void)snprintf(id, sizeof(id), "e%zu", n + 1);
					(void)strcpy(label, kit_label(&k, id, "first"));
				}
			}
			if (n == 0)
				break;
			(void)snprintf(id, sizeof(id), "e%zu=u:x", n);
			kit_script(&k, id);
		}
		if (!cases[i].label)
			(void)snprintf(label, sizeof(label), "%s%zu", cases[i].missing ? "no" : "e",
			               cases[i].kept);
		(void)snprintf(body, sizeof(body),
		               "{'compaction':{'summary':'s','first_kept_entry_id':'%s'}}", label);
		kit_json(&k, "compaction", "z", body);
		const sheaf_context *c = kit_context(&k, NULL);
		assert_int_equal(c->count, cases[i].kept + 1);
		assert_int_equal(c->note_count, cases[i].missing);
		if (cases[i].kept != 0) {
			(void)snprintf(id, sizeof(id), "e%zu", cases[i].kept);
			kit_str(c->items[1]->entry->id, id);
			kit_str(c->items[c->count - 1]->entry->id, "e1");
		}
		sheaf_context_free(c);
		kit_close(&k);
	}
}

static void test_replacement(void **state)
{
	(void)state;
	kit k;
	kit_open(&k);
	kit_script(&k, "u1=u:a a1=a:b");
	kit_json(&k, "compaction", "z1",
	         "{'compaction':{'summary':'','replacement':["
	         "{'role':'user','content':[{'type':'text','text':{'content':'a]\\\"'}}]} ,"
	         "{'role':'assistant','content':[{'type':'text','text':{'content':'b'}},"
	         "{'type':'tool_use','tool_use':{'id':'9','name':'t','input':{}}}]}]}}");
	kit_script(&k, "t1=t:r9 u2=u:c");
	const sheaf_context *c = kit_context(&k, NULL);
	assert_string_equal(kit_spell(&k, c), "R(a]\") R(b) t1 u2");
	assert_int_equal(c->note_count, 0);
	kit_str(c->items[0]->message->json,
	        "{'role':'user','content':[{'type':'text','text':{'content':'a]\\\"'}}]}");
	kit_str(c->items[1]->entry->id, "z1");
	sheaf_context_free(c);

	/* An empty one is one; with a summary both are given. */
	kit_json(&k, "compaction", "z2", "{'compaction':{'summary':'s','replacement':[]}}");
	kit_items(&k, NULL, "S(s)");
	kit_json(&k, "compaction", "z3",
	         "{'compaction':{'summary':'s','replacement':"
	         "[{'role':'user','content':'plain'}]}}");
	kit_items(&k, NULL, "S(s) R(plain)");
	/* What is no message is missed, not passed over. */
	kit_json(&k, "compaction", "z4",
	         "{'compaction':{'summary':'s','replacement':[7,{'role':'user','content':'x'}]}}");
	sheaf_context *none = NULL;
	assert_int_equal(sheaf_session_context(&none, k.s, NULL, &k.err), SHEAF_DAMAGED);
	sheaf_context_options o = options();
	o.allow_damage = 1;
	c = kit_context(&k, &o);
	assert_string_equal(kit_spell(&k, c), "S(s) R(x)");
	assert_int_equal(kit_notes(c, SHEAF_NOTE_DAMAGE), 1);
	assert_int_equal(c->notes[0]->seq, c->compaction->seq);
	sheaf_context_free(c);
	kit_close(&k);
}

static void test_kept_ids(void **state)
{
	(void)state;
	kit k;
	kit_open(&k);
	kit_script(&k, "u1=u:a a1=a:c1 t1=t:r1 u2=u:c a2=a:d u3=u:e");
	kit_json(&k, "compaction", "z1",
	         "{'compaction':{'summary':'s','kept_ids':['t1','a1','a1','u3']}}");
	kit_script(&k, "u4=u:f");
	const sheaf_context *c = kit_context(&k, NULL);
	assert_string_equal(kit_spell(&k, c), "S(s) a1 t1 u3 u4");
	assert_int_equal(c->note_count, 0);
	sheaf_context_free(c);

	kit_json(&k, "compaction", "z2",
	         "{'compaction':{'summary':'s','kept_ids':['gone','u2','lost',7]}}");
	c = kit_context(&k, NULL);
	assert_string_equal(kit_spell(&k, c), "S(s) u2");
	assert_int_equal(c->note_count, 2);
	assert_int_equal(c->notes[0]->what, SHEAF_NOTE_FIRST_KEPT);
	kit_str(c->notes[0]->detail, "gone");
	kit_str(c->notes[1]->detail, "lost");
	sheaf_context_free(c);

	kit_json(&k, "compaction", "z3", "{'compaction':{'summary':'s','kept_ids':[]}}");
	kit_items(&k, NULL, "S(s)");
	kit_close(&k);
}

/* ---- Agents -------------------------------------------------------------- */

static void test_visibility(void **state)
{
	(void)state;
	kit k;
	static const char *const agents[] = {"", "a", "a.b", "a.b.c", "ab", "b"};
	kit_open(&k);
	for (size_t i = 0; i < COUNT_OF(agents); i++) {
		char word[16];
		k.entry.agent = sheaf_str_of(agents[i]);
		(void)snprintf(word, sizeof(word), "e%zu=u:x", i);
		kit_script(&k, word);
	}
	sheaf_context_options o = options();
	kit_items(&k, &o, "e0 e1 e2 e3 e4 e5");
	static const char *const want[] = {"e0",          "e0 e1", "e0 e1 e2",
	                                   "e0 e1 e2 e3", "e0 e4", "e0 e5"};
	for (size_t i = 0; i < COUNT_OF(agents); i++) {
		o.agent = sheaf_str_of(agents[i]);
		kit_items(&k, &o, want[i]);
	}
	/* What another agent set or summarised is not this one's. */
	k.entry.agent = SHEAF_STR("b");
	model_change(&k, "m1", "openai", "gpt");
	kit_json(&k, "compaction", "z1",
	         "{'compaction':{'summary':'of b','first_kept_entry_id':'e5'}}");
	o.agent = SHEAF_STR("b");
	kit_items(&k, &o, "S(of b) e5");
	check_settings(&k, &o, "openai", "gpt", NULL);
	o.agent = SHEAF_STR("a");
	kit_items(&k, &o, "e0 e1");
	check_settings(&k, &o, NULL, NULL, NULL);
	/* A first kept entry that cannot be seen still says where it begins. */
	k.entry.agent = SHEAF_STR("");
	kit_json(&k, "compaction", "z2",
	         "{'compaction':{'summary':'s','first_kept_entry_id':'e4'}}");
	o.agent = SHEAF_STR("b");
	kit_items(&k, &o, "S(s) e5");
	kit_close(&k);
}

static void test_agent_with_escapes(void **state)
{
	(void)state;
	kit k;
	kit_open(&k);
	kit_json(&k, "message", "u1",
	         "{'message':{'role':'user','content':'x'},'agent':'\\u0061'}");
	kit_json(&k, "message", "u2", "{'message':{'role':'user','content':'x'},'agent':'q\\\"'}");
	sheaf_context_options o = options();
	o.agent = SHEAF_STR("a.b");
	kit_items(&k, &o, "u1");
	o.agent = SHEAF_STR("q\"");
	kit_items(&k, &o, "u2");
	kit_close(&k);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_before_the_first_entry),
		cmocka_unit_test(test_path_of_a_leaf),
		cmocka_unit_test(test_only_what_a_model_must_see),
		cmocka_unit_test(test_a_reply_in_several_entries),
		cmocka_unit_test(test_message_bytes_are_exact),
		cmocka_unit_test(test_prompt_before_reply),
		cmocka_unit_test(test_settings_from_the_path),
		cmocka_unit_test(test_settings_survive_compaction),
		cmocka_unit_test(test_compaction_decides),
		cmocka_unit_test(test_second_compaction_keeps),
		cmocka_unit_test(test_keeps_nothing),
		cmocka_unit_test(test_label_then_fork),
		cmocka_unit_test(test_first_kept_is_label),
		cmocka_unit_test(test_first_kept_cannot_be_found),
		cmocka_unit_test(test_much_is_kept),
		cmocka_unit_test(test_replacement),
		cmocka_unit_test(test_kept_ids),
		cmocka_unit_test(test_visibility),
		cmocka_unit_test(test_agent_with_escapes),
	};
	return cmocka_run_group_tests_name("core/context", tests, NULL, NULL);
}
