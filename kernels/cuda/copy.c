/* SPDX-License-Identifier: MIT */
/* copy.c - ordinary memory to the card and back, through two page-locked pieces.
 *
 * A copy from memory that may be paged out is first copied by the driver, by one
 * thread: 10 GB/s of the 50 that the bus carries.  Here all threads fill one piece
 * while the other is on its way.  A row of hidden states is 336 MB, so a step is
 * shorter by tens of milliseconds.  Small copies go to the driver as they are. */
#include <cuda_runtime.h>

#include <string.h>

#include "cuda.h"
#include "mem.h"
#include "par.h"

enum { PIECE = 16 << 20, SMALL = 4 << 20, GRAIN = 1 << 20 };

struct cuda_copy {
    char *piece[2];      /* page-locked */
    cudaEvent_t done[2]; /* the piece has been read, or filled, by the card */
};

int cuda_copy_open(struct dev *d)
{
    struct cuda_copy *c = mem_zero(1, sizeof *c);
    if (!c)
        return E_MEMORY;
    cuda_state(d)->copy = c;
    for (int i = 0; i < 2; i++) {
        cudaError_t e = cudaMallocHost((void **)&c->piece[i], PIECE);
        if (e == cudaSuccess)
            e = cudaEventCreateWithFlags(&c->done[i], cudaEventDisableTiming);
        if (e != cudaSuccess)
            return err_set(E_MEMORY, "page-locked memory: %s", cudaGetErrorString(e));
    }
    return 0;
}

void cuda_copy_close(struct dev *d)
{
    struct cuda_copy *c = cuda_state(d)->copy;
    for (int i = 0; c && i < 2; i++) {
        if (c->done[i])
            cudaEventDestroy(c->done[i]);
        if (c->piece[i])
            cudaFreeHost(c->piece[i]);
    }
    mem_free(c);
}

/* One piece's copy in ordinary memory. */
struct move {
    char *to;
    const char *from;
};

static int move_part(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct move *m = ctx;
    (void)worker;
    memcpy(m->to + begin, m->from + begin, (size_t)(end - begin));
    return 0;
}

static int move(struct dev *d, char *to, const char *from, size_t bytes)
{
    struct move m = {to, from};
    return par_for(d->par, (int64_t)bytes, GRAIN, move_part, &m);
}

static int ended(cudaError_t e, const char *what)
{
    return e == cudaSuccess ? 0 : cuda_failed(e, E_DEVICE, what);
}

static size_t piece_at(size_t bytes, size_t at)
{
    return bytes - at < PIECE ? bytes - at : PIECE;
}

int cuda_copy_put(struct dev *d, void *to, const void *host, size_t bytes)
{
    struct cuda_copy *c = cuda_state(d)->copy;
    cudaStream_t s = (cudaStream_t)cuda_state(d)->stream;
    cudaError_t e = cudaSuccess;
    if (bytes < SMALL)
        e = cudaMemcpyAsync(to, host, bytes, cudaMemcpyHostToDevice, s);
    for (size_t at = 0, i = 0; bytes >= SMALL && at < bytes && e == cudaSuccess;
         at += PIECE, i = !i) {
        size_t n = piece_at(bytes, at);
        if (at >= 2 * (size_t)PIECE)
            e = cudaEventSynchronize(c->done[i]);
        if (e == cudaSuccess) {
            TRY(move(d, c->piece[i], (const char *)host + at, n));
            e = cudaMemcpyAsync((char *)to + at, c->piece[i], n, cudaMemcpyHostToDevice,
                                s);
        }
        if (e == cudaSuccess)
            e = cudaEventRecord(c->done[i], s);
    }
    if (e == cudaSuccess)
        e = cudaStreamSynchronize(s); // host memory may be reused on return
    return ended(e, "copy to the GPU");
}

/* ask begins the copy of the piece at `at` to the host. */
static cudaError_t ask(struct cuda_copy *c, int i, const char *from, size_t at,
                       size_t bytes, cudaStream_t s)
{
    cudaError_t e = cudaMemcpyAsync(c->piece[i], from + at, piece_at(bytes, at),
                                    cudaMemcpyDeviceToHost, s);
    return e == cudaSuccess ? cudaEventRecord(c->done[i], s) : e;
}

int cuda_copy_get(struct dev *d, void *host, const void *from, size_t bytes)
{
    struct cuda_copy *c = cuda_state(d)->copy;
    cudaStream_t s = (cudaStream_t)cuda_state(d)->stream;
    cudaError_t e;
    if (bytes < SMALL) {
        e = cudaMemcpyAsync(host, from, bytes, cudaMemcpyDeviceToHost, s);
        if (e == cudaSuccess)
            e = cudaStreamSynchronize(s);
        return ended(e, "copy from the GPU");
    }
    e = ask(c, 0, from, 0, bytes, s);
    for (size_t at = 0, i = 0; at < bytes && e == cudaSuccess; at += PIECE, i = !i) {
        if (bytes - at > PIECE)
            e = ask(c, !i, from, at + PIECE, bytes, s);
        if (e == cudaSuccess)
            e = cudaEventSynchronize(c->done[i]);
        if (e == cudaSuccess)
            TRY(move(d, (char *)host + at, c->piece[i], piece_at(bytes, at)));
    }
    return ended(e, "copy from the GPU");
}
