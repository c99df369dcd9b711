/* The output of a command: colour, the pager, messages and errors. */
#include "print.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/str.h"

#define MESSAGE_MAX ((size_t)1 << 20)

/* ---- The terminal ------------------------------------------------------ */

static bool set_in_env(const char *name)
{
	const char *value = getenv(name);
	return value != NULL && value[0] != '\0';
}

static bool wants_color(const cli *c, int fd)
{
	const char *when = c->values[OPT_COLOR];
	if (when != NULL && strcmp(when, "auto") != 0)
		return strcmp(when, "always") == 0;
	if (set_in_env("NO_COLOR"))
		return false;
	if (set_in_env("FORCE_COLOR") && strcmp(getenv("FORCE_COLOR"), "0") != 0)
		return true;
	return isatty(fd) && set_in_env("TERM") && strcmp(getenv("TERM"), "dumb") != 0;
}

/* $COLUMNS only stands in where there is no terminal to ask. */
static size_t terminal_width(void)
{
	struct winsize size;
	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
		return size.ws_col;
	const char *columns = getenv("COLUMNS");
	long value = columns != NULL ? strtol(columns, NULL, 10) : 0;
	if (value > 0 && value < 10000)
		return (size_t)value;
	return isatty(STDOUT_FILENO) ? 80 : 0;
}

void print_init(cli *c)
{
	c->screen.tty = isatty(STDOUT_FILENO);
	c->screen.color = wants_color(c, STDOUT_FILENO);
	c->screen.color_err = wants_color(c, STDERR_FILENO);
	c->screen.width = terminal_width();
	c->screen.now_us = clock_now_us();
}

void print_on(const screen *s, buf *out, const char *style)
{
	if (s->color && style != NULL)
		buf_format(out, "\033[%sm", style);
}

void print_off(const screen *s, buf *out)
{
	if (s->color)
		buf_lit(out, "\033[m");
}

void print_styled(const screen *s, buf *out, const char *style, sheaf_str safe)
{
	if (safe.len == 0)
		return;
	print_on(s, out, style);
	buf_str(out, safe);
	if (style != NULL)
		print_off(s, out);
}

/* ---- The pager --------------------------------------------------------- */

static struct {
	pid_t pid;  /* 0 = none */
	int screen; /* where stdout went before */
} pager;

/*
 * Ctrl-C is for us and the pager alike, but the pager stays: leaving first
 * would put the shell's prompt under it. A pager that was quit has seen enough.
 */
static void leave_after_pager(int signal_number)
{
	close(STDOUT_FILENO);
	while (waitpid(pager.pid, NULL, 0) < 0 && errno == EINTR) {
	}
	if (signal_number == SIGPIPE)
		_exit(0);
	signal(signal_number, SIG_DFL);
	raise(signal_number);
}

/* Gives the screen back: what comes now stands below what was paged. */
static void end_pager(void)
{
	if (pager.pid == 0)
		return;
	fflush(stdout);
	dup2(pager.screen, STDOUT_FILENO); /* closes the pipe: the pager sees the end */
	close(pager.screen);
	while (waitpid(pager.pid, NULL, 0) < 0 && errno == EINTR) {
	}
	pager.pid = 0;
}

static const char *pager_command(void)
{
	static const char *const names[] = {"SHEAF_PAGER", "PAGER"};
	const char *program = "command -v less >/dev/null 2>&1 && exec less; exec cat";
	for (size_t i = 0; i < COUNT_OF(names); i++) {
		const char *value = getenv(names[i]);
		if (value != NULL) {
			program = value;
			break;
		}
	}
	return program[0] == '\0' || strcmp(program, "cat") == 0 ? NULL : program;
}

static void run_pager(const char *program, const int pipe_ends[2])
{
	dup2(pipe_ends[0], STDIN_FILENO);
	close(pipe_ends[0]);
	close(pipe_ends[1]);
	/* As git: quit if it fits one screen, pass colours, leave the screen alone. */
	setenv("LESS", "FRX", 0);
	setenv("LV", "-c", 0);
	execl("/bin/sh", "sh", "-c", program, (char *)NULL);
	_exit(127);
}

void print_page(cli *c)
{
	static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE};
	const char *program = pager_command();
	if (!c->screen.tty || c->json || given(c, OPT_NO_PAGER) || program == NULL ||
	    pager.pid != 0)
		return;
	int ends[2];
	if (pipe(ends) != 0)
		return;
	fflush(NULL);
	pid_t child = fork();
	if (child == 0)
		run_pager(program, ends);
	close(ends[0]);
	if (child > 0) {
		pager.screen = dup(STDOUT_FILENO);
		pager.pid = child;
		dup2(ends[1], STDOUT_FILENO);
		for (size_t i = 0; i < COUNT_OF(signals); i++)
			signal(signals[i], leave_after_pager);
	}
	close(ends[1]);
}

void print_out(buf *out)
{
	if (out->len != 0)
		fwrite(out->ptr, 1, out->len, stdout);
	/* A failure stays, to be seen at the end. */
	if (out->status == 0)
		buf_reset(out);
	else
		out->len = 0;
}

int print_end(cli *c)
{
	end_pager();
	if (fflush(stdout) == 0 && !ferror(stdout))
		return 0;
	return fail_with(c, SHEAF_STORAGE, NULL, "cannot write the output: %s", strerror(errno));
}

/* ---- Messages ---------------------------------------------------------- */

/* Messages may quote what a person or a file gave: they are made safe as a whole. */
static void put_message(const cli *c, const char *style, const char *lead, const char *text)
{
	_cleanup_(buf_free) buf line = BUF_INIT(MESSAGE_MAX);
	if (c->screen.color_err && style != NULL)
		buf_format(&line, "\033[%sm", style);
	buf_str(&line, sheaf_str_of(lead));
	if (c->screen.color_err && style != NULL)
		buf_lit(&line, "\033[m");
	text_safe_of(&line, text, TEXT_BLOCK);
	buf_char(&line, '\n');
	end_pager();
	fflush(stdout);
	fwrite(line.ptr, 1, line.len, stderr);
}

void say(const cli *c, const char *format, ...)
{
	if (c->quiet)
		return;
	char text[4096];
	va_list args;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	put_message(c, NULL, "", text);
}

static void put_json_error(const sheaf_error *err, const sheaf_str *candidates, size_t count)
{
	_cleanup_(buf_free) buf b = BUF_INIT(MESSAGE_MAX);
	js_open(&b, NULL, '{');
	js_open(&b, "error", '{');
	js_text(&b, "code", sheaf_code_name(err->code));
	js_text(&b, "outcome", err->outcome == SHEAF_UNKNOWN ? "unknown" : "failed");
	js_text(&b, "message", err->message);
	js_text(&b, "hint", err->hint[0] != '\0' ? err->hint : NULL);
	if (err->code == SHEAF_STALE) {
		js_u64(&b, "revision", err->revision);
		js_text(&b, "leaf", err->leaf[0] != '\0' ? err->leaf : NULL);
	}
	if (count != 0) {
		js_open(&b, "candidates", '[');
		for (size_t i = 0; i < count; i++)
			js_str(&b, NULL, candidates[i]);
		js_close(&b, ']');
	}
	js_close(&b, '}');
	js_close(&b, '}');
	buf_char(&b, '\n');
	fflush(stdout);
	fwrite(b.ptr, 1, b.len, stderr);
}

bool store_repairs(const cli *c)
{
	sheaf_store_info info = SHEAF_STORE_INFO_INIT;
	return c->store == NULL || sheaf_store_describe(c->store, &info, NULL) != 0 ||
	       info.repairs != 0;
}

static int report(cli *c, const sheaf_str *candidates, size_t count)
{
	const sheaf_error *err = &c->err;
	/* The library's advice names functions; ours names commands. */
	if (err->code == SHEAF_DAMAGED)
		snprintf(c->err.hint, sizeof(c->err.hint), "`sheaf check SESSION` says where, %s",
		         store_repairs(c) ? "`sheaf repair SESSION` mends what it can"
		                          : "this store cannot repair: restore it from a backup");
	if (err->code == SHEAF_EXPIRED)
		snprintf(c->err.hint, sizeof(c->err.hint), "`sheaf undelete` brings it back");
	if (c->json) {
		put_json_error(err, candidates, count);
		return sheaf_code_exit(err->code, err);
	}
	put_message(c, STYLE_ERROR,
	            "sheaf: ", err->message[0] != '\0' ? err->message : sheaf_code_text(err->code));
	for (size_t i = 0; i < count; i++) {
		char line[256];
		str_copy_cut(line, sizeof(line), candidates[i]);
		put_message(c, NULL, "  ", line);
	}
	/* The token of a queue has nothing to do with revisions. */
	if (err->code == SHEAF_STALE && c->command->run != cmd_queue) {
		char now[256];
		snprintf(now, sizeof(now), "revision %llu, leaf %s",
		         (unsigned long long)err->revision,
		         err->leaf[0] != '\0' ? err->leaf : "before the first entry");
		put_message(c, STYLE_WARN, "now: ", now);
	}
	if (err->hint[0] != '\0')
		put_message(c, STYLE_WARN, "hint: ", err->hint);
	return sheaf_code_exit(err->code, err);
}

int fail(cli *c)
{
	return report(c, NULL, 0);
}

static void set_error(cli *c, int code, const char *hint, const char *format, va_list args)
{
	memset(&c->err, 0, sizeof(c->err));
	c->err.code = code;
	c->err.outcome = SHEAF_FAILED;
	vsnprintf(c->err.message, sizeof(c->err.message), format, args);
	if (hint != NULL)
		snprintf(c->err.hint, sizeof(c->err.hint), "%s", hint);
}

int fail_with(cli *c, int code, const char *hint, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	set_error(c, code, hint, format, args);
	va_end(args);
	return fail(c);
}

int fail_among(cli *c, int code, const char *message, const sheaf_str *candidates, size_t count)
{
	memset(&c->err, 0, sizeof(c->err));
	c->err.code = code;
	snprintf(c->err.message, sizeof(c->err.message), "%s", message);
	return report(c, candidates, count);
}

int usage(cli *c, const char *format, ...)
{
	char hint[64] = "run `sheaf help`";
	if (c->command != NULL)
		snprintf(hint, sizeof(hint), "run `sheaf help %s`", c->command->name);
	va_list args;
	va_start(args, format);
	set_error(c, SHEAF_INVALID, hint, format, args);
	va_end(args);
	return fail(c);
}

int fail_memory(cli *c)
{
	return fail_with(c, SHEAF_NOMEM, NULL, "out of memory");
}

void js_appended(buf *b, const sheaf_appended *done)
{
	js_text(b, "id", done->id);
	js_u64(b, "seq", done->seq);
	js_u64(b, "first_seq", done->first_seq);
	js_bool(b, "existed", done->existed != 0);
	js_text(b, "durability", sheaf_durability_name(done->durability));
}

void js_usage(buf *b, const char *name, const sheaf_usage *usage)
{
	js_open(b, name, '{');
	js_u64(b, "input", usage->input);
	js_u64(b, "cache_read", usage->cache_read);
	js_u64(b, "cache_write_5m", usage->cache_write_5m);
	js_u64(b, "cache_write_1h", usage->cache_write_1h);
	js_u64(b, "output", usage->output);
	js_u64(b, "reasoning", usage->reasoning);
	js_close(b, '}');
}

void js_retention(buf *b, const sheaf_session_info *info)
{
	bool expires = info->ttl_us != 0 && !info->pinned;
	int64_t over_us = info->stored_us + info->ttl_us;
	js_time(b, "stored", info->stored_us);
	js_u64(b, "ttl_us", (uint64_t)info->ttl_us);
	js_u64(b, "grace_us", (uint64_t)info->grace_us);
	js_bool(b, "pinned", info->pinned != 0);
	js_bool(b, "expired", info->expired != SHEAF_EXPIRY_NONE);
	js_time(b, "expires", expires ? over_us : 0);
	js_time(b, "undelete_until", expires ? over_us + info->grace_us : 0);
}
