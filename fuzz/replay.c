/*
 * Runs a fuzz target without a fuzzer: on every file of the folders given, as
 * it is and changed by chance, the same on every run.
 *
 *     fuzz_stream DIR...
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHANGED_COPIES 200
#define SIZE_MAX_READ ((size_t)1 << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint64_t state;

static size_t below(size_t limit)
{
	state += UINT64_C(0x9e3779b97f4a7c15);
	uint64_t z = state;
	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return (size_t)((z ^ (z >> 31)) % limit);
}

/* Changes a few bytes, or cuts, doubles or moves a piece. Never makes it longer than room. */
static size_t change(uint8_t *data, size_t size, size_t room)
{
	static const char special[] = "\"\\{}[]:,\n\r \xff\x00"
				      "0n";
	size_t at = below(size), n = 1 + below(32);
	if (n > size - at)
		n = size - at;
	switch (below(5)) {
	case 0:
		data[at] = (uint8_t)special[below(sizeof(special) - 1)];
		return size;
	case 1:
		data[at] = (uint8_t)below(256);
		return size;
	case 2:
		memmove(data + at, data + at + n, size - at - n);
		return size - n;
	case 3:
		if (size + n > room)
			return size;
		memmove(data + at + n, data + at, size - at);
		return size + n;
	default:
		memmove(data + below(size - n + 1), data + at, n);
		return size;
	}
}

/* Two bytes that choose, then the file. */
static void play(const char *path)
{
	static uint8_t file[SIZE_MAX_READ], copy[SIZE_MAX_READ];
	FILE *in = fopen(path, "rb");
	if (in == NULL)
		return;
	size_t size = 2 + fread(file + 2, 1, sizeof(file) / 2, in);
	(void)fclose(in);
	for (size_t i = 0; i < CHANGED_COPIES; i++) {
		size_t len = size;
		file[0] = (uint8_t)i;
		file[1] = (uint8_t)below(256);
		memcpy(copy, file, size);
		for (size_t k = i < 4 ? 0 : 1 + below(6); k > 0 && len > 2; k--)
			len = 2 + change(copy + 2, len - 2, sizeof(copy) - 2);
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
	size_t count = 0;
	for (int i = 1; i < argc; i++) {
		DIR *dir = opendir(argv[i]);
		for (struct dirent *e; dir != NULL && (e = readdir(dir)) != NULL;) {
			char path[4096];
			if (e->d_name[0] == '.')
				continue;
			(void)snprintf(path, sizeof(path), "%s/%s", argv[i], e->d_name);
			state = (uint64_t)strlen(e->d_name) * 1000003 + (uint64_t)e->d_name[0];
			play(path);
			count++;
		}
		if (dir != NULL)
			(void)closedir(dir);
	}
	(void)printf("%zu files\n", count);
	return count != 0 ? 0 : 1;
}
