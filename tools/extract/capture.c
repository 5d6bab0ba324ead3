/* SPDX-License-Identifier: MIT */
/* capture.c - forward pass over one row, states to the host, and what they must be.
 *
 * Silent damage is the classic failure of this stage (all-zero features from a cache of
 * the wrong block size, rows of another request, NaN kept until training): every value
 * is looked at before it is stored, which costs a pass over memory per row. */
#include "capture.h"

#include <math.h>
#include <string.h>

#include "err.h"
#include "mem.h"
#include "num.h"
#include "op.h"
#include "safetensors.h"
#include "span.h"

enum { PIECE_MIN = 16 };

int capture_identify(struct target_config *c, char digest[HASH_TEXT], const char *dir)
{
    struct st_model model = {0};
    uint64_t value;

    TRY(config_target(c, dir));
    TRY(st_model_open(&model, dir));
    int rc = st_model_digest(&model, &value);
    st_model_close(&model);
    if (rc == 0)
        hash_text(digest, value);
    return rc;
}

/* ---- memory ---- */

static size_t out_bytes(const struct hidden_form *f, int64_t rows)
{
    size_t n = arena_bytes(DT_BF16, T2(rows, f->taps * f->width));
    if (f->fp8)
        n += arena_bytes(DT_E4M3, T2(rows, f->taps * f->width)) +
             arena_bytes(DT_F32, T2(rows, f->taps));
    if (f->last)
        n += arena_bytes(DT_BF16, T2(rows, f->width));
    return n;
}

static size_t piece_bytes(const struct capture *c, int64_t rows)
{
    struct cache_form past = target_cache_form(c->target, c->form.length, 0);
    size_t cache = rows < c->form.length ? cache_bytes(c->dev, &past) : 0;
    return target_bytes(c->target, rows, 0) + out_bytes(&c->form, rows) + cache;
}

/* choose_piece halves the piece until it fits. */
static int choose_piece(struct capture *c, size_t memory)
{
    char need[16], have[16];

    c->piece = c->form.length;
    while (memory && piece_bytes(c, c->piece) > memory && c->piece > PIECE_MIN)
        c->piece = (c->piece + 1) / 2;
    size_t bytes = piece_bytes(c, c->piece);
    if (memory && bytes > memory)
        return err_set(E_CONFIG, "--memory %s: a row of %lld tokens takes %s",
                       num_bytes(have, sizeof have, (double)memory),
                       (long long)c->form.length,
                       num_bytes(need, sizeof need, (double)bytes));
    return 0;
}

static int open_device(struct capture *c)
{
    const struct hidden_form *f = &c->form;
    int64_t n = c->piece;

    TRY(arena_open(&c->work, c->dev, "pass", target_bytes(c->target, n, 0)));
    TRY(arena_open(&c->out, c->dev, "taps", out_bytes(f, n)));
    c->aux = arena_tensor(&c->out, DT_BF16, T2(n, f->taps * f->width));
    if (f->fp8) {
        c->quant = arena_tensor(&c->out, DT_E4M3, T3(n, f->taps, f->width));
        c->scale = arena_tensor(&c->out, DT_F32, T2(n, f->taps));
    }
    if (f->last)
        c->last = arena_tensor(&c->out, DT_BF16, T2(n, f->width));
    if (n == f->length)
        return 0;
    struct cache_form past = target_cache_form(c->target, f->length, 0);
    return cache_open(&c->cache, c->dev, &past);
}

static int open_host(struct capture *c)
{
    size_t n = (size_t)c->form.length * sizeof(int32_t);

    c->ids = mem_alloc(n);
    c->pos = mem_alloc(n);
    c->lo = mem_alloc(n);
    c->hi = mem_alloc(n);
    return c->ids && c->pos && c->lo && c->hi ? 0 : E_MEMORY;
}

/* within is `memory`, or what the card has left where that is less. */
static int within(struct dev *d, size_t *memory)
{
    struct dev_memory m;
    int told = dev_memory(d, &m);
    if (told > 0 && (*memory == 0 || *memory > m.available))
        *memory = m.available;
    return told;
}

int capture_open(struct capture *c, struct target *t, struct dev *d,
                 const struct taps *taps, const struct hidden_form *form, size_t memory)
{
    *c = (struct capture){.target = t, .dev = d, .taps = taps, .form = *form};
    TRY(within(d, &memory));
    TRY(choose_piece(c, memory));
    int rc = open_device(c);
    if (rc == 0)
        rc = open_host(c);
    if (rc < 0)
        capture_close(c);
    return rc;
}

void capture_close(struct capture *c)
{
    if (c->cache.capacity)
        cache_close(&c->cache);
    arena_close(&c->work);
    arena_close(&c->out);
    mem_free(c->ids);
    mem_free(c->pos);
    mem_free(c->lo);
    mem_free(c->hi);
    *c = (struct capture){0};
}

/* ---- the states ---- */

/* Whether n stored values hold a NaN or an infinity, or anything but zeros. */
struct seen {
    bool bad, some;
};

static void look_bf16(struct seen *s, const uint16_t *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        s->bad |= (x[i] & 0x7f80) == 0x7f80;
        s->some |= (x[i] & 0x7fff) != 0;
    }
}

static void look_e4m3(struct seen *s, const uint8_t *x, int64_t n, float scale)
{
    s->bad |= !isfinite(scale);
    for (int64_t i = 0; i < n; i++) {
        s->bad |= (x[i] & 0x7f) == 0x7f;
        s->some |= (x[i] & 0x7f) != 0;
    }
}

static void look_tap(struct seen *s, const struct capture *c,
                     const struct hidden_row *r, int64_t token, int64_t tap)
{
    int64_t at = token * c->form.taps + tap, n = c->form.width;

    if (c->form.fp8)
        look_e4m3(s, (const uint8_t *)r->aux + at * n, n, r->scale[at]);
    else
        look_bf16(s, (const uint16_t *)r->aux + at * n, n);
}

static int check_tap(const struct capture *c, const struct hidden_row *r, int64_t end,
                     int64_t tap)
{
    struct seen seen = {0};
    long long row = (long long)r->index, layer = (long long)c->taps->layer[tap];

    for (int64_t s = 0; s < end; s++) {
        if (r->doc[s] < 0)
            continue;
        if (s == 0 || r->doc[s] != r->doc[s - 1])
            seen.some = false;
        look_tap(&seen, c, r, s, tap);
        if (seen.bad)
            return err_set(E_FORMAT, "row %lld: tap %lld: token %lld is not finite",
                           row, layer, (long long)s);
        bool ends = s + 1 == end || r->doc[s + 1] != r->doc[s];
        if (ends && !seen.some)
            return err_set(E_FORMAT,
                           "row %lld: tap %lld: zero throughout the document that "
                           "ends with token %lld",
                           row, layer, (long long)s);
    }
    return 0;
}

static int check_last(const struct capture *c, const struct hidden_row *r, int64_t end)
{
    struct seen seen = {0};
    int64_t n = c->form.width;

    for (int64_t s = 0; s < end && !seen.bad; s++) {
        look_bf16(&seen, (const uint16_t *)r->last + s * n, n);
        if (seen.bad)
            return err_set(E_FORMAT, "row %lld: last: token %lld is not finite",
                           (long long)r->index, (long long)s);
    }
    return 0;
}

static int check_row(const struct capture *c, const struct hidden_row *r, int64_t end)
{
    for (int64_t k = 0; k < c->form.taps; k++)
        TRY(check_tap(c, r, end, k));
    return c->form.last ? check_last(c, r, end) : 0;
}

/* ---- the pass ---- */

/* prepare copies the ids, padding as id 0, and gives every token its span. */
static int prepare(struct capture *c, const struct hidden_row *r, int64_t end)
{
    int64_t vocab = target_config(c->target)->vocab;

    for (int64_t s = 0; s < end; s++) {
        bool padding = r->doc[s] < 0;
        if (!padding && (r->ids[s] < 0 || r->ids[s] >= vocab))
            return err_set(
                E_FORMAT, "row %lld: token %lld: id %d of a vocabulary of %lld",
                (long long)r->index, (long long)s, r->ids[s], (long long)vocab);
        c->ids[s] = padding ? 0 : r->ids[s];
    }
    span_docs(c->pos, c->lo, c->hi, r->doc, c->form.length);
    return 0;
}

static int fetch(struct capture *c, struct hidden_row *r, int64_t at, int64_t n)
{
    const struct hidden_form *f = &c->form;
    size_t taps = (size_t)(n * f->taps), aux = taps * (size_t)f->width;
    size_t before = (size_t)(at * f->taps * f->width);

    if (f->fp8) {
        TRY(dev_get(c->dev, (uint8_t *)r->aux + before, c->quant.data, aux));
        TRY(dev_get(c->dev, r->scale + at * f->taps, c->scale.data,
                    taps * sizeof(float)));
    } else {
        TRY(dev_get(c->dev, (uint16_t *)r->aux + before, c->aux.data, aux * 2));
    }
    if (f->last)
        TRY(dev_get(c->dev, (uint16_t *)r->last + at * f->width, c->last.data,
                    (size_t)(n * f->width) * 2));
    return 0;
}

/* run computes tokens [at, at + n) and brings their states to the host. */
static int run(struct capture *c, struct hidden_row *r, int64_t at, int64_t n)
{
    const struct hidden_form *f = &c->form;
    bool cached = c->piece < f->length;
    struct target_pass pass = {
        .rows = n,
        .ids = c->ids + at,
        .pos = c->pos + at,
        .lo = c->lo + at,
        .hi = c->hi + at,
        .cache = cached ? &c->cache : NULL,
        .tap = c->taps->layer,
        .taps = c->taps->n,
        .aux = tensor_rows(c->aux, 0, n),
    };
    if (f->last)
        pass.last = tensor_rows(c->last, 0, n);
    TRY(target_forward(c->target, &pass, &c->work));
    if (f->fp8)
        op_quant(c->dev, tensor_rows(c->quant, 0, n), tensor_rows(c->scale, 0, n),
                 tensor_view(pass.aux, T3(n, f->taps, f->width)));
    TRY(dev_sync(c->dev));
    return fetch(c, r, at, n);
}

/* clear zeroes the states of padding, which the target was not asked for, or was only
 * because a document follows. */
static void clear(const struct capture *c, struct hidden_row *r)
{
    const struct hidden_form *f = &c->form;
    size_t aux = (size_t)(f->taps * f->width) * (f->fp8 ? 1 : 2);
    size_t last = (size_t)f->width * 2;

    for (int64_t s = 0; s < f->length; s++) {
        if (r->doc[s] >= 0)
            continue;
        memset((char *)r->aux + (size_t)s * aux, 0, aux);
        if (f->fp8)
            memset(r->scale + s * f->taps, 0, (size_t)f->taps * sizeof(float));
        if (f->last)
            memset((char *)r->last + (size_t)s * last, 0, last);
    }
}

int capture_row(struct capture *c, struct hidden_row *out)
{
    struct anchor_row text = {.length = c->form.length, .doc = out->doc};
    int64_t end = row_end(&text);

    TRY(prepare(c, out, end));
    if (c->piece < c->form.length)
        cache_cut(&c->cache, 0);
    for (int64_t at = 0; at < end; at += c->piece)
        TRY(run(c, out, at, end - at < c->piece ? end - at : c->piece));
    return 0;
}

int capture_check(const struct capture *c, struct hidden_row *r)
{
    struct anchor_row text = {.length = c->form.length, .doc = r->doc};
    clear(c, r);
    return check_row(c, r, row_end(&text));
}
