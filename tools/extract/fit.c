/* SPDX-License-Identifier: MIT */
/* fit.c - see fit.h.
 *
 * What a choice takes is counted by the code that carves it. */
#include "fit.h"

#include <stdio.h>

#include "capture.h"
#include "err.h"
#include "num.h"

enum {
    PIECE_MIN = 16,   /* tokens of a row at once, if need be */
    PIECE_FAIR = 1024 /* enough to keep a device busy */
};

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* limit reads "0: any". */
static size_t limit(size_t bytes)
{
    return bytes ? bytes : SIZE_MAX;
}

/* ---- what choices take ---- */

static size_t cache_of(const struct fit_ask *a, int64_t piece)
{
    struct cache_form past = target_cache_form(a->target, a->form.length, 0);
    return piece < a->form.length ? cache_bytes(a->dev, &past) : 0;
}

static size_t pass_bytes(const struct fit_ask *a, int64_t piece, int group, int sets)
{
    return target_group_bytes(a->target, piece, group) +
           capture_bytes(&a->form, piece, sets, group) + cache_of(a, piece);
}

/* ---- choices ---- */

/* host_rows is how many rows the host has room for. */
static int64_t host_rows(const struct fit_ask *a)
{
    size_t most = least(limit(a->host), limit(a->spare));
    size_t n = most / hidden_row_bytes(&a->form);
    return n < FIT_ROWS + FIT_GROUP ? (int64_t)n : FIT_ROWS + FIT_GROUP;
}

/* choose_rows settles how rows are computed in `passes` bytes, a piece not halved once
 * it has `enough` tokens or fewer; false: in no way. */
static bool choose_rows(struct fit *f, const struct fit_ask *a, size_t passes,
                        int64_t enough)
{
    int host = (int)host_rows(a);
    f->rows = a->rows < host ? a->rows : host;
    f->piece = a->form.length;
    f->group = f->streams ? FIT_GROUP : 1;
    if (f->group > host - f->rows + 1)
        f->group = host - f->rows + 1;
    while (f->group > 1 && pass_bytes(a, f->piece, f->group, f->group) > passes)
        f->group--;
    f->sets = f->group > 1 ? f->group : f->rows;
    if (pass_bytes(a, f->piece, f->group, f->sets) > passes)
        f->sets = 1;
    while (pass_bytes(a, f->piece, f->group, f->sets) > passes && f->piece > enough)
        f->piece = (f->piece + 1) / 2;
    f->leaves = f->group == 1 && f->sets > 1;
    return pass_bytes(a, f->piece, f->group, f->sets) <= passes;
}

/* try settles all for a target that is there whole, or streams. */
static bool try(struct fit *f, const struct fit_ask *a, bool streams, int64_t enough)
{
    struct target_sizes s = target_sizes(a->target);
    size_t device = limit(a->device), most = least(limit(a->weights), device);
    f->streams = streams;
    f->weights = streams ? s.parts : s.whole;
    if (f->weights > most || (!streams && s.loading > device - f->weights))
        return false;
    return choose_rows(f, a, least(limit(a->passes), device - f->weights), enough);
}

/* choose takes the first way that fits. */
static bool choose(struct fit *f, const struct fit_ask *a)
{
    return try(f, a, false, PIECE_FAIR) || try(f, a, true, a->form.length) ||
           try(f, a, false, PIECE_MIN) || try(f, a, true, PIECE_MIN);
}

/* ---- what does not fit ---- */

/* smallest is what the least demanding pass takes. */
static size_t smallest(const struct fit_ask *a)
{
    int64_t piece = a->form.length < PIECE_MIN ? a->form.length : PIECE_MIN;
    return least(pass_bytes(a, piece, 1, 1), pass_bytes(a, a->form.length, 1, 1));
}

static int refuse_host(const struct fit_ask *a)
{
    char need[32], have[32];
    size_t most = least(limit(a->host), limit(a->spare));
    bool told = a->host && a->host <= limit(a->spare);
    return err_set(E_CONFIG,
                   "%s: the states of a row of %lld tokens take %s of the host's "
                   "memory, %s %s",
                   told ? "--host" : "memory", (long long)a->form.length,
                   num_bytes(need, sizeof need, (double)hidden_row_bytes(&a->form)),
                   num_bytes(have, sizeof have, (double)most),
                   told ? "are allowed" : "are there for them");
}

static int refuse(const struct fit_ask *a)
{
    struct target_sizes s = target_sizes(a->target);
    size_t target = least(s.whole, s.parts), pass = smallest(a);
    char need[32], more[32], have[32];
    const char *what = s.whole < s.parts
                           ? "the target takes"
                           : "embedding and two layers of the target take";
    num_bytes(need, sizeof need, (double)target);
    num_bytes(more, sizeof more, (double)pass);
    if (a->weights && target > a->weights)
        return err_set(E_CONFIG, "--weights %s: %s %s",
                       num_bytes(have, sizeof have, (double)a->weights), what, need);
    if (a->passes && pass > a->passes)
        return err_set(E_CONFIG, "--memory %s: a row of %lld tokens takes %s",
                       num_bytes(have, sizeof have, (double)a->passes),
                       (long long)a->form.length, more);
    return err_set(E_CONFIG,
                   "memory: %s %s, a row of %lld tokens %s, the device has %s: no "
                   "--weights or --memory would do, shorter rows might",
                   what, need, (long long)a->form.length, more,
                   num_bytes(have, sizeof have, (double)a->device));
}

/* ---- the bills ---- */

/* write_device: while weights are loaded there is something more, which is given back
 * before passes take their memory; what it exceeds that by is a line of its own. */
static void write_device(struct fit *f, const struct fit_ask *a)
{
    struct bill *b = &f->device;
    size_t loading = f->streams ? 0 : target_sizes(a->target).loading;
    for (const struct dev_part *own = dev_parts(a->dev); own->name; own++)
        bill_add(b, own->name, own->bytes, "%s", own->what);
    bill_add(b, "target", f->weights, "%s",
             f->streams ? "the embedding, and two layers at a time" : "its weights");
    if (f->piece < a->form.length)
        bill_add(b, "pass", target_group_bytes(a->target, f->piece, f->group),
                 "%lld tokens of a row at once", (long long)f->piece);
    else
        bill_add(b, "pass", target_group_bytes(a->target, f->piece, f->group),
                 "%d row%s at once", f->group, f->group > 1 ? "s" : "");
    bill_add(b, "taps", capture_bytes(&a->form, f->piece, f->sets, f->group),
             "states of %d row%s", f->sets, f->sets > 1 ? "s" : "");
    if (cache_of(a, f->piece))
        bill_add(b, "cache", cache_of(a, f->piece), "what a row's pieces leave behind");
    f->held = b->total;
    size_t passes = pass_bytes(a, f->piece, f->group, f->sets);
    if (loading > passes)
        bill_add(b, "loading", loading - passes, "only while weights come");
}

static void write_host(struct fit *f, const struct fit_ask *a)
{
    int rows = f->rows + f->group - 1;
    bill_add(&f->host, "rows", (size_t)rows * hidden_row_bytes(&a->form),
             "states of %d row%s under way; page-locked for a GPU", rows,
             rows > 1 ? "s" : "");
}

void fit_print(struct buf *out, const struct fit *f)
{
    bill_print(out, &f->device, "device", "");
    bill_print(out, &f->host, "host", "");
}

int fit_make(struct fit *f, const struct fit_ask *a)
{
    *f = (struct fit){0};
    if (host_rows(a) < 1)
        return refuse_host(a);
    if (!choose(f, a))
        return refuse(a);
    write_device(f, a);
    write_host(f, a);
    return 0;
}
