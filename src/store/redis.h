/*
 * What the files of the redis module share: the store, its connections, commands
 * and the answers of the functions in redis_library.lua.
 */
#ifndef STORE_REDIS_H
#define STORE_REDIS_H

#include <hiredis/hiredis.h>
#include <pthread.h>
#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/str.h"
#include "sheaf/sys/store.h"

#define REDIS_SLOTS 16384u
#define REDIS_NODES_MAX 1024u
#define REDIS_NO_NODE UINT16_MAX
#define REDIS_POOL_MAX 256u
#define REDIS_HOST_ROOM 256u
#define REDIS_PREFIX_MAX 64u
#define REDIS_COMMAND_MAX ((size_t)1 << 30)

/* The first number of every answer, as in redis_library.lua. */
enum {
	ANSWER_OK = 0,
	ANSWER_KNOWN = 1,
	ANSWER_MISS = 2,
	ANSWER_NOT_FOUND = 3,
	ANSWER_GONE = 4,
	ANSWER_EXISTS = 5,
	ANSWER_SOURCE_GONE = 6,
	ANSWER_LIMIT = 7,
	ANSWER_CONFLICT = 8,
	ANSWER_BUSY = 9,
	ANSWER_EXPIRED = 10
};

extern const unsigned char redis_library_text[];
extern const size_t redis_library_len;

/* ---- Connections -------------------------------------------------------------- */

/* One connection, used by one call at a time. */
typedef struct rconn {
	redisContext *c;
	uint16_t node;
	bool disk;        /* the server syncs before it answers */
	bool cluster;     /* the server is a node of one */
	int64_t replicas; /* that follow it */
	int64_t timeout_us;
	struct rconn *next; /* in the pool */
} rconn;

typedef struct rnode {
	char host[REDIS_HOST_ROOM];
	int port;
	rconn *idle;
	size_t open; /* idle ones and those in use */
} rnode;

/* A connection that is subscribed to the channel of a session. */
typedef struct rlistener {
	rconn *conn;
	buf channel;
	int64_t used_us;
	struct rlistener *next;
} rlistener;

typedef struct rstore {
	pthread_mutex_t mutex; /* guards nodes, slots, pools and listeners */
	pthread_cond_t given;  /* a connection came back */
	char *user;            /* NULL: the default user */
	char *password;        /* NULL: none */
	long db;
	char prefix[REDIS_PREFIX_MAX + 1];
	size_t pool;
	int64_t ttl_us;      /* of sessions that say nothing */
	int64_t deadline_us; /* of calls that have none */
	bool assume_disk;
	bool cluster;
	bool disk;     /* as found when it was opened */
	bool replicas; /* every primary has one */
	rnode *nodes[REDIS_NODES_MAX];
	size_t node_count;
	size_t seed_count; /* the first nodes are those of the URL */
	uint16_t primary;  /* without a cluster: the seed that is used */
	uint16_t slots[REDIS_SLOTS];
	int64_t mapped_us;    /* when the slots were last asked for */
	rlistener *listeners; /* that nobody uses at the moment */
} rstore;

/* "redis://user:pass@host:port,host:port/db" into the store. */
int redis_url_parse(rstore *s, sheaf_str rest, sheaf_error *err);

/* A connection to a node: from the pool, or new. Waits for one until the deadline. */
int rconn_take(rstore *s, uint16_t node, int64_t deadline_us, rconn **out, sheaf_error *err);
/* One outside of the pool, for subscriptions; rconn_free() ends it. */
int rconn_new(rstore *s, uint16_t node, int64_t deadline_us, rconn **out, sheaf_error *err);
void rconn_give(rstore *s, rconn *conn); /* back into the pool; closed if it is broken */
void rconn_free(rconn *conn);
void rconn_until(rconn *conn, int64_t deadline_us); /* how long it waits from now on */
/* Sends bytes; false with errno. `sent` says whether any went out. */
bool rconn_send(rconn *conn, const char *bytes, size_t len, bool *sent);
/* The next answer; NULL if the connection failed. The caller frees it. */
redisReply *rconn_reply(rconn *conn);

/* The node of that name, made if it is new; REDIS_NO_NODE if there are too many. The mutex is
 * held. */
uint16_t redis_node(rstore *s, const char *host, int port);
/* Asks the nodes which slots they have. */
int redis_map_slots(rstore *s, int64_t deadline_us, sheaf_error *err);
uint16_t redis_slot(const char *tag, size_t len);
uint16_t redis_node_of(rstore *s, uint16_t slot);

/* ---- Commands -------------------------------------------------------------------- */

/* A command as it is sent, with room before it for the count of its arguments. */
typedef struct rcmd {
	buf bytes;
	size_t count;
	size_t repeat_at; /* where the '0' is that becomes '1' when it is sent again; 0: nowhere */
	uint16_t slot;
} rcmd;

void rcmd_begin(rcmd *c);
void rcmd_free(rcmd *c); /* for _cleanup_ too */
/* What is to be sent; ptr NULL when memory was out. */
sheaf_str rcmd_bytes(rcmd *c);
void rcmd_arg(rcmd *c, sheaf_str arg);
void rcmd_text(rcmd *c, const char *arg);
void rcmd_u64(rcmd *c, uint64_t value);
void rcmd_i64(rcmd *c, int64_t value);
void rcmd_rest(rcmd *c, const rcmd *more); /* all arguments of another */

/* FCALL of a function on a session: its eleven keys, and those of staged rows if `stage` is not
 * NULL. */
void rcmd_session(rcmd *c, const rstore *s, const char *function, const sheaf_store_key *key,
                  const char *stage);
/* FCALL on one key of an owner or an app. */
void rcmd_scope(rcmd *c, const rstore *s, const char *function, sheaf_str scope, const char *kind);
/* A key of the owner's, into `out`. */
void redis_key(buf *out, const rstore *s, sheaf_str owner, const char *kind, sheaf_str session);

/* ---- Calls ------------------------------------------------------------------------- */

typedef struct rcall {
	int64_t deadline_us; /* 0: the store's, from now */
	bool write;          /* a lost answer leaves it open whether it was done */
	int32_t durability;  /* for writes; 0: whatever the server gives */
	bool repeated;       /* out: it was sent more than once */
	int32_t reached;     /* out: the durability of what was answered */
} rcall;

/*
 * Sends a command to the node that has its slot and gives the answer of the
 * function, an array that begins with a number. Follows the cluster, loads the
 * library, waits for a server that cannot answer now, and sends again when a
 * connection breaks, all until the deadline: the functions know a repeat.
 */
int redis_call(rstore *s, rcmd *cmd, rcall *how, redisReply **out, sheaf_error *err);
void redis_reply_free(redisReply **reply); /* for _cleanup_ */

/* Element `i` of an answer, empty if there is no such string. */
sheaf_str reply_str(const redisReply *r, size_t i);
int64_t reply_i64(const redisReply *r, size_t i); /* also of a string */
uint64_t reply_u64(const redisReply *r, size_t i);
int reply_code(const redisReply *r);

int redis_not_found(sheaf_error *err);
/* An answer that no version of the library gives. */
int redis_strange(sheaf_error *err);
int64_t redis_deadline(const rstore *s, int64_t deadline_us);

/* ---- Heads and rows -------------------------------------------------------------------- */

#define REDIS_DIGEST 16
#define REDIS_ORDER 16
#define REDIS_ELEMENT_FRAME 12u
#define REDIS_INDEX_ENTRY 5u

/* A head as it is sent: bytes and what the server wants to know of it. */
typedef struct rhead {
	buf bytes;
	char digest[REDIS_DIGEST + 1];
	char order[REDIS_ORDER + 1]; /* sorts as lists do: newest first */
	buf links;
	buf state; /* the session's */
	sheaf_session_info info;
} rhead;

void redis_head_freep(sheaf_head **head); /* for _cleanup_ */
void rhead_free(rhead *h);                /* for _cleanup_ too */
int rhead_make(rhead *h, const sheaf_head *head, bool state, sheaf_error *err);
/* A head and its state from an answer. SHEAF_DAMAGED: another version wrote it. */
int redis_head_decode(sheaf_head *head, sheaf_str bytes, sheaf_str state, sheaf_error *err);
void redis_digest(char out[REDIS_DIGEST + 1], sheaf_str bytes);
void redis_order(char out[REDIS_ORDER + 1], int64_t modified_us);
/* How long a session is kept: 0 for ever. */
int64_t redis_life_us(const rstore *s, const sheaf_session_info *info);
int64_t redis_expiry_us(const sheaf_session_info *info); /* its ttl, 0 if it does not expire */

/* Writes a row as an element of the list, and its entry of the index. */
void redis_element(buf *out, const sheaf_row *row);
void redis_index(buf *out, const sheaf_row *row);
void rcmd_row(rcmd *c, const sheaf_row *row);
/* The reverse; false for an element that is none. A line with a bad checksum is `damaged`. */
bool redis_row(sheaf_row *out, uint64_t seq, sheaf_str element);

/* What the server has of a session. */
typedef struct rstate {
	redisReply *reply;
	sheaf_str head;
	sheaf_str digest;
	sheaf_str state; /* the session's */
	int64_t stored_us;
	int64_t now_us;
	bool hidden;
	uint64_t base;
	sheaf_str created;
	uint64_t revision;
	sheaf_str header; /* an element, if asked for */
} rstate;

int redis_state(rstore *s, const sheaf_store_key *key, bool header, int64_t deadline_us,
                rstate *out, sheaf_error *err);
void rstate_free(rstate *state); /* for _cleanup_ too */

/* The head of a log worked out from its rows up to `last`, as after a cut. */
int redis_fold(rstore *s, const sheaf_store_key *key, uint64_t last, sheaf_head *out,
               sheaf_error *err);

/* ---- Slots of the table ------------------------------------------------------------------ */

int redis_head(void *backend, const sheaf_store_key *key, int write, sheaf_head *out,
               sheaf_head_state *state, sheaf_error *err);
int redis_append(void *backend, const sheaf_store_key *key, const sheaf_append_request *request,
                 sheaf_append_reply *reply, sheaf_error *err);
int redis_scan(void *backend, const sheaf_store_key *key, const sheaf_scan *scan, sheaf_row_fn fn,
               void *ctx, sheaf_error *err);
int redis_find(void *backend, const sheaf_store_key *key, sheaf_str id, uint64_t *seq,
               sheaf_error *err);
int redis_header(void *backend, const sheaf_store_key *key, sheaf_row_fn fn, void *ctx,
                 sheaf_error *err);
int redis_list(void *backend, const sheaf_list_query *query, sheaf_info_fn fn, void *ctx,
               sheaf_error *err);
int redis_remove(void *backend, const sheaf_store_key *key, const sheaf_remove_request *request,
                 sheaf_remove_reply *reply, sheaf_error *err);
int redis_replace(void *backend, const sheaf_store_key *key, uint64_t revision, sheaf_rows_fn next,
                  void *ctx, int64_t deadline_us, sheaf_error *err);
int redis_check(void *backend, const sheaf_store_key *key, sheaf_problem_fn fn, void *ctx,
                sheaf_check_totals *totals, sheaf_error *err);
int redis_state_read(void *backend, sheaf_str scope, int app, sheaf_state_fn fn, void *ctx,
                     sheaf_error *err);
int redis_state_apply(void *backend, sheaf_str app, const sheaf_state_item *items, size_t count,
                      int64_t deadline_us, sheaf_error *err);
int redis_queue_put(void *backend, const sheaf_store_key *key, const sheaf_queue_row *row,
                    int64_t deadline_us, int32_t *existed, sheaf_error *err);
int redis_queue_claim(void *backend, const sheaf_store_key *key, const sheaf_claim *claim,
                      sheaf_queue_fn fn, void *ctx, sheaf_error *err);
int redis_queue_ack(void *backend, const sheaf_store_key *key, sheaf_str token, int64_t deadline_us,
                    size_t *count, sheaf_error *err);
int redis_queue_cancel(void *backend, const sheaf_store_key *key, sheaf_str id, int64_t deadline_us,
                       int32_t *existed, sheaf_error *err);
int redis_queue_list(void *backend, const sheaf_store_key *key, sheaf_queue_fn fn, void *ctx,
                     sheaf_error *err);
int redis_wait(void *backend, const sheaf_store_key *key, uint64_t revision, int64_t deadline_us,
               sheaf_error *err);

/* Staged rows: a log that waits to be put in its place. */
typedef struct rstage {
	rstore *s;
	const sheaf_store_key *key;
	int64_t deadline_us;
	char name[40];
	uint64_t count;
	rcmd rows; /* what the next call sends */
	buf index;
	uint64_t first;
	size_t pending;
} rstage;

int rstage_begin(rstage *st, rstore *s, const sheaf_store_key *key, int64_t deadline_us,
                 sheaf_error *err);
int rstage_add(rstage *st, const sheaf_row *row, sheaf_error *err);
int rstage_flush(rstage *st, sheaf_error *err);
void rstage_end(rstage *st); /* for _cleanup_ too */

/* How to give the sessions of an answer. */
typedef struct rgive {
	sheaf_str app;
	sheaf_str user;
	size_t at;             /* the element of the time; sessions follow */
	bool sort;             /* into the order of lists */
	int64_t expired_by_us; /* not 0: only those */
	sheaf_info_fn fn;
	void *ctx;
} rgive;

int redis_give(const redisReply *reply, const rgive *how, sheaf_error *err);
void redis_listeners_free(rstore *s);

#endif
