/* SPDX-License-Identifier: MIT */
/* deltamix.cu - what Gated DeltaNet takes in: convolution, SiLU, unit length, gates.
 *
 * One pass over the projections: u is read once (and three rows before each tile once
 * more), q, k, v, g and beta are written once, so 4 T C bytes in bf16 are the bound. A
 * thread has 8 channels of one head and goes down ROWS rows, BATCH loads at a time,
 * with the last three of u in registers; a head of q or k lies in one group of lanes, a
 * power of two, which sums its squares by shuffles.  Lanes past a head's width hold
 * zeros.  The last column of blocks makes the gates.  A row looks back no further than
 * its document begins. Twin: cpu/delta.c. */
#include "launch.cuh"

enum { THREADS = 256, ROWS = 16, BATCH = 4, OWN = 8 };

struct mix_args {
    void *q, *k, *v;
    float *g, *beta;
    const void *u, *a, *b;
    const float *conv, *a_log, *dt_bias;
    const int *lo;
    int64_t first, channels;
    int rows, keys, depth, values, width; // n_k heads of D, n_v of E
    int key_lanes, value_lanes;           // threads of a head
};

/* OWN channels of a row of u, zeros from `n` on. */
template <typename T, bool WIDE>
static __device__ __forceinline__ void fetch(float (&x)[OWN], const T *p, int n)
{
    if constexpr (WIDE) {
        load<T, OWN>(x, p);
    } else {
#pragma unroll
        for (int i = 0; i < OWN; i++)
            x[i] = i < n ? to_f32(p[i]) : 0.0f;
    }
}

template <typename T, bool WIDE>
static __device__ __forceinline__ void put(T *p, const float (&x)[OWN], int n)
{
    if constexpr (WIDE) {
        store<T, OWN>(p, x);
    } else {
#pragma unroll
        for (int i = 0; i < OWN; i++)
            if (i < n)
                p[i] = from_f32<T>(x[i]);
    }
}

/* Where a thread's channels are: in u, and in the tensor they go to. */
struct own {
    void *to;
    int64_t stride; // of the rows of `to`
    int64_t at, channel;
    int n; // how many of OWN; 0: the thread has nothing
    float length;
    bool unit;
};

static __device__ __forceinline__ struct own own_of(const struct mix_args &x, int t)
{
    const int keys = x.keys * x.key_lanes;
    const bool value = t >= 2 * keys;
    const int part = value ? 2 : t / keys; // q, k, v
    const int lanes = value ? x.value_lanes : x.key_lanes;
    const int width = value ? x.width : x.depth, heads = value ? x.values : x.keys;
    t -= part * keys;
    const int head = t / lanes, c = t % lanes * OWN;
    struct own o;
    o.to = value ? x.v : part ? x.k : x.q;
    o.stride = (int64_t)heads * width;
    o.at = (int64_t)head * width + c;
    o.channel = (int64_t)part * x.keys * x.depth + o.at;
    o.n = head < heads ? max(0, min(OWN, width - c)) : 0;
    o.length = part ? 1.0f : rsqrtf((float)x.depth);
    o.unit = !value;
    return o;
}

template <typename T>
static __device__ void gates(const struct mix_args &x, int begin, int end)
{
    const int64_t from = (int64_t)begin * x.values, to = (int64_t)end * x.values;
    for (int64_t i = from + threadIdx.x; i < to; i += THREADS) {
        const int h = (int)(i % x.values);
        const float a = to_f32(((const T *)x.a)[i]) + x.dt_bias[h];
        x.g[i] = -expf(x.a_log[h]) * (a > 20.0f ? a : log1pf(expf(a)));
        x.beta[i] = 1.0f / (1.0f + expf(-to_f32(((const T *)x.b)[i])));
    }
}

/* convolved makes a thread's channels of one row from four of u; `back` rows of the
 * document come before it. */
static __device__ __forceinline__ void convolved(
    float (&c)[OWN], const float (&u)[OP_TAPS - 1 + BATCH][OWN],
    const float (&w)[OWN][OP_TAPS], int row, int64_t back)
{
#pragma unroll
    for (int i = 0; i < OWN; i++)
        c[i] = 0.0f;
#pragma unroll
    for (int j = 0; j < OP_TAPS; j++)
        if (j == OP_TAPS - 1 || j + back >= OP_TAPS - 1)
#pragma unroll
            for (int i = 0; i < OWN; i++)
                c[i] += w[i][j] * u[row + j][i];
#pragma unroll
    for (int i = 0; i < OWN; i++)
        c[i] /= 1.0f + __expf(-c[i]);
}

/* Grid: tiles of rows; channels, and gates last. */
template <typename T, bool WIDE>
__global__ void __launch_bounds__(THREADS)
    delta_mix_kernel(const __grid_constant__ struct mix_args x)
{
    const int begin = blockIdx.x * ROWS, end = min(begin + ROWS, x.rows);
    if (blockIdx.y == gridDim.y - 1) {
        gates<T>(x, begin, end);
        return;
    }
    const struct own o = own_of(x, blockIdx.y * THREADS + threadIdx.x);
    const T *from = (const T *)x.u + begin * x.channels + o.channel;
    float w[OWN][OP_TAPS] = {}, u[OP_TAPS - 1 + BATCH][OWN] = {};
    if (o.n > 0) {
#pragma unroll
        for (int i = 0; i < OWN; i++)
#pragma unroll
            for (int j = 0; j < OP_TAPS; j++)
                w[i][j] = i < o.n ? x.conv[(o.channel + i) * OP_TAPS + j] : 0.0f;
#pragma unroll
        for (int j = 0; j < OP_TAPS - 1; j++)
            fetch<T, WIDE>(u[j], from + j * x.channels, o.n);
    }
    for (int t = begin; t < end; t += BATCH) {
        from += (t == begin ? OP_TAPS - 1 : BATCH) * x.channels;
#pragma unroll
        for (int r = 0; r < BATCH; r++)
            if (o.n > 0 && t + r < end)
                fetch<T, WIDE>(u[OP_TAPS - 1 + r], from + r * x.channels, o.n);
#pragma unroll
        for (int r = 0; r < BATCH; r++) {
            if (t + r >= end)
                break;
            float c[OWN], sum = 0.0f;
            convolved(c, u, w, r, x.first + t + r - x.lo[t + r]);
#pragma unroll
            for (int i = 0; i < OWN; i++)
                sum += c[i] * c[i];
            for (int m = x.key_lanes / 2; m > 0; m >>= 1)
                sum += shfl_xor(sum, m);
            const float scale = o.unit ? o.length * rsqrtf(sum + 1e-6f) : 1.0f;
#pragma unroll
            for (int i = 0; i < OWN; i++)
                c[i] *= scale;
            if (o.n > 0)
                put<T, WIDE>((T *)o.to + (t + r) * o.stride + o.at, c, o.n);
        }
#pragma unroll
        for (int j = 0; j < OP_TAPS - 1; j++)
#pragma unroll
            for (int i = 0; i < OWN; i++)
                u[j][i] = u[BATCH + j][i];
    }
}

extern "C" void cuda_delta_mix(struct dev *d, struct delta_in x, struct tensor u,
                               struct tensor a, struct tensor b, struct tensor conv,
                               struct tensor a_log, struct tensor dt_bias,
                               struct tensor lo, int64_t first)
{
    struct mix_args m = {};
    m.q = x.q.data;
    m.k = x.k.data;
    m.v = x.v.data;
    m.g = (float *)x.g.data;
    m.beta = (float *)x.beta.data;
    m.u = u.data;
    m.a = a.data;
    m.b = b.data;
    m.conv = (const float *)conv.data;
    m.a_log = (const float *)a_log.data;
    m.dt_bias = (const float *)dt_bias.data;
    m.lo = (const int *)lo.data;
    m.first = first;
    m.channels = u.dim[1];
    m.rows = (int)x.q.dim[0];
    m.keys = (int)x.q.dim[1];
    m.depth = (int)x.q.dim[2];
    m.values = (int)x.v.dim[1];
    m.width = (int)x.v.dim[2];
    m.key_lanes = 1;
    while (m.key_lanes * OWN < m.depth)
        m.key_lanes *= 2;
    m.value_lanes = (m.width + OWN - 1) / OWN;
    const int threads = 2 * m.keys * m.key_lanes + m.values * m.value_lanes;
    const bool fast = m.depth % OWN == 0 && wide(m.q, m.depth) && wide(m.k, m.depth) &&
                      wide(m.v, m.width) && wide(m.u, m.channels);
    const dim3 grid(blocks_for(m.rows, ROWS), blocks_for(threads, THREADS) + 1);
    BY_TYPE(u, T, {
        auto kernel = fast ? delta_mix_kernel<T, true> : delta_mix_kernel<T, false>;
        launch_plain(d, "delta_mix", kernel, grid, THREADS, m);
    });
}
