/* SPDX-License-Identifier: MIT */
/* rope.c - inverse frequencies, computed on the host once per model. */
#include "rope.h"

#include "err.h"

#include <math.h>

enum { HEAD_MAX = 1024 }; /* config.c admits no wider head */

int rope_open(struct tensor *freq, struct arena *a, struct dev *d, int64_t head_dim,
              double theta)
{
    float host[HEAD_MAX / 2];
    if (head_dim > HEAD_MAX)
        bug("a head of %lld channels", (long long)head_dim);
    *freq = arena_tensor(a, DT_F32, T1(head_dim / 2));
    if (!a->base)
        return 0;
    for (int64_t i = 0; i < head_dim / 2; i++)
        host[i] = (float)pow(theta, -2.0 * (double)i / (double)head_dim);
    return dev_put(d, freq->data, host, tensor_bytes(freq));
}
