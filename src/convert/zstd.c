/* The module zstd: unpacks session files that were compressed, with libzstd. */
#include <zstd.h>

#include "convert/zstd.h"

/* The memory a file may ask for, as a power of two: eight times what agents' files need. */
#define WINDOW_LOG_MAX 24

static unpacker *zstd_open(void)
{
	ZSTD_DCtx *d = ZSTD_createDCtx();
	if (d != NULL &&
	    ZSTD_isError(ZSTD_DCtx_setParameter(d, ZSTD_d_windowLogMax, WINDOW_LOG_MAX))) {
		(void)ZSTD_freeDCtx(d);
		d = NULL;
	}
	return (unpacker *)d;
}

static void zstd_close(unpacker *u)
{
	(void)ZSTD_freeDCtx((ZSTD_DCtx *)u);
}

static int zstd_run(unpacker *u, sheaf_str packed, size_t *taken, char *out, size_t room,
                    size_t *given)
{
	ZSTD_inBuffer from = {packed.ptr, packed.len, 0};
	ZSTD_outBuffer to = {out, room, 0};
	size_t rc = ZSTD_decompressStream((ZSTD_DCtx *)u, &to, &from);
	*taken = from.pos;
	*given = to.pos;
	return ZSTD_isError(rc) ? SHEAF_FORMAT : 0;
}

extern const zstd_ops sheaf_zstd_module;

SHEAF_API const zstd_ops sheaf_zstd_module = {
	.size = sizeof(zstd_ops),
	.version = ZSTD_OPS_VERSION,
	.open = zstd_open,
	.close = zstd_close,
	.run = zstd_run,
};
