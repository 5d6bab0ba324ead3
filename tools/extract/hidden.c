/* SPDX-License-Identifier: MIT */
/* hidden.c - columns of hidden shards.
 *
 * A shard's `source` belongs to that shard alone and hidden shards are cut elsewhere
 * than packed ones (their rows are thousands of times larger), so a document's index is
 * renumbered twice: to the row when it is read, to the shard when it is written. */
#include "hidden.h"

#include <string.h>

#include "err.h"
#include "mem.h"

enum { IDS, MASK, DOC, SOURCE, AUX, REST };

void hidden_columns(struct shard_options *o, const struct hidden_form *f)
{
    int64_t s = f->length;
    enum st_type aux = f->fp8 ? ST_F8_E4M3 : ST_BF16;

    o->column[IDS] = (struct shard_column){"input_ids", ST_I32, 1, {s}, false};
    o->column[MASK] = (struct shard_column){"loss_mask", ST_U8, 1, {s}, false};
    o->column[DOC] = (struct shard_column){"doc_ids", ST_I32, 1, {s}, false};
    o->column[SOURCE] = (struct shard_column){"source", ST_I64, 1, {3}, true};
    o->column[AUX] =
        (struct shard_column){"aux", aux, 2, {s, f->taps * f->width}, false};
    o->columns = REST;
    if (f->fp8)
        o->column[o->columns++] =
            (struct shard_column){"aux_scale", ST_F32, 2, {s, f->taps}, false};
    if (f->last)
        o->column[o->columns++] =
            (struct shard_column){"last", ST_BF16, 2, {s, f->width}, false};
}

static size_t aux_bytes(const struct hidden_form *f)
{
    return (size_t)(f->length * f->taps * f->width) * (f->fp8 ? 1 : 2);
}

static size_t scale_bytes(const struct hidden_form *f)
{
    return (size_t)(f->length * f->taps) * sizeof(float);
}

static size_t last_bytes(const struct hidden_form *f)
{
    return (size_t)(f->length * f->width) * 2;
}

size_t hidden_row_bytes(const struct hidden_form *f)
{
    size_t scale = f->fp8 ? scale_bytes(f) : 0, last = f->last ? last_bytes(f) : 0;
    return aux_bytes(f) + scale + last;
}

static int states_new(struct hidden_row *r, void **out, size_t bytes)
{
    if (r->dev)
        return dev_host_alloc(r->dev, out, bytes);
    *out = mem_alloc(bytes);
    return *out ? 0 : E_MEMORY;
}

static void states_free(struct hidden_row *r, void *states)
{
    if (r->dev)
        dev_host_free(r->dev, states);
    else
        mem_free(states);
}

static int states_open(struct hidden_row *r, const struct hidden_form *f)
{
    void *scale = NULL;
    TRY(states_new(r, &r->aux, aux_bytes(f)));
    if (f->fp8)
        TRY(states_new(r, &scale, scale_bytes(f)));
    r->scale = scale;
    return f->last ? states_new(r, &r->last, last_bytes(f)) : 0;
}

int hidden_row_new(struct hidden_row *r, const struct hidden_form *f, struct dev *d)
{
    size_t s = (size_t)f->length;

    *r = (struct hidden_row){.dev = d};
    r->ids = mem_alloc(s * sizeof *r->ids);
    r->mask = mem_alloc(s);
    r->doc = mem_alloc(s * sizeof *r->doc);
    r->source = mem_alloc(s * sizeof *r->source);
    int rc = r->ids && r->mask && r->doc && r->source ? states_open(r, f) : E_MEMORY;
    if (rc < 0)
        hidden_row_free(r);
    return rc;
}

void hidden_row_free(struct hidden_row *r)
{
    mem_free(r->ids);
    mem_free(r->mask);
    mem_free(r->doc);
    mem_free(r->source);
    states_free(r, r->aux);
    states_free(r, r->scale);
    states_free(r, r->last);
    *r = (struct hidden_row){0};
}

void hidden_row_text(struct hidden_row *r, const struct row *from)
{
    const struct anchor_row *x = &from->text;
    size_t s = (size_t)x->length;

    r->index = from->index;
    r->docs = 0;
    memcpy(r->ids, x->ids, s * sizeof *r->ids);
    memcpy(r->mask, x->mask, s);
    for (int64_t i = 0; i < x->length; i++) {
        bool begins = x->doc[i] >= 0 && (i == 0 || x->doc[i] != x->doc[i - 1]);
        if (begins)
            memcpy(r->source[r->docs++], x->source + (int64_t)x->doc[i] * 3,
                   sizeof *r->source);
        r->doc[i] = x->doc[i] < 0 ? -1 : (int32_t)(r->docs - 1);
    }
}

int hidden_row_write(struct shard_writer *w, const struct hidden_row *r,
                     const struct hidden_form *f)
{
    void *to[SHARD_COLUMNS];
    size_t s = (size_t)f->length;
    int at = REST;

    TRY(shard_row(w, to));
    int64_t first = shard_fixed(w, SOURCE, r->source, r->docs);
    if (first < 0)
        return (int)first;
    memcpy(to[IDS], r->ids, s * sizeof *r->ids);
    memcpy(to[MASK], r->mask, s);
    for (int64_t i = 0; i < f->length; i++)
        ((int32_t *)to[DOC])[i] = r->doc[i] < 0 ? -1 : (int32_t)first + r->doc[i];
    memcpy(to[AUX], r->aux, aux_bytes(f));
    if (f->fp8)
        memcpy(to[at++], r->scale, scale_bytes(f));
    if (f->last)
        memcpy(to[at++], r->last, last_bytes(f));
    return 0;
}
