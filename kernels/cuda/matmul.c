/* SPDX-License-Identifier: MIT */
/* matmul.c - matrix products through cuBLASLt.
 *
 * Row-major y[M,N] = x[M,K] w[N,K]^T is column-major y'[N,M] = op(w) x, so w is the
 * first operand, transposed.  For each shape the heuristic's first algorithm is taken:
 * nothing is timed at run time, so a run takes the same algorithms every time on the
 * same card and library.  Descriptors are kept in a table by the shape's hash; a full
 * bucket gives a place up, so prompts of any length can come and go.  Inputs bf16 or
 * f32 as stored, accumulation f32, without TF32; the sum with y happens in the
 * product's epilogue (beta = 1). */
#include <cublasLt.h>
#include <cuda_runtime.h>

#include <stdint.h>
#include <string.h>

#include "cuda.h"
#include "hash.h"
#include "mem.h"

enum { BUCKETS = 128, WAYS = 8 }; // a training step has some 30 shapes

/* A product C[m,n] (column-major) = op(A) op(B) + beta C, and the algorithm for it. */
struct plan {
    int64_t m, n, k, lda, ldb, ldc;
    cublasOperation_t op_a, op_b;
    cudaDataType_t type_a, type_b, type_c;
    int align; /* of the three pointers: 16, 8, 4 or 2 bytes */
    cublasLtMatmulDesc_t desc;
    cublasLtMatrixLayout_t a, b, c;
    cublasLtMatmulAlgo_t algo;
};

struct lt {
    cublasLtHandle_t handle;
    int64_t met;     /* shapes so far */
    uint64_t digest; /* of their algorithms, in order */
    struct plan plan[BUCKETS][WAYS];
};

int cuda_matmul_open(struct dev *d)
{
    struct lt *lt = mem_zero(1, sizeof *lt);
    if (!lt)
        return E_MEMORY;
    if (cublasLtCreate(&lt->handle) != CUBLAS_STATUS_SUCCESS) {
        mem_free(lt);
        return err_set(E_DEVICE, "cublasLtCreate failed");
    }
    cuda_state(d)->lt = lt;
    return 0;
}

static void forget(struct plan *p)
{
    if (p->desc)
        cublasLtMatmulDescDestroy(p->desc);
    if (p->a)
        cublasLtMatrixLayoutDestroy(p->a);
    if (p->b)
        cublasLtMatrixLayoutDestroy(p->b);
    if (p->c)
        cublasLtMatrixLayoutDestroy(p->c);
    memset(p, 0, sizeof *p);
}

void cuda_matmul_close(struct dev *d)
{
    struct lt *lt = cuda_state(d)->lt;
    if (!lt)
        return;
    for (int i = 0; i < BUCKETS * WAYS; i++)
        forget(&lt->plan[i / WAYS][i % WAYS]);
    cublasLtDestroy(lt->handle);
    mem_free(lt);
}

static cudaDataType_t type_of(enum dtype t)
{
    return t == DT_BF16 ? CUDA_R_16BF : CUDA_R_32F;
}

/* describe makes the descriptors of a plan; 0 or cuBLAS's status. */
static int describe(struct plan *p)
{
    int rc = cublasLtMatmulDescCreate(&p->desc, CUBLAS_COMPUTE_32F, CUDA_R_32F);
    if (!rc)
        rc = cublasLtMatmulDescSetAttribute(p->desc, CUBLASLT_MATMUL_DESC_TRANSA,
                                            &p->op_a, sizeof p->op_a);
    if (!rc)
        rc = cublasLtMatmulDescSetAttribute(p->desc, CUBLASLT_MATMUL_DESC_TRANSB,
                                            &p->op_b, sizeof p->op_b);
    bool ta = p->op_a == CUBLAS_OP_T, tb = p->op_b == CUBLAS_OP_T;
    if (!rc)
        rc = cublasLtMatrixLayoutCreate(&p->a, p->type_a, (uint64_t)(ta ? p->k : p->m),
                                        (uint64_t)(ta ? p->m : p->k), p->lda);
    if (!rc)
        rc = cublasLtMatrixLayoutCreate(&p->b, p->type_b, (uint64_t)(tb ? p->n : p->k),
                                        (uint64_t)(tb ? p->k : p->n), p->ldb);
    if (!rc)
        rc = cublasLtMatrixLayoutCreate(&p->c, p->type_c, (uint64_t)p->m,
                                        (uint64_t)p->n, p->ldc);
    return rc;
}

/* choose asks the heuristic for the first algorithm that fits the workspace. */
static int choose(struct lt *lt, struct plan *p)
{
    cublasLtMatmulPreference_t want;
    cublasLtMatmulHeuristicResult_t found;
    size_t space = CUDA_LT_BYTES;
    uint32_t align = (uint32_t)p->align;
    int n = 0, rc = cublasLtMatmulPreferenceCreate(&want);
    if (rc)
        return rc;
    static const cublasLtMatmulPreferenceAttributes_t pointer[] = {
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES};
    rc = cublasLtMatmulPreferenceSetAttribute(
        want, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &space, sizeof space);
    for (int i = 0; i < 4 && !rc; i++)
        rc = cublasLtMatmulPreferenceSetAttribute(want, pointer[i], &align,
                                                  sizeof align);
    if (!rc)
        rc = cublasLtMatmulAlgoGetHeuristic(lt->handle, p->desc, p->a, p->b, p->c, p->c,
                                            want, 1, &found, &n);
    cublasLtMatmulPreferenceDestroy(want);
    if (!rc && n == 0)
        rc = CUBLAS_STATUS_NOT_SUPPORTED;
    if (rc)
        return rc;
    p->algo = found.algo;
    const uint64_t word[] = {lt->digest, hash_bytes(p, offsetof(struct plan, desc)),
                             hash_bytes(&p->algo, sizeof p->algo)};
    lt->digest = hash_bytes(word, sizeof word);
    lt->met++;
    return 0;
}

int64_t cuda_matmul_met(const struct dev *d, uint64_t *digest)
{
    const struct lt *lt = cuda_state(d)->lt;
    *digest = lt->digest;
    return lt->met;
}

/* find returns the plan of a shape, made at its first use. */
static struct plan *find(struct dev *d, const struct plan *key)
{
    const size_t bytes = offsetof(struct plan, desc);
    uint64_t hash = hash_bytes(key, bytes);
    struct plan *bucket = cuda_state(d)->lt->plan[hash % BUCKETS];
    struct plan *p = &bucket[hash / BUCKETS % WAYS];
    for (int i = 0; i < WAYS; i++)
        if (memcmp(&bucket[i], key, bytes) == 0)
            return &bucket[i];
    for (int i = 0; i < WAYS && p->m; i++)
        if (!bucket[i].m)
            p = &bucket[i];
    forget(p);
    memcpy(p, key, sizeof *p);
    int rc = describe(p);
    if (!rc)
        rc = choose(cuda_state(d)->lt, p);
    if (!rc)
        return p;
    dev_fail(d, E_DEVICE, "cuBLASLt: no product %lldx%lldx%lld: %s", (long long)p->m,
             (long long)p->n, (long long)p->k,
             cublasLtGetStatusString((cublasStatus_t)rc));
    forget(p);
    return NULL;
}

static int alignment(const void *p, int64_t ld, size_t size)
{
    uintptr_t bits = (uintptr_t)p | (uintptr_t)ld * size | 16;
    return (int)(bits & -bits);
}

void cuda_product(struct dev *d, struct tensor c, struct cuda_side a,
                  struct cuda_side b, int64_t m, int64_t n, int64_t k, bool add)
{
    if (m == 0 || n == 0)
        return;
    if (k == 0) {
        if (!add)
            cuda_fill(d, c, 0.0f);
        return;
    }
    struct plan key;
    memset(&key, 0, sizeof key);
    key.m = m, key.n = n, key.k = k, key.lda = a.ld, key.ldb = b.ld, key.ldc = m;
    key.op_a = a.turned ? CUBLAS_OP_T : CUBLAS_OP_N;
    key.op_b = b.turned ? CUBLAS_OP_T : CUBLAS_OP_N;
    key.type_a = type_of(a.t.type), key.type_b = type_of(b.t.type);
    key.type_c = type_of(c.type);
    int pa = alignment(a.t.data, a.ld, dtype_size(a.t.type));
    int pb = alignment(b.t.data, b.ld, dtype_size(b.t.type));
    int pc = alignment(c.data, m, dtype_size(c.type));
    key.align = pa < pb ? pa : pb;
    key.align = pc < key.align ? pc : key.align;
    struct plan *p = find(d, &key);
    if (!p)
        return;
    struct cuda_state *s = cuda_state(d);
    float alpha = 1.0f, beta = add ? 1.0f : 0.0f;
    int rc = cublasLtMatmul(s->lt->handle, p->desc, &alpha, a.t.data, p->a, b.t.data,
                            p->b, &beta, c.data, p->c, c.data, p->c, &p->algo,
                            s->lt_space, CUDA_LT_BYTES, s->stream);
    if (rc)
        dev_fail(d, E_DEVICE, "cuBLASLt: product %lldx%lldx%lld: %s", (long long)m,
                 (long long)n, (long long)k,
                 cublasLtGetStatusString((cublasStatus_t)rc));
}

struct tensor cuda_same_type(struct dev *d, struct tensor w, enum dtype type,
                             void *space, size_t bytes)
{
    if (w.type == type)
        return w;
    struct tensor y = w;
    y.type = type;
    y.data = space;
    if (tensor_bytes(&y) > bytes)
        bug("a weight of %zu bytes is too large for the f32 mode", tensor_bytes(&y));
    cuda_convert(d, y, w);
    return y;
}

/* weight is w in x's type, expanded where logits would stand. */
static struct tensor weight(struct dev *d, struct tensor w, struct tensor x)
{
    return cuda_same_type(d, w, x.type, cuda_state(d)->logits, CUDA_LOGITS_BYTES);
}

void cuda_matmul(struct dev *d, struct tensor y, struct tensor x, struct tensor w,
                 bool add)
{
    int64_t m = x.dim[0], k = x.dim[1], n = w.dim[0];
    struct cuda_side a = {weight(d, w, x), true, k}, b = {x, false, k};
    cuda_product(d, y, a, b, n, m, k, add);
}

void cuda_matmul_dx(struct dev *d, struct tensor dx, struct tensor dy, struct tensor w,
                    bool add)
{
    int64_t m = dy.dim[0], n = dy.dim[1], k = w.dim[1];
    struct cuda_side a = {weight(d, w, dy), false, k}, b = {dy, false, n};
    cuda_product(d, dx, a, b, k, m, n, add);
}

void cuda_matmul_dw(struct dev *d, struct tensor dw, struct tensor dy, struct tensor x)
{
    int64_t m = dy.dim[0], n = dy.dim[1], k = x.dim[1];
    struct cuda_side a = {x, false, k}, b = {dy, true, n};
    cuda_product(d, dw, a, b, k, n, m, true);
}

size_t cuda_pack_bytes(const struct dev *d, struct tensor w)
{
    (void)d;
    return tensor_bytes(&w);
}

/* A panel is the weight itself: cuBLASLt reads rows as they are. */
void cuda_pack(struct dev *d, struct tensor p, struct tensor w)
{
    struct tensor y = w;
    y.data = p.data;
    cuda_convert(d, y, w);
}
