/* One entry of a page: who, when, and what was said or done. */
#include "base/str.h"
#include "html_inside.h"

#define SYSTEM_OPEN 400u /* bytes of a system message that need no fold */

/* ---- Pictures and papers ------------------------------------------------------------ */

/* What a browser decodes as a picture and as nothing else. */
static bool safe_picture(sheaf_str type)
{
	return str_is(type, "image/png") || str_is(type, "image/jpeg") ||
	       str_is(type, "image/gif") || str_is(type, "image/webp");
}

static bool is_base64(sheaf_str data)
{
	size_t len = data.len;
	while (len > 0 && data.len - len < 2 && data.ptr[len - 1] == '=')
		len--;
	for (size_t i = 0; i < len; i++) {
		char c = data.ptr[i];
		if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
		      c == '+' || c == '/'))
			return false;
	}
	return len != 0;
}

static void put_named(buf *out, const sheaf_part *part)
{
	buf_lit(out, "<p class=\"media\">");
	buf_str(out, part->kind == SHEAF_PART_IMAGE ? SHEAF_STR("Image") : SHEAF_STR("Document"));
	if (part->media_type.len != 0) {
		buf_lit(out, " · ");
		html_line(out, part->media_type, 200);
	}
	if (str_is(part->source_type, "base64")) {
		buf_lit(out, " · ");
		text_bytes(out, part->data.len / 4 * 3);
	} else if (part->data.len != 0) {
		buf_lit(out, " · <code>");
		html_line(out, part->data, 400);
		buf_lit(out, "</code>");
	}
	buf_lit(out, "</p>");
}

void html_media(buf *out, const sheaf_part *part)
{
	if (part->kind != SHEAF_PART_IMAGE || !str_is(part->source_type, "base64") ||
	    !safe_picture(part->media_type) || !is_base64(part->data)) {
		put_named(out, part);
		return;
	}
	buf_lit(out, "<figure><img loading=\"lazy\" decoding=\"async\" alt=\"Image in the "
	             "conversation\" src=\"data:");
	buf_str(out, part->media_type);
	buf_lit(out, ";base64,");
	buf_str(out, part->data);
	buf_lit(out, "\"></figure>");
}

/* ---- Parts of a message --------------------------------------------------------------- */

static void put_thinking(buf *out, const sheaf_part *part)
{
	if (html_trim(part->text).len == 0) {
		buf_lit(out, "<p class=\"think none\">Thinking, not shown by the provider</p>");
		return;
	}
	buf_lit(out, "<details class=\"think\"><summary><span class=\"name\">Thinking</span> "
	             "<span class=\"brief\">");
	html_line(out, part->text, 120);
	buf_lit(out, "</span></summary>");
	html_markdown(out, part->text, MARKDOWN_TEXT);
	buf_lit(out, "</details>");
}

static void put_unknown(buf *out, const sheaf_part *part)
{
	buf_lit(out, "<details class=\"aside\"><summary><span class=\"name\">");
	if (part->provider.len != 0)
		html_line(out, part->provider, 80);
	else
		buf_lit(out, "Unknown");
	buf_lit(out, " part</span></summary>");
	html_code_begin(out, (sheaf_str){NULL, 0});
	html_json(out, part->raw.len != 0 ? part->raw : part->json);
	html_code_end(out);
	buf_lit(out, "</details>");
}

static void put_part(html_page *p, const sheaf_part *part, int how)
{
	switch (part->kind) {
	case SHEAF_PART_TEXT:
		html_markdown(&p->out, part->text, how);
		break;
	case SHEAF_PART_THINKING:
		put_thinking(&p->out, part);
		break;
	case SHEAF_PART_IMAGE:
	case SHEAF_PART_DOCUMENT:
		html_media(&p->out, part);
		break;
	case SHEAF_PART_TOOL_USE:
		html_call_put(p, part);
		break;
	case SHEAF_PART_TOOL_RESULT:
		html_answer_put(p, part);
		break;
	default:
		put_unknown(&p->out, part);
	}
}

static void put_message(html_page *p, const sheaf_message_view *m)
{
	bool user = str_is(m->role, SHEAF_ROLE_USER);
	if (str_is(m->role, SHEAF_ROLE_BASH))
		html_command_put(p, m);
	for (size_t i = 0; i < m->part_count; i++)
		put_part(p, m->parts[i], user ? MARKDOWN_BREAKS : MARKDOWN_TEXT);
	if (str_is(m->stop_reason, "max_tokens") || str_is(m->stop_reason, "length"))
		buf_lit(&p->out, "<p class=\"none\">Cut off: the reply reached its limit</p>");
}

/* ---- Other entries -------------------------------------------------------------------- */

static void put_folded_text(buf *out, const char *name, sheaf_str brief, sheaf_str text)
{
	buf_format(out, "<details class=\"aside\"%s><summary><span class=\"name\">%s</span> ",
	           text.len <= SYSTEM_OPEN ? " open" : "", name);
	buf_lit(out, "<span class=\"brief\">");
	html_line(out, brief, 120);
	buf_lit(out, "</span></summary>");
	html_markdown(out, text, MARKDOWN_BREAKS);
	buf_lit(out, "</details>");
}

static void put_system(html_page *p, const sheaf_message_view *m)
{
	for (size_t i = 0; i < m->part_count; i++) {
		if (m->parts[i]->kind != SHEAF_PART_TEXT)
			put_part(p, m->parts[i], MARKDOWN_TEXT);
		else
			put_folded_text(&p->out, "Instructions", m->parts[i]->text,
			                m->parts[i]->text);
	}
}

static uint64_t body_number(sheaf_str value, const char *name)
{
	_cleanup_(json_freep) json_doc *doc = NULL;
	uint64_t number = 0;
	sheaf_str bytes = json_member_bytes(value, name);
	if (bytes.ptr != NULL && json_parse(&doc, bytes, NULL) == 0)
		(void)json_u64(json_root(doc), &number);
	return number;
}

static void put_compaction(html_page *p, const sheaf_entry *e)
{
	buf *out = &p->out;
	sheaf_str what = json_member_bytes(e->line, "compaction");
	what = what.ptr != NULL ? what : SHEAF_STR("{}");
	uint64_t before = body_number(what, "tokens_before");
	uint64_t after = body_number(what, "tokens_after"), kept;
	buf_lit(out, "<p class=\"note\">From here on the model sees a summary");
	if (before != 0) {
		buf_lit(out, " of ");
		html_number(out, before);
		buf_lit(out, " tokens");
	}
	if (after != 0) {
		buf_lit(out, " in ");
		html_number(out, after);
	}
	if (e->target_id.len != 0 && map_get(&p->index.ids, e->target_id, &kept)) {
		buf_lit(out, " and what was said from ");
		html_link(out, p->index.nodes[kept].seq);
		buf_lit(out, " on");
	}
	buf_lit(out, ". All of it is still above.</p>");
	buf_lit(out, "<details class=\"aside\"><summary><span class=\"name\">Summary</span> <span "
	             "class=\"brief\">");
	html_line(out, e->text, 120);
	buf_lit(out, "</span></summary>");
	html_markdown(out, e->text, MARKDOWN_TEXT);
	buf_lit(out, "</details>");
}

static void put_setting(buf *out, const sheaf_entry *e)
{
	if (e->kind == SHEAF_KIND_MODEL_CHANGE) {
		buf_lit(out, "Model <b>");
		if (e->provider.len != 0) {
			html_line(out, e->provider, 200);
			buf_char(out, '/');
		}
		html_line(out, e->model, 200);
	} else {
		buf_lit(out, "Thinking <b>");
		html_line(out, e->text, 200);
	}
	buf_lit(out, "</b>");
}

/* What is said to the model in the user's name is text; other data is JSON. */
static void put_custom(html_page *p, const sheaf_entry *e)
{
	buf *out = &p->out;
	_cleanup_(json_freep) json_doc *doc = NULL;
	sheaf_str custom = json_member_bytes(e->line, "custom");
	sheaf_str content = json_member_bytes(custom.ptr != NULL ? custom : SHEAF_STR("{}"),
	                                      "content");
	sheaf_str text = {NULL, 0};
	if (content.ptr != NULL && json_parse(&doc, content, NULL) == 0)
		text = json_string(json_root(doc));
	buf_lit(out, "<details class=\"aside\"><summary><span class=\"name\">");
	html_line(out, e->text.len != 0 ? e->text : e->type, 120);
	buf_lit(out, "</span> <span class=\"brief\">");
	html_line(out, text.ptr != NULL ? text : e->data, 120);
	buf_lit(out, "</span></summary>");
	if (text.ptr != NULL) {
		html_markdown(out, text, MARKDOWN_BREAKS);
	} else {
		html_code_begin(out, (sheaf_str){NULL, 0});
		if (e->data.len != 0) {
			html_json(out, e->data);
		} else {
			buf_lit(out, "{");
			html_text(out, e->body);
			buf_lit(out, "}");
		}
		html_code_end(out);
	}
	buf_lit(out, "</details>");
}

/* ---- The whole ------------------------------------------------------------------------ */

static const char *const look_classes[] = {"user",       "assistant", "answer", "system", "setting",
                                           "compaction", "summary",   "custom", "damaged"};
static const char *const look_titles[] = {"User",        "Assistant", "Tool",
                                          "System",      "Setting",   "Compaction",
                                          "Left behind", "Beside",    "Cannot be read"};

const char *html_look(uint8_t look)
{
	return look_classes[look];
}

static void put_usage(buf *out, const sheaf_usage *u)
{
	uint64_t in = u->input + u->cache_read + u->cache_write_5m + u->cache_write_1h;
	buf_lit(out, "<span class=\"use\" title=\"");
	html_number(out, in);
	buf_lit(out, " tokens in, ");
	html_number(out, u->cache_read);
	buf_lit(out, " of them from the cache; ");
	html_number(out, u->output);
	buf_lit(out, " out\">");
	html_tokens(out, in);
	buf_lit(out, " in · ");
	html_tokens(out, u->output);
	buf_lit(out, " out</span>");
}

static void put_heading(html_page *p, const sheaf_entry *e, const html_node *n)
{
	buf *out = &p->out;
	const sheaf_message_view *m = e->message;
	buf_lit(out, "<header>");
	if (n->look == LOOK_SETTING) {
		buf_lit(out, "<span class=\"line\">");
		put_setting(out, e);
		buf_lit(out, "</span>");
	} else if (m != NULL && str_is(m->role, SHEAF_ROLE_DEVELOPER)) {
		buf_lit(out, "<h2>Developer</h2>");
	} else if (n->goes_on) {
		buf_lit(out, "<h2 class=\"away\">Assistant, going on</h2>");
	} else if (n->look == LOOK_CUSTOM) {
		buf_lit(out, "<h2 class=\"away\">Beside</h2>");
	} else {
		buf_format(out, "<h2>%s</h2>", look_titles[n->look]);
	}
	if (m != NULL && m->model.len != 0 && !n->goes_on) {
		buf_lit(out, "<span class=\"model\">");
		html_line(out, m->model, 200);
		buf_lit(out, "</span>");
	}
	if (e->agent.len != 0) {
		buf_lit(out, "<span class=\"model\">");
		html_line(out, e->agent, 200);
		buf_lit(out, "</span>");
	}
	if (n->label.len != 0) {
		buf_lit(out, "<span class=\"label\">");
		html_line(out, n->label, 200);
		buf_lit(out, "</span>");
	}
	buf_lit(out, "<span class=\"meta\">");
	if (m != NULL && m->usage != NULL)
		put_usage(out, m->usage);
	if (!e->damaged)
		html_time(out, e->time_us);
	html_link(out, e->seq);
	buf_lit(out, "</span></header>");
}

/* Where the conversation goes on in more ways than one. */
void html_ways(html_page *p, uint32_t at)
{
	const html_node *n = &p->index.nodes[at];
	buf *out = &p->out;
	if (n->first == n->last)
		return;
	buf_lit(out,
	        "<nav class=\"ways\" aria-label=\"Ways on from here\"><span>Goes on in several ways"
	        "</span><ul>");
	for (uint32_t child = n->first; child != NONE; child = p->index.nodes[child].next) {
		const html_node *c = &p->index.nodes[child];
		buf_format(out, "<li><a href=\"#e%llu\"%s>", (unsigned long long)c->seq,
		           c->on_path ? " aria-current=\"true\"" : "");
		buf_str(out, c->preview.len != 0 ? c->preview : SHEAF_STR("…")); /* is HTML */
		buf_lit(out, "</a></li>");
	}
	buf_lit(out, "</ul></nav>");
}

static void put_body(html_page *p, const sheaf_entry *e, const html_node *n)
{
	if (e->damaged)
		buf_lit(&p->out, "<p class=\"none\">This record cannot be read</p>");
	else if (n->look == LOOK_SYSTEM)
		put_system(p, e->message);
	else if (e->message != NULL)
		put_message(p, e->message);
	else if (n->look == LOOK_COMPACTION)
		put_compaction(p, e);
	else if (n->look == LOOK_SUMMARY)
		html_markdown(&p->out, e->text, MARKDOWN_TEXT);
	else if (n->look == LOOK_CUSTOM)
		put_custom(p, e);
}

void html_where(html_page *p, uint32_t at, bool first)
{
	const html_node *n = &p->index.nodes[at];
	buf *out = &p->out;
	if (first)
		buf_format(out, " id=\"e%llu\"", (unsigned long long)n->seq);
	buf_format(out, " data-e=\"%llu\" data-p=\"%llu\"", (unsigned long long)n->seq,
	           n->parent != NONE ? (unsigned long long)p->index.nodes[n->parent].seq : 0);
}

void html_entry(html_page *p, const sheaf_entry *e, uint32_t at)
{
	const html_node *n = &p->index.nodes[at];
	buf_format(&p->out, "<article class=\"e %s%s\"", look_classes[n->look],
	           n->goes_on ? " on" : "");
	html_where(p, at, true);
	if (n->id.len != 0) {
		buf_lit(&p->out, " data-id=\"");
		html_attr(&p->out, n->id);
		buf_char(&p->out, '"');
	}
	buf_char(&p->out, '>');
	put_heading(p, e, n);
	put_body(p, e, n);
	html_ways(p, at);
	buf_lit(&p->out, "</article>\n");
}
