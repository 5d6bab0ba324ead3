/* SPDX-License-Identifier: MIT */
/* sample.c - probabilities in double, cut to the nucleus, one uniform draw.
 *
 * The nucleus (Holtzman et al. 2020, top-p) is the smallest set of the likeliest tokens
 * whose probabilities reach top_p; ties fall to the lower id. */
#include "sample.h"

#include "err.h"
#include "mem.h"

#include <math.h>
#include <stdlib.h>

struct candidate {
    double weight;
    int32_t id;
};

/* largest finds the first largest logit. */
static int largest(int32_t *token, const float *logits, int64_t vocab)
{
    int64_t best = 0;
    for (int64_t i = 0; i < vocab; i++) {
        if (isnan(logits[i]))
            return err_set(E_FORMAT, "logits: entry %lld is not a number",
                           (long long)i);
        if (logits[i] > logits[best])
            best = i;
    }
    if (!isfinite(logits[best]))
        return err_set(E_FORMAT, "logits: the largest, entry %lld, is infinite",
                       (long long)best);
    *token = (int32_t)best;
    return 0;
}

static int likelier(const void *a, const void *b)
{
    const struct candidate *x = a, *y = b;
    if (x->weight != y->weight)
        return x->weight < y->weight ? 1 : -1;
    return x->id < y->id ? -1 : 1;
}

/* nucleus sorts the candidates and returns how many reach top_p of the total, which it
 * cuts to theirs. */
static int64_t nucleus(struct candidate *c, int64_t n, double top_p, double *total)
{
    double kept = 0;
    int64_t i = 0;
    qsort(c, (size_t)n, sizeof *c, likelier);
    while (i < n && (i == 0 || kept < top_p * *total))
        kept += c[i++].weight;
    *total = kept;
    return i;
}

int sample_token(int32_t *token, const float *logits, int64_t vocab, struct sample s,
                 struct rng *rng)
{
    int32_t best = 0;
    TRY(largest(&best, logits, vocab));
    *token = best;
    if (!(s.temperature > 0))
        return 0;
    struct candidate *c = mem_alloc((size_t)vocab * sizeof *c);
    if (!c)
        return E_MEMORY;
    double total = 0;
    for (int64_t i = 0; i < vocab; i++) {
        double z = ((double)logits[i] - (double)logits[best]) / s.temperature;
        c[i] = (struct candidate){exp(z), (int32_t)i};
        total += c[i].weight;
    }
    int64_t n = s.top_p < 1 ? nucleus(c, vocab, s.top_p, &total) : vocab;
    double at = rng_real(rng) * total, seen = 0;
    for (int64_t i = 0; i < n && seen <= at; i++) {
        seen += c[i].weight;
        if (c[i].weight > 0)
            *token = c[i].id;
    }
    mem_free(c);
    return 0;
}
