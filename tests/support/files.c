/* Whole files, for tests that hurt them. */
#include "support/files.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void must(int ok, const char *path)
{
	if (ok)
		return;
	perror(path);
	abort();
}

char *file_read(const char *path, size_t *len)
{
	FILE *f = fopen(path, "rb");
	must(f != NULL, path);
	must(fseek(f, 0, SEEK_END) == 0, path);
	long size = ftell(f);
	must(size >= 0 && fseek(f, 0, SEEK_SET) == 0, path);
	char *bytes = malloc((size_t)size + 1);
	must(bytes && fread(bytes, 1, (size_t)size, f) == (size_t)size, path);
	bytes[size] = 0;
	fclose(f);
	*len = (size_t)size;
	return bytes;
}

static void put(const char *path, int flags, const void *bytes, size_t len)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | flags, 0600);
	must(fd >= 0, path);
	must(write(fd, bytes, len) == (ssize_t)len, path);
	must(close(fd) == 0, path);
}

void file_write(const char *path, const void *bytes, size_t len)
{
	put(path, O_TRUNC, bytes, len);
}

void file_append(const char *path, const void *bytes, size_t len)
{
	put(path, O_APPEND, bytes, len);
}

size_t file_count(const char *dir, const char *beginning)
{
	DIR *d = opendir(dir);
	struct dirent *e;
	size_t n = 0;
	while (d && (e = readdir(d)))
		n += strncmp(e->d_name, beginning, strlen(beginning)) == 0;
	if (d)
		closedir(d);
	return n;
}
