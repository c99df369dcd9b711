/* Who made a message, as far as it decides what may go back to whom. */
#ifndef ENTRY_MAKER_H
#define ENTRY_MAKER_H

#include <stdbool.h>

#include "sheaf/message.h"

/*
 * Whether two names mean one model: the same name, or the same but for a date
 * or "latest" at the end (a provider asked for "m-4-5" answers as
 * "m-4-5-20250929").
 */
bool model_same(sheaf_str a, sheaf_str b);

/* Whether a message may be this provider's; one that names none may be anybody's. */
bool made_by_provider(const sheaf_message_view *message, sheaf_str provider);

/* The same, and this model's. An empty provider or model stands for any. */
bool made_by(const sheaf_message_view *message, sheaf_str provider, sheaf_str model);

#endif
