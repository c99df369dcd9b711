/* The table of models: reading one, and finding the row that holds. */
#include "entry/models.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/io.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "entry/members.h"

#define MODELS_BYTES_MAX ((size_t)4 << 20)
#define BUILT_IN_MAX 256u

/* Rows and the text their strings point into. */
struct sheaf_models {
	sheaf_model_row *rows;
	size_t count;
	size_t room;
	bool fixed; /* `rows` cannot grow */
	char *text;
};

/* ---- Reading ------------------------------------------------------------ */

/* The inside of a string without escapes; names and numbers need none. */
static bool plain(sheaf_str value, sheaf_str *out)
{
	if (value.len < 2 || value.ptr[0] != '"' || memchr(value.ptr, '\\', value.len) != NULL)
		return false;
	*out = str_make(value.ptr + 1, value.len - 2);
	return true;
}

static bool whole(sheaf_str digits, uint64_t *out)
{
	uint64_t value = 0;
	for (size_t i = 0; i < digits.len; i++) {
		unsigned digit = (unsigned char)digits.ptr[i] - (unsigned)'0';
		if (digit > 9 || value > (UINT64_MAX - digit) / 10)
			return false;
		value = value * 10 + digit;
	}
	*out = value;
	return digits.len != 0;
}

static bool day(sheaf_str value, int64_t *out)
{
	char text[] = "YYYY-MM-DDT00:00:00Z";
	sheaf_str date;
	if (!plain(value, &date) || date.len != 10)
		return false;
	memcpy(text, date.ptr, date.len);
	return clock_parse(sheaf_str_of(text), out);
}

static bool price(sheaf_str value, sheaf_money *out)
{
	sheaf_str text;
	return plain(value, &text) && sheaf_money_parse(out, text) == 0 && *out >= 0;
}

/* Takes a member if it is one of a list of prices; *ok is false if it is none. */
static bool take_price(sheaf_prices *p, sheaf_str key, sheaf_str value, bool *ok)
{
	const struct {
		const char *name;
		sheaf_money *to;
	} places[] = {
		{"input", &p->input},
		{"cache_read", &p->cache_read},
		{"cache_write_5m", &p->cache_write_5m},
		{"cache_write_1h", &p->cache_write_1h},
		{"output", &p->output},
	};
	for (size_t i = 0; i < COUNT_OF(places); i++) {
		if (str_is(key, places[i].name)) {
			*ok = price(value, places[i].to);
			return true;
		}
	}
	return false;
}

static bool take_tier(sheaf_model_row *m, sheaf_str value)
{
	sheaf_str key, inside = members_inside(value);
	bool ok = value.len != 0 && value.ptr[0] == '{';
	for (size_t at = 0; ok && members_next(inside, &at, &key, &value);) {
		if (str_is(key, "over"))
			ok = whole(value, &m->tier_over) && m->tier_over != 0;
		else
			ok = take_price(&m->tier, key, value, &ok) && ok;
	}
	return ok && m->tier_over != 0;
}

static bool take_member(sheaf_model_row *m, sheaf_str key, sheaf_str value)
{
	bool ok = false;
	if (str_is(key, "model"))
		return plain(value, &m->model) && m->model.len != 0;
	if (str_is(key, "from"))
		return day(value, &m->from_us);
	if (str_is(key, "window"))
		return whole(value, &m->window);
	if (str_is(key, "max_output"))
		return whole(value, &m->max_output);
	if (str_is(key, "cache_minimum"))
		return whole(value, &m->cache_minimum);
	if (str_is(key, "tier"))
		return take_tier(m, value);
	return take_price(&m->prices, key, value, &ok) && ok;
}

/* A member that is not known is a mistake: a price nobody reads would be missed by nobody. */
static int read_row(sheaf_model_row *m, sheaf_str provider, sheaf_str row, sheaf_error *err)
{
	const sheaf_money no = SHEAF_MONEY_UNKNOWN;
	const sheaf_prices none = {no, no, no, no, no};
	sheaf_str inside = members_inside(row), key, value;
	*m = (sheaf_model_row){.provider = provider, .prices = none, .tier = none};
	for (size_t at = 0; members_next(inside, &at, &key, &value);) {
		if (!take_member(m, key, value))
			return err_set(err, SHEAF_FORMAT, "models: \"%.*s\" of %.*s cannot be read",
			               (int)key.len, key.ptr, (int)m->model.len,
			               m->model.len != 0 ? m->model.ptr : "");
	}
	if (m->model.len == 0)
		return err_set(err, SHEAF_FORMAT, "models: a row names no model");
	return 0;
}

static int read_group(sheaf_models *t, sheaf_str group, sheaf_error *err)
{
	sheaf_str inside = members_inside(group), provider, row;
	sheaf_str rows = members_inside(members_find(inside, "models"));
	if (!plain(members_find(inside, "provider"), &provider) || provider.len == 0)
		return err_set(err, SHEAF_FORMAT, "models: a group names no provider");
	for (size_t at = 0; elements_next(rows, &at, &row);) {
		if (t->fixed ? t->count == t->room
		             : mem_grow((void **)&t->rows, &t->room, t->count + 1,
		                        sizeof(*t->rows)) != 0)
			return err_nomem(err);
		int rc = read_row(&t->rows[t->count], provider, row, err);
		if (rc != 0)
			return rc;
		t->count++;
	}
	return 0;
}

/* The rows of a text that is known to be JSON; their strings point into it. */
static int read_text(sheaf_models *t, sheaf_str text, sheaf_error *err)
{
	sheaf_str inside = members_inside(members_trim(text)), group;
	if (!str_is(members_find(inside, "format"), "\"sheaf-models\""))
		return err_set(err, SHEAF_FORMAT, "models: \"format\" is not \"sheaf-models\"");
	if (!str_is(members_find(inside, "version"), "1"))
		return err_set(err, SHEAF_FORMAT, "models: of a version that is not known");
	sheaf_str groups = members_inside(members_find(inside, "groups"));
	for (size_t at = 0; elements_next(groups, &at, &group);) {
		int rc = read_group(t, group, err);
		if (rc != 0)
			return rc;
	}
	return 0;
}

void sheaf_models_free(sheaf_models *models)
{
	if (models == NULL)
		return;
	mem_free(models->rows);
	mem_free(models->text);
	mem_free(models);
}

static void models_freep(sheaf_models **models)
{
	sheaf_models_free(*models);
}

int sheaf_models_read(sheaf_models **out, sheaf_str json, sheaf_error *err)
{
	_cleanup_(json_freep) json_doc *doc = NULL;
	_cleanup_(models_freep) sheaf_models *t = NULL;
	if (out == NULL || json.ptr == NULL)
		return err_set(err, SHEAF_INVALID, "no table of models was given");
	int rc = json_parse(&doc, json, err);
	if (rc != 0)
		return rc;
	t = mem_zalloc(sizeof(*t));
	if (t == NULL || (t->text = mem_dup(json.ptr, json.len)) == NULL)
		return err_nomem(err);
	rc = read_text(t, str_make(t->text, json.len), err);
	if (rc != 0)
		return rc;
	*out = t;
	t = NULL;
	return 0;
}

int sheaf_models_load(sheaf_models **out, const char *path, sheaf_error *err)
{
	_cleanup_(mem_freep) char *text = NULL;
	io_stat st;
	if (out == NULL || path == NULL)
		return err_set(err, SHEAF_INVALID, "no file of models was given");
	_cleanup_(io_closep) int fd = io_open_root(path, O_RDONLY, 0);
	if (fd < 0 || io_stat_fd(fd, &st) != 0)
		return err_sys(err, errno == ENOENT ? SHEAF_NOT_FOUND : SHEAF_STORAGE, errno, "%s",
		               path);
	if (st.size > MODELS_BYTES_MAX)
		return err_set(err, SHEAF_TOO_LARGE, "%s is no table of models", path);
	text = mem_alloc((size_t)st.size);
	if (text == NULL)
		return err_nomem(err);
	ssize_t len = io_pread_full(fd, text, (size_t)st.size, 0);
	if (len < 0)
		return err_sys(err, SHEAF_STORAGE, errno, "%s", path);
	return sheaf_models_read(out, str_make(text, (size_t)len), err);
}

/* ---- Finding ------------------------------------------------------------ */

static bool digits_at(sheaf_str text, size_t at, size_t count)
{
	if (text.len < at + count)
		return false;
	for (size_t i = at; i < at + count; i++) {
		if (text.ptr[i] < '0' || text.ptr[i] > '9')
			return false;
	}
	return true;
}

/* Whether what follows a model's name only says which state of it: a date, or "latest". */
static bool is_state(sheaf_str rest)
{
	if (rest.len == 0 || str_is(rest, "-latest"))
		return true;
	if (rest.len == 9)
		return (rest.ptr[0] == '-' || rest.ptr[0] == '@') && digits_at(rest, 1, 8);
	return rest.len == 11 && rest.ptr[0] == '-' && digits_at(rest, 1, 4) &&
	       rest.ptr[5] == '-' && digits_at(rest, 6, 2) && rest.ptr[8] == '-' &&
	       digits_at(rest, 9, 2);
}

/* How well a row's name fits: 0 not at all, else the longer the better, whole before beginning. */
static size_t fits(sheaf_str name, sheaf_str model)
{
	bool begins = name.ptr[name.len - 1] == '*';
	size_t len = name.len - begins;
	if (model.len < len || (len != 0 && memcmp(model.ptr, name.ptr, len) != 0))
		return 0;
	sheaf_str rest = {model.ptr + len, model.len - len};
	if (!begins && !is_state(rest))
		return 0;
	return (len * 2 + !begins) * 2 + (rest.len == 0) + 1;
}

/* Whether a row's day is nearer to what holds at `time_us`. */
static bool holds_rather(int64_t from, int64_t than, int64_t time_us)
{
	if ((from <= time_us) != (than <= time_us))
		return from <= time_us;
	return from <= time_us ? from > than : from < than;
}

static const sheaf_model_row *find(const sheaf_models *t, sheaf_str provider, sheaf_str model,
                                   int64_t time_us)
{
	const sheaf_model_row *best = NULL;
	size_t best_fit = 0;
	for (size_t i = 0; i < t->count; i++) {
		const sheaf_model_row *row = &t->rows[i];
		if (provider.len != 0 && !str_eq(provider, row->provider))
			continue;
		size_t fit = fits(row->model, model);
		if (fit == 0 || fit < best_fit)
			continue;
		if (fit > best_fit || (str_eq(row->provider, best->provider) &&
		                       holds_rather(row->from_us, best->from_us, time_us))) {
			best = row;
			best_fit = fit;
		}
	}
	return best;
}

static pthread_once_t built_in_once = PTHREAD_ONCE_INIT;
static sheaf_model_row built_in_rows[BUILT_IN_MAX];
static sheaf_models built_in = {.rows = built_in_rows, .room = BUILT_IN_MAX, .fixed = true};

/* A test sees to it that this cannot fail. */
static void built_in_make(void)
{
	(void)read_text(&built_in, str_make(models_text, models_text_len), NULL);
}

const sheaf_model_row *sheaf_models_find(const sheaf_models *models, sheaf_str provider,
                                         sheaf_str model, int64_t time_us)
{
	const sheaf_model_row *row = NULL;
	if (time_us == 0)
		time_us = INT64_MAX;
	if (model.len == 0)
		return NULL;
	if (models != NULL)
		row = find(models, provider, model, time_us);
	if (row == NULL) {
		(void)pthread_once(&built_in_once, built_in_make);
		row = find(&built_in, provider, model, time_us);
	}
	return row;
}
