/* SPDX-License-Identifier: MIT */
/* band.c - sizes of states by tap. */
#include "band.h"

#include <math.h>

#include "err.h"
#include "num.h"

enum { TOKENS = 512, LANES = 8 };

/* token_square is the sum of squares of one token's state, unscaled; the lanes let the
 * compiler add eight at once in an order that is always the same. */
static double token_square(const struct hidden_row *r, const struct hidden_form *f,
                           int64_t at)
{
    float sum[LANES] = {0};
    const uint16_t *wide = (const uint16_t *)r->aux + at * f->width;
    const uint8_t *low = (const uint8_t *)r->aux + at * f->width;
    for (int64_t i = 0; i < f->width; i++) {
        float x = f->fp8 ? num_e4m3_f32(low[i]) : num_bf16_f32(wide[i]);
        sum[i % LANES] += x * x;
    }
    double all = 0;
    for (int l = 0; l < LANES; l++)
        all += (double)sum[l];
    return f->fp8 ? all * (double)r->scale[at] * (double)r->scale[at] : all;
}

double band_size(const struct hidden_row *r, const struct hidden_form *f, int k)
{
    int64_t step = (f->length + TOKENS - 1) / TOKENS, n = 0;
    double sum = 0;
    for (int64_t s = 0; s < f->length; s += step) {
        double square = r->doc[s] < 0 ? 0 : token_square(r, f, s * f->taps + k);
        if (square > 0) {
            sum += 0.5 * log(square / (double)f->width);
            n++;
        }
    }
    return n ? exp(sum / (double)n) : 0;
}

double band_mean(const struct band *b, int k)
{
    return b->rows ? exp(b->sum[k] / (double)b->rows) : 0;
}

static int check(const struct band *b, double size, int k, int64_t row, int64_t layer)
{
    double mean = band_mean(b, k);
    bool inside = size <= mean * b->factor && size * b->factor >= mean;
    if (b->rows == 0 || b->factor == 0 || inside)
        return 0;
    return err_set(
        E_FORMAT,
        "row %lld: tap %lld: states of size %.3g in a run of %.3g, further off "
        "than a factor of %g (--band)",
        (long long)row, (long long)layer, size, mean, b->factor);
}

int band_add(struct band *b, const struct hidden_row *r, const struct hidden_form *f,
             const struct taps *taps)
{
    double size[CONFIG_TAPS];
    for (int k = 0; k < f->taps; k++) {
        size[k] = band_size(r, f, k);
        if (size[k] == 0)
            return 0; // none of the tokens looked at is of a document
        TRY(check(b, size[k], k, r->index, taps->layer[k]));
    }
    for (int k = 0; k < f->taps; k++) {
        b->sum[k] += log(size[k]);
        b->low[k] = b->rows == 0 || size[k] < b->low[k] ? size[k] : b->low[k];
        b->high[k] = size[k] > b->high[k] ? size[k] : b->high[k];
    }
    b->rows++;
    return 0;
}
