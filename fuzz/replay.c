/*
 * Runs a fuzz target without a fuzzer: on every file of the folders given, as
 * it is and changed by chance, the same on every run.
 *
 *     fuzz_stream COPIES DIR...
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mutate.h"

#define SIZE_MAX_READ ((size_t)1 << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Some bytes that choose, then the file. */
static void play(const char *path, chance *c, size_t copies)
{
	static uint8_t file[SIZE_MAX_READ], copy[SIZE_MAX_READ];
	const size_t choices = FUZZ_CHOICES;
	FILE *in = fopen(path, "rb");
	if (in == NULL)
		return;
	size_t size = choices + fread(file + choices, 1, sizeof(file) / 2, in);
	(void)fclose(in);
	for (size_t i = 0; i < copies; i++) {
		size_t len = size;
		memcpy(copy, file, size);
		for (size_t k = 0; k < choices; k++)
			copy[k] = k == 0 ? (uint8_t)i : (uint8_t)below(c, 256);
		for (size_t k = i < 4 ? 0 : 1 + below(c, 6); k > 0 && len > choices; k--)
			len = choices + (i % 2 == 0 ? mutate_bytes : mutate_json)(
						c, copy + choices, len - choices,
						sizeof(copy) - choices);
		/* On the heap, where reading past the end is seen. */
		uint8_t *exact = malloc(len);
		if (exact == NULL)
			return;
		memcpy(exact, copy, len);
		(void)LLVMFuzzerTestOneInput(exact, len);
		free(exact);
	}
}

int main(int argc, char **argv)
{
	size_t count = 0, copies = argc > 1 ? (size_t)strtoul(argv[1], NULL, 10) : 0;
	for (int i = 2; i < argc; i++) {
		DIR *dir = opendir(argv[i]);
		for (struct dirent *e; dir != NULL && (e = readdir(dir)) != NULL;) {
			char path[4096];
			if (e->d_name[0] == '.')
				continue;
			(void)snprintf(path, sizeof(path), "%s/%s", argv[i], e->d_name);
			chance c = {(uint64_t)strlen(e->d_name) * 1000003 +
			            (uint64_t)e->d_name[0]};
			play(path, &c, copies);
			count++;
		}
		if (dir != NULL)
			(void)closedir(dir);
	}
	(void)printf("%zu files\n", count);
	return count != 0 ? 0 : 1;
}
