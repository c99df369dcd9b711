/*
 * Pages that carry a checksum: a VFS between SQLite and the system's own.
 *
 * SQLite believes what it reads, and a bit that turns over in a list of hits is
 * a hit that is never found. So the last eight bytes of each page, which SQLite
 * leaves alone when told so, hold a CRC-32C of the rest and of where it lies.
 * Only the main file is looked after: the journal has checksums of its own.
 * There is neither shared memory nor mapping here, hence no write-ahead log.
 */
#include <pthread.h>

#include "base/crc.h"
#include "search/fts.h"

typedef struct checked_file {
	sqlite3_file file; /* what SQLite sees */
	bool *wrong;
	unsigned char page[PAGE_BYTES];
	sqlite3_file below[]; /* the system's */
} checked_file;

static sqlite3_vfs *below_vfs;
static sqlite3_vfs our_vfs;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static int registered = SQLITE_ERROR;

static checked_file *ours(sqlite3_file *f)
{
	return (checked_file *)(void *)f;
}

static sqlite3_file *below(sqlite3_file *f)
{
	return ours(f)->below;
}

static void seal(unsigned char *page, sqlite3_int64 at)
{
	uint64_t place = (uint64_t)at;
	uint32_t crc = crc32c((uint32_t)(place / PAGE_BYTES) + 1, page, PAGE_BYTES - PAGE_RESERVED);
	uint32_t again = ~crc;
	memcpy(page + PAGE_BYTES - 8, &crc, 4);
	memcpy(page + PAGE_BYTES - 4, &again, 4);
}

/* The header of the file is looked at alone, before its page is read and checked. */
#define HEADER_BYTES 100

static bool is_page(int amount, sqlite3_int64 at)
{
	return amount == PAGE_BYTES && at % PAGE_BYTES == 0;
}

static int checked_read(sqlite3_file *f, void *to, int amount, sqlite3_int64 at)
{
	int rc = below(f)->pMethods->xRead(below(f), to, amount, at);
	if (!is_page(amount, at) && amount > HEADER_BYTES) {
		/* Pages of another size: the header says what was never written. */
		if (ours(f)->wrong != NULL)
			*ours(f)->wrong = true;
		return SQLITE_CORRUPT;
	}
	if (!is_page(amount, at) || (rc != SQLITE_OK && rc != SQLITE_IOERR_SHORT_READ))
		return rc;
	unsigned char end[PAGE_RESERVED];
	memcpy(end, (unsigned char *)to + PAGE_BYTES - PAGE_RESERVED, PAGE_RESERVED);
	seal(to, at);
	if (rc == SQLITE_OK &&
	    memcmp(end, (unsigned char *)to + PAGE_BYTES - PAGE_RESERVED, PAGE_RESERVED) == 0)
		return SQLITE_OK;
	if (ours(f)->wrong != NULL)
		*ours(f)->wrong = true;
	return SQLITE_CORRUPT;
}

static int checked_write(sqlite3_file *f, const void *from, int amount, sqlite3_int64 at)
{
	if (!is_page(amount, at))
		return below(f)->pMethods->xWrite(below(f), from, amount, at);
	memcpy(ours(f)->page, from, PAGE_BYTES);
	seal(ours(f)->page, at);
	return below(f)->pMethods->xWrite(below(f), ours(f)->page, amount, at);
}

static int checked_close(sqlite3_file *f)
{
	return below(f)->pMethods->xClose(below(f));
}

static int checked_truncate(sqlite3_file *f, sqlite3_int64 size)
{
	return below(f)->pMethods->xTruncate(below(f), size);
}

static int checked_sync(sqlite3_file *f, int flags)
{
	return below(f)->pMethods->xSync(below(f), flags);
}

static int checked_size(sqlite3_file *f, sqlite3_int64 *size)
{
	return below(f)->pMethods->xFileSize(below(f), size);
}

static int checked_lock(sqlite3_file *f, int level)
{
	return below(f)->pMethods->xLock(below(f), level);
}

static int checked_unlock(sqlite3_file *f, int level)
{
	return below(f)->pMethods->xUnlock(below(f), level);
}

static int checked_reserved(sqlite3_file *f, int *held)
{
	return below(f)->pMethods->xCheckReservedLock(below(f), held);
}

static int checked_control(sqlite3_file *f, int what, void *value)
{
	if (what == VFS_TELL) {
		ours(f)->wrong = value;
		return SQLITE_OK;
	}
	return below(f)->pMethods->xFileControl(below(f), what, value);
}

static int checked_sector(sqlite3_file *f)
{
	return below(f)->pMethods->xSectorSize(below(f));
}

static int checked_device(sqlite3_file *f)
{
	/* A page must not be written in part, and none at the price of its neighbour. */
	return below(f)->pMethods->xDeviceCharacteristics(below(f)) &
	       (SQLITE_IOCAP_POWERSAFE_OVERWRITE | SQLITE_IOCAP_UNDELETABLE_WHEN_OPEN);
}

static const sqlite3_io_methods checked_methods = {
	.iVersion = 1,
	.xClose = checked_close,
	.xRead = checked_read,
	.xWrite = checked_write,
	.xTruncate = checked_truncate,
	.xSync = checked_sync,
	.xFileSize = checked_size,
	.xLock = checked_lock,
	.xUnlock = checked_unlock,
	.xCheckReservedLock = checked_reserved,
	.xFileControl = checked_control,
	.xSectorSize = checked_sector,
	.xDeviceCharacteristics = checked_device,
};

static int checked_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *f, int flags, int *out)
{
	(void)vfs;
	if ((flags & SQLITE_OPEN_MAIN_DB) == 0)
		return below_vfs->xOpen(below_vfs, name, f, flags, out);
	memset(ours(f), 0, sizeof(checked_file));
	int rc = below_vfs->xOpen(below_vfs, name, below(f), flags, out);
	if (rc == SQLITE_OK)
		f->pMethods = &checked_methods;
	return rc;
}

static void register_once(void)
{
	below_vfs = sqlite3_vfs_find(NULL);
	if (below_vfs == NULL)
		return;
	/* Everything but opening is the system's: its functions take the VFS for nothing but that. */
	our_vfs = *below_vfs;
	our_vfs.pNext = NULL;
	our_vfs.zName = VFS_NAME;
	our_vfs.szOsFile = (int)sizeof(checked_file) + below_vfs->szOsFile;
	our_vfs.xOpen = checked_open;
	registered = sqlite3_vfs_register(&our_vfs, 0);
}

int vfs_register(void)
{
	pthread_once(&once, register_once);
	return registered;
}
