/*
 * A request body as lines, one for each block: its role, its type, its ids,
 * names, inputs, texts and signatures, in order.
 *
 * Messages of one role that follow each other are one run of blocks, and a
 * content that is a string is one text. Cache marks, the system text, tools and
 * other members at the top are no part of it. Of a text that holds "[trimmed"
 * only its place counts.
 */
#ifndef SUPPORT_BODY_LINES_H
#define SUPPORT_BODY_LINES_H

#include "base/buf.h"
#include "base/json.h"

/* `skip`: how many elements of the list to pass over, being system text sent as messages. */
void body_lines(buf *out, int32_t format, const json_val *body, size_t skip);

/* Gemini: leaves out answers that stand twice, with the data behind them. */
void body_lines_once(buf *out, const json_val *body);

#endif
