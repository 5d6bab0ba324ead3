/* SPDX-License-Identifier: MIT */
/* row.c - the meaning of a shard's columns (docs/shard.md), checked once per row. */
#include "row.h"

#include "err.h"

/* column finds a tensor of the shard, checks type and rank, and returns its data. */
static int column(const void **out, const struct st_tensor **shape,
                  const struct shard_view *v, const char *name, enum st_type type,
                  int rank)
{
    *out = shard_column(v, name, shape);
    if (!*out)
        return err_set(E_FORMAT, "%s: no column %s", v->name, name);
    if ((*shape)->type != type || (*shape)->rank != rank)
        return err_set(E_FORMAT, "%s: column %s is %s of rank %d, not %s of rank %d",
                       v->name, name, st_type_name((*shape)->type), (*shape)->rank,
                       st_type_name(type), rank);
    return 0;
}

/* rows_by checks the first two dimensions of a per-row column. */
static int rows_by(const struct st_tensor *t, const struct shard_view *v,
                   int64_t length)
{
    if (t->dim[0] == v->rows && t->dim[1] == length)
        return 0;
    return err_set(E_FORMAT,
                   "%s: column %s is %lld x %lld, not %lld rows of %lld tokens",
                   v->name, t->name, (long long)t->dim[0], (long long)t->dim[1],
                   (long long)v->rows, (long long)length);
}

static int view_text(struct row *out, const struct shard_view *v, int64_t i)
{
    struct anchor_row *x = &out->text;
    const struct st_tensor *t;
    const void *p;

    TRY(column(&p, &t, v, "input_ids", ST_I32, 2));
    x->length = t->dim[1];
    TRY(rows_by(t, v, x->length));
    x->ids = (const int32_t *)p + i * x->length;
    TRY(column(&p, &t, v, "loss_mask", ST_U8, 2));
    TRY(rows_by(t, v, x->length));
    x->mask = (const uint8_t *)p + i * x->length;
    TRY(column(&p, &t, v, "doc_ids", ST_I32, 2));
    TRY(rows_by(t, v, x->length));
    x->doc = (const int32_t *)p + i * x->length;
    TRY(column(&p, &t, v, "source", ST_I64, 2));
    if (t->dim[1] != 3)
        return err_set(E_FORMAT, "%s: column source has %lld numbers an entry, not 3",
                       v->name, (long long)t->dim[1]);
    x->source = p;
    x->docs = t->dim[0];
    return 0;
}

static int view_aux(struct row *out, const struct shard_view *v, int64_t i)
{
    const struct st_tensor *t;
    const void *p = shard_column(v, "aux", &t);

    if (!p)
        return 0;
    bool quantised = t->type == ST_F8_E4M3;
    TRY(column(&p, &t, v, "aux", quantised ? ST_F8_E4M3 : ST_BF16, 3));
    TRY(rows_by(t, v, out->text.length));
    out->width = t->dim[2];
    size_t row_bytes = (size_t)(out->text.length * out->width) * st_type_size(t->type);
    out->aux = (const char *)p + (size_t)i * row_bytes;
    if (!quantised)
        return 0;
    TRY(column(&p, &t, v, "aux_scale", ST_F32, 3));
    TRY(rows_by(t, v, out->text.length));
    out->taps = t->dim[2];
    if (out->taps < 1 || out->width % out->taps)
        return err_set(E_FORMAT, "%s: column aux_scale has %lld taps for aux of %lld",
                       v->name, (long long)out->taps, (long long)out->width);
    out->scale = (const float *)p + i * out->text.length * out->taps;
    return 0;
}

int64_t row_end(const struct anchor_row *text)
{
    int64_t end = text->length;
    while (end > 0 && text->doc[end - 1] < 0)
        end--;
    return end;
}

int row_view(struct row *out, const struct shard_view *v, int64_t i)
{
    *out = (struct row){.index = v->first_row + i};
    TRY(view_text(out, v, i));
    TRY(view_aux(out, v, i));
    for (int64_t s = 0; s < out->text.length; s++)
        if (out->text.doc[s] < -1 || out->text.doc[s] >= out->text.docs)
            return err_set(E_FORMAT,
                           "%s: row %lld, token %lld: document %d of %lld in source",
                           v->name, (long long)out->index, (long long)s,
                           out->text.doc[s], (long long)out->text.docs);
    return 0;
}
