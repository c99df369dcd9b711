/* Changing inputs by chance, so that most of them stay nearly what they were. */
#ifndef FUZZ_MUTATE_H
#define FUZZ_MUTATE_H

#include <stddef.h>
#include <stdint.h>

/* Random numbers that are the same on every run. */
typedef struct chance {
	uint64_t state;
} chance;

size_t below(chance *c, size_t limit); /* limit is not 0 */

/* Changes a few bytes, or cuts, doubles or moves a piece. Both return the new size, which is not
 * more than `room`; `size` is not 0. */
size_t mutate_bytes(chance *c, uint8_t *data, size_t size, size_t room);

/* The same to a value of JSON text: it becomes another one of the text, or one that hurts. Or to a
 * line: it goes, moves, comes twice. */
size_t mutate_json(chance *c, uint8_t *data, size_t size, size_t room);

#endif
