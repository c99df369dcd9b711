/* One call for each kind of entry, and the two everyday facts: labels and names. */
#include "base/err.h"
#include "base/str.h"
#include "core/read.h"
#include "core/write.h"
#include "entry/message.h"

/*
 * Makes a draft. A label that stands for the parent may be longer than an id,
 * which a draft has no room for: it is resolved before.
 */
static int draft_make(draft *d, sheaf_session *s, sheaf_str type, sheaf_str body, bool checked,
                      const sheaf_entry_options *entry, sheaf_error *err)
{
	sheaf_str parent = OPTION(entry, parent_id, ((sheaf_str){NULL, 0}));
	if (parent.len <= SHEAF_ID_BYTES_MAX || !entry->has_parent)
		return draft_init(d, type, body, checked, entry, err);
	_cleanup_(head_freep) sheaf_head *head = NULL;
	char id[SHEAF_ID_ROOM];
	uint64_t seq;
	int rc = session_head(s, &head, NULL, err);
	if (rc == 0)
		rc = read_resolve(s, head, parent, id, &seq, err);
	if (rc != 0)
		return rc;
	sheaf_entry_options resolved = SHEAF_ENTRY_OPTIONS_INIT;
	memcpy(&resolved, entry, entry->size < sizeof(resolved) ? entry->size : sizeof(resolved));
	resolved.parent_id = sheaf_str_of(id);
	return draft_init(d, type, body, checked, &resolved, err);
}

/* Appends a draft and frees it. */
static int append_draft(sheaf_session *s, draft *d, const sheaf_entry_options *entry,
                        const sheaf_append_options *how, sheaf_appended *out, sheaf_error *err)
{
	draft *list[1] = {d};
	int rc = 0;
	if (OPTION(entry, partial, 0)) {
		/* A streaming piece: what it grows into will be appended when it is whole. */
		sheaf_appended dropped = SHEAF_APPENDED_INIT;
		str_copy_cut(dropped.id, sizeof(dropped.id), draft_id(d));
		appended_set(out, &dropped);
	} else {
		rc = session_append(s, list, 1, how, false, out, err);
	}
	draft_free(d);
	return rc;
}

/* Appends one record. `checked`: the body is members that were made or checked here. */
static int append_one(sheaf_session *s, sheaf_str type, sheaf_str body, bool checked,
                      const sheaf_entry_options *entry, const sheaf_append_options *how,
                      sheaf_appended *out, sheaf_error *err)
{
	draft d;
	int rc = draft_make(&d, s, type, body, checked, entry, err);
	return rc != 0 ? rc : append_draft(s, &d, entry, how, out, err);
}

/* The same for a body that was built here. */
static int append_body(sheaf_session *s, const char *type, const buf *body,
                       const sheaf_entry_options *entry, const sheaf_append_options *how,
                       sheaf_appended *out, sheaf_error *err)
{
	int rc = buf_status(body, err);
	return rc != 0 ? rc
	               : append_one(s, sheaf_str_of(type), buf_view(body), true, entry, how, out,
	                            err);
}

static int no_session(sheaf_error *err)
{
	return err_set(err, SHEAF_INVALID, "no session was given");
}

int sheaf_session_append_message(sheaf_session *session, const sheaf_message *message,
                                 const sheaf_entry_options *entry, const sheaf_append_options *how,
                                 sheaf_appended *out, sheaf_error *err)
{
	sheaf_str json;
	if (session == NULL)
		return no_session(err);
	if (message == NULL)
		return err_set(err, SHEAF_INVALID, "no message was given");
	int rc = message_finish(message, &json, err);
	if (rc != 0)
		return rc;
	/* The body grows in memory of the last append, which has the right size by now. */
	scratch *sc = scratch_take(session);
	if (sc == NULL)
		return err_nomem(err);
	buf_reset(&sc->body);
	buf_lit(&sc->body, "\"message\":");
	buf_str(&sc->body, json);
	draft d;
	rc = buf_status(&sc->body, err);
	if (rc == 0)
		rc = draft_make(&d, session, SHEAF_STR("message"), buf_view(&sc->body), true, entry,
		                err);
	scratch_give(session, sc);
	return rc != 0 ? rc : append_draft(session, &d, entry, how, out, err);
}

int sheaf_session_append_text(sheaf_session *session, const char *role, sheaf_str text,
                              sheaf_appended *out, sheaf_error *err)
{
	if (role == NULL)
		return err_set(err, SHEAF_INVALID, "a message needs a role");
	sheaf_message *m = sheaf_message_new(role);
	if (m == NULL)
		return err_nomem(err);
	(void)sheaf_message_text(m, text);
	int rc = sheaf_session_append_message(session, m, NULL, NULL, out, err);
	sheaf_message_free(m);
	return rc;
}

int sheaf_session_append_model_change(sheaf_session *session, sheaf_str provider, sheaf_str model,
                                      const sheaf_entry_options *entry,
                                      const sheaf_append_options *how, sheaf_appended *out,
                                      sheaf_error *err)
{
	_cleanup_(buf_free) buf body = BUF_INIT(SHEAF_BODY_BYTES_MAX);
	if (session == NULL)
		return no_session(err);
	int rc = text_check(provider, SHEAF_BODY_BYTES_MAX, "provider", err);
	if (rc == 0)
		rc = text_check(model, SHEAF_BODY_BYTES_MAX, "model", err);
	if (rc != 0)
		return rc;
	buf_lit(&body, "\"model_change\":{\"provider\":");
	buf_json(&body, provider);
	buf_lit(&body, ",\"model_id\":");
	buf_json(&body, model);
	buf_char(&body, '}');
	return append_body(session, "model_change", &body, entry, how, out, err);
}

int sheaf_session_append_thinking_level(sheaf_session *session, sheaf_str level,
                                        const sheaf_entry_options *entry,
                                        const sheaf_append_options *how, sheaf_appended *out,
                                        sheaf_error *err)
{
	_cleanup_(buf_free) buf body = BUF_INIT(SHEAF_BODY_BYTES_MAX);
	if (session == NULL)
		return no_session(err);
	int rc = text_check(level, SHEAF_BODY_BYTES_MAX, "thinking level", err);
	if (rc != 0)
		return rc;
	buf_lit(&body, "\"thinking_level\":{\"thinking_level\":");
	buf_json(&body, level);
	buf_char(&body, '}');
	return append_body(session, "thinking_level", &body, entry, how, out, err);
}

/* Whether JSON would be embeddable if it were written in one line. */
static int check_unfolded(sheaf_str json, sheaf_error *err)
{
	_cleanup_(buf_free) buf line = BUF_INIT(SHEAF_RECORD_BYTES_MAX);
	_cleanup_(json_freep) json_doc *doc = NULL;
	buf_str(&line, json);
	int rc = buf_status(&line, err);
	for (size_t i = 0; i < line.len; i++) {
		if (line.ptr[i] == '\n' || line.ptr[i] == '\r' || line.ptr[i] == '\t')
			line.ptr[i] = ' ';
	}
	if (rc == 0)
		rc = json_check(buf_view(&line), JSON_NONE, err);
	if (rc != 0)
		return rc;
	/* Inside a string they are not allowed, and a blank there is not the same. */
	rc = json_parse(&doc, json, err);
	return rc == SHEAF_FORMAT ? err_set(err, SHEAF_INVALID, "the data is not JSON") : rc;
}

/* JSON that cannot come back from a line byte for byte, for it has line breaks between tokens or
 * blanks around it, is kept as a string. */
static int data_check(sheaf_str data, bool *embed, sheaf_error *err)
{
	*embed = json_check(data, JSON_NONE, NULL) == 0 && data.ptr[0] != ' ' &&
	         data.ptr[data.len - 1] != ' ';
	return *embed ? 0 : check_unfolded(data, err);
}

int sheaf_session_append_custom(sheaf_session *session, sheaf_str custom_type, sheaf_str data,
                                const sheaf_entry_options *entry, const sheaf_append_options *how,
                                sheaf_appended *out, sheaf_error *err)
{
	_cleanup_(buf_free) buf body = BUF_INIT(SHEAF_BODY_BYTES_MAX);
	if (session == NULL)
		return no_session(err);
	int rc = text_check(custom_type, SHEAF_NAME_BYTES_MAX, "custom type", err);
	bool embed = true;
	if (rc == 0 && data.ptr != NULL)
		rc = data_check(data, &embed, err);
	if (rc != 0)
		return rc;
	buf_lit(&body, "\"custom\":{\"custom_type\":");
	buf_json(&body, custom_type);
	if (data.ptr != NULL && embed) {
		buf_lit(&body, ",\"data\":");
		buf_str(&body, data);
	} else if (data.ptr != NULL) {
		buf_lit(&body, ",\"data_text\":");
		buf_json(&body, data);
	}
	buf_char(&body, '}');
	return append_body(session, "custom", &body, entry, how, out, err);
}

int sheaf_session_append_custom_text(sheaf_session *session, sheaf_str custom_type,
                                     sheaf_str content, const sheaf_entry_options *entry,
                                     const sheaf_append_options *how, sheaf_appended *out,
                                     sheaf_error *err)
{
	_cleanup_(buf_free) buf body = BUF_INIT(SHEAF_BODY_BYTES_MAX);
	if (session == NULL)
		return no_session(err);
	int rc = text_check(custom_type, SHEAF_NAME_BYTES_MAX, "custom type", err);
	if (rc == 0)
		rc = text_check(content, SIZE_MAX, "content", err);
	if (rc != 0)
		return rc;
	buf_lit(&body, "\"custom\":{\"custom_type\":");
	buf_json(&body, custom_type);
	buf_lit(&body, ",\"in_context\":true,\"content\":");
	buf_json(&body, content);
	buf_char(&body, '}');
	return append_body(session, "custom", &body, entry, how, out, err);
}

int sheaf_session_append_json(sheaf_session *session, sheaf_str type, sheaf_str body,
                              const sheaf_entry_options *entry, const sheaf_append_options *how,
                              sheaf_appended *out, sheaf_error *err)
{
	if (session == NULL)
		return no_session(err);
	return append_one(session, type, body, false, entry, how, out, err);
}

/* ---- Facts -------------------------------------------------------------- */

int sheaf_session_label(sheaf_session *session, sheaf_str target, sheaf_str label,
                        const sheaf_append_options *how, sheaf_appended *out, sheaf_error *err)
{
	_cleanup_(head_freep) sheaf_head *head = NULL;
	_cleanup_(buf_free) buf body = BUF_INIT(SHEAF_BODY_BYTES_MAX);
	char id[SHEAF_ID_ROOM];
	uint64_t seq;
	if (session == NULL)
		return no_session(err);
	int rc = text_check(label, SHEAF_NAME_BYTES_MAX, "label", err);
	if (rc == 0)
		rc = session_head(session, &head, NULL, err);
	if (rc == 0)
		rc = read_resolve(session, head, target, id, &seq, err);
	if (rc != 0)
		return rc;
	body_label(&body, sheaf_str_of(id), label);
	rc = buf_status(&body, err);
	draft d, *list[1] = {&d};
	if (rc == 0)
		rc = draft_init(&d, SHEAF_STR("label"), buf_view(&body), true, NULL, err);
	if (rc != 0)
		return rc;
	d.parent_seq = seq;
	rc = session_append(session, list, 1, how, false, out, err);
	draft_free(&d);
	return rc;
}

int sheaf_session_rename(sheaf_session *session, sheaf_str name, sheaf_str metadata,
                         const sheaf_append_options *how, sheaf_appended *out, sheaf_error *err)
{
	_cleanup_(buf_free) buf body = BUF_INIT(SHEAF_BODY_BYTES_MAX);
	if (session == NULL)
		return no_session(err);
	int rc = text_check(name, SHEAF_NAME_BYTES_MAX, "name", err);
	if (rc == 0 && metadata.ptr != NULL)
		rc = json_check(metadata, JSON_OBJECT, err);
	if (rc != 0)
		return rc;
	/* With metadata a name that is not given stays; alone it is taken away. */
	if (name.ptr == NULL && metadata.ptr == NULL)
		name = (sheaf_str){"", 0};
	body_session_info(&body, name, metadata);
	return append_body(session, "session_info", &body, NULL, how, out, err);
}
