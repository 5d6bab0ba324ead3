/* SPDX-License-Identifier: MIT */
/* capture.c - forward passes over rows, states to the host, and what they must be.
 *
 * Silent damage is the classic failure of this stage (all-zero features from a cache of
 * the wrong block size, rows of another request, NaN kept until training): every value
 * is looked at before it is stored, which costs a pass over memory per row. */
#include "capture.h"

#include <math.h>
#include <string.h>

#include "err.h"
#include "mem.h"
#include "op.h"
#include "span.h"

/* ---- memory ---- */

/* carve_set makes what a row, or a piece of one, leaves; fp8 is made from bf16, which
 * the sets share. */
static void carve_set(struct capture_set *s, struct arena *a,
                      const struct hidden_form *f, int64_t rows)
{
    if (f->fp8) {
        s->quant = arena_tensor(a, DT_E4M3, T3(rows, f->taps, f->width));
        s->scale = arena_tensor(a, DT_F32, T2(rows, f->taps));
    } else {
        s->aux = arena_tensor(a, DT_BF16, T2(rows, f->taps * f->width));
    }
    if (f->last)
        s->last = arena_tensor(a, DT_BF16, T2(rows, f->width));
}

/* carve makes `sets` of them.  Rows of a group have their taps at the same time. */
static void carve(struct capture_set *s, struct arena *a, const struct hidden_form *f,
                  int64_t rows, int sets, int group)
{
    struct tensor aux;
    for (int i = 0; i < sets; i++)
        carve_set(&s[i], a, f, rows);
    for (int i = 0; f->fp8 && i < sets; i++) {
        if (i < group)
            aux = arena_tensor(a, DT_BF16, T2(rows, f->taps * f->width));
        s[i].aux = aux;
    }
}

size_t capture_bytes(const struct hidden_form *f, int64_t tokens, int sets, int group)
{
    struct arena plan = arena_plan();
    struct capture_set s[FIT_GROUP];
    carve(s, &plan, f, tokens, sets, group);
    return plan.used;
}

static int open_device(struct capture *c)
{
    const struct hidden_form *f = &c->form;
    const struct fit *fit = &c->fit;
    int64_t n = fit->piece;

    TRY(arena_open(&c->work, c->dev, "pass",
                   target_group_bytes(c->target, n, fit->group)));
    TRY(arena_open(&c->out, c->dev, "taps",
                   capture_bytes(f, n, fit->sets, fit->group)));
    carve(c->set, &c->out, f, n, fit->sets, fit->group);
    if (n == f->length)
        return 0;
    struct cache_form past = target_cache_form(c->target, f->length, 0);
    return cache_open(&c->cache, c->dev, &past);
}

static int open_host(struct capture *c)
{
    size_t n = (size_t)c->form.length * (size_t)c->fit.group * sizeof(int32_t);

    c->ids = mem_alloc(n);
    c->pos = mem_alloc(n);
    c->lo = mem_alloc(n);
    c->hi = mem_alloc(n);
    return c->ids && c->pos && c->lo && c->hi ? 0 : E_MEMORY;
}

int capture_open(struct capture *c, struct target *t, struct dev *d,
                 const struct taps *taps, const struct hidden_form *form,
                 const struct fit *fit)
{
    *c = (struct capture){
        .target = t, .dev = d, .taps = taps, .form = *form, .fit = *fit};
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

    for (int64_t s = 0; s < end; s++) {
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

static int64_t row_tokens(const struct capture *c, const struct hidden_row *r)
{
    struct anchor_row text = {.length = c->form.length, .doc = r->doc};
    return row_end(&text);
}

/* prepare fills pass i from a row: ids, padding as id 0, and every token's span. */
static int prepare(struct capture *c, int i, const struct hidden_row *r, int64_t end)
{
    int64_t vocab = target_config(c->target)->vocab, at = i * c->form.length;
    int32_t *ids = c->ids + at, *pos = c->pos + at, *lo = c->lo + at, *hi = c->hi + at;

    for (int64_t s = 0; s < end; s++) {
        bool padding = r->doc[s] < 0;
        if (!padding && (r->ids[s] < 0 || r->ids[s] >= vocab))
            return err_set(
                E_FORMAT, "row %lld: token %lld: id %d of a vocabulary of %lld",
                (long long)r->index, (long long)s, r->ids[s], (long long)vocab);
        ids[s] = padding ? 0 : r->ids[s];
    }
    if (end == 0)
        ids[0] = 0;
    span_docs(pos, lo, hi, r->doc, c->form.length);
    c->pass[i] = (struct target_pass){.rows = end ? end : 1, // a pass has a row
                                      .ids = ids,
                                      .pos = pos,
                                      .lo = lo,
                                      .hi = hi,
                                      .tap = c->taps->layer,
                                      .taps = c->taps->n};
    return 0;
}

/* aim lets a pass leave its states in set s. */
static void aim(const struct capture *c, struct target_pass *p, int s)
{
    p->aux = tensor_rows(c->set[s].aux, 0, p->rows);
    if (c->form.last)
        p->last = tensor_rows(c->set[s].last, 0, p->rows);
}

static void quantise(struct capture *c, const struct target_pass *p, int s)
{
    const struct hidden_form *f = &c->form;
    if (f->fp8)
        op_quant(c->dev, tensor_rows(c->set[s].quant, 0, p->rows),
                 tensor_rows(c->set[s].scale, 0, p->rows),
                 tensor_view(p->aux, T3(p->rows, f->taps, f->width)));
}

/* fetch brings n tokens of set s, which the device is done with, to tokens `at` on of a
 * row. */
static int fetch(const struct capture *c, struct hidden_row *r, int64_t at, int64_t n,
                 int s)
{
    const struct hidden_form *f = &c->form;
    const struct capture_set *from = &c->set[s];
    size_t taps = (size_t)(n * f->taps), aux = taps * (size_t)f->width;
    size_t before = (size_t)(at * f->taps * f->width);

    if (f->fp8) {
        TRY(dev_get_beside(c->dev, (uint8_t *)r->aux + before, from->quant.data, aux));
        TRY(dev_get_beside(c->dev, r->scale + at * f->taps, from->scale.data,
                           taps * sizeof(float)));
    } else {
        TRY(dev_get_beside(c->dev, (uint16_t *)r->aux + before, from->aux.data,
                           aux * 2));
    }
    if (f->last)
        TRY(dev_get_beside(c->dev, (uint16_t *)r->last + at * f->width, from->last.data,
                           (size_t)(n * f->width) * 2));
    return 0;
}

/* run_pieces computes a row piece by piece through the cache. */
static int run_pieces(struct capture *c, struct hidden_row *r)
{
    const struct target_pass whole = c->pass[0];
    cache_cut(&c->cache, 0);
    for (int64_t at = 0; at < whole.rows; at += c->fit.piece) {
        struct target_pass p = whole;
        p.rows = whole.rows - at < c->fit.piece ? whole.rows - at : c->fit.piece;
        p.ids += at;
        p.pos += at;
        p.lo += at;
        p.hi += at;
        p.cache = &c->cache;
        aim(c, &p, 0);
        TRY(target_forward(c->target, &p, &c->work));
        quantise(c, &p, 0);
        TRY(dev_sync(c->dev));
        TRY(fetch(c, r, at, p.rows, 0));
    }
    return 0;
}

/* run_whole computes rows whole; their states stay, or are brought. */
static int run_whole(struct capture *c, struct hidden_row *const *row, int n)
{
    for (int i = 0; i < n; i++)
        aim(c, &c->pass[i], c->fit.leaves ? row[i]->set : i);
    TRY(target_group(c->target, c->pass, n, &c->work));
    for (int i = 0; i < n; i++)
        quantise(c, &c->pass[i], c->fit.leaves ? row[i]->set : i);
    TRY(dev_sync(c->dev));
    for (int i = 0; i < n; i++) {
        row[i]->there = c->fit.leaves;
        if (!c->fit.leaves)
            TRY(fetch(c, row[i], 0, c->pass[i].rows, i));
    }
    return 0;
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

int capture_rows(struct capture *c, struct hidden_row *const *row, int n)
{
    for (int i = 0; i < n; i++)
        TRY(prepare(c, i, row[i], row_tokens(c, row[i])));
    return c->fit.piece < c->form.length ? run_pieces(c, row[0]) : run_whole(c, row, n);
}

int capture_check(const struct capture *c, struct hidden_row *r)
{
    int64_t end = row_tokens(c, r);
    if (r->there)
        TRY(fetch(c, r, 0, end, r->set));
    r->there = false;
    clear(c, r);
    return check_row(c, r, end);
}
