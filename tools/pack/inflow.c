/* SPDX-License-Identifier: MIT */
/* inflow.c - plain bytes go straight through; zstd frames, of which several may follow
 * one another, go through one decoder; other compressions go through unpack. */
#include "inflow.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>
#include <zstd.h>

#include "err.h"
#include "file.h"
#include "hash.h"
#include "mem.h"
#include "unpack.h"

enum {
    RAW = 1 << 18,
    /* zstd --long=31, the longest; a frame only takes the memory that it asks for. */
    WINDOW_LOG = 31
};

struct unzip {
    ZSTD_DCtx *ctx;
    bool inside; // a frame has begun and not ended
};

int inflow_open(struct inflow *in, const char *path, const char *name)
{
    *in = (struct inflow){.fd = -1, .path = path, .name = name};
    in->fd =
        strcmp(path, "-") == 0 ? dup(STDIN_FILENO) : open(path, O_RDONLY | O_CLOEXEC);
    if (in->fd < 0)
        return err_errno(errno, "cannot open %s", name);
    in->buffer = mem_alloc(RAW);
    in->hash = hash_open();
    if (in->buffer && in->hash)
        return 0;
    inflow_close(in);
    return E_MEMORY;
}

void inflow_close(struct inflow *in)
{
    if (in->buffer) // a zero struct has no descriptor
        close(in->fd);
    if (in->unzip)
        ZSTD_freeDCtx(in->unzip->ctx);
    mem_free(in->unzip);
    unpack_close(in->unpack);
    hash_close(in->hash);
    mem_free(in->buffer);
    buf_drop(&in->have);
    *in = (struct inflow){.fd = -1};
}

/* Raw bytes, hashed while they are in the cache: how many, 0 at the end. */
static int64_t get(struct inflow *in, char *to)
{
    int64_t got = file_get(in->fd, to, RAW, in->name);
    if (got > 0) {
        hash_add(in->hash, to, (size_t)got);
        in->raw += got;
    }
    return got;
}

static int refill(struct inflow *in)
{
    int64_t got = get(in, in->buffer);
    if (got < 0)
        return (int)got;
    in->at = 0;
    in->end = (size_t)got;
    return got > 0;
}

/* The first frame of a zstd file may be one that holds no data (pzstd). */
static bool is_zstd(const char *bytes, size_t n)
{
    const unsigned char *b = (const unsigned char *)bytes;
    bool skipped =
        n >= 4 && (b[0] & 0xf0) == 0x50 && memcmp(b + 1, "\x2a\x4d\x18", 3) == 0;
    return skipped || (n >= 4 && memcmp(b, "\x28\xb5\x2f\xfd", 4) == 0);
}

static int begin_zstd(struct inflow *in)
{
    in->unzip = mem_zero(1, sizeof *in->unzip);
    if (!in->unzip)
        return E_MEMORY;
    in->unzip->ctx = ZSTD_createDCtx();
    if (!in->unzip->ctx)
        return err_set(E_MEMORY, "no memory to decompress %s", in->name);
    ZSTD_DCtx_setParameter(in->unzip->ctx, ZSTD_d_windowLogMax, WINDOW_LOG);
    return 0;
}

/* Raw bytes for unpack. */
static int64_t give(void *ctx, const void **bytes)
{
    struct inflow *in = ctx;
    if (in->at == in->end)
        TRY(refill(in));
    int64_t n = (int64_t)(in->end - in->at);
    *bytes = in->buffer + in->at;
    in->at = in->end;
    return n;
}

static int begin(struct inflow *in)
{
    in->begun = true;
    TRY(refill(in));
    if (is_zstd(in->buffer, in->end))
        return begin_zstd(in);
    if (unpack_knows(in->buffer, in->end))
        return unpack_stream(&in->unpack, give, in, in->name);
    return 0;
}

/* Behind what the search for compression has read, bytes go straight to their place. */
static int more_plain(struct inflow *in)
{
    if (in->at < in->end) {
        buf_add(&in->have, in->buffer + in->at, in->end - in->at);
        in->at = in->end;
        TRY(buf_check(&in->have));
        return 1;
    }
    char *room = buf_room(&in->have, RAW);
    if (!room)
        return buf_check(&in->have);
    int64_t got = get(in, room);
    TRY((int)(got < 0 ? got : 0));
    in->have.len += (size_t)got;
    in->have.p[in->have.len] = 0;
    return got > 0;
}

/* At the end of the file the decoder may still hold output back. */
static int more_zstd(struct inflow *in)
{
    if (in->at == in->end)
        TRY(refill(in));
    size_t size = ZSTD_DStreamOutSize();
    char *room = buf_room(&in->have, size);
    if (!room)
        return buf_check(&in->have);
    ZSTD_inBuffer from = {in->buffer, in->end, in->at};
    ZSTD_outBuffer to = {room, size, 0};
    size_t left = ZSTD_decompressStream(in->unzip->ctx, &to, &from);
    if (ZSTD_isError(left))
        return err_set(E_FORMAT, "%s: cannot decompress behind byte %lld: %s", in->name,
                       (long long)(in->raw - (int64_t)(in->end - in->at)),
                       ZSTD_getErrorName(left));
    bool moved = from.pos > in->at || to.pos > 0;
    in->at = from.pos;
    in->have.len += to.pos;
    in->have.p[in->have.len] = 0;
    if (moved) // without input a finished decoder asks for the next frame
        in->unzip->inside = left != 0;
    return moved;
}

static int more_unpacked(struct inflow *in)
{
    char *room = buf_room(&in->have, RAW);
    if (!room)
        return buf_check(&in->have);
    int64_t got = unpack_read(in->unpack, room, RAW);
    TRY((int)(got < 0 ? got : 0));
    in->have.len += (size_t)got;
    in->have.p[in->have.len] = 0;
    return got > 0;
}

int inflow_more(struct inflow *in, size_t want)
{
    size_t before = in->have.len;
    if (!in->begun)
        TRY(begin(in));
    while (!in->ended && in->have.len - before < want) {
        int moved = in->unzip    ? more_zstd(in)
                    : in->unpack ? more_unpacked(in)
                                 : more_plain(in);
        TRY(moved);
        in->ended = moved == 0;
    }
    if (in->ended && in->unzip && in->unzip->inside)
        return err_set(E_FORMAT, "%s: cut: it ends inside a zstd frame", in->name);
    return in->have.len > before;
}

int inflow_cut(struct inflow *in, size_t n, struct buf *out)
{
    struct buf rest = *out;
    buf_clear(&rest);
    if (in->have.len > n)
        buf_add(&rest, buf_text(&in->have) + n, in->have.len - n);
    *out = in->have;
    in->have = rest;
    out->len = n;
    if (out->p)
        out->p[n] = 0;
    return buf_check(&in->have);
}

void inflow_take(struct inflow *in, size_t n)
{
    if (n == 0)
        return;
    memmove(in->have.p, in->have.p + n, in->have.len - n);
    in->have.len -= n;
    in->have.p[in->have.len] = 0;
}

uint64_t inflow_xxh3(const struct inflow *in)
{
    return hash_value(in->hash);
}
