/* The names of what a context or a rendering can have to say. */
#include "base/cleanup.h"
#include "sheaf/context.h"

static const struct {
	int32_t what;
	const char *name;
	const char *text;
} notes[] = {
	{SHEAF_NOTE_INTERRUPTED, "interrupted",
         "a tool call nobody answered: an answer was made up"},
	{SHEAF_NOTE_LATE_ANSWER, "late_answer", "an answer was moved next to its call"},
	{SHEAF_NOTE_ORPHAN_ANSWER, "orphan_answer",
         "an answer without a call became text or was left out"},
	{SHEAF_NOTE_SECOND_ANSWER, "second_answer",
         "a second answer to the same call was left out"},
	{SHEAF_NOTE_EMPTY_TEXT, "empty_text", "an empty text was left out"},
	{SHEAF_NOTE_FOREIGN_THINKING, "foreign_thinking",
         "another model's signed thinking was left out"},
	{SHEAF_NOTE_FIRST_KEPT, "first_kept",
         "the first entry a compaction keeps is not on the path: all is kept"},
	{SHEAF_NOTE_DAMAGE, "damage", "a record cannot be read"},
	{SHEAF_NOTE_OPENING, "opening", "a user's line was put before the first message"},
	{SHEAF_NOTE_FOREIGN_PART, "foreign_part",
         "a part only another format understands was left out"},
	{SHEAF_NOTE_ROLE, "role", "a system or developer message was sent as user text"},
	{SHEAF_NOTE_MOVED, "moved", "an image of a tool result was sent after it"},
	{SHEAF_NOTE_ELIDED, "elided", "an image or the middle of a tool result was left out"},
	{SHEAF_NOTE_RENAMED, "renamed", "a call's id or a tool's name is spelled otherwise"},
	{SHEAF_NOTE_INPUT, "input", "a call's input was wrapped into an object"},
	{SHEAF_NOTE_TOOLS, "tools", "a tool that is called was not among those given: declared"},
	{SHEAF_NOTE_THINKING_OFF, "thinking_off",
         "thinking was not asked for: the last reply has none"},
	{SHEAF_NOTE_PREFILL, "prefill",
         "the last message is the assistant's: a model goes on there, if it can"},
	{SHEAF_NOTE_STAND_IN, "stand_in", "a line of text stands for what the format cannot hold"},
	{SHEAF_NOTE_THINKING_TEXT, "thinking_text", "thinking was sent as text"},
};

const char *sheaf_note_name(int32_t what)
{
	for (size_t i = 0; i < COUNT_OF(notes); i++) {
		if (notes[i].what == what)
			return notes[i].name;
	}
	return "note";
}

const char *sheaf_note_text(int32_t what)
{
	for (size_t i = 0; i < COUNT_OF(notes); i++) {
		if (notes[i].what == what)
			return notes[i].text;
	}
	return "mended";
}
