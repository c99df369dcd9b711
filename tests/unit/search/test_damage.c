/* Whatever happens to the file of the index, the answers are right: it is made anew, or was whole. */
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kit.h"

static const char *const questions[] = {"alpha", "alpha beta", "\"beta gamma\"", "gam*",
                                        "delta", "unique7",    "name",           NULL};

typedef struct image {
	char path[700];
	char *bytes;
	size_t len;
} image;

static int set_up(void **state)
{
	static kit k;
	kit_begin(&k, "jsonl:");
	for (int i = 0; i < 60; i++) {
		char session[16], id[16], text[200];
		snprintf(session, sizeof(session), "s%d", i % 7);
		snprintf(id, sizeof(id), "e%d", i);
		snprintf(text, sizeof(text), "alpha %s gamma unique%d %s word%d other%d",
		         i % 2 ? "beta" : "delta", i, i % 3 ? "beta gamma" : "", i * 31, i * 57);
		say(&k, session, id, "user", text);
	}
	*state = &k;
	return 0;
}

static int tear_down(void **state)
{
	kit_end(*state);
	return 0;
}

static void find_file(const kit *k, char out[700])
{
	char dir[400];
	snprintf(dir, sizeof(dir), "%s/store/.search", k->dir);
	DIR *d = opendir(dir);
	assert_non_null(d);
	const struct dirent *e;
	out[0] = '\0';
	while ((e = readdir(d)) != NULL)
		if (strlen(e->d_name) > 3 && strcmp(e->d_name + strlen(e->d_name) - 3, ".db") == 0)
			snprintf(out, 700, "%s/%s", dir, e->d_name);
	closedir(d);
	assert_int_not_equal(out[0], '\0');
}

static void take_image(const kit *k, image *im)
{
	struct stat st;
	find_file(k, im->path);
	int fd = open(im->path, O_RDONLY);
	assert_true(fd >= 0 && fstat(fd, &st) == 0);
	im->len = (size_t)st.st_size;
	im->bytes = malloc(im->len);
	assert_int_equal(read(fd, im->bytes, im->len), (ssize_t)im->len);
	close(fd);
}

/* Puts bytes in the place of the index, under its name, as if they had always been there. */
static void put_image(kit *k, const image *im, size_t len)
{
	char command[800];
	sheaf_search_close(k->search);
	k->search = NULL;
	snprintf(command, sizeof(command), "rm -f '%s/store/.search/'*", k->dir);
	assert_int_equal(system(command), 0);
	int fd = open(im->path, O_CREAT | O_WRONLY | O_TRUNC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, im->bytes, len), (ssize_t)len);
	close(fd);
	if (sheaf_search_open(&k->search, k->store, NULL, &k->err) != 0)
		fail_msg("%s", k->err.message);
}

static void test_flipped(void **state)
{
	kit *k = *state;
	image im;
	int rebuilt = 0;
	char *right = answers(k, questions);
	take_image(k, &im);
	/* A few places of each page, and every byte of the header. */
	for (size_t at = 0; at < im.len; at += at < 100 ? 3 : 677) {
		im.bytes[at] ^= (char)(1 << at % 8);
		put_image(k, &im, im.len);
		sheaf_hits *hits = run_query(k, "alpha");
		rebuilt += hits->rebuilt;
		sheaf_hits_free(hits);
		char *said = answers(k, questions);
		if (strcmp(said, right) != 0)
			fail_msg("after a flip at %zu:\n%s\nnot:\n%s", at, said, right);
		free(said);
		im.bytes[at] ^= (char)(1 << at % 8);
	}
	assert_true(rebuilt > 20);
	free(right);
	free(im.bytes);
}

static void test_cut(void **state)
{
	kit *k = *state;
	image im;
	char *right = answers(k, questions);
	take_image(k, &im);
	for (size_t len = 0; len < im.len; len += len < 5000 ? 499 : 4096) {
		put_image(k, &im, len);
		char *said = answers(k, questions);
		assert_string_equal(said, right);
		free(said);
	}
	memset(im.bytes, 'x', im.len);
	put_image(k, &im, im.len);
	char *said = answers(k, questions);
	assert_string_equal(said, right);
	free(said);
	free(right);
	free(im.bytes);
}

/* Pages that are whole, but not where they were written. */
static void test_swapped(void **state)
{
	kit *k = *state;
	image im;
	char page[4096];
	char *right = answers(k, questions);
	take_image(k, &im);
	for (size_t at = 4096; at + 8192 <= im.len; at += 8192) {
		memcpy(page, im.bytes + at, 4096);
		memcpy(im.bytes + at, im.bytes + at + 4096, 4096);
		memcpy(im.bytes + at + 4096, page, 4096);
	}
	put_image(k, &im, im.len);
	sheaf_hits *hits = run_query(k, "alpha");
	assert_int_equal(hits->rebuilt, 1);
	sheaf_hits_free(hits);
	char *said = answers(k, questions);
	assert_string_equal(said, right);
	free(said);
	free(right);
	free(im.bytes);
}

/* Deleted while it is in use, and by whoever cleans up. */
static void test_deleted(void **state)
{
	kit *k = *state;
	char command[400];
	char *right = answers(k, questions);
	snprintf(command, sizeof(command), "rm -rf '%s/store/.search'", k->dir);
	assert_int_equal(system(command), 0);
	char *said = answers(k, questions); /* what is open still works */
	assert_string_equal(said, right);
	free(said);
	say(k, "s0", "late", "user", "latecomer");
	finds(k, "latecomer", "s0/late");
	kit_again(k, false);
	finds(k, "latecomer", "s0/late");
	free(right);
}

/* An index of another version is none. */
static void test_version(void **state)
{
	kit *k = *state;
	char path[700], command[900];
	char *right = answers(k, questions);
	find_file(k, path);
	sheaf_search_close(k->search);
	snprintf(command, sizeof(command), "printf x >'%s/store/.search/index-zzz.db'", k->dir);
	assert_int_equal(system(command), 0);
	assert_int_equal(sheaf_search_open(&k->search, k->store, NULL, &k->err), 0);
	char *said = answers(k, questions);
	assert_string_equal(said, right);
	free(said);
	free(right);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_flipped, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_cut, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_swapped, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_deleted, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_version, set_up, tear_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
