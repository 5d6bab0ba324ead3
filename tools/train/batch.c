/* SPDX-License-Identifier: MIT */
/* batch.c - one row: check, draw, span, label, upload.
 *
 * The host's part is a few passes over S tokens and A * B slots.  Checksums say that a
 * shard is what was written, not that it was written well: what would lead outside of
 * an array is checked here, hidden states on the device. */
#include "batch.h"

#include "err.h"
#include "mem.h"
#include "num.h"
#include "op.h"
#include "rng.h"
#include "span.h"

#include <math.h>

/* carve lays out the device's part; on a plan it only counts. */
static void carve(struct batch *b)
{
    int64_t width = b->taps * b->hidden;
    b->states = arena_tensor(&b->arena, DT_BF16, T2(b->length, width));
    if (!b->fp8)
        return;
    b->stored = arena_tensor(&b->arena, DT_E4M3, T3(b->length, b->taps, b->hidden));
    b->scale = arena_tensor(&b->arena, DT_F32, T2(b->length, b->taps));
}

static struct batch shape(const struct batch_shape *s)
{
    const struct drafter_config *c = s->config;
    return (struct batch){.length = s->length,
                          .hidden = c->hidden,
                          .taps = c->taps,
                          .anchors = s->anchors,
                          .block = c->block,
                          .vocab = c->vocab,
                          .window = c->window,
                          .mask_id = (int32_t)c->mask_id,
                          .gamma = s->gamma,
                          .seed = (uint64_t)s->seed,
                          .fp8 = s->fp8};
}

size_t batch_bytes(const struct batch_shape *s)
{
    struct batch b = shape(s);
    b.arena = arena_plan();
    carve(&b);
    return b.arena.used;
}

/* take hands out n elements of the host block. */
static int32_t *take(int32_t **at, int64_t n)
{
    int32_t *p = *at;
    *at += n;
    return p;
}

static int open_host(struct batch *b)
{
    int64_t s = b->length, a = b->anchors, q = a * b->block, r = a * (b->block - 1);
    b->host = mem_zero((size_t)(3 * s + 3 * a + 5 * q + 3 * r), sizeof(int32_t));
    b->weight = mem_zero((size_t)r, sizeof(float));
    if (!b->host || !b->weight)
        return E_MEMORY;
    int32_t *at = b->host;
    b->pos = take(&at, s);
    b->lo = take(&at, s);
    b->hi = take(&at, s);
    b->anchor = take(&at, a);
    b->accepted = take(&at, a);
    b->labelled = take(&at, a);
    b->id = take(&at, q);
    b->at = take(&at, q);
    b->block_lo = take(&at, q);
    b->slide = take(&at, q);
    b->block_hi = take(&at, q);
    b->row = take(&at, r);
    b->label = take(&at, r);
    b->hit = take(&at, r);
    return 0;
}

int batch_open(struct batch *b, struct dev *d, const struct batch_shape *s)
{
    *b = shape(s);
    int rc = open_host(b);
    if (rc == 0)
        rc = arena_open(&b->arena, d, "hidden states of a row", batch_bytes(s));
    if (rc < 0) {
        batch_close(b);
        return rc;
    }
    carve(b);
    return 0;
}

void batch_close(struct batch *b)
{
    arena_close(&b->arena);
    mem_free(b->host);
    mem_free(b->weight);
    *b = (struct batch){0};
}

static int bad_token(const struct intake_row *in, int64_t t, const char *why)
{
    const struct anchor_row *x = &in->row.text;
    int64_t record = x->doc[t] < 0 ? -1 : x->source[x->doc[t] * 3 + 1];
    return err_set(E_FORMAT, "%s: row %lld, record %lld, token %lld: %s", in->file,
                   (long long)in->row.index, (long long)record, (long long)t, why);
}

/* check_text refuses what would index outside of an array. */
static int check_text(const struct batch *b, const struct intake_row *in)
{
    const struct anchor_row *x = &in->row.text;
    if (x->length > b->length)
        bug("row of %lld tokens in a batch of %lld", (long long)x->length,
            (long long)b->length);
    for (int64_t t = 0; t < x->length; t++)
        if (x->ids[t] < 0 || x->ids[t] >= b->vocab)
            return bad_token(in, t, "id outside of the target's vocabulary");
    return 0;
}

/* upload brings the hidden states over, as bf16 whatever they are stored as. */
static int upload(struct batch *b, const struct intake_row *in, struct tensor *aux)
{
    struct dev *d = b->arena.dev;
    int64_t s = in->row.text.length;
    *aux = tensor_rows(b->states, 0, s);
    if (in->row.scale) {
        struct tensor q = tensor_rows(b->stored, 0, s);
        struct tensor scale = tensor_rows(b->scale, 0, s);
        TRY(dev_put(d, q.data, in->row.aux, tensor_bytes(&q)));
        TRY(dev_put(d, scale.data, in->row.scale, tensor_bytes(&scale)));
        op_dequant(d, tensor_view(*aux, T3(s, b->taps, b->hidden)), q, scale);
    } else {
        TRY(dev_put(d, aux->data, in->row.aux, tensor_bytes(aux)));
    }
    op_finite(d, *aux, "hidden states"); // batch_blame knows file and record
    return 0;
}

/* set_blocks gives a row its spans, and the arrays of its blocks. */
static void set_blocks(struct batch *b, struct drafter_row *out)
{
    span_blocks(b->at, b->block_lo, b->slide, b->block_hi, b->anchor, out->blocks,
                b->block, b->window, b->pos);
    out->id = b->id;
    out->at = b->at;
    out->lo = b->block_lo;
    out->slide = b->slide;
    out->hi = b->block_hi;
    out->row = b->row;
    out->label = b->label;
    out->weight = b->weight;
}

int batch_lay(struct batch *b, struct drafter_row *out, const struct anchor_row *x,
              uint64_t key)
{
    int64_t n = anchor_draw(b->anchor, b->anchors, x, key);
    *out = (struct drafter_row){.context = x->length, .pos = b->pos, .blocks = n};
    if (n <= 0)
        return (int)n;
    span_docs(b->pos, b->lo, b->hi, x->doc, x->length);
    for (int64_t r = 0; r < n * b->block; r++)
        b->id[r] = r % b->block ? b->mask_id : x->ids[b->anchor[r / b->block]];
    set_blocks(b, out);
    out->labelled =
        anchor_labels(b->row, b->label, b->weight, b->anchor, n, b->block, b->gamma, x);
    return 0;
}

void batch_full(struct batch *b, struct drafter_row *out)
{
    int64_t rows = b->anchors * b->block, labelled = 0;
    *out = (struct drafter_row){.context = b->length,
                                .pos = b->pos,
                                .blocks = b->anchors,
                                .labelled = rows - b->anchors,
                                .aux = b->states};
    for (int64_t s = 0; s < b->length; s++)
        b->pos[s] = (int32_t)s;
    for (int64_t j = 0; j < b->anchors; j++)
        b->anchor[j] = (int32_t)(j * b->length / b->anchors);
    for (int64_t r = 0; r < rows; r++) {
        b->id[r] = 0;
        if (r % b->block == 0)
            continue;
        b->row[labelled] = (int32_t)r;
        b->label[labelled] = 0;
        b->weight[labelled++] = 1;
    }
    set_blocks(b, out);
}

int batch_make(struct batch *b, struct drafter_row *out, const struct intake_row *in,
               int64_t epoch)
{
    const uint64_t name[] = {b->seed, (uint64_t)epoch, in->source};
    TRY(check_text(b, in));
    TRY(batch_lay(b, out, &in->row.text, rng_key(name, 3)));
    return out->blocks > 0 ? upload(b, in, &out->aux) : 0;
}

/* value is element i of the stored hidden states, scaled. */
static double value(const struct batch *b, const struct intake_row *in, int64_t i)
{
    if (in->row.scale)
        return (double)num_e4m3_f32(((const uint8_t *)in->row.aux)[i]) *
               (double)in->row.scale[i / b->hidden];
    return (double)num_bf16_f32(((const uint16_t *)in->row.aux)[i]);
}

int batch_blame(const struct batch *b, int code, const struct intake_row *in)
{
    int64_t width = b->taps * b->hidden;
    for (int64_t i = 0; code == E_FORMAT && i < in->row.text.length * width; i++)
        if (!isfinite(value(b, in, i)))
            return bad_token(in, i / width, "hidden state is not a finite number");
    return err_wrap(code, "%s: row %lld", in->file, (long long)in->row.index);
}

int batch_pass(struct batch *b, struct drafter *drafter, const struct intake_row *in,
               int64_t epoch, struct tensor grads, struct arena *work,
               struct metrics *m)
{
    struct drafter_row row;
    struct drafter_result result = {.hit = b->hit};
    m->rows += 1;
    m->tokens += (double)in->row.text.length;
    TRY(batch_make(b, &row, in, epoch));
    if (row.blocks == 0)
        return 0;
    int rc = drafter_step(drafter, &row, grads, (struct tensor){0}, &result, work);
    if (rc < 0)
        return batch_blame(b, rc, in);
    if (!isfinite(result.loss))
        return err_set(E_FORMAT, "%s: row %lld: the loss is not a finite number",
                       in->file, (long long)in->row.index);
    m->loss += result.loss;
    m->weight += result.weight;
    metrics_add(m, b->hit, b->row, row.labelled, row.blocks, b->block, b->accepted,
                b->labelled);
    return 0;
}
