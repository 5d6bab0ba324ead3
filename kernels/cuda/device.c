/* SPDX-License-Identifier: MIT */
/* device.c - a GPU as a backend: stream, memory, workspace, faults.
 *
 * Modules are loaded at open (CUDA_MODULE_LOADING=EAGER is the tool's business), the
 * workspace is taken once, and everything runs on one stream: a step after the first
 * changes nothing in the card's free memory, which draft-train checks. */
#include <cublasLt.h>
#include <cuda_runtime.h>

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "cuda.h"
#include "hash.h"
#include "mem.h"

int cuda_failed(int error, int code, const char *what)
{
    static const cudaError_t lost[] = {
        cudaErrorDevicesUnavailable, cudaErrorECCUncorrectable,
        cudaErrorNvlinkUncorrectable, cudaErrorSystemNotReady};
    cudaError_t e = (cudaError_t)error;
    for (size_t i = 0; i < sizeof lost / sizeof *lost; i++)
        if (e == lost[i])
            code = E_AGAIN;
    return err_set(code, "%s: %s", what, cudaGetErrorString(e));
}

/* use makes the GPU current for the calling thread.  A thread's work begins with a copy
 * or an allocation, so these call it and launches need not. */
static void use(const struct dev *d)
{
    cudaSetDevice(cuda_state(d)->index);
}

static int open_state(struct dev *d, struct cuda_state *s, int index)
{
    struct cudaDeviceProp prop;
    cudaStream_t stream;
    cudaError_t e = cudaSetDevice(index);
    if (e == cudaSuccess)
        e = cudaGetDeviceProperties(&prop, index);
    if (e != cudaSuccess)
        return cuda_failed(e, E_CONFIG, "no such GPU");
    s->index = index;
    s->sms = prop.multiProcessorCount;
    s->capability = prop.major * 10 + prop.minor;
    if (s->capability < 80)
        return err_set(E_CONFIG, "%s has compute capability %d.%d, 8.0 is needed",
                       prop.name, prop.major, prop.minor);
    if ((e = cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking)) != cudaSuccess)
        return cuda_failed(e, E_DEVICE, "stream");
    s->stream = stream;
    e = cudaHostAlloc((void **)&s->fault, sizeof *s->fault, cudaHostAllocMapped);
    if (e != cudaSuccess)
        return cuda_failed(e, E_MEMORY, "mapped host memory");
    memset(s->fault, 0, sizeof *s->fault);
    e = cudaHostGetDevicePointer((void **)&s->device_fault, s->fault, 0);
    if (e != cudaSuccess)
        return cuda_failed(e, E_DEVICE, "mapped host memory");
    void *space;
    TRY(dev_alloc(d, &space, CUDA_WORKSPACE_BYTES));
    s->scratch = (char *)space;
    s->lt_space = s->scratch + CUDA_SCRATCH_BYTES;
    s->logits = s->lt_space + CUDA_LT_BYTES;
    d->scratch = space;
    d->scratch_bytes = CUDA_WORKSPACE_BYTES;
    TRY(cuda_copy_open(d));
    return cuda_matmul_open(d);
}

static void device_close(struct dev *d)
{
    struct cuda_state *s = cuda_state(d);
    if (!s)
        return;
    cuda_matmul_close(d);
    cuda_copy_close(d);
    dev_free(d, s->scratch, CUDA_WORKSPACE_BYTES);
    if (s->fault)
        cudaFreeHost(s->fault);
    if (s->stream)
        cudaStreamDestroy((cudaStream_t)s->stream);
    mem_free(s);
    d->state = NULL;
}

static int device_open(struct dev *d, int index)
{
    struct cuda_state *s = mem_zero(1, sizeof *s);
    if (!s)
        return E_MEMORY;
    d->state = s;
    int rc = open_state(d, s, index);
    if (rc < 0)
        device_close(d);
    return rc;
}

static void *device_alloc(struct dev *d, size_t bytes)
{
    void *p = NULL;
    use(d);
    cudaError_t e = cudaMalloc(&p, bytes ? bytes : 1);
    if (e != cudaSuccess) {
        size_t available = 0, total = 0;
        cudaMemGetInfo(&available, &total);
        cudaGetLastError();
        err_set(E_MEMORY, "%zu bytes of GPU memory, %zu free of %zu: %s", bytes,
                available, total, cudaGetErrorString(e));
        return NULL;
    }
    return p;
}

static void device_free(struct dev *d, void *p)
{
    use(d);
    cudaFree(p);
}

static int device_put(struct dev *d, void *to, const void *host, size_t bytes)
{
    use(d);
    return cuda_copy_put(d, to, host, bytes);
}

static int device_get(struct dev *d, void *host, const void *from, size_t bytes)
{
    use(d);
    return cuda_copy_get(d, host, from, bytes);
}

static int device_put_ahead(struct dev *d, void *to, const void *host, size_t bytes)
{
    use(d);
    return cuda_copy_put_ahead(d, to, host, bytes);
}

static int device_get_beside(struct dev *d, void *host, const void *from, size_t bytes)
{
    use(d);
    return cuda_copy_get_beside(d, host, from, bytes);
}

static int device_host_alloc(struct dev *d, void **out, size_t bytes)
{
    use(d);
    cudaError_t e = cudaMallocHost(out, bytes);
    cudaGetLastError(); // what failed here is told here, not by the next launch
    return e == cudaSuccess ? 0
                            : err_set(E_MEMORY, "%zu bytes of page-locked memory: %s",
                                      bytes, cudaGetErrorString(e));
}

static void device_host_free(struct dev *d, void *p)
{
    use(d);
    cudaFreeHost(p);
}

/* fault_error turns what a kernel noted into a message. */
static int fault_error(const struct cuda_fault *f)
{
    switch (f->kind) {
    case FAULT_ID:
        return err_set(E_FORMAT, "position %lld: id %d is out of range", f->position,
                       f->value);
    case FAULT_LABEL:
        return err_set(E_FORMAT, "row %lld: label %d is out of range", f->position,
                       f->value);
    case FAULT_NAN:
        return err_set(E_FORMAT, "row %lld: NaN among the scores", f->position);
    default:
        return err_set(E_FORMAT, "%s: row %lld is not finite",
                       f->what ? f->what : "data", f->position);
    }
}

static int device_sync(struct dev *d)
{
    struct cuda_state *s = cuda_state(d);
    use(d);
    cudaError_t e = cudaStreamSynchronize((cudaStream_t)s->stream);
    if (e != cudaSuccess)
        return cuda_failed(e, E_DEVICE, "GPU");
    return s->fault->kind == FAULT_NONE ? 0 : fault_error(s->fault);
}

static int device_memory(struct dev *d, struct dev_memory *m)
{
    uint64_t digest;
    cudaError_t e = cudaMemGetInfo(&m->available, &m->total);
    if (e != cudaSuccess)
        return cuda_failed(e, E_DEVICE, "free memory of the GPU");
    m->shapes = cuda_matmul_met(d, &digest);
    m->shared = cuda_neighbours(d) > 0;
    return 0;
}

static void device_identity(const struct dev *d, char out[DEV_IDENTITY])
{
    struct cudaDeviceProp prop;
    uint64_t digest;
    char text[HASH_TEXT];
    int driver = 0;
    cuda_matmul_met(d, &digest);
    cudaDriverGetVersion(&driver);
    bool known = cudaGetDeviceProperties(&prop, cuda_state(d)->index) == cudaSuccess;
    snprintf(out, DEV_IDENTITY, "%.64s, driver %d, cuBLASLt %zu, algorithms %s",
             known ? prop.name : "GPU", driver, cublasLtGetVersion(),
             hash_text(text, digest));
}

void cuda_launched(struct dev *d, const char *kernel)
{
    cudaError_t e = cudaGetLastError();
    if (e != cudaSuccess)
        dev_fail(d, cuda_failed(e, E_DEVICE, kernel), "%s", err_text());
}

const struct backend cuda_backend = {
    "cuda",
    DT_BF16,
    cuda_parts,
    E_CONFIG,
    device_memory,
    device_identity,
    device_open,
    device_close,
    device_alloc,
    device_free,
    device_put,
    device_get,
    device_put_ahead,
    cuda_copy_order,
    device_get_beside,
    device_host_alloc,
    device_host_free,
    device_sync,
    cuda_pack_bytes,
    cuda_matmul,
    cuda_matmul_dx,
    cuda_matmul_dw,
    cuda_pack,
    cuda_gather,
    cuda_scatter,
    cuda_convert,
    cuda_tap,
    cuda_quant,
    cuda_dequant,
    cuda_add,
    cuda_rmsnorm,
    cuda_rmsnorm_bwd,
    cuda_norm_rope,
    cuda_norm_rope_bwd,
    cuda_swiglu,
    cuda_swiglu_bwd,
    cuda_attn_span,
    cuda_attn_block,
    cuda_attn_block_bwd,
    cuda_head_loss,
    cuda_argmax,
    cuda_sumsq,
    cuda_fill,
    cuda_scale,
    cuda_adamw,
    cuda_finite,
    cuda_normal,
    cuda_gate,
    cuda_delta_mix,
    cuda_delta,
    cuda_norm_gate,
};
