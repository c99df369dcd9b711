/* The formats, in the order in which a file is offered to them. */
#include <stddef.h>

#include "base/str.h"
#include "convert/import_inside.h"

static const converter *const formats[] = {
	&convert_claude_code, &convert_codex,    &convert_gemini_cli, &convert_pi,
	&convert_dive,        &convert_opencode, &convert_chatgpt,    &convert_uimessage,
	&convert_jsonl,       &convert_markdown,
};

const converter *converter_at(size_t i)
{
	return i < COUNT_OF(formats) ? formats[i] : NULL;
}

const converter *converter_named(sheaf_str name)
{
	for (size_t i = 0; i < COUNT_OF(formats); i++) {
		if (str_is(name, formats[i]->is.name))
			return formats[i];
	}
	return NULL;
}

const sheaf_converter *sheaf_converter_at(size_t i)
{
	const converter *c = converter_at(i);
	return c != NULL ? &c->is : NULL;
}
