/* SPDX-License-Identifier: MIT */
/* op.h - every operation's contract: shapes, types, formula, source.
 *
 * Outputs come first, then inputs, then scalars.  Gradients of activations overwrite,
 * gradients of weights accumulate.  An op returns nothing: a failure of the device or
 * of the data (an id out of range) sticks to the device and dev_sync reports it; a
 * wrong shape or type is our bug and op.c says so with both shapes, once for all
 * backends.
 *
 * A stands for the activation type of the device: f32 on the CPU, bf16 on a GPU (f32 in
 * its test mode), f64 in the double build of the CPU kernels.  W stands for a weight:
 * A, bf16 or f32.  Accumulation is f32 or better everywhere.  Outputs alias inputs only
 * where said.  Letters: T rows (tokens), H width, M x K x N as in matrix products, n_h
 * heads, n_kv key/value heads, D head width, S context rows, Q block rows, B block
 * size, V vocabulary.  Empty tensors (a dimension 0) are fine and do nothing. */
#ifndef OP_H
#define OP_H

#include <stdbool.h>
#include <stdint.h>

#include "dev.h"
#include "tensor.h"

/* ---- matrix products ---- */

/* op_matmul: y[M,N] = x[M,K] w[N,K]^T, plus y itself when `add`.
 * y, x: A; w: W, T_ROWS or T_PANELS.  On the CPU row m of y depends on row m of x and
 * on w alone, bit for bit, for any M, thread count or compiler: f32 FMA chains in
 * ascending k, starting from y (add) or 0. */
void op_matmul(struct dev *d, struct tensor y, struct tensor x, struct tensor w,
               bool add);

/* op_matmul_dx: dx[M,K] = dy[M,N] w[N,K], plus dx itself when `add`.  w: W, T_ROWS. */
void op_matmul_dx(struct dev *d, struct tensor dx, struct tensor dy, struct tensor w,
                  bool add);

/* op_matmul_dw: dw[N,K] += dy[M,N]^T x[M,K], rows in ascending m.  dw: A or f32. */
void op_matmul_dw(struct dev *d, struct tensor dw, struct tensor dy, struct tensor x);

/* op_pack: the backend's layout of a frozen weight.  p: T_PANELS, same type and shape
 * as w [N,K], data of op_pack_bytes(w) bytes.  A panel holds values exactly. */
size_t op_pack_bytes(const struct dev *d, struct tensor w);
void op_pack(struct dev *d, struct tensor p, struct tensor w);

/* ---- rows ---- */

/* op_gather: y[R,H] = x[ids[r], H]; y: A, x: W [T,H], ids: i32 [R] in [0, T), else the
 * device fails with E_FORMAT naming the position.  Embedding, and picking labelled
 * rows. */
void op_gather(struct dev *d, struct tensor y, struct tensor x, struct tensor ids);

/* op_scatter: dx[ids[r], :] = dy[r, :], all other rows of dx are 0; ids distinct. */
void op_scatter(struct dev *d, struct tensor dx, struct tensor dy, struct tensor ids);

/* op_convert: y = x rounded to y's type (nearest even; e4m3 saturates); same count. */
void op_convert(struct dev *d, struct tensor y, struct tensor x);

/* op_tap: y[T, k*H .. k*H+H) = x[T,H], y [T,K*H] bf16 or A: one tapped layer among K,
 * rounded to the stored type at capture (spec: train and eval see the same bits). */
void op_tap(struct dev *d, struct tensor y, struct tensor x, int k);

/* op_quant: e4m3 with a scale per row and tap.  q [T,K,H] e4m3, scale [T,K] f32,
 * x [T,K,H] bf16 or A: scale = max|x| / 448 (1 when the row is 0), q = x / scale
 * saturated.  op_dequant: y [T,K,H] bf16 or A = q * scale. */
void op_quant(struct dev *d, struct tensor q, struct tensor scale, struct tensor x);
void op_dequant(struct dev *d, struct tensor y, struct tensor q, struct tensor scale);

/* ---- elementwise and norms ---- */

/* op_add: y = a + b, same shape; y may be a or b. */
void op_add(struct dev *d, struct tensor y, struct tensor a, struct tensor b);

/* op_rmsnorm: y[T,H] = x * rsqrt(mean(x^2) + eps) * w[H]   (Zhang & Sennrich 2019, eq.
 * 4) y may be x.  Backward: dx[T,H] overwrites (dx may be dy), dw[H] accumulates; n = x
 * r, r = rsqrt(mean(x^2) + eps), g = dy w: dx = r (g - n mean(g n)),  dw += sum_t dy n;
 * dw: A or f32.  On a GPU backward takes H up to 16384, or 2048 when 8 does not divide
 * it. */
void op_rmsnorm(struct dev *d, struct tensor y, struct tensor x, struct tensor w,
                float eps);
void op_rmsnorm_bwd(struct dev *d, struct tensor dx, struct tensor dw, struct tensor dy,
                    struct tensor x, struct tensor w, float eps);

/* op_norm_rope: per head, y = rope(rmsnorm(x; w), pos): x, y [T,n,D]; w [D], or data
 * NULL for families without q/k norm; pos i32 [T]; freq f32 [D/2] (rope.h: inverse
 * frequencies); pairs are half-split: (a, b) = (x[i], x[i + D/2]) ->
 * (a cos - b sin, b cos + a sin), angle = pos * freq[i]   (Su et al. 2021; NeoX
 * pairing). y may be x.  D is even and at most OP_HEAD_MAX.
 * Backward: dx overwrites (may be dy), dw accumulates. */
enum { OP_HEAD_MAX = 256 };
void op_norm_rope(struct dev *d, struct tensor y, struct tensor x, struct tensor w,
                  struct tensor pos, struct tensor freq, float eps);
void op_norm_rope_bwd(struct dev *d, struct tensor dx, struct tensor dw,
                      struct tensor dy, struct tensor x, struct tensor w,
                      struct tensor pos, struct tensor freq, float eps);

/* op_swiglu: y = silu(g) * u, silu(g) = g / (1 + exp(-g)); all [T,I]; y may be g or u
 * (Shazeer 2020).  Backward: dg, du overwrite; dg may be g, du may be u. */
void op_swiglu(struct dev *d, struct tensor y, struct tensor g, struct tensor u);
void op_swiglu_bwd(struct dev *d, struct tensor dg, struct tensor du, struct tensor dy,
                   struct tensor g, struct tensor u);

/* ---- attention ---- */

/* op_attn_span: causal attention of the target over packed documents and caches.
 *   o[T,n_h,D], q[T,n_h,D], k, v [S,n_kv,D]; query row t sees keys [lo[t], hi[t]) of k;
 *   lo, hi i32 [T], host memory is not assumed.  Head h reads k/v head h / (n_h /
 * n_kv). softmax(scale q k^T) v, softmax in f32.  A row with an empty span gives zeros.
 */
void op_attn_span(struct dev *d, struct tensor o, struct tensor q, struct tensor k,
                  struct tensor v, struct tensor lo, struct tensor hi, float scale);

/* op_attn_block: the drafter's attention (DFlash, arXiv 2602.06036 section 4.2, fig.
 * 4). Block row r (block r / B, slot r % B) sees context rows [lo[r], hi[r]) of kc, vc
 *   [S,n_kv,D] and, of its own block's rows in kb, vb [Q,n_kv,D], those at slot
 * distance below `window` (0: any) and, when `causal`, not after it. o, q [Q,n_h,D];
 * lse f32 or A [Q,n_h] = log-sum-exp of the scaled scores, for backward. Q is a
 * multiple of B.  There is no general mask: two numbers per row. */
struct attn_block {
    int block;   /* B */
    bool causal; /* inside the block */
    int window;  /* inside the block; 0: none */
    float scale; /* D^-1/2 */
};
void op_attn_block(struct dev *d, struct tensor o, struct tensor lse, struct tensor q,
                   struct tensor kc, struct tensor vc, struct tensor kb,
                   struct tensor vb, struct tensor lo, struct tensor hi,
                   struct attn_block p);

/* Backward (FlashAttention-2, arXiv 2307.08691, algorithm 2): scores are recomputed
 * from lse; all five gradients overwrite.  Sums run in a fixed order:
 * bit-deterministic. */
struct attn_grads {
    struct tensor dq, dkc, dvc, dkb, dvb;
};
void op_attn_block_bwd(struct dev *d, struct attn_grads g, struct tensor dout,
                       struct tensor o, struct tensor lse, struct tensor q,
                       struct tensor kc, struct tensor vc, struct tensor kb,
                       struct tensor vb, struct tensor lo, struct tensor hi,
                       struct attn_block p);

/* op_gate: y = x sigmoid(g), all of one shape; y may be x.  The gate of Qwen3.5's
 * attention output. */
void op_gate(struct dev *d, struct tensor y, struct tensor x, struct tensor g);

/* ---- Gated DeltaNet (Yang et al., arXiv 2412.06464; HF models/qwen3_5) ---- */

/* What follows runs over rows of packed documents.  lo i32 [T] as in op_attn_span: row
 * t stands at first + t of lo's numbering and its document begins at lo[t]; nothing of
 * what lies before reaches it.  n_k key heads of D channels, n_v value heads of E;
 * value head h reads key head h / (n_v / n_k). */
enum {
    OP_TAPS = 4,       /* of the convolution, the current row included */
    OP_DELTA_MAX = 256 /* channels of a head, at most */
};

/* The rule's inputs: q, k A [T,n_k,D]; v A [T,n_v,E]; g, beta f32 [T,n_v]. */
struct delta_in {
    struct tensor q, k, v, g, beta;
};

/* op_delta_mix makes x from projections: u A [3+T, C] with C = 2 n_k D + n_v E channels
 * q | k | v, three rows before the first of this call and then its own; a, b A [T,n_v];
 * conv f32 [C,4]; a_log, dt_bias f32 [n_v].
 *   c[t] = silu(sum_j conv[:,j] u[t+j]), j = 0..3, without rows before the document
 *   q = c_q / sqrt(sum c_q^2 + 1e-6) D^-1/2
 *   k = c_k / sqrt(sum c_k^2 + 1e-6)
 *   v = c_v
 *   g = -exp(a_log) log(1 + exp(a + dt_bias))
 *   beta = 1 / (1 + exp(-b)) */
void op_delta_mix(struct dev *d, struct delta_in x, struct tensor u, struct tensor a,
                  struct tensor b, struct tensor conv, struct tensor a_log,
                  struct tensor dt_bias, struct tensor lo, int64_t first);

/* op_delta: the recurrence over x, per value head with its state s [D,E], 0 where a
 * document begins:
 *   s = exp(g_t) s;  d = beta_t (v_t - s^T k_t);  s += k_t d^T;  o_t = s^T q_t
 * o A [T,n_v,E].  state f32 [n_v,D,E]: on entry the one before row 0, on return the one
 * before row `keep` in 0 .. T, so that rows can be tried and not kept.  Products and
 * sums in f32.  On the CPU a row's bits depend on its own document alone. */
void op_delta(struct dev *d, struct tensor o, struct tensor state, struct delta_in x,
              struct tensor lo, int64_t first, int64_t keep);

/* op_norm_gate: per head, y = x rsqrt(mean(x^2) + eps) w silu(z); y, x, z A [T,n,D], w
 * [D]; y may be x. */
void op_norm_gate(struct dev *d, struct tensor y, struct tensor x, struct tensor w,
                  struct tensor z, float eps);

/* ---- the head ---- */

/* op_head_loss: softmax cross-entropy of h[R,H] against a frozen head w[V,H], in chunks
 * of rows so that logits [R,V] never exist whole, with its gradient in the same pass:
 *   z = h w^T;  nll_r = log sum exp z - z[label_r];  loss[0] += sum_r weight_r nll_r
 * (f64) hit[r] = 1 when label_r is the first largest z, else 0 (i32); dh[R,H] =
 * weight_r (softmax(z) - onehot(label_r)) w   (SUM of weighted losses); dh.data NULL:
 * values only.  label i32 [R] in [0,V) else E_FORMAT; weight f32 [R]. w: W, T_ROWS. */
void op_head_loss(struct dev *d, struct tensor loss, struct tensor hit,
                  struct tensor dh, struct tensor h, struct tensor w,
                  struct tensor label, struct tensor weight);

/* op_argmax: idx[r] = the first index of the largest of x[R,V]; i32; NaN fails. */
void op_argmax(struct dev *d, struct tensor idx, struct tensor x);

/* ---- optimizer ---- */

/* op_sumsq: sum[0] += sum x^2, f64, in a fixed order.  op_fill: x = value.
 * op_scale: x *= value.  op_normal: x[i] = sigma n, n the standard normal that
 * rng_normal (rng.h) draws from `key` at word 4 i, but for rounding: weights and rows
 * of trials. */
void op_sumsq(struct dev *d, struct tensor sum, struct tensor x);
void op_fill(struct dev *d, struct tensor x, float value);
void op_scale(struct dev *d, struct tensor x, float value);
void op_normal(struct dev *d, struct tensor x, uint64_t key, float sigma);

/* op_adamw: one step over flat memory (Loshchilov & Hutter 2019, algorithm 2):
 *   g = grad * scale;  m = b1 m + (1-b1) g;  v = b2 v + (1-b2) g^2;
 *   master -= lr ((m / (1-b1^t)) / (sqrt(v / (1-b2^t)) + eps) + decay * master);
 *   w = master rounded to w's type.  w: A or bf16; master, m, v: f32 (A in the double
 *   build); grad: A or f32; w.data may be master.data when the types agree. */
struct adamw {
    float lr, beta1, beta2, eps, decay;
    float scale;  /* clip factor / sum of loss weights, applied to the gradient */
    int64_t step; /* t, from 1 */
};
void op_adamw(struct dev *d, struct tensor w, struct tensor master, struct tensor m,
              struct tensor v, struct tensor grad, struct adamw p);

/* op_finite: the device fails with E_FORMAT, naming `what` and the first bad row, when
 * x[T,H] holds a NaN or an infinity.  `what` lives until the next dev_sync at least. */
void op_finite(struct dev *d, struct tensor x, const char *what);

#endif
