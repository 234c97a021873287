// The router's linear layer: logits and their gradient are f32 whatever the device computes in.
//
//   moe_logits         y[t, e] = sum over i of x[t, i] w[e, i]               p: x, w, y
//   moe_logits_input   dx[t, i] = add + sum over e of dy[t, e] w[e, i]       p: w, dy, add or null, dx
//   moe_logits_weight  dw[e, i] = add + sum over t of dy[t, e] x[t, i]       p: x, dy, add or null, dw
//
// i: tokens N, width D, experts E. All are bound by memory while E is small against D.
#include "mtc.cuh"

struct Geom {
    i64 n, d;
    int e;
    __device__ explicit Geom(const Args& a) : n(a.i[0]), d(a.i[1]), e((int)a.i[2]) {}
};

// A warp makes the logits of one token, in f32 arithmetic.
extern "C" __global__ void __launch_bounds__(256) moe_logits_plain(Args a) {
    const Geom g(a);
    const int lane = threadIdx.x % 32;
    for (i64 t = thread_id() / 32; t < g.n; t += num_threads() / 32) {
        const act_t* x = (const act_t*)a.p[0] + t * g.d;
        for (int e = 0; e < g.e; e++) {
            const wgt_t* w = (const wgt_t*)a.p[1] + e * g.d;
            float sum = 0.f;
            for (i64 i = lane; i < g.d; i += 32) sum = __fmaf_rn(to_f(x[i]), to_f(w[i]), sum);
            sum = warp_sum(sum);
            if (lane == 0) ((float*)a.p[2])[t * g.e + e] = sum;
        }
    }
}

// A thread makes V columns of four tokens.
template <int V> __device__ __forceinline__ void logits_input(const Args& a) {
    const Geom g(a);
    const i64 units = g.d / V, tiles = ceil_div(g.n, 4);
    const wgt_t* w = (const wgt_t*)a.p[0];
    const float* dy = (const float*)a.p[1];
    const bool whole = g.e % 4 == 0 && aligned(bits_of(dy));
    for (i64 i = thread_id(); i < units * tiles; i += num_threads()) {
        const i64 t0 = i / units * 4, at = i % units * V;
        float sum[4][V];
#pragma unroll
        for (int j = 0; j < 4; j++) {
#pragma unroll
            for (int k = 0; k < V; k++) sum[j][k] = 0.f;
            if (a.p[2] && t0 + j < g.n) load<V>((const act_t*)a.p[2] + (t0 + j) * g.d + at, sum[j]);
        }
        const float* rows[4];
#pragma unroll
        for (int j = 0; j < 4; j++) rows[j] = dy + imin(t0 + j, g.n - 1) * g.e;
        // Four experts at a time, where that is 16 bytes.
        int e = 0;
        for (; whole && e < g.e; e += 4) {
            Unit<wgt_t> units4[V == 8 ? 4 : 1];
            float d[4][4];
#pragma unroll
            for (int j = 0; j < 4; j++) load<4>(rows[j] + e, d[j]);
            if (V == 8) {
#pragma unroll
                for (int u = 0; u < 4; u++) units4[u].ld(w + (e + u) * g.d + at);
            }
#pragma unroll
            for (int u = 0; u < 4; u++) {
                float x[V];
                if constexpr (V == 8) unpack<8>(units4[u], x, wgt_t());
                else load<V>(w + (e + u) * g.d + at, x);
#pragma unroll
                for (int j = 0; j < 4; j++)
#pragma unroll
                    for (int k = 0; k < V; k++) sum[j][k] = __fmaf_rn(d[j][u], x[k], sum[j][k]);
            }
        }
        for (; e < g.e; e++) {
            float x[V];
            load<V>(w + e * g.d + at, x);
#pragma unroll
            for (int j = 0; j < 4; j++)
#pragma unroll
                for (int k = 0; k < V; k++) sum[j][k] = __fmaf_rn(rows[j][e], x[k], sum[j][k]);
        }
#pragma unroll
        for (int j = 0; j < 4; j++)
            if (t0 + j < g.n) store<V>((act_t*)a.p[3] + (t0 + j) * g.d + at, sum[j]);
    }
}

extern "C" __global__ void __launch_bounds__(256) moe_logits_input(Args a) {
    if (a.i[1] % 8 == 0) logits_input<8>(a);
    else logits_input<1>(a);
}

// The gradient of the weight is added up over parts of the tokens, at most 128 of them, and then over the
// parts. A thread makes V columns. grid of the first: x columns by 128 V, y parts, z experts by 8. Large
// weights have fewer parts, so that those of all take 128 MiB, or 8 times the weight.
constexpr int LANES = 128, EXPERTS = 8;

__device__ __forceinline__ i64 part_tokens(const Geom& g) {
    const i64 parts = imax(8, imin(128, (1 << 25) / (g.d * g.e)));
    return ceil_div(g.n, parts);
}

template <int V> __device__ __forceinline__ void logits_weight_parts(const Args& a) {
    const Geom g(a);
    const i64 i = ((i64)blockIdx.x * LANES + threadIdx.x) * V, size = part_tokens(g);
    const i64 lo = blockIdx.y * size, hi = imin(g.n, lo + size);
    const int e0 = blockIdx.z * EXPERTS, experts = min(EXPERTS, g.e - e0);
    const act_t* x = (const act_t*)a.p[0];
    const float* dy = (const float*)a.p[1];
    constexpr int TOKENS = 512;  // as many as a part has of 65,536
    alignas(16) __shared__ float d[TOKENS][EXPERTS];
    float sum[EXPERTS][V];
#pragma unroll
    for (int e = 0; e < EXPERTS; e++)
#pragma unroll
        for (int k = 0; k < V; k++) sum[e][k] = 0.f;
    for (i64 t0 = lo; t0 < hi; t0 += TOKENS) {
        __syncthreads();
#pragma unroll 8
        for (int j = threadIdx.x; j < (int)imin(TOKENS, hi - t0) * EXPERTS; j += LANES) {
            const int t = j / EXPERTS, e = j % EXPERTS;
            d[t][e] = e < experts ? dy[(t0 + t) * g.e + e0 + e] : 0.f;
        }
        __syncthreads();
        if (i < g.d) {
            const int n = (int)imin(TOKENS, hi - t0);
#pragma unroll 16
            for (int t = 0; t < n; t++) {
                float v[V];
                load<V>(x + (t0 + t) * g.d + i, v);
#pragma unroll
                for (int e = 0; e < EXPERTS; e++)
#pragma unroll
                    for (int k = 0; k < V; k++) sum[e][k] = __fmaf_rn(d[t][e], v[k], sum[e][k]);
            }
        }
    }
#pragma unroll
    for (int e = 0; e < EXPERTS; e++)
        if (i < g.d && e < experts) store<V>((float*)a.work + ((i64)blockIdx.y * g.e + e0 + e) * g.d + i, sum[e]);
}

extern "C" __global__ void __launch_bounds__(LANES) moe_logits_weight_parts(Args a) {
    if (a.i[1] % 2 == 0) logits_weight_parts<2>(a);
    else logits_weight_parts<1>(a);
}

extern "C" __global__ void __launch_bounds__(256) moe_logits_weight(Args a) {
    const Geom g(a);
    const i64 size = g.e * g.d, tokens = part_tokens(g);
    for (i64 i = thread_id(); i < size; i += num_threads()) {
        float sum = a.p[2] ? ((const float*)a.p[2])[i] : 0.f;
        constexpr int AHEAD = 32;  // terms are read before the first is used
        for (i64 p = 0; p * tokens < g.n; p += AHEAD) {
            float v[AHEAD];
#pragma unroll
            for (int u = 0; u < AHEAD; u++) v[u] = (p + u) * tokens < g.n ? ((const float*)a.work)[(p + u) * size + i] : 0.f;
#pragma unroll
            for (int u = 0; u < AHEAD; u++) sum += v[u];
        }
        ((float*)a.p[3])[i] = sum;
    }
}
