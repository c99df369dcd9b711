/*
 * The jsonl store, inside: what its files share.
 *
 *   jsonl_store.c      the table, owners, the cache of open logs
 *   jsonl_lines.c      reading a file line by line
 *   jsonl_log.c        opening a log and following it
 *   jsonl_rows.c       finding and reading records
 *   jsonl_tail.c       what a bad tail is, and moving a tear away
 *   jsonl_append.c     group commit
 *   jsonl_create.c     new logs, replaced logs, removed logs
 *   jsonl_index.c      the sidecar: where records lie, which ids there are
 *   jsonl_catalogue.c  what lists are made from
 *   jsonl_list.c       lists
 *   jsonl_stamps.c     which logs changed
 *   jsonl_readers.c    the forks that read a session
 *   jsonl_wait.c       waiting for a log to change
 *   jsonl_check.c      check and repair
 *   jsonl_state*.c     user and app state
 *   jsonl_queue*.c     queues
 *
 * On disk, beneath the store's directory:
 *
 *   APP/USER/SESSION.jsonl       the log
 *   APP/USER/.state.jsonl        the user's state, primary data too
 *   APP/.state.jsonl             the app's state, too
 *   APP/USER/.queue/SESSION.jsonl  its queue, if it ever had one; primary data too
 *   APP/USER/.sheaf/…            derived: index, catalogue, temporary files
 *   APP/USER/.kept/SESSION.…     bytes moved out of a log, kept for a person
 *
 * (APP/USER is left out when both are empty.)
 *
 * Locks, always taken in this order: the mutex of the user's state, the OFD lock
 * of its file, the mutex of a log or its leadership, the OFD lock of its file, the mutex of the owner's catalogue, the OFD lock of the
 * catalogue file. The store's mutex is innermost and never held over I/O.
 */
#ifndef STORE_JSONL_H
#define STORE_JSONL_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/io.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/str.h"
#include "store/store.h"

#define JSONL_NAME_ROOM 240
#define JSONL_TMP_ROOM 256                      /* "tmp-", a UUID, a dot, a session */
#define JSONL_UNSYNCED_MAX ((uint64_t)16 << 20) /* a writer never leaves more than this unsynced */
#define JSONL_GROUP_BYTES ((size_t)16 << 20)    /* one write() of waiting batches */
#define JSONL_TEAR_WINDOW ((uint64_t)80 << 20)  /* unsynced bytes and one batch */
#define JSONL_OPEN_LOGS 256
#define JSONL_NOTIFY_KEPT 8
#define JSONL_SIDE_DIR ".sheaf"
#define JSONL_KEPT_DIR ".kept"

/* Uncovered records or bytes from which the sidecar is brought up to date when the log is synced
 * anyway, on open and on close; and from which a sync is made for it. */
#define JSONL_INDEX_RECORDS 512u
#define JSONL_INDEX_BYTES ((uint64_t)1 << 20)
#define JSONL_INDEX_RECORDS_FORCE 16384u

/* Where one record lies: 32 bytes, the same in memory and in the sidecar. */
typedef struct jslot {
	uint64_t offset;
	uint64_t hash;   /* of the id */
	uint64_t parent; /* as in sheaf_row */
	uint32_t length; /* without the line break */
	uint8_t kind;
	uint8_t flags;
	uint16_t check; /* over the other 30 bytes, in the sidecar */
} jslot;

enum {
	JSLOT_DAMAGED = 1
};

/* ---- Sidecar ------------------------------------------------------------ */

#define JINDEX_RUNS_MAX 64

typedef struct jindex_run {
	uint64_t offset;
	uint64_t count;
} jindex_run;

typedef struct jindex {
	int fd;     /* header and slots; -1: there is none */
	int run_fd; /* sorted id hashes, heads and states */
	uint64_t generation;
	uint64_t inode; /* of the log it describes */
	uint64_t base;
	uint64_t covered;   /* records */
	uint64_t log_size;  /* bytes of the log these take */
	uint32_t first_crc; /* of the header line */
	uint32_t last_crc;  /* of the last covered line */
	uint64_t head_offset;
	uint64_t head_length;
	uint32_t head_crc;
	uint64_t state_offset;
	uint64_t state_length; /* 0: it is empty */
	uint64_t state_seq;    /* what it is the state of: written again when that moved */
	uint64_t run_end;
	uint32_t run_count;
	jindex_run runs[JINDEX_RUNS_MAX];
	/* Which hashes are certainly not in the runs; made after many look-ups. */
	uint64_t *sieve; /* sieve_room words, a power of two; NULL: none */
	uint64_t sieve_room;
	uint32_t looked_up;
} jindex;

void jindex_init(jindex *x);
void jindex_close(jindex *x);
/* Opens the sidecar of `name`, if it is there and whole. Absent or bad is no error: fd stays -1. */
void jindex_open(jindex *x, int side_dir, const char *name);
/* Takes over what another process added meanwhile. -1: not to be trusted. The sieve is not of that. */
int jindex_reread(jindex *x);
void jindex_drop_sieve(jindex *x);
int jindex_head(const jindex *x, sheaf_head *out); /* 0, or not usable */
/* Slots [first, first+count) of the covered ones. 0, or -1: the sidecar is not to be trusted. */
int jindex_slots(const jindex *x, uint64_t first, size_t count, jslot *out);
/* Covered records with this id hash: fn(ctx, index); stops at non-zero and returns it. -1: distrust. */
int jindex_find(jindex *x, uint64_t hash, int (*fn)(void *ctx, uint64_t index), void *ctx);
/* Covers `count` more records. Makes the files if need be. 0, or -1 with the old state intact. */
int jindex_extend(jindex *x, int side_dir, const char *name, const jslot *slots, size_t count,
                  const sheaf_head *head, uint64_t log_size, uint32_t last_crc);
void jindex_remove(int side_dir, const char *name);

/* ---- Owners and logs ------------------------------------------------------ */

typedef struct jcatalogue jcatalogue;
typedef struct jstate jstate;
typedef struct jqueue jqueue;
typedef struct jstore jstore;

/* An open log file, shared with readers that go on while the log is replaced. */
typedef struct jfile {
	int fd;
	_Atomic unsigned refs;
} jfile;

jfile *jfile_new(int fd); /* owns fd, also when it fails and returns NULL */
jfile *jfile_ref(jfile *f);
void jfile_unref(jfile *f);
void jfile_unrefp(jfile **f);

/* A file line by line. */
typedef struct jlines {
	int fd;
	uint64_t next; /* offset of the next line */
	uint64_t end;  /* where to stop */
	buf data;
	uint64_t data_at; /* offset of data[0] */
} jlines;

typedef struct jline {
	sheaf_str text; /* without the line break; ptr NULL: longer than a record may be */
	uint64_t offset;
	uint64_t length; /* without the line break */
	bool terminated;
} jline;

#define JLINES_INIT(file, from, to)                                                                \
	{                                                                                          \
		.fd = (file), .next = (from), .end = (to),                                         \
		.data = BUF_INIT(SHEAF_RECORD_BYTES_MAX + (1u << 20))                              \
	}
/* 1 with a line (valid until the next call), 0 at the end, -1 with errno; ENOMEM too. */
int jlines_next(jlines *r, jline *out);
void jlines_free(jlines *r); /* for _cleanup_ */

typedef struct jowner {
	jstore *store;
	char path[2 * SHEAF_KEY_PART_ROOM]; /* "app/user", or "." */
	char app[SHEAF_KEY_PART_ROOM];
	char user[SHEAF_KEY_PART_ROOM];
	char key[2 * SHEAF_KEY_PART_ROOM];
	int dir;
	_Atomic int side; /* -1 until it is needed */
	int old_sides[8]; /* of directories that somebody removed; under the store's mutex */
	unsigned old_side_count;
	_Atomic bool anchored; /* the directories above are known to be on the disk */
	unsigned refs;         /* under the store's mutex */
	jcatalogue *catalogue;
	jstate *state; /* the user's; of an app's directory: the app's */
} jowner;

typedef struct jwaiter {
	struct jwaiter *next;
	const sheaf_append_request *request;
	sheaf_append_reply *reply;
	sheaf_error *err;
	pthread_cond_t wake;
	int rc;
	bool done;
	bool stamped;
	bool again; /* goes back into the queue */
} jwaiter;

typedef struct jlog {
	jowner *owner;
	char session[SHEAF_KEY_PART_ROOM];
	char file_name[JSONL_NAME_ROOM]; /* SESSION.jsonl */
	unsigned refs;                   /* these under the store's mutex */
	struct jlog *newer, *older;
	char cache_key[3 * SHEAF_KEY_PART_ROOM]; /* "owner/session" */

	pthread_mutex_t mutex; /* guards all that follows, except as noted */
	jwaiter *first, *last; /* waiting to be written */
	bool leader;           /* somebody has the log for himself: only he changes what follows */
	pthread_cond_t led;    /* leadership was given up */
	size_t idle_waiters;   /* waiting for `led` */

	jfile *file;      /* NULL until loaded */
	bool held;        /* we have its OFD lock */
	bool dirty;       /* we wrote what is not synced */
	bool unconfirmed; /* what lies before `size` was last read without the lock */
	bool can_write;   /* it was opened for writing */
	bool foreign;
	bool readonly; /* foreign, newer version, or no permission */
	bool damaged;
	bool hands_off;  /* the index was wrong once: read without it */
	bool suspect;    /* following: the index turned out to be wrong */
	int find_failed; /* following: why a parent could not be looked up, or 0 */
	int find_errno;
	uint64_t lost; /* damaged: the last seq that cannot be read, for children of the lost */
	uint64_t inode;
	uint64_t poisoned; /* the inode whose sync failed, for when sealing it fails too */
	uint64_t size; /* bytes up to the end of the last complete batch that was acknowledged */
	uint64_t tail_bytes; /* bytes after that which were no records when last looked at */
	uint64_t file_seen;  /* file size when last looked at */
	uint64_t synced;     /* bytes known to be on the disk */
	bool needs_newline;  /* the last record has no line break yet */
	uint64_t header_length;
	uint32_t header_crc;
	uint32_t last_crc;
	uint64_t base;
	sheaf_head *head;
	sheaf_head *spare[2];
	uint64_t torn_bytes;
	char torn_file[256];

	jindex index; /* records base+1 … base+index.covered */
	jslot *tail;  /* the ones after that */
	size_t tail_count;
	size_t tail_room;
	uint32_t *table; /* open addressing: hash of id → position in tail + 1 */
	size_t table_room;
	sheaf_str last_id; /* of the newest entry, to find parents without a look-up */
	uint64_t last_id_seq;
	char last_id_room[SHEAF_ID_ROOM];

	buf out;       /* the leader's */
	json_doc *doc; /* scratch */
	jqueue *queue; /* NULL until it is used; then it stays, with a mutex of its own */
} jlog;

struct jstore {
	int root;
	char *path; /* of root */
	bool readonly;
	bool single; /* a store of one file */
	char single_file[JSONL_NAME_ROOM];
	char single_session[SHEAF_KEY_PART_ROOM];
	jowner *single_owner;
	pthread_mutex_t mutex;
	map owners; /* key → jowner */
	map logs;   /* "owner/session" → jlog, cached ones */
	jlog *newest, *oldest;
	size_t cached;
	int notify[JSONL_NOTIFY_KEPT]; /* not in use; closing one takes 10 ms */
	size_t notify_count;
};

/* jsonl_store.c */
int jowner_get(jstore *js, const sheaf_store_key *key, bool create, jowner **out, sheaf_error *err);
int jowner_open(jstore *js, sheaf_str app, sheaf_str user, bool create, jowner **out,
                sheaf_error *err);
void jowner_put(jowner *o);
/* The directory of an app, for what is kept of the app itself. Not cached: jowner_app_put(). */
int jowner_app(jstore *js, sheaf_str app, bool create, jowner **out, sheaf_error *err);
void jowner_app_put(jowner *o);
int jowner_side(jowner *o);      /* the .sheaf directory, made if need be; -1 if it cannot be had */
int jowner_side_anew(jowner *o); /* the same, after somebody removed it */
/* Syncs the directories above, once: one may have been made by a process that died before it could
 * sync what holds it, and then a session in it would go with it. */
int jowner_anchor(jowner *o, sheaf_error *err);
int jlog_get(jstore *js, const sheaf_store_key *key, jlog **out, sheaf_error *err);
int jlog_get_named(jowner *o, const char *session, jlog **out, sheaf_error *err);
jlog *jlog_private(jowner *o,
                   const char *session); /* not in the cache, reads without the sidecar */
void jlog_free(jlog *log);
void jlog_put(jlog *log);
void jlog_putp(jlog **log);
void jowner_putp(jowner **o);

/* jsonl_log.c: `log->mutex` is held by the caller of every one of these */
int jlog_load(jlog *log, sheaf_error *err); /* opens the file if it is not */
void jlog_unload(jlog *log);                /* forgets everything; the next use loads again */
int jlog_refresh(jlog *log,
                 sheaf_error *err); /* notices what others did; SHEAF_NOT_FOUND if gone */
/* Reads what was appended since; `locked`: we hold the OFD lock, so a bad tail is final. */
int jlog_follow(jlog *log, bool locked, sheaf_error *err);
uint64_t jlog_count(const jlog *log); /* own records */
/* When the last append was stored: the file's mtime, which nothing but a write to it moves. A
 * sealed or torn log that is written anew lives longer for it, never shorter. */
int64_t jlog_stored_us(const jlog *log);
int jlog_expired(const jlog *log); /* SHEAF_EXPIRY_* */
int jlog_slots(jlog *log, uint64_t first, size_t count, jslot *out, sheaf_error *err);
/* SHEAF_NOT_FOUND. `leading`: the caller leads the log, so nobody else is writing. */
int jlog_find(jlog *log, sheaf_str id, uint64_t *seq, bool leading, sheaf_error *err);
/* The same where most are not there: *seq is 0 then. */
int jlog_look_up(jlog *log, sheaf_str id, uint64_t *seq, bool leading, sheaf_error *err);
/* The same, but a sidecar that is wrong is reported (SHEAF_DAMAGED) and not put aside. */
int jlog_find_once(jlog *log, sheaf_str id, uint64_t *seq, sheaf_error *err);
/* Reads the log from its beginning without the sidecar. The file and the lock on it stay. */
int jlog_reread(jlog *log, sheaf_error *err);
int jlog_push(jlog *log, const jslot *slot, sheaf_error *err);
void jlog_drop_from(jlog *log, size_t tail_count); /* forgets the newest */
void jlog_cover(jlog *log, bool force);            /* brings the sidecar up to date if it is time */
int jlog_scan(jlog *log, const sheaf_scan *scan, sheaf_row_fn fn, void *ctx, sheaf_error *err);
int jlog_header_line(jlog *log, buf *out, sheaf_error *err); /* without the line break */
uint32_t jline_crc(sheaf_str line); /* the eight digits at its end, as a number */

/* Takes the log for oneself; waits for the leader to finish. The mutex is held on return. */
int jlog_lead(jlog *log, int64_t deadline_us, sheaf_error *err);
void jlog_unlead(jlog *log); /* the mutex is held */
/* Takes the OFD lock of the loaded file and catches up: reopens a replaced file, moves a tear away,
 * rewrites a sealed file. Leadership and mutex are held. */
int jlog_lock(jlog *log, int64_t deadline_us, sheaf_error *err);
/* The same, and a damaged log is given too instead of refused. */
int jlog_lock_damaged(jlog *log, int64_t deadline_us, sheaf_error *err);
/* The OFD lock of the loaded file if nobody has it, and without looking at the log. */
bool jlog_lock_now(jlog *log);
/* Whether the bytes before `size` are still the ones known. Another process may have cut off what
 * it had not acknowledged, and written something else there. */
bool jlog_end_fits(const jlog *log);
void jlog_unlock(jlog *log);
/* The OFD lock of a file, retried until the deadline: SHEAF_BUSY. */
int jlock_take(int fd, short type, int64_t deadline_us, sheaf_error *err);
/* Syncs the log. If that fails nobody may trust the inode any more: it is sealed. 0 or -1, errno. */
int jlog_sync(jlog *log, uint64_t upto);

bool jlog_sealed(const io_stat *st);

/* jsonl_tail.c */
typedef enum jtail_kind {
	JTAIL_TEAR,
	JTAIL_DAMAGE,
	JTAIL_FAILED
} jtail_kind;
/* What the bad line at `bad` is: reads from there to `end`. */
jtail_kind jtail_classify(int fd, uint64_t bad, uint64_t end);
/* Moves [from, end) to a kept file and cuts the log there. OFD lock held. */
int jtail_move(jlog *log, uint64_t from, uint64_t end, sheaf_error *err);
/* Copies [from, end) of fd into .kept/SESSION.WHAT-TIME; the name comes back. */
int jtail_keep(jowner *o, const char *session, const char *what, int fd, uint64_t from,
               uint64_t end, char name[256], sheaf_error *err);

/* jsonl_append.c */
int jsonl_append(void *backend, const sheaf_store_key *key, const sheaf_append_request *request,
                 sheaf_append_reply *reply, sheaf_error *err);

/* jsonl_create.c */
int jsonl_create(jstore *js, const sheaf_store_key *key, const sheaf_append_request *request,
                 sheaf_append_reply *reply, sheaf_error *err);
int jsonl_remove(void *backend, const sheaf_store_key *key, const sheaf_remove_request *request,
                 sheaf_remove_reply *reply, sheaf_error *err);
int jsonl_replace(void *backend, const sheaf_store_key *key, uint64_t revision, sheaf_rows_fn next,
                  void *ctx, int64_t deadline_us, sheaf_error *err);
/*
 * A new file in the side directory: exclusive, 0600; its name comes back. One
 * that is to become the log of `session` (NULL: none) is sealed until its name is
 * known to be on the disk: whoever finds it after a crash in between copies it
 * once more before he builds on it.
 */
int jtmp_open(jowner *o, const char *session, char name[JSONL_TMP_ROOM], sheaf_error *err);
void jtmp_unlink(jowner *o, const char *name);
/* Puts a finished temporary file in the place of the log: fsync, rename, directory fsync. The
 * descriptor stays the caller's. UNKNOWN if only the last step failed. */
int jtmp_install(jlog *log, int fd, const char *tmp, sheaf_error *err);
/* Copies bytes [from, to) of one file to another. */
int jcopy_range(int in, uint64_t from, uint64_t to, int out, sheaf_error *err);
/* Copies every record that verifies to a new inode and goes on there. OFD lock held. */
int jlog_rewrite(jlog *log, sheaf_error *err);

/* jsonl_catalogue.c */
jcatalogue *jcatalogue_new(void);
void jcatalogue_free(jcatalogue *c);
/* Told of every change that a list shows. Failures are silent: the catalogue is derived. */
void jcatalogue_touch(jlog *log); /* appended to; log->mutex held or led */
void jcatalogue_put(jowner *o, const char *session, int fd, const sheaf_head *head);
void jcatalogue_drop(jowner *o, const char *session);
/* Takes what the catalogue says of a session out of its file, for good: the session is to go. `fd`
 * is its log. */
int jcatalogue_scrub(jowner *o, const char *session, int fd, sheaf_error *err);
/* Directory changes are bracketed by these two, so that ours are told from others'; put and drop
 * come between them. */
void jcatalogue_begin(jowner *o);
void jcatalogue_end(jowner *o);
int jsonl_list(void *backend, const sheaf_list_query *query, sheaf_info_fn fn, void *ctx,
               sheaf_error *err);
/* Every session of the owner with a link to `session`: fn(ctx, name, head). */
int jcatalogue_readers(jowner *o, const char *session,
                       int (*fn)(void *ctx, const char *name, const sheaf_head *head), void *ctx,
                       sheaf_error *err);

/* jsonl_stamps.c */
int jsonl_stamps(void *backend, sheaf_str app, sheaf_str user, sheaf_stamp_seen_fn fn, void *ctx,
                 sheaf_error *err);

/* jsonl_wait.c */
int jsonl_wait(void *backend, const sheaf_store_key *key, uint64_t revision, int64_t deadline_us,
               sheaf_error *err);

/* jsonl_state.c, jsonl_state_file.c: see jsonl_state.h */
void jstate_free(jstate *s);
/* Around an append with user state: takes the state's lock, before the session's; gives it up. */
int jstate_begin(jowner *o, int64_t deadline_us, sheaf_error *err);
void jstate_end(jowner *o);
/* Writes the line that goes before the append's records; `id` is that of the last of them. */
int jstate_line(jowner *o, const char *session, const sheaf_append_request *q, sheaf_str id,
                bool durable, sheaf_error *err);
/* What became of the append: the line counts, or goes, or somebody must look. */
void jstate_done(jowner *o, const char *session, int rc, int32_t outcome);
bool jstate_durable(const jowner *o);
int jstate_make_durable(jowner *o, sheaf_error *err);
bool jstate_there(const jowner *o); /* whether the user has a file of state; it never goes */
/* Before records of a session go: what they set stays. With `held` jstate_end() must follow. */
int jstate_hold(jowner *o, const char *session, int64_t deadline_us, bool *held, sheaf_error *err);
int jsonl_state_read(void *backend, sheaf_str scope, int app, sheaf_state_fn fn, void *ctx,
                     sheaf_error *err);
int jsonl_state_apply(void *backend, sheaf_str app, const sheaf_state_item *items, size_t count,
                      int64_t deadline_us, sheaf_error *err);
typedef struct jstate_report {
	int32_t what; /* a SHEAF_PROBLEM_, or 0 */
	uint64_t bad_at;
	uint64_t size;
} jstate_report;
/* Reads the file from its beginning; with `mend` a damaged one is written anew. */
int jstate_examine(jowner *o, bool app, bool mend, int64_t deadline_us, jstate_report *out,
                   sheaf_error *err);

/* jsonl_check.c */
int jsonl_check(void *backend, const sheaf_store_key *key, sheaf_problem_fn fn, void *ctx,
                sheaf_check_totals *totals, sheaf_error *err);
int jsonl_repair(void *backend, const sheaf_store_key *key, sheaf_problem_fn fn, void *ctx,
                 sheaf_check_totals *totals, int64_t deadline_us, sheaf_error *err);

/* jsonl_queue*.c */
int jsonl_queue_put(void *backend, const sheaf_store_key *key, const sheaf_queue_row *row,
                    int64_t deadline_us, int32_t *existed, sheaf_error *err);
int jsonl_queue_claim(void *backend, const sheaf_store_key *key, const sheaf_claim *claim,
                      sheaf_queue_fn fn, void *ctx, sheaf_error *err);
int jsonl_queue_ack(void *backend, const sheaf_store_key *key, sheaf_str token, int64_t deadline_us,
                    size_t *count, sheaf_error *err);
int jsonl_queue_cancel(void *backend, const sheaf_store_key *key, sheaf_str id, int64_t deadline_us,
                       int32_t *existed, sheaf_error *err);
int jsonl_queue_list(void *backend, const sheaf_store_key *key, sheaf_queue_fn fn, void *ctx,
                     sheaf_error *err);
void jqueue_free(jqueue *q);
/* Removes a session's queue, for good. `orphan`: only if there is no such session, which shows
 * under the queue's lock. */
int jqueue_remove(jowner *o, const char *session, bool orphan, int64_t deadline_us,
                  sheaf_error *err);
typedef struct jqueue_report {
	int32_t what; /* 0, or a SHEAF_PROBLEM_ */
	uint64_t size;
	uint64_t bad_at; /* the first byte that is wrong */
} jqueue_report;
/* Reads a queue from its first byte. With the birth of its session it is repaired too: what was
 * there is kept, and what can be read goes on. */
int jqueue_examine(jowner *o, const char *session, const int64_t *repair_created_us,
                   int64_t deadline_us, jqueue_report *out, sheaf_error *err);

#endif
