/* SPDX-License-Identifier: MIT */
/* weights_load.c - from a mapped checkpoint to the device, tensor by tensor.
 *
 * What is converted or packed goes through device memory of the size of the largest
 * such tensor, which is given back at the end.  What is stored as it is wanted is
 * copied from the mapping; where rows are picked or scaled, a few MiB of them at a time
 * are made on the host.
 *
 * By parts the same happens in two steps: a part's stored tensors go to a stage of
 * their own while the part before it is at work, and from there to their place. */
#include "weights_parts.h"

#include "err.h"
#include "mem.h"
#include "num.h"
#include "op.h"

#include <string.h>

enum { PIECE = 4 << 20 }; /* bytes made on the host at once */

/* ---- rows as stored ---- */

/* channel is where place `i` of a head comes from (weights_pick). */
static int64_t channel(const struct weights_pick *p, int64_t i)
{
    int64_t half = p->width / 2, turn = p->turned / 2;
    bool high = i >= half;
    int64_t at = high ? i - half : i; /* within its half */
    if (at < turn)
        return high ? turn + at : at;
    return p->turned + (high ? half - turn : 0) + at - turn;
}

static int64_t stored_row(const struct weights_entry *e, int64_t r)
{
    const struct weights_pick *p = &e->pick;
    if (!e->picked)
        return r;
    return r / p->width * p->step + p->offset + channel(p, r % p->width);
}

static float real_at(const struct st_entry *e, int64_t i)
{
    const void *data = st_data(e->file, e->tensor);
    switch (e->tensor->type) {
    case ST_BF16:
        return num_bf16_f32(((const uint16_t *)data)[i]);
    case ST_F16:
        return num_f16_f32(((const uint16_t *)data)[i]);
    default:
        return ((const float *)data)[i];
    }
}

/* descale writes one row of a quantised matrix as bf16. */
static void descale(uint16_t *out, const struct weights_entry *e, int64_t row)
{
    int64_t cols = e->dim[1], blocks = weights_blocks(cols);
    const uint8_t *q = st_data(e->found->file, e->found->tensor);
    for (int64_t b = 0; b < blocks; b++) {
        float scale = real_at(e->scale, row / WEIGHTS_BLOCK * blocks + b);
        int64_t end = (b + 1) * WEIGHTS_BLOCK < cols ? (b + 1) * WEIGHTS_BLOCK : cols;
        for (int64_t i = b * WEIGHTS_BLOCK; i < end; i++)
            out[i] = num_f32_bf16(num_e4m3_f32(q[row * cols + i]) * scale);
    }
}

/* How bytes reach the device: dev_put or dev_put_ahead. */
typedef int put_fn(struct dev *d, void *to, const void *host, size_t bytes);

static int put_pieces(const struct weights_entry *e, struct dev *d, struct tensor raw,
                      put_fn *put)
{
    size_t row = tensor_bytes(&raw) / (size_t)e->dim[0];
    const char *from = st_data(e->found->file, e->found->tensor);
    int64_t most = row < PIECE ? (int64_t)(PIECE / row) : 1;
    char *host = mem_alloc((size_t)most * row);
    int rc = host ? 0 : E_MEMORY;
    for (int64_t at = 0; rc == 0 && at < e->dim[0]; at += most) {
        int64_t n = e->dim[0] - at < most ? e->dim[0] - at : most;
        for (int64_t r = 0; r < n; r++) {
            char *to = host + (size_t)r * row;
            int64_t s = stored_row(e, at + r);
            if (e->scale)
                descale((uint16_t *)(void *)to, e, s);
            else
                memcpy(to, from + (size_t)s * row, row);
        }
        rc = put(d, (char *)raw.data + (size_t)at * row, host, (size_t)n * row);
    }
    mem_free(host);
    return rc;
}

static int put_rows(const struct weights_entry *e, struct dev *d, struct tensor raw,
                    put_fn *put)
{
    if (e->picked || e->scale)
        return put_pieces(e, d, raw, put);
    const void *from = st_data(e->found->file, e->found->tensor);
    return put(d, raw.data, from, tensor_bytes(&raw));
}

/* put_reals makes a small tensor in f32. */
static int put_reals(const struct weights_entry *e, struct dev *d, struct tensor to,
                     put_fn *put)
{
    int64_t cols = e->rank == 2 ? e->dim[1] : 1;
    float *host = mem_alloc(tensor_bytes(&to));
    if (!host)
        return E_MEMORY;
    for (int64_t r = 0; r < e->dim[0]; r++)
        for (int64_t c = 0; c < cols; c++)
            host[r * cols + c] = real_at(e->found, stored_row(e, r) * cols + c) +
                                 (e->form == WEIGHTS_ONE ? 1.0F : 0.0F);
    int rc = put(d, to.data, host, tensor_bytes(&to));
    mem_free(host);
    return rc;
}

/* ---- tensors ---- */

/* raw_tensor is what reaches the device before packing or conversion, at `data`. */
static struct tensor raw_tensor(const struct weights_entry *e, void *data)
{
    enum dtype type = e->found->tensor->type == ST_F32 ? DT_F32 : DT_BF16;
    return tensor_of(data, type, e->rank, e->dim);
}

enum { ALL = -1 };

static bool is_part(const struct weights_entry *e, int part)
{
    return e->to && (part == ALL || e->part == part);
}

static size_t staging_bytes(const struct weights *w, int part)
{
    size_t most = 0;
    for (int64_t i = 0; i < w->count; i++) {
        const struct weights_entry *e = &w->entry[i];
        struct tensor t = raw_tensor(e, NULL);
        bool staged = e->form == WEIGHTS_PANELS || e->form == WEIGHTS_ACT;
        if (staged && is_part(e, part) && tensor_bytes(&t) > most)
            most = tensor_bytes(&t);
    }
    return most;
}

struct tensor weights_carve_panels(struct tensor raw, struct dev *d, struct arena *a)
{
    raw.data = NULL;
    int64_t bytes = (int64_t)op_pack_bytes(d, raw);
    raw.data = arena_tensor(a, DT_U8, T1(bytes)).data;
    raw.layout = T_PANELS;
    return raw;
}

static int load_entry(const struct weights_entry *e, struct dev *d, struct arena *a,
                      void *staging)
{
    struct tensor raw = raw_tensor(e, staging);
    switch (e->form) {
    case WEIGHTS_ROWS:
        raw = *e->to = arena_tensor(a, raw.type, e->rank, e->dim);
        return a->base ? put_rows(e, d, raw, dev_put) : 0;
    case WEIGHTS_PANELS:
        *e->to = weights_carve_panels(raw, d, a);
        if (!a->base)
            return 0;
        TRY(put_rows(e, d, raw, dev_put));
        op_pack(d, *e->to, raw);
        return 0;
    case WEIGHTS_ACT:
        *e->to = arena_tensor(a, d->act, e->rank, e->dim);
        if (!a->base)
            return 0;
        TRY(put_rows(e, d, raw, dev_put));
        op_convert(d, *e->to, raw);
        return 0;
    case WEIGHTS_F32:
    case WEIGHTS_ONE:
    case WEIGHTS_TAPS:
        *e->to = arena_tensor(a, DT_F32, e->rank, e->dim);
        return a->base ? put_reals(e, d, *e->to, dev_put) : 0;
    }
    bug("%s: form %d", e->name, e->form);
}

static int load(struct weights *w, struct dev *d, struct arena *a, int part)
{
    void *staging = NULL;
    size_t bytes = staging_bytes(w, part);
    int rc = 0;
    if (a->base && bytes)
        TRY(dev_alloc(d, &staging, bytes));
    for (int64_t i = 0; i < w->count; i++)
        if (is_part(&w->entry[i], part))
            TRY_GOTO(rc, load_entry(&w->entry[i], d, a, staging), out);
    if (a->base)
        rc = dev_sync(d);
out:
    dev_free(d, staging, bytes);
    return rc;
}

size_t weights_loading(const struct weights *w)
{
    return staging_bytes(w, ALL);
}

int weights_load(struct weights *w, struct dev *d, struct arena *a)
{
    return load(w, d, a, ALL);
}

int weights_load_part(struct weights *w, struct dev *d, struct arena *a, int part)
{
    return load(w, d, a, part);
}

/* ---- in two steps ---- */

static bool is_real(const struct weights_entry *e)
{
    return e->form == WEIGHTS_F32 || e->form == WEIGHTS_ONE || e->form == WEIGHTS_TAPS;
}

/* staged carves what the device gets of an entry. */
static struct tensor staged(const struct weights_entry *e, struct arena *stage)
{
    enum dtype type = is_real(e) ? DT_F32 : raw_tensor(e, NULL).type;
    return arena_tensor(stage, type, e->rank, e->dim);
}

int weights_bring(struct weights *w, struct dev *d, struct arena *stage, int part)
{
    for (int64_t i = 0; i < w->count; i++) {
        const struct weights_entry *e = &w->entry[i];
        if (!is_part(e, part))
            continue;
        struct tensor raw = staged(e, stage);
        if (stage->base)
            TRY((is_real(e) ? put_reals : put_rows)(e, d, raw, dev_put_ahead));
    }
    return 0;
}

void weights_place(struct weights *w, struct dev *d, struct arena *a,
                   struct arena *stage, int part)
{
    for (int64_t i = 0; i < w->count; i++) {
        const struct weights_entry *e = &w->entry[i];
        if (!is_part(e, part))
            continue;
        struct tensor raw = staged(e, stage);
        bool panels = e->form == WEIGHTS_PANELS, act = e->form == WEIGHTS_ACT;
        *e->to = panels ? weights_carve_panels(raw, d, a)
                        : arena_tensor(a, act ? d->act : raw.type, e->rank, e->dim);
        if (a->base && panels)
            op_pack(d, *e->to, raw);
        else if (a->base)
            op_convert(d, *e->to, raw);
    }
}
