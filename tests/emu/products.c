/* SPDX-License-Identifier: MIT */
/* products.c - cuBLASLt on a CPU: a matrix product as its definition says.
 *
 * Both operands are laid out as rows of f32 along the inner index first.  Of types it
 * takes what the library takes of them: two equal ones, into that type or f32. */
#include "cublasLt.h"

#include <stdlib.h>

#include "num.h"

struct emu_desc {
    cublasOperation_t op[2];
};

struct emu_layout {
    cudaDataType type;
    int64_t rows, cols, ld;
};

static cublasStatus_t made(void *p)
{
    return p ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
}

cublasStatus_t cublasLtCreate(cublasLtHandle_t *h)
{
    return made(*h = (cublasLtHandle_t)malloc(1));
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t h)
{
    free(h);
    return CUBLAS_STATUS_SUCCESS;
}

size_t cublasLtGetVersion(void)
{
    return 0;
}

const char *cublasLtGetStatusString(cublasStatus_t s)
{
    return s ? "not supported" : "success";
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *d, cublasComputeType_t c,
                                        cudaDataType scale)
{
    (void)c;
    (void)scale;
    return made(*d = calloc(1, sizeof **d));
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t d)
{
    free(d);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t d,
                                              cublasLtMatmulDescAttributes_t what,
                                              const void *value, size_t bytes)
{
    if (bytes != sizeof d->op[0])
        return CUBLAS_STATUS_NOT_SUPPORTED;
    d->op[what == CUBLASLT_MATMUL_DESC_TRANSB] = *(const cublasOperation_t *)value;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *l, cudaDataType type,
                                          uint64_t rows, uint64_t cols, int64_t ld)
{
    *l = malloc(sizeof **l);
    if (*l)
        **l = (struct emu_layout){type, (int64_t)rows, (int64_t)cols, ld};
    return made(*l);
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t l)
{
    free(l);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *p)
{
    return made(*p = (cublasLtMatmulPreference_t)malloc(1));
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t p)
{
    free(p);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(
    cublasLtMatmulPreference_t p, cublasLtMatmulPreferenceAttributes_t what,
    const void *value, size_t bytes)
{
    (void)what;
    (void)bytes;
    return p && value ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
}

/* fits: op(A) is m x k, op(B) k x n, C m x n, and no column overlaps the next. */
static bool fits(cublasLtMatmulDesc_t d, cublasLtMatrixLayout_t a,
                 cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c)
{
    int64_t m = d->op[0] ? a->cols : a->rows, k = d->op[0] ? a->rows : a->cols;
    int64_t n = d->op[1] ? b->rows : b->cols, kb = d->op[1] ? b->cols : b->rows;
    return m == c->rows && n == c->cols && k == kb && a->ld >= a->rows &&
           b->ld >= b->rows && c->ld >= c->rows && a->type == b->type &&
           (c->type == a->type || c->type == CUDA_R_32F);
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(
    cublasLtHandle_t h, cublasLtMatmulDesc_t d, cublasLtMatrixLayout_t a,
    cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t out,
    cublasLtMatmulPreference_t p, int most, cublasLtMatmulHeuristicResult_t *found,
    int *n)
{
    (void)h;
    (void)out;
    (void)p;
    *n = most > 0 && fits(d, a, b, c);
    *found = (cublasLtMatmulHeuristicResult_t){{{1}}};
    return CUBLAS_STATUS_SUCCESS;
}

static float at(const void *p, cudaDataType type, int64_t i)
{
    return type == CUDA_R_32F ? ((const float *)p)[i]
                              : num_bf16_f32(((const uint16_t *)p)[i]);
}

/* laid gives `lines` lines of k elements: line i is column i of a matrix, or row i. */
static float *laid(const void *p, const struct emu_layout *l, bool by_column)
{
    int64_t lines = by_column ? l->cols : l->rows, k = by_column ? l->rows : l->cols;
    float *v = malloc((size_t)(lines * k) * sizeof *v);
    for (int64_t i = 0; v && i < lines; i++)
        for (int64_t j = 0; j < k; j++)
            v[i * k + j] = at(p, l->type, by_column ? i * l->ld + j : j * l->ld + i);
    return v;
}

/* Sixteen sums side by side, for speed. */
static float dot(const float *a, const float *b, int64_t k)
{
    float part[16] = {0}, sum = 0;
    int64_t i = 0;
    for (; i + 16 <= k; i += 16)
        for (int j = 0; j < 16; j++)
            part[j] += a[i + j] * b[i + j];
    for (; i < k; i++)
        sum += a[i] * b[i];
    for (int j = 0; j < 16; j++)
        sum += part[j];
    return sum;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t h, cublasLtMatmulDesc_t d,
                              const void *alpha, const void *a,
                              cublasLtMatrixLayout_t la, const void *b,
                              cublasLtMatrixLayout_t lb, const void *beta,
                              const void *c, cublasLtMatrixLayout_t lc, void *out,
                              cublasLtMatrixLayout_t lout,
                              const cublasLtMatmulAlgo_t *algo, void *space,
                              size_t bytes, cudaStream_t s)
{
    (void)h;
    (void)algo;
    (void)space;
    (void)bytes;
    (void)s;
    const float scale = *(const float *)alpha, keep = *(const float *)beta;
    const int64_t k = d->op[0] ? la->rows : la->cols;
    float *left = laid(a, la, d->op[0]), *right = laid(b, lb, !d->op[1]);
    if (!left || !right || !fits(d, la, lb, lc) || c != out || lc != lout)
        abort();
    for (int64_t j = 0; j < lc->cols; j++)
        for (int64_t i = 0; i < lc->rows; i++) {
            const int64_t to = j * lc->ld + i;
            float v = scale * dot(left + i * k, right + j * k, k);
            if (keep != 0)
                v += keep * at(c, lc->type, to);
            if (lc->type == CUDA_R_32F)
                ((float *)out)[to] = v;
            else
                ((uint16_t *)out)[to] = num_f32_bf16(v);
        }
    free(left);
    free(right);
    return CUBLAS_STATUS_SUCCESS;
}
