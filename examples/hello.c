/* Keeps a conversation: run it again, and it goes on where it was. */
#include <sheaf.h>
#include <stdio.h>

int main(void)
{
	sheaf_key key = sheaf_key_of("hello");
	sheaf_store *store = NULL;
	sheaf_session *chat = NULL;
	sheaf_context *context = NULL;
	sheaf_error err;

	int rc = sheaf_open(&store, "jsonl:~/.myagent", NULL, &err);
	if (rc == 0)
		rc = sheaf_session_open(&chat, store, &key, NULL, &err);
	if (rc == 0)
		rc = sheaf_session_append_text(chat, "user", SHEAF_STR("Hello!"), NULL, &err);
	if (rc == 0)
		rc = sheaf_session_context(&context, chat, NULL, &err);

	if (rc == 0)
		printf("a model would now see %zu message(s)\n", context->count);
	else
		fprintf(stderr, "hello: %s\n", err.message);
	sheaf_context_free(context);
	sheaf_session_close(chat);
	sheaf_close(store);
	return rc != 0;
}
