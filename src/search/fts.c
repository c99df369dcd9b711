/* The index in a file of SQLite: opening it, its tables, and what its calls share. */
#include "search/fts.h"

#include "base/cleanup.h"

/* Of the tables below and of how text is cut into words: an index of another version is made anew. */
#define FORMAT "1"
#define APPLICATION "1397248326" /* "SHEF" */

static const char schema[] =
	"CREATE TABLE session(number INTEGER PRIMARY KEY, owner TEXT NOT NULL, app TEXT NOT NULL,"
	" user TEXT NOT NULL, session TEXT NOT NULL, source TEXT NOT NULL, name BLOB NOT NULL,"
	" preview BLOB NOT NULL, cwd BLOB NOT NULL, stamp INTEGER, expires INTEGER,"
	" created INTEGER, modified INTEGER, base INTEGER, hidden INTEGER, damaged INTEGER,"
	" seq INTEGER, crc INTEGER, UNIQUE(owner, session)) STRICT;"
	"CREATE INDEX session_source ON session(owner, source) WHERE source <> '';"
	"CREATE TABLE doc(id INTEGER PRIMARY KEY, session INTEGER NOT NULL, seq INTEGER NOT NULL,"
	" time INTEGER NOT NULL, agent BLOB, tools BLOB) STRICT;"
	"CREATE INDEX doc_session ON doc(session);"
	"CREATE TABLE body(id INTEGER PRIMARY KEY, entry BLOB, text BLOB NOT NULL) STRICT;"
	"CREATE TABLE call(session INTEGER, call BLOB, tool BLOB, PRIMARY KEY(session, call))"
	" STRICT, WITHOUT ROWID;"
	/* The text itself is packed in `body`; what is asked of it is asked of the numbers. */
	"CREATE VIRTUAL TABLE words USING fts5(text, content='', columnsize=0, tokenize=sheaf);"
	/* So many bytes of lists are gathered before they are written: fewer pieces to merge. */
	"INSERT INTO words(words, rank) VALUES('hashsize', 33554432);"
	"PRAGMA application_id=" APPLICATION ";"
	"PRAGMA user_version=" FORMAT ";";

#define SESSION_COLUMNS                                                                            \
	"number, owner, app, user, session, source, name, preview, cwd, stamp, expires,"           \
	" created, modified, base, hidden, damaged, seq, crc"

static const char *const statements[ST_COUNT] = {
	[ST_BEGIN] = "BEGIN IMMEDIATE",
	[ST_COMMIT] = "COMMIT",
	[ST_ROLLBACK] = "ROLLBACK",
	[ST_VERSION] = "PRAGMA data_version",
	[ST_STAMPS] = "SELECT number, owner, session, stamp, expires FROM session"
		      " WHERE app = ifnull(?1, app) AND user = ifnull(?2, user)",
	[ST_SESSIONS] = "SELECT number, session, cwd FROM session"
			" WHERE app = ifnull(?1, app) AND user = ifnull(?2, user)",
	[ST_SESSION_GET] = "SELECT " SESSION_COLUMNS
			   " FROM session WHERE owner = ?1 AND session = ?2",
	[ST_SESSION_BY_NUMBER] = "SELECT " SESSION_COLUMNS " FROM session WHERE number = ?1",
	[ST_SESSION_PUT] =
		"INSERT INTO session(" SESSION_COLUMNS
		") VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15,?16,?17,?18)"
		" ON CONFLICT(owner, session) DO UPDATE SET source = ?6, name = ?7, preview = ?8,"
		" cwd = ?9, stamp = ?10, expires = ?11, created = ?12, modified = ?13,"
		" base = ?14, hidden = ?15, damaged = ?16, seq = ?17, crc = ?18",
	[ST_SESSION_DROP] = "DELETE FROM session WHERE number = ?1",
	/* The newest session that is not hidden and reads record ?3 of a hidden one. */
	[ST_READER] = "WITH RECURSIVE reader(who) AS (VALUES(?2) UNION"
		      " SELECT session FROM session JOIN reader ON source = who"
		      "  WHERE owner = ?1 AND base >= ?3)"
		      " SELECT " SESSION_COLUMNS " FROM session JOIN reader ON session = who"
		      " WHERE owner = ?1 AND hidden = 0 ORDER BY modified DESC, session LIMIT 1",
	[ST_OTHERS] = "SELECT 1 FROM session"
		      " WHERE app <> ifnull(?1, app) OR user <> ifnull(?2, user) LIMIT 1",
	[ST_DOC_LAST] = "SELECT max(id) FROM doc",
	[ST_DOC_ADD] = "INSERT INTO doc(id, session, seq, time, agent, tools)"
		       " VALUES(?1, ?2, ?3, ?4, ?5, ?6)",
	[ST_DOC_GET] = "SELECT session, seq, time, agent, tools FROM doc WHERE id = ?1",
	[ST_DOC_DROP] = "DELETE FROM doc WHERE id = ?1",
	[ST_DOCS_OF] = "SELECT id FROM doc WHERE session = ?1 ORDER BY id LIMIT 256",
	[ST_TITLE_OF] = "SELECT id FROM doc WHERE session = ?1 AND seq = 0 LIMIT 1",
	[ST_BODY_ADD] = "INSERT INTO body(id, entry, text) VALUES(?1, ?2, ?3)",
	[ST_BODY_GET] = "SELECT entry, text FROM body WHERE id = ?1",
	[ST_BODY_DROP] = "DELETE FROM body WHERE id = ?1",
	[ST_WORDS_ADD] = "INSERT INTO words(rowid, text) VALUES(?1, ?2)",
	[ST_WORDS_DROP] = "INSERT INTO words(words, rowid, text) VALUES('delete', ?1, ?2)",
	[ST_WORDS_OPTIMIZE] = "INSERT INTO words(words) VALUES('optimize')",
	[ST_WORDS_SIZE] = "SELECT count(*) FROM (SELECT 1 FROM words_data LIMIT ?1)",
	[ST_CALL_PUT] = "INSERT OR REPLACE INTO call(session, call, tool) VALUES(?1, ?2, ?3)",
	[ST_CALL_GET] = "SELECT tool FROM call WHERE session = ?1 AND call = ?2",
	[ST_CALLS_DROP] = "DELETE FROM call WHERE session = ?1",
	[ST_MATCH] = "SELECT rowid, rank_of(words, ?2) FROM words WHERE words MATCH ?1",
};

/* ---- What all calls share ---------------------------------------------------- */

int fts_fail(index_file *ix, int rc, sheaf_error *err)
{
	const char *why = ix->db != NULL ? sqlite3_errmsg(ix->db) : sqlite3_errstr(rc);
	/* A page that was not what was written shows as whatever it led to. */
	if (ix->wrong)
		return err_set(err, SHEAF_DAMAGED, "the search index is damaged");
	switch (rc & 0xff) {
	case SQLITE_CORRUPT:
	case SQLITE_NOTADB:
	case SQLITE_SCHEMA:
	case SQLITE_ERROR: /* a table is missing, or is another */
	case SQLITE_MISMATCH:
	case SQLITE_CONSTRAINT:
		return err_set(err, SHEAF_DAMAGED, "the search index is damaged: %s", why);
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
		return err_set(err, SHEAF_BUSY, "another process is writing the search index");
	case SQLITE_NOMEM:
		return err_nomem(err);
	case SQLITE_READONLY:
	case SQLITE_CANTOPEN:
		/* Somebody deleted it, as anybody may. */
		if (rc == SQLITE_CANTOPEN ||
		    sqlite3_extended_errcode(ix->db) == SQLITE_READONLY_DBMOVED)
			return err_set(err, SHEAF_DAMAGED, "the search index is gone");
		return err_set(err, SHEAF_STORAGE, "the search index: %s", why);
	default:
		return err_set(err, SHEAF_STORAGE, "the search index: %s", why);
	}
}

sqlite3_stmt *fts_use(index_file *ix, int which, sheaf_error *err)
{
	if (ix->statements[which] == NULL) {
		int rc = sqlite3_prepare_v3(ix->db, statements[which], -1,
		                            SQLITE_PREPARE_PERSISTENT, &ix->statements[which],
		                            NULL);
		if (rc != SQLITE_OK) {
			(void)fts_fail(ix, rc, err);
			return NULL;
		}
	}
	return ix->statements[which];
}

void fts_done(sqlite3_stmt **st)
{
	if (*st == NULL)
		return;
	(void)sqlite3_reset(*st);
	(void)sqlite3_clear_bindings(*st);
}

int fts_run(index_file *ix, sqlite3_stmt *st, sheaf_error *err)
{
	int rc;
	do
		rc = sqlite3_step(st);
	while (rc == SQLITE_ROW);
	int out = rc == SQLITE_DONE ? 0 : fts_fail(ix, rc, err);
	fts_done(&st);
	return out;
}

int fts_bind(sqlite3_stmt *st, int at, sheaf_str s)
{
	if (s.ptr == NULL)
		return sqlite3_bind_null(st, at);
	return sqlite3_bind_blob64(st, at, s.ptr, s.len, SQLITE_STATIC);
}

sheaf_str fts_column(sqlite3_stmt *st, int at)
{
	const char *ptr = sqlite3_column_blob(st, at);
	return str_make(ptr != NULL ? ptr : "", (size_t)sqlite3_column_bytes(st, at));
}

/* The value of a pragma. */
static int read_pragma(index_file *ix, const char *sql, int64_t *out, sheaf_error *err)
{
	sqlite3_stmt *st = NULL;
	int rc = sqlite3_prepare_v2(ix->db, sql, -1, &st, NULL);
	if (rc == SQLITE_OK)
		rc = sqlite3_step(st);
	if (rc == SQLITE_ROW)
		*out = sqlite3_column_int64(st, 0);
	(void)sqlite3_finalize(st);
	return rc == SQLITE_ROW ? 0 : fts_fail(ix, rc, err);
}

static int execute(index_file *ix, const char *sql, sheaf_error *err)
{
	int rc = sqlite3_exec(ix->db, sql, NULL, NULL, NULL);
	return rc == SQLITE_OK ? 0 : fts_fail(ix, rc, err);
}

/* ---- Opening -------------------------------------------------------------------- */

static void fts_close(index_file *ix)
{
	if (ix == NULL)
		return;
	for (size_t i = 0; i < ST_COUNT; i++)
		(void)sqlite3_finalize(ix->statements[i]);
	(void)sqlite3_close(ix->db);
	buf_free(&ix->packed);
	buf_free(&ix->plain);
	mem_free(ix);
}

/* A file with tables must be an index of this version; one without is `*empty`. */
static int check_format(index_file *ix, bool *empty, sheaf_error *err)
{
	int64_t format = 0, tables = 0;
	int rc = read_pragma(ix, "PRAGMA user_version", &format, err);
	if (rc == 0)
		rc = read_pragma(ix, "SELECT count(*) FROM sqlite_schema", &tables, err);
	if (rc != 0)
		return rc;
	*empty = format == 0 && tables == 0;
	return *empty || (format == FORMAT[0] - '0' && tables != 0)
	               ? 0
	               : err_set(err, SHEAF_DAMAGED, "this is no search index of this version");
}

/* Several processes may find the file empty; one of them makes the tables. */
static int make_tables(index_file *ix, sheaf_error *err)
{
	bool empty = true;
	int rc = execute(ix, "BEGIN IMMEDIATE", err);
	if (rc != 0)
		return rc;
	rc = check_format(ix, &empty, err);
	if (rc == 0 && empty)
		rc = execute(ix, schema, err);
	int ended = execute(ix, rc == 0 ? "COMMIT" : "ROLLBACK", rc == 0 ? err : NULL);
	return rc == 0 ? ended : rc;
}

static int prepare(index_file *ix, bool in_memory, sheaf_error *err)
{
	int reserved = PAGE_RESERVED;
	if (!in_memory)
		(void)sqlite3_file_control(ix->db, "main", SQLITE_FCNTL_RESERVE_BYTES, &reserved);
	/* Journals beside the file, not a write-ahead log: see fts_vfs.c. What is deleted is
	   overwritten. Pages of a text that is being taken in stay in memory, so that others can
	   search meanwhile. */
	int rc = execute(ix,
	                 "PRAGMA page_size=4096; PRAGMA journal_mode=TRUNCATE;"
	                 "PRAGMA synchronous=FULL; PRAGMA secure_delete=ON;"
	                 "PRAGMA cache_size=-65536; PRAGMA temp_store=MEMORY;"
	                 "PRAGMA trusted_schema=OFF;",
	                 err);
	if (rc == 0)
		rc = fts_register(ix, err);
	bool empty = false;
	if (rc == 0)
		rc = check_format(ix, &empty, err);
	return rc == 0 && empty ? make_tables(ix, err) : rc;
}

static int fts_open(index_file **out, const char *path, int64_t wait_us, sheaf_error *err)
{
	index_file *ix = mem_zalloc(sizeof(*ix));
	if (ix == NULL)
		return err_nomem(err);
	ix->packed = (buf)BUF_INIT(SIZE_MAX);
	ix->plain = (buf)BUF_INIT(SIZE_MAX);
	int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE;
	int rc = path != NULL ? vfs_register() : SQLITE_OK;
	if (rc == SQLITE_OK)
		rc = path != NULL ? sqlite3_open_v2(path, &ix->db, flags, VFS_NAME)
		                  : sqlite3_open_v2(":memory:", &ix->db, flags | SQLITE_OPEN_CREATE,
		                                    NULL);
	if (rc == SQLITE_OK && path != NULL)
		rc = sqlite3_file_control(ix->db, "main", VFS_TELL, &ix->wrong);
	if (rc == SQLITE_OK)
		rc = sqlite3_busy_timeout(ix->db, (int)(wait_us / 1000));
	rc = rc == SQLITE_OK ? prepare(ix, path == NULL, err) : fts_fail(ix, rc, err);
	if (rc != 0) {
		fts_close(ix);
		return rc;
	}
	*out = ix;
	return 0;
}

/* ---- Changes ---------------------------------------------------------------------- */

static int fts_begin(index_file *ix, sheaf_error *err)
{
	sqlite3_stmt *st = fts_use(ix, ST_BEGIN, err);
	int rc = st != NULL ? fts_run(ix, st, err) : SHEAF_DAMAGED;
	ix->writing = rc == 0;
	ix->order = 0;
	return rc;
}

static void fts_undo(index_file *ix)
{
	sqlite3_stmt *st = ix->writing ? fts_use(ix, ST_ROLLBACK, NULL) : NULL;
	ix->writing = false;
	if (st != NULL && !sqlite3_get_autocommit(ix->db))
		(void)fts_run(ix, st, NULL);
}

static int fts_commit(index_file *ix, sheaf_error *err)
{
	sqlite3_stmt *st = fts_use(ix, ST_COMMIT, err);
	int rc = st != NULL ? fts_run(ix, st, err) : SHEAF_DAMAGED;
	if (rc == 0)
		ix->writing = false;
	else
		fts_undo(ix);
	return rc;
}

/* SQLite counts what others commit; what this one changes it counts elsewhere. */
static int fts_changes(index_file *ix, uint64_t *out, sheaf_error *err)
{
	_cleanup_(fts_done) sqlite3_stmt *st = fts_use(ix, ST_VERSION, err);
	if (st == NULL)
		return SHEAF_DAMAGED;
	int rc = sqlite3_step(st);
	if (rc != SQLITE_ROW)
		return fts_fail(ix, rc, err);
	*out = (uint64_t)sqlite3_column_int64(st, 0) << 32 ^
	       (uint64_t)(unsigned)sqlite3_total_changes(ix->db);
	return 0;
}

SHEAF_API extern const index_ops sheaf_search_module;

const index_ops sheaf_search_module = {
	.size = sizeof(index_ops),
	.version = INDEX_VERSION,
	.open = fts_open,
	.close = fts_close,
	.begin = fts_begin,
	.commit = fts_commit,
	.undo = fts_undo,
	.changes = fts_changes,
	.stamps = fts_stamps,
	.get = fts_get,
	.put = fts_put,
	.add = fts_add,
	.empty = fts_empty,
	.call_put = fts_call_put,
	.call_get = fts_call_get,
	.scrub = fts_scrub,
	.query = fts_query,
};
