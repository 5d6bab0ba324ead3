/* SPDX-License-Identifier: MIT */
/* copy.c - ordinary memory to the card and back, through two page-locked pieces.
 *
 * A copy from memory that may be paged out is first copied by the driver, by one
 * thread: 10 GB/s of the 50 that the bus carries.  Here all threads fill one piece
 * while the other is on its way.  A row of hidden states is 336 MB, so a step is
 * shorter by tens of milliseconds.  Small copies go to the driver as they are.
 *
 * Two streams of their own carry copies beside the work: layers of a target that does
 * not fit go up ahead of it, states come down behind it into page-locked memory. */
#include <cuda_runtime.h>

#include <string.h>

#include "cuda.h"
#include "mem.h"
#include "par.h"

enum { PIECE = 16 << 20, SMALL = 4 << 20, GRAIN = 1 << 20 };

struct cuda_copy {
    char *piece[2];      /* page-locked */
    cudaEvent_t done[2]; /* the piece has been read, or filled, by the card */
    struct {
        cudaStream_t stream;
        char *piece[2];           /* page-locked, once they are wanted */
        cudaEvent_t done[2];      /* the piece has been read */
        int next;                 /* piece to fill */
        cudaEvent_t work, copied; /* see cuda_copy_order */
    } ahead;
    cudaStream_t beside;
};

/* open_pieces makes two pieces and their events. */
static int open_pieces(char *piece[2], cudaEvent_t done[2])
{
    for (int i = 0; i < 2; i++) {
        cudaError_t e = cudaMallocHost((void **)&piece[i], PIECE);
        if (e == cudaSuccess)
            e = cudaEventCreateWithFlags(&done[i], cudaEventDisableTiming);
        if (e != cudaSuccess)
            return err_set(E_MEMORY, "page-locked memory: %s", cudaGetErrorString(e));
    }
    return 0;
}

static void close_pieces(char *piece[2], cudaEvent_t done[2])
{
    for (int i = 0; i < 2; i++) {
        if (done[i])
            cudaEventDestroy(done[i]);
        if (piece[i])
            cudaFreeHost(piece[i]);
    }
}

int cuda_copy_open(struct dev *d)
{
    struct cuda_copy *c = mem_zero(1, sizeof *c);
    if (!c)
        return E_MEMORY;
    cuda_state(d)->copy = c;
    TRY(open_pieces(c->piece, c->done));
    cudaError_t e = cudaStreamCreateWithFlags(&c->beside, cudaStreamNonBlocking);
    return e == cudaSuccess ? 0 : cuda_failed(e, E_DEVICE, "stream for copies");
}

void cuda_copy_close(struct dev *d)
{
    struct cuda_copy *c = cuda_state(d)->copy;
    if (!c)
        return;
    close_pieces(c->piece, c->done);
    close_pieces(c->ahead.piece, c->ahead.done);
    if (c->ahead.work)
        cudaEventDestroy(c->ahead.work);
    if (c->ahead.copied)
        cudaEventDestroy(c->ahead.copied);
    if (c->ahead.stream)
        cudaStreamDestroy(c->ahead.stream);
    if (c->beside)
        cudaStreamDestroy(c->beside);
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

/* ---- beside the work ---- */

static int open_ahead(struct cuda_copy *c)
{
    if (c->ahead.stream)
        return 0;
    TRY(open_pieces(c->ahead.piece, c->ahead.done));
    cudaError_t e = cudaEventCreateWithFlags(&c->ahead.work, cudaEventDisableTiming);
    if (e == cudaSuccess)
        e = cudaEventCreateWithFlags(&c->ahead.copied, cudaEventDisableTiming);
    if (e == cudaSuccess)
        e = cudaStreamCreateWithFlags(&c->ahead.stream, cudaStreamNonBlocking);
    return ended(e, "stream for copies");
}

int cuda_copy_put_ahead(struct dev *d, void *to, const void *host, size_t bytes)
{
    struct cuda_copy *c = cuda_state(d)->copy;
    cudaError_t e = cudaSuccess;
    TRY(open_ahead(c));
    for (size_t at = 0; at < bytes && e == cudaSuccess; at += PIECE) {
        const int i = c->ahead.next;
        const size_t n = piece_at(bytes, at);
        c->ahead.next = !i;
        e = cudaEventSynchronize(c->ahead.done[i]);
        if (e == cudaSuccess) {
            TRY(move(d, c->ahead.piece[i], (const char *)host + at, n));
            e = cudaMemcpyAsync((char *)to + at, c->ahead.piece[i], n,
                                cudaMemcpyHostToDevice, c->ahead.stream);
        }
        if (e == cudaSuccess)
            e = cudaEventRecord(c->ahead.done[i], c->ahead.stream);
    }
    return ended(e, "copy to the GPU");
}

void cuda_copy_order(struct dev *d)
{
    struct cuda_copy *c = cuda_state(d)->copy;
    cudaStream_t s = (cudaStream_t)cuda_state(d)->stream;
    int rc = open_ahead(c);
    cudaError_t e = cudaSuccess;
    if (rc == 0)
        e = cudaEventRecord(c->ahead.copied, c->ahead.stream);
    if (rc == 0 && e == cudaSuccess)
        e = cudaStreamWaitEvent(s, c->ahead.copied, 0);
    if (rc == 0 && e == cudaSuccess)
        e = cudaEventRecord(c->ahead.work, s);
    if (rc == 0 && e == cudaSuccess)
        e = cudaStreamWaitEvent(c->ahead.stream, c->ahead.work, 0);
    if (rc == 0)
        rc = ended(e, "order of copies");
    if (rc < 0)
        dev_fail(d, rc, "%s", err_text());
}

int cuda_copy_get_beside(struct dev *d, void *host, const void *from, size_t bytes)
{
    struct cuda_copy *c = cuda_state(d)->copy;
    cudaError_t e =
        cudaMemcpyAsync(host, from, bytes, cudaMemcpyDeviceToHost, c->beside);
    if (e == cudaSuccess)
        e = cudaStreamSynchronize(c->beside);
    return ended(e, "copy from the GPU");
}
