/* SPDX-License-Identifier: MIT */
/* rope.c - inverse frequencies, computed on the host once per model. */
#include "rope.h"

#include "err.h"
#include "op.h"

#include <math.h>

int rope_open(struct tensor *freq, struct arena *a, struct dev *d, int64_t head_dim,
              double theta)
{
    float host[OP_HEAD_MAX / 2]; // config*.c admit no wider head
    if (head_dim > OP_HEAD_MAX)
        bug("a head of %lld channels", (long long)head_dim);
    *freq = arena_tensor(a, DT_F32, T1(head_dim / 2));
    if (!a->base)
        return 0;
    for (int64_t i = 0; i < head_dim / 2; i++)
        host[i] = (float)pow(theta, -2.0 * (double)i / (double)head_dim);
    return dev_put(d, freq->data, host, tensor_bytes(freq));
}
