/* Allocation, through the seam of sheaf/sys/seams.h. Nothing else in src/ calls malloc. */
#ifndef BASE_MEM_H
#define BASE_MEM_H

#include <stddef.h>

void *mem_alloc(size_t bytes);              /* NULL when out of memory; 0 bytes gives a pointer */
void *mem_zalloc(size_t bytes);             /* zeroed */
void *mem_resize(void *ptr, size_t bytes);  /* ptr may be NULL; on failure ptr stays valid */
void mem_free(void *ptr);                   /* NULL is fine */
char *mem_dup(const void *ptr, size_t len); /* copy with a NUL added */

/*
 * Grows an array to hold at least `need` elements, by half again each time.
 * Returns 0, or SHEAF_NOMEM with everything unchanged.
 */
int mem_grow(void **array, size_t *room, size_t need, size_t element);

/* For _cleanup_ on a pointer variable of any type. */
void mem_freep(void *pointer_to_pointer);

#endif
