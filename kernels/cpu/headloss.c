/* SPDX-License-Identifier: MIT */
/* headloss.c - the head: logits, softmax cross-entropy, accuracy and gradient by
 * chunks.
 *
 * A chunk of rows goes h w^T -> z, softmax in place, z w -> dh while its logits are
 * warm; the whole [R,V] never exists.  With p = softmax(z), d nll / dz = p -
 * onehot(label), so dz = weight (p - onehot) and dh = dz w.  A row's bits depend on the
 * row alone; the loss is the sum of the rows' shares in their order. */
#include "loop.h"
#include "vec.h"

#include "err.h"

#include <string.h>

enum { CHUNK_BYTES = 16 << 20, CHUNK_LEAST = 16 };

struct head {
    real *z;       // [rows of the chunk][vocab]
    double *share; // [rows of the chunk] weight nll
    int32_t *hit;
    const int32_t *label;
    const float *weight;
    int64_t first; // row of the whole
    int64_t vocab;
    bool grad;
};

/* first_of is the index of the first element equal to `top`; n when there is none. */
static int64_t first_of(const real *z, int64_t n, real top)
{
    int64_t i = 0;
    while (i < n && z[i] != top)
        i++;
    return i;
}

/* exp_sum turns z into exp(z - top) and returns the sum, a run of CHUNK_LEAST floats
 * at a time added in f64. */
static double exp_sum(real *z, int64_t n, real top)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i += CHUNK_LEAST) {
        int64_t end = i + CHUNK_LEAST < n ? i + CHUNK_LEAST : n;
        real part = 0;
        for (int64_t j = i; j < end; j++)
            z[j] = mathf_exp(z[j] - top);
        for (int64_t j = i; j < end; j++)
            part += z[j];
        sum += (double)part;
    }
    return sum;
}

static int softmax_rows(void *ctx, int64_t begin, int64_t end, int worker)
{
    struct head *a = ctx;
    (void)worker;
    for (int64_t r = begin; r < end; r++) {
        real *z = a->z + r * a->vocab;
        int64_t label = a->label[r];
        if (label < 0 || label >= a->vocab)
            return err_set(E_FORMAT, "row %lld: label %lld is outside the vocabulary",
                           (long long)(a->first + r), (long long)label);
        real top = vec_max(z, a->vocab, z[0]), own = z[label];
        a->hit[r] = first_of(z, a->vocab, top) == label;
        double sum = exp_sum(z, a->vocab, top);
        double nll = mathf_log(sum) - ((double)own - (double)top);
        a->share[r] = (double)a->weight[r] * nll;
        if (!a->grad)
            continue;
        real weight = a->weight[r], scale = (real)((double)weight / sum);
        for (int64_t i = 0; i < a->vocab; i++)
            z[i] *= scale;
        z[label] -= weight;
    }
    return 0;
}

void cpu_head_loss(struct dev *d, struct tensor loss, struct tensor hit,
                   struct tensor dh, struct tensor h, struct tensor w,
                   struct tensor label, struct tensor weight)
{
    int64_t rows = h.dim[0], vocab = w.dim[0];
    int64_t step = CHUNK_BYTES / (vocab * (int64_t)sizeof(real));
    if (step < CHUNK_LEAST)
        step = CHUNK_LEAST;
    if (step > rows)
        step = rows;
    size_t z_bytes = (size_t)(step * vocab) * sizeof(real);
    z_bytes = (z_bytes + 63) / 64 * 64;
    char *room = cpu_scratch(d, z_bytes + (size_t)step * sizeof(double));
    if (!room)
        return;
    for (int64_t at = 0; at < rows && !d->error; at += step) {
        int64_t n = rows - at < step ? rows - at : step;
        struct head a = {.z = (real *)(void *)room,
                         .share = (double *)(void *)(room + z_bytes),
                         .hit = (int32_t *)hit.data + at,
                         .label = (const int32_t *)label.data + at,
                         .weight = (const float *)weight.data + at,
                         .first = at,
                         .vocab = vocab,
                         .grad = dh.data != NULL};
        struct tensor z = tensor_of(room, DT_REAL, T2(n, vocab));
        cpu_matmul(d, z, tensor_rows(h, at, n), w, false);
        loop_rows(d, n, 8 * vocab, softmax_rows, &a);
        if (dh.data)
            cpu_matmul_dx(d, tensor_rows(dh, at, n), z, w, false);
        for (int64_t r = 0; r < n && !d->error; r++)
            *(double *)loss.data += a.share[r];
    }
}
