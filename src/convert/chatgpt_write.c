/*
 * Writes a conversation as ChatGPT's data export has it: a tree of one branch.
 *
 * A call is a message to the tool, in a node that has the call's id, and the
 * node behind it is the answer: calls that were made together stand one behind
 * the other.
 */
#include "base/err.h"
#include "base/str.h"
#include "convert/chatgpt.h"
#include "convert/said.h"

#define OUT_BYTES_MAX (SHEAF_RECORD_BYTES_MAX * 4)
#define ROOT_ID "root"

typedef struct writer {
	export *ex;
	const sheaf_context *context;
	buf out;
	buf last; /* the id of the node before, as JSON; its list of children is open */
	buf id;   /* of the node at hand */
	map ids;  /* of calls: each is a node's once */
	int64_t time_us;
	uint64_t count;
} writer;

static void writer_free(writer *w)
{
	buf_free(&w->out);
	buf_free(&w->last);
	buf_free(&w->id);
	map_free(&w->ids);
}

static void seconds_write(buf *out, int64_t us)
{
	us = us > 0 ? us : 0;
	buf_format(out, "%lld.%06lld", (long long)(us / 1000000), (long long)(us % 1000000));
}

/* Begins a node behind the one before it; without an id it is named by its place. */
static void node_begin(writer *w, sheaf_str id, const char *role, sheaf_str name)
{
	buf_reset(&w->id);
	w->count++;
	if (id.len != 0)
		buf_json(&w->id, id);
	else
		buf_format(&w->id, "\"node-%llu\"", (unsigned long long)w->count);
	buf_str(&w->out, buf_view(&w->id));
	buf_lit(&w->out, "]},\n");
	buf_str(&w->out, buf_view(&w->id));
	buf_lit(&w->out, ":{\"id\":");
	buf_str(&w->out, buf_view(&w->id));
	buf_lit(&w->out, ",\"parent\":");
	buf_str(&w->out, buf_view(&w->last));
	buf_lit(&w->out, ",\"message\":{\"id\":");
	buf_str(&w->out, buf_view(&w->id));
	buf_format(&w->out, ",\"author\":{\"role\":\"%s\",\"name\":", role);
	if (name.len != 0)
		buf_json(&w->out, name);
	else
		buf_lit(&w->out, "null");
	buf_lit(&w->out, ",\"metadata\":{}},\"create_time\":");
	seconds_write(&w->out, w->time_us);
	buf_lit(&w->out, ",\"content\":");
}

/* Ends it, and writes it. */
static int node_end(writer *w, const sheaf_message_view *m, sheaf_str to)
{
	buf_lit(&w->out, ",\"status\":\"finished_successfully\",\"weight\":1.0,\"metadata\":{");
	if (m != NULL && m->model.len != 0) {
		buf_lit(&w->out, "\"model_slug\":");
		buf_json(&w->out, m->model);
	}
	buf_lit(&w->out, "},\"recipient\":");
	buf_json(&w->out, to.len != 0 ? to : SHEAF_STR("all"));
	buf_lit(&w->out, "},\"children\":[");
	buf swap = w->last;
	w->last = w->id;
	w->id = swap;
	int rc = buf_status(&w->out, w->ex->err);
	if (rc == 0)
		rc = buf_status(&w->last, w->ex->err);
	if (rc == 0)
		rc = export_write(w->ex, buf_view(&w->out));
	buf_reset(&w->out);
	return rc;
}

/* ---- Messages ------------------------------------------------------------ */

static int answer_write(writer *w, const sheaf_part *call, const sheaf_part *answer)
{
	_cleanup_(buf_free) buf text = BUF_INIT(OUT_BYTES_MAX);
	int rc = said_result_text(w->ex, answer, false, &text);
	if (rc == 0 && answer->is_error == 1)
		rc = export_loss(w->ex, "failure of a tool");
	if (rc != 0)
		return rc;
	node_begin(w, (sheaf_str){NULL, 0}, "tool", call->name);
	buf_lit(&w->out, "{\"content_type\":\"execution_output\",\"text\":");
	buf_json(&w->out, buf_view(&text));
	buf_char(&w->out, '}');
	return node_end(w, NULL, (sheaf_str){NULL, 0});
}

static int call_write(writer *w, size_t i, const sheaf_part *call)
{
	const sheaf_part *answer = said_answer(w->context, i, call->id);
	uint64_t known;
	bool again = map_get(&w->ids, call->id, &known);
	if (!again && map_set(&w->ids, call->id, 1) != 0)
		return err_nomem(w->ex->err);
	node_begin(w, again ? (sheaf_str){NULL, 0} : call->id, "assistant", (sheaf_str){NULL, 0});
	buf_lit(&w->out, "{\"content_type\":\"code\",\"language\":\"json\",\"text\":");
	buf_json(&w->out, call->input);
	buf_char(&w->out, '}');
	int rc = node_end(w, w->context->items[i]->message, call->name);
	return rc == 0 && answer != NULL ? answer_write(w, call, answer) : rc;
}

static int thinking_write(writer *w, const sheaf_message_view *m, const sheaf_part *part)
{
	int rc = part->signature.len != 0 ? export_loss(w->ex, "signature of thinking") : 0;
	if (rc != 0 || part->text.len == 0)
		return rc;
	node_begin(w, (sheaf_str){NULL, 0}, "assistant", (sheaf_str){NULL, 0});
	buf_lit(&w->out, "{\"content_type\":\"thoughts\",\"thoughts\":[{\"content\":");
	buf_json(&w->out, part->text);
	buf_lit(&w->out, "}]}");
	return node_end(w, m, (sheaf_str){NULL, 0});
}

static int words_write(writer *w, sheaf_str words)
{
	node_begin(w, (sheaf_str){NULL, 0}, "user", (sheaf_str){NULL, 0});
	buf_lit(&w->out, "{\"content_type\":\"text\",\"parts\":[");
	buf_json(&w->out, words);
	buf_lit(&w->out, "]}");
	return node_end(w, NULL, (sheaf_str){NULL, 0});
}

/* The texts from part *k on, as one node. */
static int texts_write(writer *w, const sheaf_message_view *m, const char *role, size_t *k)
{
	node_begin(w, (sheaf_str){NULL, 0}, role, (sheaf_str){NULL, 0});
	buf_lit(&w->out, "{\"content_type\":\"text\",\"parts\":[");
	for (size_t n = 0; *k < m->part_count && m->parts[*k]->kind == SHEAF_PART_TEXT; ++*k) {
		if (n++ != 0)
			buf_char(&w->out, ',');
		buf_json(&w->out, m->parts[*k]->text);
	}
	buf_lit(&w->out, "]}");
	--*k;
	return node_end(w, str_is(m->role, "assistant") ? m : NULL, (sheaf_str){NULL, 0});
}

static int message_write(writer *w, size_t i)
{
	const sheaf_item *item = w->context->items[i];
	const sheaf_message_view *m = item->message;
	const char *role = str_is(m->role, "assistant") ? "assistant"
	                   : str_is(m->role, "system")  ? "system"
	                                                : "user";
	int rc = 0;
	if (str_is(m->role, "tool"))
		return 0; /* with the calls */
	if (item->entry != NULL)
		w->time_us = item->entry->time_us;
	_cleanup_(buf_free) buf words = BUF_INIT(OUT_BYTES_MAX);
	rc = said_wording(w->ex, w->context, i, &words);
	if (rc != 0 || words.len != 0)
		return rc == 0 ? words_write(w, buf_view(&words)) : rc;
	for (size_t k = 0; rc == 0 && k < m->part_count; k++) {
		const sheaf_part *part = m->parts[k];
		switch (part->kind) {
		case SHEAF_PART_TEXT:
			rc = texts_write(w, m, role, &k);
			break;
		case SHEAF_PART_THINKING:
			rc = thinking_write(w, m, part);
			break;
		case SHEAF_PART_TOOL_USE:
			rc = call_write(w, i, part);
			break;
		case SHEAF_PART_TOOL_RESULT:
			break;
		case SHEAF_PART_IMAGE:
			rc = export_loss(w->ex, "image");
			break;
		case SHEAF_PART_DOCUMENT:
			rc = export_loss(w->ex, "document");
			break;
		default:
			rc = export_loss(w->ex, "part only its provider understands");
		}
	}
	return rc;
}

/* ---- The conversation ---------------------------------------------------- */

static int begin_write(writer *w)
{
	const sheaf_session_info *of = w->ex->head->info;
	buf_lit(&w->out, "[{\"id\":");
	buf_json(&w->out, sheaf_str_of(w->ex->id));
	buf_lit(&w->out, ",\"conversation_id\":");
	buf_json(&w->out, sheaf_str_of(w->ex->id));
	buf_lit(&w->out, ",\"title\":");
	buf_json(&w->out, of->name.len != 0 ? of->name : SHEAF_STR("Imported conversation"));
	buf_lit(&w->out, ",\"create_time\":");
	seconds_write(&w->out, of->created_us);
	buf_lit(&w->out, ",\"update_time\":");
	seconds_write(&w->out, of->modified_us);
	buf_lit(&w->out, ",\"mapping\":{\n\"" ROOT_ID "\":{\"id\":\"" ROOT_ID
	                 "\",\"parent\":null,\"message\":null,\"children\":[");
	buf_lit(&w->last, "\"" ROOT_ID "\"");
	int rc = buf_status(&w->last, w->ex->err);
	return rc == 0 ? buf_status(&w->out, w->ex->err) : rc;
}

int chatgpt_write(export *ex)
{
	_cleanup_(said_freep) sheaf_context *context = NULL;
	int rc = said_open(ex, &context);
	if (rc != 0)
		return rc;
	_cleanup_(writer_free) writer w = {.ex = ex,
	                                   .context = context,
	                                   .out = BUF_INIT(OUT_BYTES_MAX),
	                                   .last = BUF_INIT(OUT_BYTES_MAX),
	                                   .id = BUF_INIT(OUT_BYTES_MAX),
	                                   .ids = MAP_INIT,
	                                   .time_us = ex->head->info->created_us};
	rc = begin_write(&w);
	for (size_t i = 0; rc == 0 && i < context->count; i++)
		rc = message_write(&w, i);
	buf_lit(&w.out, "]}\n},\"current_node\":");
	buf_str(&w.out, buf_view(&w.last));
	buf_lit(&w.out, "}]\n");
	if (rc == 0)
		rc = buf_status(&w.out, ex->err);
	return rc == 0 ? export_write(ex, buf_view(&w.out)) : rc;
}
