/* SPDX-License-Identifier: MIT */
/* look_numbers.c - what rows and tensors add up to: tokens, documents, sizes of
 * numbers.
 *
 * Hidden states that are zero, not finite or of a wild size are the faults that
 * training does not show until late. */
#include "look_parts.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "err.h"
#include "num.h"

int look_tokens_add(struct look_tokens *t, const struct row *row)
{
    const struct anchor_row *x = &row->text;
    t->rows++;
    t->length = x->length;
    for (int64_t i = 0; i < x->length; i++) {
        if (x->mask[i] > 1)
            return err_set(E_FORMAT, "row %" PRId64 ", token %" PRId64 ": loss_mask %d",
                           row->index, i, x->mask[i]);
        if (x->doc[i] < 0)
            continue;
        t->filled++;
        t->supervised += x->mask[i];
        t->documents += i == 0 || x->doc[i] != x->doc[i - 1];
    }
    return 0;
}

void look_tokens_tell(struct facts *f, const struct look_tokens *t)
{
    double all = (double)t->rows * (double)t->length;
    facts_count(f, "row_length", t->length);
    facts_count(f, "tokens", t->filled);
    facts_share(f, "full", (double)t->filled, all);
    facts_count(f, "supervised", t->supervised);
    facts_count(f, "documents", t->documents);
}

/* ---- floating-point numbers ---- */

static float value(const void *p, enum st_type type, int64_t i)
{
    switch (type) {
    case ST_BF16:
        return num_bf16_f32(((const uint16_t *)p)[i]);
    case ST_F16:
        return num_f16_f32(((const uint16_t *)p)[i]);
    case ST_F8_E4M3:
        return num_e4m3_f32(((const uint8_t *)p)[i]);
    case ST_F64:
        return (float)((const double *)p)[i];
    default:
        return ((const float *)p)[i];
    }
}

int64_t look_numbers_add(struct look_numbers *s, const void *p, enum st_type type,
                         int64_t n, float scale)
{
    for (int64_t i = 0; i < n; i++) {
        double x = (double)value(p, type, i) * (double)scale;
        if (!isfinite(x))
            return i;
        s->squares += x * x;
        s->largest = fabs(x) > s->largest ? fabs(x) : s->largest;
    }
    s->n += n;
    return -1;
}

void look_numbers_tell(struct facts *f, const struct look_numbers *s)
{
    facts_part_real(f, "rms", s->n ? sqrt(s->squares / (double)s->n) : 0);
    facts_part_real(f, "largest", s->largest);
}

/* ---- hidden states ---- */

/* The tapped layers are listed in the metadata, separated by commas. */
static int64_t count_taps(const struct row *row, const struct shard_view *v)
{
    const char *list = st_meta(&v->header, "taps");
    int64_t n = 1;
    if (row->scale)
        return row->taps;
    for (const char *c = list ? list : ""; *c; c++)
        n += *c == ',';
    return n;
}

static int add_token(struct look_taps *t, const struct row *row, int64_t token,
                     enum st_type type)
{
    int64_t width = row->width / t->taps;
    bool zero = false;
    for (int64_t k = 0; k < t->taps; k++) {
        size_t at = (size_t)(token * row->width + k * width) * st_type_size(type);
        float scale = row->scale ? row->scale[token * row->taps + k] : 1;
        struct look_numbers one = {0}, *all = &t->tap[k];
        int64_t bad =
            look_numbers_add(&one, (const char *)row->aux + at, type, width, scale);
        if (bad >= 0)
            return err_set(E_FORMAT,
                           "tensor aux: row %" PRId64 ", token %" PRId64 ", tap "
                           "%" PRId64 ": number %" PRId64 " is not finite",
                           row->index, token, k, bad);
        zero = zero || one.largest == 0;
        all->squares += one.squares;
        all->largest = one.largest > all->largest ? one.largest : all->largest;
        all->n += one.n;
    }
    t->zeros += zero;
    return 0;
}

static int add_last(struct look_taps *t, const struct row *row,
                    const struct shard_view *v)
{
    const struct st_tensor *x;
    const uint16_t *p = shard_column(v, "last", &x);
    if (!p)
        return 0;
    if (x->rank != 3 || x->type != ST_BF16 || x->dim[1] != row->text.length)
        return err_set(E_FORMAT, "tensor last: not bf16 of rows, tokens, width");
    p += (row->index - v->first_row) * x->dim[1] * x->dim[2];
    for (int64_t i = 0; i < x->dim[1]; i++)
        if (row->text.doc[i] >= 0 &&
            look_numbers_add(&t->last, p + i * x->dim[2], ST_BF16, x->dim[2], 1) >= 0)
            return err_set(E_FORMAT,
                           "tensor last: row %" PRId64 ", token %" PRId64
                           " is not finite",
                           row->index, i);
    return 0;
}

int look_taps_add(struct look_taps *t, const struct row *row,
                  const struct shard_view *v)
{
    const struct st_tensor *aux;
    shard_column(v, "aux", &aux);
    t->taps = count_taps(row, v);
    if (t->taps > LOOK_TAPS || row->width % t->taps)
        return err_set(E_FORMAT, "tensor aux: %" PRId64 " taps in a width of %" PRId64,
                       t->taps, row->width);
    const char *list = st_meta(&v->header, "taps");
    snprintf(t->list, sizeof t->list, "%s", list ? list : "");
    for (int64_t i = 0; i < row->text.length; i++)
        if (row->text.doc[i] >= 0)
            TRY(add_token(t, row, i, aux->type));
    return add_last(t, row, v);
}

void look_taps_tell(struct facts *f, const struct look_taps *t)
{
    const char *layer = t->list;
    facts_list(f, "taps");
    for (int64_t k = 0; k < t->taps; k++) {
        char text[32];
        int n = (int)strcspn(layer, ",");
        snprintf(text, sizeof text, "%.*s", n, layer);
        layer += n + (layer[n] == ',');
        facts_item(f);
        facts_part_text(f, "layer", text, false);
        look_numbers_tell(f, &t->tap[k]);
        facts_item_end(f);
    }
    if (t->last.n > 0) {
        facts_item(f);
        facts_part_text(f, "layer", "last", false);
        look_numbers_tell(f, &t->last);
        facts_item_end(f);
    }
    facts_list_end(f);
    facts_count(f, "zero_tokens", t->zeros);
}
