/* SPDX-License-Identifier: MIT */
/* kit_ref.c - every operation once more, as naive as its formula, in f64.
 *
 * Written from op.h and the papers it names, not from kernels/: dense sums over all
 * keys, gradients through explicit Jacobians, rounding by arithmetic on the number
 * instead of on its bits.  Slow and plain on purpose. */
#include "kit_op.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kit.h"
#include "kit_ref.h"
#include "mem.h"
#include "rng.h"

static const double eps = 1e-3F;

/* Tensors by name: what goes in, and where the wanted result goes. */
static const double *in(struct call *k, const char *name)
{
    struct call_arg *a = call_find(k, name);
    return a ? a->host : NULL;
}

static double *want(struct call *k, const char *name)
{
    struct call_arg *a = call_find(k, name);
    return a ? a->want : NULL;
}

/* round_to is v with `bits` bits of mantissa, ties to even, not finer than 2^low and
 * not beyond `most`. */
static double round_to(double v, int bits, int low, double most)
{
    int e;
    frexp(v, &e);
    int unit = e - bits > low ? e - bits : low;
    double r = ldexp(nearbyint(ldexp(v, -unit)), unit);
    return fabs(r) > most ? copysign(most, r) : r;
}

static double as_type(double v, enum dtype t)
{
    switch (t) {
    case DT_E4M3:
        return round_to(v, 4, -9, 448);
    case DT_BF16:
        return round_to(v, 8, -133, INFINITY);
    case DT_F32:
        return (double)(float)v;
    default:
        return v;
    }
}

/* ---- matrix products ---- */

static void ref_matmul(struct call *k)
{
    const double *x = in(k, "x"), *w = in(k, "w");
    double *y = want(k, "y");
    int64_t m = k->dim['M'], n = k->dim['N'], depth = k->dim['K'];
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            double sum = k->dim['a'] ? y[i * n + j] : 0;
            for (int64_t l = 0; l < depth; l++)
                sum += x[i * depth + l] * w[j * depth + l];
            y[i * n + j] = sum;
        }
}

static void ref_matmul_dx(struct call *k)
{
    const double *dy = in(k, "dy"), *w = in(k, "w");
    double *dx = want(k, "dx");
    int64_t m = k->dim['M'], n = k->dim['N'], depth = k->dim['K'];
    for (int64_t i = 0; i < m * depth && !k->dim['a']; i++)
        dx[i] = 0;
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++)
            for (int64_t l = 0; l < depth; l++)
                dx[i * depth + l] += dy[i * n + j] * w[j * depth + l];
}

static void ref_matmul_dw(struct call *k)
{
    const double *dy = in(k, "dy"), *x = in(k, "x");
    double *dw = want(k, "dw");
    int64_t m = k->dim['M'], n = k->dim['N'], depth = k->dim['K'];
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++)
            for (int64_t l = 0; l < depth; l++)
                dw[j * depth + l] += dy[i * n + j] * x[i * depth + l];
}

/* ---- rows ---- */

static void ref_gather(struct call *k)
{
    const double *x = in(k, "x"), *ids = in(k, "ids");
    int64_t h = k->dim['H'];
    for (int64_t i = 0; i < k->dim['R'] * h; i++)
        want(k, "y")[i] = x[(int64_t)ids[i / h] * h + i % h];
}

static void ref_scatter(struct call *k)
{
    const double *dy = in(k, "dy"), *ids = in(k, "ids");
    double *dx = want(k, "dx");
    int64_t h = k->dim['H'];
    for (int64_t i = 0; i < k->dim['T'] * h; i++)
        dx[i] = 0;
    for (int64_t i = 0; i < k->dim['R'] * h; i++)
        dx[(int64_t)ids[i / h] * h + i % h] = dy[i];
}

static void ref_convert(struct call *k)
{
    struct call_arg *y = call_find(k, "y");
    for (int64_t i = 0; i < y->count; i++)
        y->want[i] = as_type(in(k, "x")[i], y->t.type);
}

static void ref_tap(struct call *k)
{
    struct call_arg *y = call_find(k, "y");
    int64_t h = k->dim['H'];
    for (int64_t i = 0; i < k->dim['T'] * h; i++)
        y->want[i / h * k->dim['J'] + k->dim['k'] * h + i % h] =
            as_type(in(k, "x")[i], y->t.type);
}

static void ref_quant(struct call *k)
{
    const double *x = in(k, "x");
    double *q = want(k, "q"), *scale = want(k, "scale");
    int64_t h = k->dim['H'];
    for (int64_t r = 0; r < k->dim['T'] * k->dim['K']; r++) {
        double top = 0;
        for (int64_t i = r * h; i < (r + 1) * h; i++)
            top = fmax(top, fabs(x[i]));
        scale[r] = top > 0 ? (double)(float)(top / 448) : 1;
        for (int64_t i = r * h; i < (r + 1) * h; i++)
            q[i] = as_type((double)(float)(x[i] / scale[r]), DT_E4M3);
    }
}

static void ref_dequant(struct call *k)
{
    struct call_arg *y = call_find(k, "y");
    for (int64_t i = 0; i < y->count; i++)
        y->want[i] =
            as_type((double)(float)(in(k, "q")[i] * in(k, "scale")[i / k->dim['H']]),
                    y->t.type);
}

/* ---- elementwise and norms ---- */

static void ref_add(struct call *k)
{
    struct call_arg *y = call_find(k, "y");
    for (int64_t i = 0; i < y->count; i++)
        y->want[i] = as_type(in(k, "a")[i] + in(k, "b")[i], y->t.type);
}

/* norm: y = x w / rms(x); back: dx and dw through the full Jacobian
 * dy_i / dx_j = w_i (delta_ij / rms - x_i x_j / (n rms^3)). */
static void norm(double *y, const double *x, const double *w, int64_t n)
{
    double mean = 0;
    for (int64_t i = 0; i < n; i++)
        mean += x[i] * x[i] / (double)n;
    for (int64_t i = 0; i < n; i++)
        y[i] = x[i] / sqrt(mean + eps) * w[i];
}

static void norm_back(double *dx, double *dw, const double *dy, const double *x,
                      const double *w, int64_t n)
{
    double mean = 0;
    for (int64_t i = 0; i < n; i++)
        mean += x[i] * x[i] / (double)n;
    double rms = sqrt(mean + eps);
    for (int64_t j = 0; j < n; j++) {
        dw[j] += dy[j] * x[j] / rms;
        dx[j] = dy[j] * w[j] / rms;
        for (int64_t i = 0; i < n; i++)
            dx[j] -= dy[i] * w[i] * x[i] * x[j] / ((double)n * rms * rms * rms);
    }
}

static void ref_rmsnorm(struct call *k)
{
    int64_t h = k->dim['H'];
    for (int64_t t = 0; t < k->dim['T']; t++)
        norm(want(k, "y") + t * h, in(k, "x") + t * h, in(k, "w"), h);
}

static void ref_rmsnorm_bwd(struct call *k)
{
    int64_t h = k->dim['H'];
    for (int64_t t = 0; t < k->dim['T']; t++)
        norm_back(want(k, "dx") + t * h, want(k, "dw"), in(k, "dy") + t * h,
                  in(k, "x") + t * h, in(k, "w"), h);
}

/* rotate turns the plane (i, i + D/2) by sign * pos * freq_i.  The product is rounded
 * to the device's type, as op.h's f32 pos and freq imply: at position 5000 that is a
 * ten thousandth of a radian. */
static void rotate(struct call *k, double *y, const double *x, int64_t t, double sign)
{
    int64_t half = k->dim['D'] / 2;
    for (int64_t i = 0; i < half; i++) {
        double angle = sign * as_type(in(k, "pos")[t] * in(k, "freq")[i], k->d->act);
        double a = x[i], b = x[i + half];
        y[i] = a * cos(angle) - b * sin(angle);
        y[i + half] = a * sin(angle) + b * cos(angle);
    }
}

static void ref_norm_rope(struct call *k)
{
    int64_t n = k->dim['n'], width = k->dim['D'];
    double unit[OP_HEAD_MAX];
    for (int64_t r = 0; r < k->dim['T'] * n; r++) {
        const double *x = in(k, "x") + r * width;
        if (in(k, "w"))
            norm(unit, x, in(k, "w"), width);
        rotate(k, want(k, "y") + r * width, in(k, "w") ? unit : x, r / n, 1);
    }
}

static void ref_norm_rope_bwd(struct call *k)
{
    int64_t n = k->dim['n'], width = k->dim['D'];
    double back[OP_HEAD_MAX];
    for (int64_t r = 0; r < k->dim['T'] * n; r++) {
        double *dx = want(k, "dx") + r * width;
        rotate(k, back, in(k, "dy") + r * width, r / n, -1);
        if (in(k, "w"))
            norm_back(dx, want(k, "dw"), back, in(k, "x") + r * width, in(k, "w"),
                      width);
        else
            memcpy(dx, back, (size_t)width * sizeof *dx);
    }
}

static void ref_swiglu(struct call *k)
{
    for (int64_t i = 0; i < call_find(k, "y")->count; i++) {
        double g = in(k, "g")[i];
        want(k, "y")[i] = g / (1 + exp(-g)) * in(k, "u")[i];
    }
}

static void ref_swiglu_bwd(struct call *k)
{
    for (int64_t i = 0; i < call_find(k, "dg")->count; i++) {
        double g = in(k, "g")[i], e = exp(-g), dy = in(k, "dy")[i];
        want(k, "dg")[i] = dy * in(k, "u")[i] * (1 + e + g * e) / ((1 + e) * (1 + e));
        want(k, "du")[i] = dy * g / (1 + e);
    }
}

/* ---- attention ---- */

/* A query's view: key j of S + Q is a context row, or row j - S of the blocks. */
struct view {
    int64_t keys, context, t, head;
    const double *k[2], *v[2], *lo, *hi; // context, blocks
    const double *q;
    double *p; // softmax over all keys, 0 for the unseen
    double lse;
};

static bool sees(struct call *k, const struct view *v, int64_t j)
{
    if (j < v->context)
        return j >= (int64_t)v->lo[v->t] && j < (int64_t)v->hi[v->t];
    int64_t size = k->dim['B'], row = j - v->context, window = k->dim['v'];
    return row / size == v->t / size && (!k->dim['c'] || row <= v->t) &&
           (!window || llabs(row - v->t) < window);
}

/* key_at is where key j of the view's head begins in its tensor. */
static int64_t key_at(struct call *k, const struct view *v, int64_t j)
{
    int64_t share = k->dim['n'] / k->dim['m'];
    int64_t row = j < v->context ? j : j - v->context;
    return (row * k->dim['m'] + v->head / share) * k->dim['D'];
}

static const double *pick(struct call *k, const struct view *v, int64_t j,
                          const double *const from[2])
{
    return from[j >= v->context] + key_at(k, v, j);
}

static double dot(const double *a, const double *b, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

/* look computes the softmax of one query. */
static void look(struct call *k, struct view *v)
{
    double scale = (double)(1 / sqrtf((float)k->dim['D'])), top = -INFINITY, sum = 0;
    for (int64_t j = 0; j < v->keys; j++) {
        v->p[j] = -INFINITY;
        if (sees(k, v, j))
            v->p[j] = scale * dot(v->q, pick(k, v, j, v->k), k->dim['D']);
        top = fmax(top, v->p[j]);
    }
    for (int64_t j = 0; j < v->keys; j++)
        sum += v->p[j] = v->p[j] == -INFINITY ? 0 : exp(v->p[j] - top);
    for (int64_t j = 0; j < v->keys; j++)
        v->p[j] /= sum > 0 ? sum : 1;
    v->lse = top + log(sum);
}

/* each_view calls fn for every query row and head. */
static void each_view(struct call *k, void (*fn)(struct call *, struct view *))
{
    bool blocks = k->dim['B'] != 0;
    int64_t rows = blocks ? k->dim['Q'] : k->dim['T'], n = k->dim['n'];
    struct view v = {.k = {in(k, blocks ? "kc" : "k"), in(k, "kb")},
                     .v = {in(k, blocks ? "vc" : "v"), in(k, "vb")},
                     .lo = in(k, "lo"),
                     .hi = in(k, "hi"),
                     .context = k->dim['S']};
    v.keys = v.context + (blocks ? rows : 0);
    v.p = mem_alloc((size_t)v.keys * sizeof *v.p);
    for (int64_t r = 0; r < rows * n; r++) {
        v.t = r / n;
        v.head = r % n;
        v.q = in(k, "q") + r * k->dim['D'];
        look(k, &v);
        fn(k, &v);
    }
    mem_free(v.p);
}

static void mix(struct call *k, struct view *v)
{
    int64_t width = k->dim['D'];
    double *o = want(k, "o") + (v->t * k->dim['n'] + v->head) * width;
    for (int64_t i = 0; i < width; i++)
        o[i] = 0;
    for (int64_t j = 0; j < v->keys; j++)
        for (int64_t i = 0; i < width && v->p[j] > 0; i++)
            o[i] += v->p[j] * pick(k, v, j, v->v)[i];
    if (k->dim['B'])
        want(k, "lse")[v->t * k->dim['n'] + v->head] = v->lse;
}

/* back: the softmax's Jacobian in full: ds_j = p_j (dp_j - sum_i p_i dp_i). */
static void back(struct call *k, struct view *v)
{
    int64_t width = k->dim['D'], at = (v->t * k->dim['n'] + v->head) * width;
    const double *dout = in(k, "do") + at;
    double scale = (double)(1 / sqrtf((float)width)), mean = 0;
    double *dk[2] = {want(k, "dkc"), want(k, "dkb")};
    double *dv[2] = {want(k, "dvc"), want(k, "dvb")}, *dq = want(k, "dq") + at;
    for (int64_t j = 0; j < v->keys; j++)
        if (v->p[j] > 0)
            mean += v->p[j] * dot(dout, pick(k, v, j, v->v), width);
    for (int64_t j = 0; j < v->keys; j++) {
        if (!(v->p[j] > 0))
            continue;
        int own = j >= v->context;
        int64_t to = key_at(k, v, j);
        double ds = dot(dout, pick(k, v, j, v->v), width) - mean;
        ds *= v->p[j] * scale;
        for (int64_t i = 0; i < width; i++) {
            dq[i] += ds * pick(k, v, j, v->k)[i];
            dk[own][to + i] += ds * v->q[i];
            dv[own][to + i] += v->p[j] * dout[i];
        }
    }
}

static void ref_attn_span(struct call *k)
{
    each_view(k, mix);
}

static void ref_attn_block(struct call *k)
{
    each_view(k, mix);
}

static void ref_attn_block_bwd(struct call *k)
{
    static const char *const out[] = {"dq", "dkc", "dvc", "dkb", "dvb"};
    for (int i = 0; i < 5; i++)
        memset(want(k, out[i]), 0,
               (size_t)call_find(k, out[i])->count * sizeof(double));
    each_view(k, back);
}

/* ---- the head ---- */

static void head_row(struct call *k, int64_t r, double *z)
{
    int64_t words = k->dim['V'], h = k->dim['H'];
    int64_t label = (int64_t)in(k, "label")[r], best = 0;
    const double *w = in(k, "w");
    double sum = 0, weight = in(k, "weight")[r], *dh = want(k, "dh") + r * h;
    for (int64_t j = 0; j < words; j++) {
        z[j] = dot(in(k, "h") + r * h, w + j * h, h);
        best = z[j] > z[best] ? j : best;
    }
    double top = z[best];
    for (int64_t j = 0; j < words; j++)
        sum += exp(z[j] - top);
    want(k, "loss")[0] += weight * (top + log(sum) - z[label]);
    want(k, "hit")[r] = best == label;
    for (int64_t i = 0; i < h; i++)
        dh[i] = 0;
    for (int64_t j = 0; j < words; j++)
        for (int64_t i = 0; i < h; i++)
            dh[i] += weight * (exp(z[j] - top) / sum - (j == label)) * w[j * h + i];
}

static void ref_head_loss(struct call *k)
{
    double *z = mem_alloc((size_t)k->dim['V'] * sizeof *z);
    for (int64_t r = 0; r < k->dim['R']; r++)
        head_row(k, r, z);
    mem_free(z);
}

static void ref_argmax(struct call *k)
{
    int64_t n = k->dim['V'];
    for (int64_t r = 0; r < k->dim['R']; r++) {
        const double *x = in(k, "x") + r * n;
        int64_t best = 0;
        for (int64_t i = 1; i < n; i++)
            best = x[i] > x[best] ? i : best;
        want(k, "idx")[r] = (double)best;
    }
}

/* ---- optimizer ---- */

static void ref_sumsq(struct call *k)
{
    for (int64_t i = 0; i < call_find(k, "x")->count; i++)
        want(k, "sum")[0] += in(k, "x")[i] * in(k, "x")[i];
}

static void ref_fill(struct call *k)
{
    struct call_arg *x = call_find(k, "x");
    for (int64_t i = 0; i < x->count; i++)
        x->want[i] = as_type(-0.3F, x->t.type);
}

static void ref_scale(struct call *k)
{
    struct call_arg *x = call_find(k, "x");
    for (int64_t i = 0; i < x->count; i++)
        x->want[i] = as_type(x->host[i] * -0.3F, x->t.type);
}

/* Box and Muller's formula over bare Philox, with libm. */
static void ref_normal(struct call *k)
{
    struct call_arg *x = call_find(k, "x");
    for (int64_t i = 0; i < x->count; i++) {
        uint32_t w[4];
        rng_philox(w, 0x9E3779B97F4A7C15u, (uint64_t)i, 0);
        double u = (double)(((uint64_t)w[1] << 32 | w[0]) >> 11) / 9007199254740992.0;
        double v = (double)(((uint64_t)w[3] << 32 | w[2]) >> 11) / 9007199254740992.0;
        double n = sqrt(-2 * log(1 - u)) * cos(6.28318530717958648 * v);
        x->want[i] = as_type(0.3F * n, x->t.type);
    }
}

static void ref_adamw(struct call *k)
{
    const double lr = 0.01F, b1 = 0.9F, b2 = 0.95F, decay = 0.1F;
    struct call_arg *w = call_find(k, "w");
    double *m = want(k, "m"), *v = want(k, "v"), *master = want(k, "master");
    for (int64_t i = 0; i < w->count; i++) {
        double g = in(k, "grad")[i] * 0.7F;
        m[i] = b1 * m[i] + (1 - b1) * g;
        v[i] = b2 * v[i] + (1 - b2) * g * g;
        double mean = m[i] / (1 - pow(b1, 3)), square = v[i] / (1 - pow(b2, 3));
        master[i] -= lr * (mean / (sqrt(square) + 1e-3F) + decay * master[i]);
        w->want[i] = as_type(master[i], w->t.type);
    }
}

static const struct {
    const char *op;
    void (*run)(struct call *);
} known[] = {
    {"matmul", ref_matmul},
    {"matmul_dx", ref_matmul_dx},
    {"matmul_dw", ref_matmul_dw},
    {"gather", ref_gather},
    {"scatter", ref_scatter},
    {"convert", ref_convert},
    {"tap", ref_tap},
    {"quant", ref_quant},
    {"dequant", ref_dequant},
    {"add", ref_add},
    {"rmsnorm", ref_rmsnorm},
    {"rmsnorm_bwd", ref_rmsnorm_bwd},
    {"norm_rope", ref_norm_rope},
    {"norm_rope_bwd", ref_norm_rope_bwd},
    {"swiglu", ref_swiglu},
    {"swiglu_bwd", ref_swiglu_bwd},
    {"attn_span", ref_attn_span},
    {"attn_block", ref_attn_block},
    {"attn_block_bwd", ref_attn_block_bwd},
    {"gate", ref_gate},
    {"delta_mix", ref_delta_mix},
    {"delta", ref_delta},
    {"norm_gate", ref_norm_gate},
    {"head_loss", ref_head_loss},
    {"argmax", ref_argmax},
    {"sumsq", ref_sumsq},
    {"fill", ref_fill},
    {"scale", ref_scale},
    {"normal", ref_normal},
    {"adamw", ref_adamw},
};

void ref_run(struct call *k)
{
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (strcmp(known[i].op, k->c->op) == 0) {
            known[i].run(k);
            return;
        }
    ck_abort_msg("no reference for %s", k->c->op);
}
