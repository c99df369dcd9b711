/* sheaf append: adds a message, any record, or a batch of records to a session. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/str.h"
#include "find.h"
#include "input.h"
#include "opt.h"
#include "print.h"

#define LINE_SLACK ((size_t)1 << 20) /* blanks and envelopes around a batch's records */

typedef struct request {
	sheaf_session *session;
	sheaf_entry_options entry;
	sheaf_append_options how;
	char parent[SHEAF_ID_ROOM];
	char leaf[SHEAF_ID_ROOM];
	buf input; /* stdin, or the words */
	sheaf_appended done;
} request;

static void request_done(request *r)
{
	sheaf_session_close(r->session);
	buf_free(&r->input);
}

/* ---- What to append ---------------------------------------------------- */

/* The words, -m, or stdin. */
static int read_text(cli *c, request *r)
{
	bool words = c->word_count > 1 && !(c->word_count == 2 && strcmp(c->words[1], "-") == 0);
	if (words && given(c, OPT_MESSAGE))
		return usage(c, "the text is given twice: as arguments and with -m");
	if (given(c, OPT_MESSAGE)) {
		buf_str(&r->input, opt_str(c, OPT_MESSAGE));
	} else {
		int rc = input_words(c, 1, &r->input);
		if (rc != 0)
			return rc;
	}
	if (r->input.len == 0)
		return usage(c, "the text to append is empty");
	return buf_status(&r->input, &c->err) != 0 ? fail(c) : 0;
}

/* ---- How --------------------------------------------------------------- */

static int read_expectation(cli *c, request *r)
{
	if (given(c, OPT_EXPECT_LEAF) && given(c, OPT_EXPECT_REVISION))
		return usage(c, "expect a leaf or a revision, not both");
	if (given(c, OPT_EXPECT_REVISION)) {
		r->how.expect = SHEAF_EXPECT_REVISION;
		return opt_u64(c, OPT_EXPECT_REVISION, &r->how.revision);
	}
	if (!given(c, OPT_EXPECT_LEAF))
		return 0;
	r->how.expect = SHEAF_EXPECT_LEAF;
	int rc = 0;
	if (c->values[OPT_EXPECT_LEAF][0] != '\0')
		rc = find_entry(c, r->session, c->values[OPT_EXPECT_LEAF], r->leaf);
	r->how.leaf = sheaf_str_of(r->leaf);
	return rc;
}

static int read_options(cli *c, request *r)
{
	int rc;
	r->entry.id = opt_str(c, OPT_ID);
	r->entry.branch = opt_str(c, OPT_BRANCH);
	r->entry.turn = opt_str(c, OPT_TURN);
	r->entry.agent = opt_str(c, OPT_AGENT);
	if ((rc = opt_durability(c, &r->how.durability)) != 0)
		return rc;
	if (given(c, OPT_PARENT) && given(c, OPT_ROOT))
		return usage(c, "give a parent or --root, not both");
	if (given(c, OPT_PARENT)) {
		r->entry.has_parent = 1;
		if ((rc = find_entry(c, r->session, c->values[OPT_PARENT], r->parent)) != 0)
			return rc;
		r->entry.parent_id = sheaf_str_of(r->parent);
	}
	/* With a parent a branch is made where it is not there yet. */
	if (!given(c, OPT_PARENT) && !given(c, OPT_ROOT) && (rc = find_branch(c, r->session)) != 0)
		return rc;
	if (given(c, OPT_ROOT)) {
		r->entry.has_parent = 1;
		r->entry.parent_id = (sheaf_str){"", 0};
	}
	return read_expectation(c, r);
}

static int open_target(cli *c, request *r)
{
	if (!given(c, OPT_CREATE))
		return open_for_writing(c, c->words[0], &r->session);
	int rc = open_store(c);
	if (rc != 0)
		return rc;
	sheaf_key key = {c->app, c->user, sheaf_str_of(c->words[0])};
	char directory[PATH_MAX];
	sheaf_session_options options = SHEAF_SESSION_OPTIONS_INIT;
	options.mode = SHEAF_OPEN_EITHER;
	options.cwd = working_directory(directory);
	if (sheaf_session_open(&r->session, c->store, &key, &options, &c->err) != 0)
		return fail(c);
	return 0;
}

/* ---- One record -------------------------------------------------------- */

static void message_freep(sheaf_message **message)
{
	sheaf_message_free(*message);
}

/* A write that may have happened is repeated with the id it had. */
static int fail_append(cli *c, const request *r)
{
	if (c->err.outcome == SHEAF_UNKNOWN && r->done.id[0] != '\0')
		snprintf(c->err.hint, sizeof(c->err.hint), "repeat it with --id %.100s",
		         r->done.id);
	return fail(c);
}

static int append_text(cli *c, request *r)
{
	const char *role = given(c, OPT_ROLE) ? c->values[OPT_ROLE] : SHEAF_ROLE_USER;
	_cleanup_(message_freep) sheaf_message *message = sheaf_message_new(role);
	if (message == NULL)
		return fail_memory(c);
	sheaf_message_mend_text(message, given(c, OPT_MEND));
	/* A failure is kept in the message and told by the append. */
	(void)sheaf_message_text(message, buf_view(&r->input));
	if (given(c, OPT_PROVIDER))
		(void)sheaf_message_provider(message, opt_str(c, OPT_PROVIDER));
	if (given(c, OPT_MODEL))
		(void)sheaf_message_model(message, opt_str(c, OPT_MODEL));
	if (sheaf_session_append_message(r->session, message, &r->entry, &r->how, &r->done,
	                                 &c->err) != 0)
		return fail_append(c, r);
	size_t mended = sheaf_message_mended(message);
	if (mended != 0)
		say(c, "note: %zu broken %s became U+FFFD", mended,
		    mended == 1 ? "character" : "characters");
	return 0;
}

/* The text is the summary of all that comes before an entry. */
static int append_compaction(cli *c, request *r)
{
	char kept[SHEAF_ID_ROOM];
	int rc = find_entry(c, r->session, c->values[OPT_COMPACT], kept);
	if (rc != 0)
		return rc;
	if (sheaf_session_append_compaction(r->session, buf_view(&r->input), sheaf_str_of(kept), 0,
	                                    &r->entry, &r->how, &r->done, &c->err) != 0)
		return fail_append(c, r);
	return 0;
}

static sheaf_str trimmed(const buf *b)
{
	sheaf_str s = buf_view(b);
	while (s.len > 0 && memchr(" \t\r\n", s.ptr[s.len - 1], 4) != NULL)
		s.len--;
	return s;
}

static int append_message_json(cli *c, request *r)
{
	_cleanup_(message_freep) sheaf_message *message = NULL;
	if (sheaf_message_from_json(&message, trimmed(&r->input), &c->err) != 0)
		return fail(c);
	if (sheaf_session_append_message(r->session, message, &r->entry, &r->how, &r->done,
	                                 &c->err) != 0)
		return fail_append(c, r);
	return 0;
}

static int append_body(cli *c, request *r)
{
	if (sheaf_session_append_json(r->session, opt_str(c, OPT_JSON_BODY), trimmed(&r->input),
	                              &r->entry, &r->how, &r->done, &c->err) != 0)
		return fail_append(c, r);
	return 0;
}

static int put_one(cli *c, const request *r)
{
	_cleanup_(buf_free) buf out = BUF_INIT(SIZE_MAX);
	if (c->json) {
		js_open(&out, NULL, '{');
		js_appended(&out, &r->done);
		js_close(&out, '}');
	} else {
		text_safe(&out, sheaf_str_of(r->done.id), TEXT_ID);
	}
	buf_char(&out, '\n');
	print_out(&out);
	return 0;
}

/* ---- A batch ----------------------------------------------------------- */

static void batch_freep(sheaf_batch **batch)
{
	sheaf_batch_free(*batch);
}

/* The members of a line that say what the record is and where it goes; the rest is its body. */
static bool is_envelope(sheaf_str key)
{
	return str_is(key, "type") || str_is(key, "id") || str_is(key, "parent_id") ||
	       str_is(key, "branch") || str_is(key, "timestamp");
}

static void make_body(buf *out, sheaf_str line)
{
	sheaf_str key, value;
	size_t at = 0;
	buf_char(out, '{');
	while (json_member_next(line, &at, &key, &value)) {
		if (is_envelope(key))
			continue;
		if (out->len > 1)
			buf_char(out, ',');
		buf_char(out, '"');
		buf_str(out, key);
		buf_lit(out, "\":");
		buf_str(out, value);
	}
	buf_char(out, '}');
}

static int add_line(cli *c, const request *r, sheaf_batch *batch, sheaf_str line, size_t number)
{
	_cleanup_(json_freep) json_doc *doc = NULL;
	if (json_parse(&doc, line, &c->err) != 0)
		return fail_with(c, SHEAF_INVALID, NULL, "line %zu is not JSON", number);
	const json_val *root = json_root(doc);
	sheaf_str type = json_string(json_get(root, "type"));
	if (type.ptr == NULL)
		return fail_with(c, SHEAF_INVALID, "a line is {\"type\":…,\"id\":…, and the body}",
		                 "line %zu has no type", number);
	sheaf_entry_options entry = r->entry;
	const json_val *parent = json_get(root, "parent_id"), *time = json_get(root, "timestamp");
	entry.id = json_string(json_get(root, "id"));
	if (json_get(root, "branch") != NULL)
		entry.branch = json_string(json_get(root, "branch"));
	/* --parent and --root are for the first; the others follow it. */
	entry.has_parent = parent != NULL || (r->entry.has_parent && sheaf_batch_count(batch) == 0);
	if (parent != NULL)
		entry.parent_id = json_string(parent);
	if (time != NULL && !clock_parse(json_string(time), &entry.time_us))
		return fail_with(c, SHEAF_INVALID, NULL, "line %zu has a timestamp that is none",
		                 number);
	_cleanup_(buf_free) buf body = BUF_INIT(SHEAF_BATCH_BYTES_MAX);
	make_body(&body, line);
	if (buf_status(&body, &c->err) != 0 ||
	    sheaf_batch_json(batch, type, buf_view(&body), &entry, &c->err) != 0) {
		sheaf_error why = c->err;
		snprintf(c->err.message, sizeof(c->err.message), "line %zu: %.180s", number,
		         why.message);
		return fail(c);
	}
	return 0;
}

static int put_batch(cli *c, const request *r, const sheaf_batch *batch)
{
	_cleanup_(buf_free) buf out = BUF_INIT(SIZE_MAX);
	if (c->json) {
		js_open(&out, NULL, '{');
		js_appended(&out, &r->done);
		js_open(&out, "ids", '[');
	}
	for (size_t i = 0; i < sheaf_batch_count(batch); i++) {
		sheaf_str id = sheaf_str_of(sheaf_batch_id(batch, i));
		if (c->json) {
			js_str(&out, NULL, id);
		} else {
			text_safe(&out, id, TEXT_ID);
			buf_char(&out, '\n');
		}
	}
	if (c->json) {
		js_close(&out, ']');
		js_close(&out, '}');
		buf_char(&out, '\n');
	}
	print_out(&out);
	return out.status != 0 ? fail_memory(c) : 0;
}

static int append_batch(cli *c, request *r)
{
	_cleanup_(batch_freep) sheaf_batch *batch = sheaf_batch_new();
	if (batch == NULL)
		return fail_memory(c);
	sheaf_str all = buf_view(&r->input);
	size_t number = 1;
	int rc;
	for (size_t at = 0; at < all.len; number++) {
		const char *end = memchr(all.ptr + at, '\n', all.len - at);
		size_t len = end != NULL ? (size_t)(end - all.ptr) - at : all.len - at;
		sheaf_str line = str_make(all.ptr + at, len);
		while (line.len > 0 &&
		       (line.ptr[line.len - 1] == '\r' || line.ptr[line.len - 1] == ' '))
			line.len--;
		if (line.len > 0 && (rc = add_line(c, r, batch, line, number)) != 0)
			return rc;
		at += len + 1;
	}
	if (sheaf_batch_count(batch) == 0)
		return usage(c, "the batch is empty");
	if (sheaf_session_append_batch(r->session, batch, &r->how, &r->done, &c->err) != 0)
		return fail(c);
	return put_batch(c, r, batch);
}

/* Everything is read before the session is opened, or made: a mistake leaves nothing behind. */
static int read_input(cli *c, request *r)
{
	int ways = given(c, OPT_BATCH) + given(c, OPT_JSON_BODY) + given(c, OPT_MESSAGE_JSON);
	if (ways > 1)
		return usage(c, "only one of --batch, --json-body and --message-json");
	if (given(c, OPT_COMPACT) && (ways != 0 || given(c, OPT_ROLE)))
		return usage(c, "--compact takes the text of a summary, without a role");
	if (ways == 0)
		return read_text(c, r);
	if (c->word_count > 1 || given(c, OPT_MESSAGE) || given(c, OPT_ROLE))
		return usage(c, "with JSON from stdin there is no text or role to give");
	if (given(c, OPT_BATCH)) {
		if (given(c, OPT_ID))
			return usage(c, "in a batch every line has its own id");
		r->input.max = SHEAF_BATCH_BYTES_MAX + LINE_SLACK;
	}
	return input_all(c, &r->input);
}

int cmd_append(cli *c)
{
	_cleanup_(request_done) request r = {
		.entry = SHEAF_ENTRY_OPTIONS_INIT,
		.how = SHEAF_APPEND_OPTIONS_INIT,
		.input = BUF_INIT(SHEAF_RECORD_BYTES_MAX),
		.done = SHEAF_APPENDED_INIT,
	};
	int rc;
	if ((rc = read_input(c, &r)) != 0 || (rc = open_target(c, &r)) != 0 ||
	    (rc = read_options(c, &r)) != 0)
		return rc;
	if (given(c, OPT_BATCH))
		return append_batch(c, &r);
	if (given(c, OPT_MESSAGE_JSON))
		rc = append_message_json(c, &r);
	else if (given(c, OPT_JSON_BODY))
		rc = append_body(c, &r);
	else if (given(c, OPT_COMPACT))
		rc = append_compaction(c, &r);
	else
		rc = append_text(c, &r);
	return rc != 0 ? rc : put_one(c, &r);
}
