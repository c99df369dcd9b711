/* A program outside the tree: proves that an installed Sheaf can be found, linked and run. */
#include <sheaf.h>
#include <stdio.h>

int main(void)
{
	sheaf_store *store = NULL;
	sheaf_error err;
	int code = sheaf_open(&store, "memory:", NULL, &err);
	if (code != 0) {
		fprintf(stderr, "%s: %s\n", sheaf_code_name(code), err.message);
		return 1;
	}
	sheaf_close(store);
	printf("sheaf %s\n", sheaf_version());
	return 0;
}
