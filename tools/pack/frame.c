/* SPDX-License-Identifier: MIT */
/* frame.c - zstd in one call, lz4 in a few. */
#include "frame.h"

#include <lz4frame.h>
#include <zstd.h>

#include "err.h"

static int odd(const char *how, const char *why)
{
    return err_set(E_FORMAT, "cannot unpack %s: %s", how, why);
}

static int unpack_zstd(void *to, const void *p, size_t n, size_t want)
{
    size_t got = ZSTD_decompress(to, want, p, n);
    if (ZSTD_isError(got))
        return odd("zstd", ZSTD_getErrorName(got));
    return got == want ? 0 : odd("zstd", "it is shorter than announced");
}

static int run_lz4(LZ4F_dctx *ctx, char *to, const char *p, size_t n, size_t want)
{
    size_t used = 0, made = 0, left = 1;
    while (left) {
        size_t in = n - used, out = want - made;
        left = LZ4F_decompress(ctx, to + made, &out, p + used, &in, NULL);
        if (LZ4F_isError(left))
            return odd("lz4", LZ4F_getErrorName(left));
        used += in;
        made += out;
        if (left && in == 0 && out == 0)
            return odd("lz4", "it is cut, or longer than announced");
    }
    return used == n && made == want ? 0 : odd("lz4", "it is not as long as announced");
}

static int unpack_lz4(void *to, const void *p, size_t n, size_t want)
{
    LZ4F_dctx *ctx;
    if (LZ4F_isError(LZ4F_createDecompressionContext(&ctx, LZ4F_VERSION)))
        return err_set(E_MEMORY, "no memory to unpack lz4");
    int rc = run_lz4(ctx, to, p, n, want);
    LZ4F_freeDecompressionContext(ctx);
    return rc;
}

int frame_unpack(struct buf *out, enum frame how, const void *p, size_t n, size_t want)
{
    buf_clear(out);
    char *to = buf_room(out, want);
    if (!to)
        return err_set(E_MEMORY, "no memory for %zu bytes", want);
    TRY(how == FRAME_ZSTD ? unpack_zstd(to, p, n, want) : unpack_lz4(to, p, n, want));
    out->len = want;
    out->p[want] = 0;
    return 0;
}
