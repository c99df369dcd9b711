/* Filling errors, and what the table in sheaf/error.h says about each code. */
#include "err.h"

#include <stdarg.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "str.h"

_Static_assert(sizeof(sheaf_error) == 512, "sheaf_error is 512 bytes for ever");

/*
 * The text is made aside and copied after the struct was zeroed, because the
 * arguments may point into the very error that is being replaced.
 */
#define TEXT_ROOM 256

static void make_text(char out[TEXT_ROOM], const char *format, va_list args)
{
	if (vsnprintf(out, TEXT_ROOM, format, args) < 0)
		out[0] = '\0';
	/* One line, whatever a path or a peer put into an argument. */
	for (char *p = out; *p != '\0'; p++) {
		if ((unsigned char)*p < 0x20 || *p == 0x7f)
			*p = ' ';
	}
}

static void fill(sheaf_error *err, int code, int sys_errno, const char *text)
{
	memset(err, 0, sizeof(*err));
	err->code = code;
	err->outcome = SHEAF_FAILED;
	err->sys_errno = sys_errno;
	str_copy_cut(err->message, sizeof(err->message), sheaf_str_of(text));
}

int err_set(sheaf_error *err, int code, const char *format, ...)
{
	if (err == NULL)
		return code;
	char text[TEXT_ROOM];
	va_list args;
	va_start(args, format);
	make_text(text, format, args);
	va_end(args);
	fill(err, code, 0, text);
	return code;
}

/* The untranslated text where the C library has it: messages do not depend on the locale. */
static const char *errno_text(int sys_errno)
{
#if defined(__GLIBC__) && (__GLIBC__ > 2 || __GLIBC_MINOR__ >= 32)
	const char *text = strerrordesc_np(sys_errno);
#else
	const char *text = strerror(sys_errno);
#endif
	return text != NULL ? text : "unknown system error";
}

int err_sys(sheaf_error *err, int code, int sys_errno, const char *format, ...)
{
	/* The system without memory is out of memory like the library without. */
	if (sys_errno == ENOMEM && code == SHEAF_STORAGE)
		code = SHEAF_NOMEM;
	if (err == NULL)
		return code;
	char text[TEXT_ROOM];
	va_list args;
	va_start(args, format);
	make_text(text, format, args);
	va_end(args);

	/* A long text yields to the errno's, which says more than the end of a path. */
	const char *why = errno_text(sys_errno);
	size_t tail = strlen(why) + 2, room = sizeof(err->message);
	char joined[TEXT_ROOM + TEXT_ROOM];
	str_copy_cut(joined, tail < room ? room - tail : 1, sheaf_str_of(text));
	size_t at = strlen(joined);
	(void)snprintf(joined + at, sizeof(joined) - at, "%s%s", at != 0 ? ": " : "", why);
	fill(err, code, sys_errno, joined);
	return code;
}

int err_nomem(sheaf_error *err)
{
	if (err != NULL)
		fill(err, SHEAF_NOMEM, 0, sheaf_code_text(SHEAF_NOMEM));
	return SHEAF_NOMEM;
}

void err_hint(sheaf_error *err, const char *format, ...)
{
	if (err == NULL)
		return;
	char text[TEXT_ROOM];
	va_list args;
	va_start(args, format);
	make_text(text, format, args);
	va_end(args);
	memset(err->hint, 0, sizeof(err->hint));
	str_copy_cut(err->hint, sizeof(err->hint), sheaf_str_of(text));
}

int err_unknown(sheaf_error *err, int code)
{
	if (err != NULL)
		err->outcome = SHEAF_UNKNOWN;
	return code;
}

int err_rename(sheaf_error *err, int code, const char *text)
{
	int32_t outcome = err != NULL ? err->outcome : SHEAF_FAILED;
	(void)err_set(err, code, "%s", text);
	return outcome == SHEAF_UNKNOWN ? err_unknown(err, code) : code;
}

const char *sheaf_code_name(int code)
{
	switch (code) {
	case SHEAF_OK:
		return "OK";
#define NAME_CASE(name, number, exit_code, http, text)                                             \
	case number:                                                                               \
		return #name;
		SHEAF_CODE_MAP(NAME_CASE)
#undef NAME_CASE
	default:
		return "?";
	}
}

const char *sheaf_code_text(int code)
{
	switch (code) {
	case SHEAF_OK:
		return "no error";
#define TEXT_CASE(name, number, exit_code, http, text)                                             \
	case number:                                                                               \
		return text;
		SHEAF_CODE_MAP(TEXT_CASE)
#undef TEXT_CASE
	default:
		return "unknown code";
	}
}

/* For 0 the error is not looked at: success leaves it as it was, perhaps uninitialised. */
int sheaf_code_exit(int code, const sheaf_error *err)
{
	if (code == SHEAF_OK)
		return 0;
	if (err != NULL && err->outcome == SHEAF_UNKNOWN)
		return 6;
	switch (code) {
#define EXIT_CASE(name, number, exit_code, http, text)                                             \
	case number:                                                                               \
		return exit_code;
		SHEAF_CODE_MAP(EXIT_CASE)
#undef EXIT_CASE
	default:
		return 1;
	}
}

int sheaf_code_http(int code)
{
	switch (code) {
	case SHEAF_OK:
		return 200;
#define HTTP_CASE(name, number, exit_code, http, text)                                             \
	case number:                                                                               \
		return http;
		SHEAF_CODE_MAP(HTTP_CASE)
#undef HTTP_CASE
	default:
		return 500;
	}
}

#define TEXT_OF(x) #x
#define VERSION_TEXT(major, minor, patch) TEXT_OF(major) "." TEXT_OF(minor) "." TEXT_OF(patch)

const char *sheaf_version(void)
{
	return VERSION_TEXT(SHEAF_VERSION_MAJOR, SHEAF_VERSION_MINOR, SHEAF_VERSION_PATCH);
}

sheaf_str sheaf_str_of(const char *text)
{
	return (sheaf_str){text, text != NULL ? strlen(text) : 0};
}

int sheaf_str_is(sheaf_str s, const char *text)
{
	if (text == NULL || s.ptr == NULL)
		return text == NULL && s.ptr == NULL;
	size_t len = strlen(text);
	return s.len == len && memcmp(s.ptr, text, len) == 0;
}

const char *sheaf_durability_name(int32_t durability)
{
	switch (durability) {
	case SHEAF_DURABILITY_DEFAULT:
		return "default";
	case SHEAF_DURABILITY_NONE:
		return "none";
	case SHEAF_DURABILITY_PROCESS:
		return "process";
	case SHEAF_DURABILITY_DISK:
		return "disk";
	case SHEAF_DURABILITY_REPLICA:
		return "replica";
	default:
		return "unknown";
	}
}
