/* Whole files, for tests that hurt them. Every call ends the test program when it cannot. */
#ifndef TESTS_FILES_H
#define TESTS_FILES_H

#include <stddef.h>

char *file_read(const char *path, size_t *len); /* caller frees; NUL added */
void file_write(const char *path, const void *bytes, size_t len);
void file_append(const char *path, const void *bytes, size_t len);
size_t file_count(const char *dir, const char *beginning); /* names in dir that begin so */

#endif
