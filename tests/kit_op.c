/* SPDX-License-Identifier: MIT */
/* kit_op.c - signatures of the operations, and the making of calls from them.
 *
 * A signature names the tensors in the order of op.h: name, role, kind, shape.  Kinds:
 * A activation, F f32, D f64, I i32, Q e4m3, M moment; W, X, Y, S, G are A unless the
 * case says otherwise under the small letter.  Role '~' is '+' when the case has a=1,
 * else '='. */
#include "kit_op.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "err.h"
#include "kit.h"
#include "mem.h"
#include "num.h"
#include "rng.h"

static const float eps = 1e-3F; // large enough to show in every test

static struct tensor arg(const struct call *k, int i)
{
    return k->arg[i].t;
}

struct attn_block call_block(const struct call *k)
{
    return (struct attn_block){.block = (int)k->dim['B'],
                               .causal = k->dim['c'] != 0,
                               .window = (int)k->dim['v'],
                               .scale = 1 / sqrtf((float)k->dim['D'])};
}

static void run_matmul(const struct call *k)
{
    struct tensor w = arg(k, 2), p = w;
    if (!k->dim['p']) {
        op_matmul(k->d, arg(k, 0), arg(k, 1), w, k->dim['a']);
        return;
    }
    size_t bytes = op_pack_bytes(k->d, w);
    p.layout = T_PANELS;
    kit_ok(dev_alloc(k->d, &p.data, bytes));
    op_pack(k->d, p, w);
    op_matmul(k->d, arg(k, 0), arg(k, 1), p, k->dim['a']);
    kit_ok(dev_sync(k->d));
    dev_free(k->d, p.data, bytes);
}

static void run_matmul_dx(const struct call *k)
{
    op_matmul_dx(k->d, arg(k, 0), arg(k, 1), arg(k, 2), k->dim['a']);
}

static void run_matmul_dw(const struct call *k)
{
    op_matmul_dw(k->d, arg(k, 0), arg(k, 1), arg(k, 2));
}

static void run_gather(const struct call *k)
{
    op_gather(k->d, arg(k, 0), arg(k, 1), arg(k, 2));
}

static void run_scatter(const struct call *k)
{
    op_scatter(k->d, arg(k, 0), arg(k, 1), arg(k, 2));
}

static void run_convert(const struct call *k)
{
    op_convert(k->d, arg(k, 0), arg(k, 1));
}

static void run_tap(const struct call *k)
{
    op_tap(k->d, arg(k, 0), arg(k, 1), (int)k->dim['k']);
}

static void run_quant(const struct call *k)
{
    op_quant(k->d, arg(k, 0), arg(k, 1), arg(k, 2));
}

static void run_dequant(const struct call *k)
{
    op_dequant(k->d, arg(k, 0), arg(k, 1), arg(k, 2));
}

static void run_add(const struct call *k)
{
    op_add(k->d, arg(k, 0), arg(k, 1), arg(k, 2));
}

static void run_rmsnorm(const struct call *k)
{
    op_rmsnorm(k->d, arg(k, 0), arg(k, 1), arg(k, 2), eps);
}

static void run_rmsnorm_bwd(const struct call *k)
{
    op_rmsnorm_bwd(k->d, arg(k, 0), arg(k, 1), arg(k, 2), arg(k, 3), arg(k, 4), eps);
}

static void run_norm_rope(const struct call *k)
{
    op_norm_rope(k->d, arg(k, 0), arg(k, 1), arg(k, 2), arg(k, 3), arg(k, 4), eps);
}

static void run_norm_rope_bwd(const struct call *k)
{
    op_norm_rope_bwd(k->d, arg(k, 0), arg(k, 1), arg(k, 2), arg(k, 3), arg(k, 4),
                     arg(k, 5), arg(k, 6), eps);
}

static void run_swiglu(const struct call *k)
{
    op_swiglu(k->d, arg(k, 0), arg(k, 1), arg(k, 2));
}

static void run_swiglu_bwd(const struct call *k)
{
    op_swiglu_bwd(k->d, arg(k, 0), arg(k, 1), arg(k, 2), arg(k, 3), arg(k, 4));
}

static void run_attn_span(const struct call *k)
{
    op_attn_span(k->d, arg(k, 0), arg(k, 1), arg(k, 2), arg(k, 3), arg(k, 4), arg(k, 5),
                 call_block(k).scale);
}

static void run_attn_block(const struct call *k)
{
    op_attn_block(k->d, arg(k, 0), arg(k, 1), arg(k, 2), arg(k, 3), arg(k, 4),
                  arg(k, 5), arg(k, 6), arg(k, 7), arg(k, 8), call_block(k));
}

static void run_attn_block_bwd(const struct call *k)
{
    struct attn_grads g = {arg(k, 0), arg(k, 1), arg(k, 2), arg(k, 3), arg(k, 4)};
    op_attn_block(k->d, arg(k, 6), arg(k, 7), arg(k, 8), arg(k, 9), arg(k, 10),
                  arg(k, 11), arg(k, 12), arg(k, 13), arg(k, 14), call_block(k));
    op_attn_block_bwd(k->d, g, arg(k, 5), arg(k, 6), arg(k, 7), arg(k, 8), arg(k, 9),
                      arg(k, 10), arg(k, 11), arg(k, 12), arg(k, 13), arg(k, 14),
                      call_block(k));
}

static struct delta_in delta_in(const struct call *k, int i)
{
    return (struct delta_in){arg(k, i), arg(k, i + 1), arg(k, i + 2), arg(k, i + 3),
                             arg(k, i + 4)};
}

static void run_gate(const struct call *k)
{
    op_gate(k->d, arg(k, 0), arg(k, 1), arg(k, 2));
}

static void run_delta_mix(const struct call *k)
{
    op_delta_mix(k->d, delta_in(k, 0), arg(k, 5), arg(k, 6), arg(k, 7), arg(k, 8),
                 arg(k, 9), arg(k, 10), arg(k, 11), k->dim['S'] - k->dim['T']);
}

static void run_delta(const struct call *k)
{
    op_delta(k->d, arg(k, 0), arg(k, 1), delta_in(k, 2), arg(k, 7),
             k->dim['S'] - k->dim['T'], k->dim['T'] - k->dim['j']);
}

static void run_norm_gate(const struct call *k)
{
    op_norm_gate(k->d, arg(k, 0), arg(k, 1), arg(k, 2), arg(k, 3), eps);
}

static void run_head_loss(const struct call *k)
{
    op_head_loss(k->d, arg(k, 0), arg(k, 1), arg(k, 2), arg(k, 3), arg(k, 4), arg(k, 5),
                 arg(k, 6));
}

static void run_argmax(const struct call *k)
{
    op_argmax(k->d, arg(k, 0), arg(k, 1));
}

static void run_sumsq(const struct call *k)
{
    op_sumsq(k->d, arg(k, 0), arg(k, 1));
}

static void run_fill(const struct call *k)
{
    op_fill(k->d, arg(k, 0), -0.3F);
}

static void run_scale(const struct call *k)
{
    op_scale(k->d, arg(k, 0), -0.3F);
}

static void run_normal(const struct call *k)
{
    op_normal(k->d, arg(k, 0), 0x9E3779B97F4A7C15u, 0.3F);
}

static void run_adamw(const struct call *k)
{
    struct adamw p = {.lr = 0.01F,
                      .beta1 = 0.9F,
                      .beta2 = 0.95F,
                      .eps = 1e-3F,
                      .decay = 0.1F,
                      .scale = 0.7F,
                      .step = 3};
    op_adamw(k->d, arg(k, 0), arg(k, 1), arg(k, 2), arg(k, 3), arg(k, 4), p);
}

static const struct {
    const char *op, *signature;
    void (*run)(const struct call *);
} known[] = {
    {"matmul", "y~A[M,N] x:A[M,K] w:W[N,K]", run_matmul},
    {"matmul_dx", "dx~A[M,K] dy:A[M,N] w:W[N,K]", run_matmul_dx},
    {"matmul_dw", "dw+G[N,K] dy:A[M,N] x:A[M,K]", run_matmul_dw},
    {"gather", "y=A[R,H] x:W[T,H] ids:I[R]", run_gather},
    {"scatter", "dx=A[T,H] dy:A[R,H] ids:I[R]", run_scatter},
    {"convert", "y=Y[T,H] x:X[T,H]", run_convert},
    {"tap", "y+S[T,J] x:A[T,H]", run_tap},
    {"quant", "q=Q[T,K,H] scale=F[T,K] x:S[T,K,H]", run_quant},
    {"dequant", "y=S[T,K,H] q:Q[T,K,H] scale:F[T,K]", run_dequant},
    {"add", "y=A[T,H] a:A[T,H] b:A[T,H]", run_add},
    {"rmsnorm", "y=A[T,H] x:A[T,H] w:W[H]", run_rmsnorm},
    {"rmsnorm_bwd", "dx=A[T,H] dw+G[H] dy:A[T,H] x:A[T,H] w:W[H]", run_rmsnorm_bwd},
    {"norm_rope", "y=A[T,n,D] x:A[T,n,D] w:W[D] pos:I[T] freq:F[E]", run_norm_rope},
    {"norm_rope_bwd",
     "dx=A[T,n,D] dw+G[D] dy:A[T,n,D] x:A[T,n,D] w:W[D] pos:I[T] freq:F[E]",
     run_norm_rope_bwd},
    {"swiglu", "y=A[T,H] g:A[T,H] u:A[T,H]", run_swiglu},
    {"swiglu_bwd", "dg=A[T,H] du=A[T,H] dy:A[T,H] g:A[T,H] u:A[T,H]", run_swiglu_bwd},
    {"attn_span", "o=A[T,n,D] q:A[T,n,D] k:A[S,m,D] v:A[S,m,D] lo:I[T] hi:I[T]",
     run_attn_span},
    {"attn_block",
     "o=A[Q,n,D] lse=G[Q,n] q:A[Q,n,D] kc:A[S,m,D] vc:A[S,m,D] kb:A[Q,m,D] "
     "vb:A[Q,m,D] lo:I[Q] hi:I[Q]",
     run_attn_block},
    {"attn_block_bwd",
     "dq=A[Q,n,D] dkc=A[S,m,D] dvc=A[S,m,D] dkb=A[Q,m,D] dvb=A[Q,m,D] do:A[Q,n,D] "
     "o*A[Q,n,D] lse*G[Q,n] q:A[Q,n,D] kc:A[S,m,D] vc:A[S,m,D] kb:A[Q,m,D] "
     "vb:A[Q,m,D] lo:I[Q] hi:I[Q]",
     run_attn_block_bwd},
    {"gate", "y=A[T,H] x:A[T,H] g:A[T,H]", run_gate},
    {"delta_mix",
     "q=A[T,m,D] k=A[T,m,D] v=A[T,n,E] g=F[T,n] beta=F[T,n] u:A[P,C] a:A[T,n] "
     "b:A[T,n] conv:F[C,4] a_log:F[n] dt_bias:F[n] lo:I[T]",
     run_delta_mix},
    {"delta",
     "o=A[T,n,E] state+F[n,D,E] q:A[T,m,D] k:A[T,m,D] v:A[T,n,E] g:F[T,n] beta:F[T,n] "
     "lo:I[T]",
     run_delta},
    {"norm_gate", "y=A[T,n,D] x:A[T,n,D] w:W[D] z:A[T,n,D]", run_norm_gate},
    {"head_loss",
     "loss+D[1] hit=I[R] dh=A[R,H] h:A[R,H] w:W[V,H] label:I[R] weight:F[R]",
     run_head_loss},
    {"argmax", "idx=I[R] x:A[R,V]", run_argmax},
    {"sumsq", "sum+D[1] x:X[T,H]", run_sumsq},
    {"fill", "x=X[T,H]", run_fill},
    {"scale", "x+X[T,H]", run_scale},
    {"normal", "x=X[T,H]", run_normal},
    {"adamw", "w=W[T] master+M[T] m+M[T] v+M[T] grad:G[T]", run_adamw},
};

/* ---- parsing ---- */

enum { ABSENT = 100 }; // a type no tensor has

static int64_t type_of(const char *word, size_t n)
{
    for (enum dtype t = DT_U8; t <= DT_F64; t++)
        if (strlen(dtype_name(t)) == n && memcmp(dtype_name(t), word, n) == 0)
            return t;
    ck_assert_msg(n == 4 && memcmp(word, "none", 4) == 0, "cases.h: type %s", word);
    return ABSENT;
}

static void parse_dims(struct call *k)
{
    memset(k->dim, 0, sizeof k->dim);
    for (const char *w = "wxysg"; *w; w++)
        k->dim[(int)*w] = k->d->act;
    for (const char *s = k->c->dims; *s; s += strspn(s, " ")) {
        size_t n = strcspn(s, " ");
        ck_assert_msg(n >= 3 && s[1] == '=', "cases.h: %s", s);
        if (s[2] >= '0' && s[2] <= '9')
            k->dim[(int)s[0]] = strtoll(s + 2, NULL, 10);
        else
            k->dim[(int)s[0]] = type_of(s + 2, n - 2);
        s += n;
    }
    k->dim['1'] = 1;
    k->dim['4'] = 4;
    k->dim['E'] = k->dim['E'] ? k->dim['E'] : k->dim['D'] / 2;
    k->dim['P'] = k->dim['T'] + 3;
    k->dim['C'] = 2 * k->dim['m'] * k->dim['D'] + k->dim['n'] * k->dim['E'];
}

static int64_t kind_type(const struct call *k, char kind)
{
    switch (kind) {
    case 'A':
        return k->d->act;
    case 'F':
        return DT_F32;
    case 'D':
        return DT_F64;
    case 'I':
        return DT_I32;
    case 'Q':
        return DT_E4M3;
    case 'M':
        return k->d->act == DT_F64 ? DT_F64 : DT_F32;
    default:
        return k->dim[kind - 'A' + 'a'];
    }
}

/* parse_arg reads "name role kind [letter,letter]" and returns what follows. */
static const char *parse_arg(struct call *k, const char *s)
{
    struct call_arg *a = &k->arg[k->n++];
    size_t n = strcspn(s, "=+:*~");
    int64_t dim[4];
    int rank = 0;
    memcpy(a->name, s, n);
    a->role = s[n] != '~' ? s[n] : k->dim['a'] ? '+' : '=';
    int64_t type = kind_type(k, s[n + 1]);
    for (s += n + 3; s[-1] != ']'; s += 2)
        dim[rank++] = k->dim[(int)*s];
    if (type != ABSENT) {
        a->t = tensor_of(NULL, (enum dtype)type, rank, dim);
        a->count = tensor_count(&a->t);
    }
    return s + strspn(s, " ");
}

/* ---- numbers ---- */

static struct rng draws(const struct call *k, const char *name)
{
    uint64_t word[2] = {0, 0};
    for (const char *s = k->c->dims; *s; s++)
        word[0] = word[0] * 31 + (uint64_t)*s;
    for (const char *s = name; *s; s++)
        word[1] = word[1] * 31 + (uint64_t)*s;
    return rng_new(rng_key(word, 2));
}

/* edge_start: documents at the edges of convolutions and chunks, over and over. */
static int64_t edge_start(int64_t s)
{
    static const int64_t length[] = {1, 2, 3, 4, 63, 64, 65, 127, 128, 129};
    int64_t start = 0;
    for (int i = 0; start + length[i] <= s; i = (i + 1) % 10)
        start += length[i];
    return start;
}

/* doc_start: keys [0,S) are cut into z documents; the start of the one that holds s. */
static int64_t doc_start(const struct call *k, int64_t s)
{
    if (k->dim['o'])
        return edge_start(s);
    int64_t docs = k->dim['z'] ? k->dim['z'] : 1, size = k->dim['S'] / docs + 1;
    return s / size * size;
}

/* block_span: anchors ascend through the keys, or jump about when r=1; every slot of a
 * block sees its document up to the anchor, the last l of it when sliding. */
static void block_span(const struct call *k, int64_t t, int64_t *lo, int64_t *hi)
{
    int64_t size = k->dim['B'], blocks = k->dim['Q'] / size, s = k->dim['S'];
    int64_t b = k->dim['r'] ? t / size * 7 % blocks : t / size;
    *hi = blocks > 1 ? b * s / (blocks - 1) : s;
    *lo = *hi < s ? doc_start(k, *hi) : doc_start(k, s - (s > 0));
    if (k->dim['l'] && *hi + t % size - k->dim['l'] + 1 > *lo)
        *lo = *hi + t % size - k->dim['l'] + 1;
    if (*lo > *hi)
        *lo = *hi;
}

/* token_span: the T rows are the last of the S keys and see their document's past. */
static void token_span(const struct call *k, int64_t t, int64_t *lo, int64_t *hi)
{
    int64_t s = k->dim['S'] - k->dim['T'] + t;
    *lo = doc_start(k, s);
    *hi = k->dim['e'] && t % 5 == 2 ? *lo : s + 1;
    if (k->dim['l'] && *hi - k->dim['l'] > *lo)
        *lo = *hi - k->dim['l'];
}

static double whole(const struct call *k, const char *name, int64_t i, struct rng *r)
{
    int64_t lo, hi;
    if (strcmp(name, "ids") == 0) // distinct for scatter: 5 and T have no common factor
        return strcmp(k->c->op, "scatter") == 0
                   ? (double)(i * 5 % k->dim['T'])
                   : (double)rng_below(r, (uint64_t)k->dim['T']);
    if (strcmp(name, "pos") == 0)
        return (double)rng_below(r, 5000);
    if (strcmp(name, "label") == 0)
        return (double)rng_below(r, (uint64_t)k->dim['V']);
    if (k->dim['B'])
        block_span(k, i, &lo, &hi);
    else
        token_span(k, i, &lo, &hi);
    return name[0] == 'l' ? (double)lo : (double)hi;
}

/* How an argument's numbers are made from u, uniform in [-1.7, 1.7). */
enum recipe { PLAIN, FREQ, SCALE, SHARP, GAIN, SQUARE, WIDE, HOLES, DECAY, PART, UNIT };

/* scale_of: h=1 asks for large values of DeltaNet, h=2 for small ones. */
static double scale_of(const struct call *k, const struct call_arg *a)
{
    bool linear = strcmp(a->name, "v") == 0 || strcmp(a->name, "state") == 0;
    if (!linear || strcmp(k->c->op, "delta") != 0 || !k->dim['h'])
        return 1;
    return k->dim['h'] == 1 ? 0x1p20 : 0x1p-20;
}

static enum recipe recipe_of(const struct call *k, const struct call_arg *a)
{
    const char *n = a->name, *op = k->c->op;
    if (strcmp(n, "freq") == 0)
        return FREQ;
    if (strcmp(n, "scale") == 0 || strcmp(n, "weight") == 0)
        return SCALE;
    if (a->t.type == DT_E4M3)
        return WIDE;
    if (strcmp(n, "q") == 0 && strcmp(op, "delta") != 0)
        return SHARP;
    if (strcmp(n, "w") == 0 && strstr(op, "norm"))
        return GAIN;
    if (strcmp(op, "delta") == 0 && n[0] != 'v' && n[0] != 's')
        return n[0] == 'g' ? DECAY : n[0] == 'b' ? PART : UNIT;
    if (strcmp(n, "v") == 0 && strcmp(op, "adamw") == 0)
        return SQUARE;
    return k->dim['e'] && strcmp(op, "quant") == 0 ? HOLES : PLAIN;
}

static double number(const struct call *k, enum recipe recipe, int64_t i, double u)
{
    switch (recipe) {
    case FREQ:
        return pow(10000, -2.0 * (double)i / (double)k->dim['D']);
    case SCALE:
        return i % 4 == 3 ? 0.25 : u + 1.8;
    case SHARP: // an uneven softmax
        return 3 * u;
    case GAIN:
        return 1 + 0.5 * u;
    case SQUARE:
        return u * u;
    case WIDE:
        return 100 * u;
    case DECAY: // at most 1, and every fifth keeps all
        return i % 5 == 4 ? 0 : -u * u;
    case PART:
        return (u + 1.7) / 3.4;
    case UNIT: // keys of about length 1
        return u / sqrt((double)k->dim['D']);
    case HOLES: // every third row is zero
        return i / k->dim['H'] % 3 == 1 ? 0 : u;
    default:
        return u;
    }
}

/* ---- between doubles and device types ---- */

static void encode(void *out, enum dtype type, const double *v, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        switch (type) {
        case DT_I32:
            ((int32_t *)out)[i] = (int32_t)v[i];
            break;
        case DT_E4M3:
            ((uint8_t *)out)[i] = num_f32_e4m3((float)v[i]);
            break;
        case DT_BF16:
            ((uint16_t *)out)[i] = num_f32_bf16((float)v[i]);
            break;
        case DT_F32:
            ((float *)out)[i] = (float)v[i];
            break;
        case DT_F64:
            ((double *)out)[i] = v[i];
            break;
        default:
            ck_abort_msg("type %d", type);
        }
}

static void decode(double *v, enum dtype type, const void *in, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        switch (type) {
        case DT_I32:
            v[i] = ((const int32_t *)in)[i];
            break;
        case DT_E4M3:
            v[i] = num_e4m3_f32(((const uint8_t *)in)[i]);
            break;
        case DT_BF16:
            v[i] = num_bf16_f32(((const uint16_t *)in)[i]);
            break;
        case DT_F32:
            v[i] = ((const float *)in)[i];
            break;
        case DT_F64:
            v[i] = ((const double *)in)[i];
            break;
        default:
            ck_abort_msg("type %d", type);
        }
}

void call_put(struct call *k, const struct call_arg *a, const double *v)
{
    void *raw = mem_alloc(tensor_bytes(&a->t));
    encode(raw, a->t.type, v, a->count);
    kit_ok(dev_put(k->d, a->t.data, raw, tensor_bytes(&a->t)));
    mem_free(raw);
}

double *call_get(struct call *k, const struct call_arg *a)
{
    void *raw = mem_alloc(tensor_bytes(&a->t));
    double *v = mem_alloc((size_t)a->count * sizeof *v);
    kit_ok(dev_get(k->d, raw, a->t.data, tensor_bytes(&a->t)));
    decode(v, a->t.type, raw, a->count);
    mem_free(raw);
    return v;
}

/* ---- calls ---- */

/* draw makes element i of an argument. */
static double draw(const struct call *k, const struct call_arg *a, int64_t i,
                   struct rng *r)
{
    if (a->t.type == DT_I32)
        return whole(k, a->name, i, r);
    return scale_of(k, a) * number(k, recipe_of(k, a), i, 3.4 * rng_real(r) - 1.7);
}

static bool is_made(const struct call_arg *a)
{
    return a->role == '=' || a->role == '*';
}

/* fill draws an argument's values and keeps them as rounded to its type. */
static void fill(struct call *k, struct call_arg *a)
{
    struct rng r = draws(k, a->name);
    size_t bytes = (size_t)a->count * sizeof(double);
    double *v = mem_alloc(bytes);
    kit_ok(dev_alloc(k->d, &a->t.data, tensor_bytes(&a->t)));
    for (int64_t i = 0; i < a->count; i++)
        if (is_made(a))
            v[i] = a->t.type == DT_I32 ? -77 : (double)NAN;
        else
            v[i] = draw(k, a, i, &r);
    call_put(k, a, v);
    mem_free(v);
    a->host = call_get(k, a);
    a->want = mem_alloc(bytes);
    memcpy(a->want, a->host, bytes);
}

/* fill_large draws the first of an argument's values and repeats them. */
static void fill_large(struct call *k, struct call_arg *a)
{
    enum { POOL = 1 << 20 };
    int64_t n = a->count < POOL ? a->count : POOL;
    size_t size = dtype_size(a->t.type);
    kit_ok(dev_alloc(k->d, &a->t.data, tensor_bytes(&a->t)));
    if (is_made(a))
        return;
    struct rng r = draws(k, a->name);
    double *v = mem_alloc((size_t)n * sizeof *v);
    void *raw = mem_alloc((size_t)n * size);
    for (int64_t i = 0; i < n; i++)
        v[i] = draw(k, a, i, &r);
    encode(raw, a->t.type, v, n);
    for (int64_t at = 0; at < a->count; at += n) {
        int64_t part = a->count - at < n ? a->count - at : n;
        kit_ok(dev_put(k->d, (char *)a->t.data + (size_t)at * size, raw,
                       (size_t)part * size));
    }
    mem_free(v);
    mem_free(raw);
}

bool call_wanted(const struct op_case *c)
{
    const char *op = getenv("OP");
    return !op || strcmp(op, c->op) == 0;
}

static void open_call(struct call *k, struct dev *d, const struct op_case *c,
                      void (*fill_one)(struct call *, struct call_arg *))
{
    const char *s = NULL;
    memset(k, 0, sizeof *k);
    k->c = c;
    k->d = d;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (strcmp(known[i].op, c->op) == 0) {
            s = known[i].signature;
            k->run = known[i].run;
        }
    ck_assert_msg(s != NULL, "cases.h: no op %s", c->op);
    parse_dims(k);
    while (*s)
        s = parse_arg(k, s);
    for (int i = 0; i < k->n; i++)
        if (k->arg[i].t.rank)
            fill_one(k, &k->arg[i]);
}

void call_open(struct call *k, struct dev *d, const struct op_case *c)
{
    open_call(k, d, c, fill);
}

void call_open_large(struct call *k, struct dev *d, const struct op_case *c)
{
    open_call(k, d, c, fill_large);
}

void call_close(struct call *k)
{
    for (int i = 0; i < k->n; i++) {
        struct call_arg *a = &k->arg[i];
        mem_free(a->host);
        mem_free(a->want);
        dev_free(k->d, a->t.data, tensor_bytes(&a->t));
    }
}

void call_run(struct call *k)
{
    k->run(k);
    kit_ok(dev_sync(k->d));
}

void call_reset(struct call *k)
{
    for (int i = 0; i < k->n; i++)
        if (k->arg[i].t.rank)
            call_put(k, &k->arg[i], k->arg[i].host);
}

struct call_arg *call_find(struct call *k, const char *name)
{
    for (int i = 0; i < k->n; i++)
        if (strcmp(k->arg[i].name, name) == 0 && k->arg[i].t.rank)
            return &k->arg[i];
    return NULL;
}
