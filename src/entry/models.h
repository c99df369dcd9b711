/* The table of models that is built in: the text of data/models-*.json. */
#ifndef ENTRY_MODELS_H
#define ENTRY_MODELS_H

#include "sheaf/usage.h"

/* Made by CMake. */
extern const char models_text[];
extern const size_t models_text_len;

#endif
