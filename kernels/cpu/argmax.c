/* SPDX-License-Identifier: MIT */
/* argmax.c - the first index of each row's largest value.
 *
 * The sum of the row tells whether it may hold a NaN, a second pass finds the maximum,
 * a third the first place that holds it; all run at the speed of memory. */
#include "loop.h"
#include "vec.h"

#include "err.h"

#include <math.h>

struct argmax {
    struct tensor idx, x;
};

static int argmax_rows(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct argmax *a = ctx;
    int64_t width = a->x.dim[1];
    (void)worker;
    for (int64_t r = begin; r < end; r++) {
        const real *x = (const real *)a->x.data + r * width;
        if (isnan(vec_sum(x, width)))
            for (int64_t i = 0; i < width;
                 i++) // infinities of both signs also get here
                if (isnan(x[i]))
                    return err_set(E_FORMAT, "argmax: row %lld holds a NaN at %lld",
                                   (long long)r, (long long)i);
        real top = vec_max(x, width, -INFINITY);
        int64_t i = 0;
        while (x[i] != top)
            i++;
        ((int32_t *)a->idx.data)[r] = (int32_t)i;
    }
    return 0;
}

void cpu_argmax(struct dev *d, struct tensor idx, struct tensor x)
{
    struct argmax a = {idx, x};
    loop_rows(d, x.dim[0], x.dim[1], argmax_rows, &a);
}
