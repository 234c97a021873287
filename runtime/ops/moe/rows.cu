// The rows of a mixture of experts: tokens gathered in the order of experts, and the gated sums of
// what the experts made of them. layout.go says what a routing holds.
//
// i: tokens N, width D, experts E, slots C. A thread or warp moves 16 bytes at a time where D allows.
#include "mtc.cuh"

struct Routing {
    const int *first, *rows, *token;
    i64 used;  // rows in use
    __device__ Routing(const void* p, const Args& a) {
        const int* w = (const int*)p;
        const i64 n = a.i[0], e = a.i[2], at = (e + 1 + 15) / 16 * 16;
        first = w + at, rows = first + n + 1, token = rows + n * a.i[3], used = w[e];
    }
};

// units is a row's width in pieces of V elements.
template <int V> struct Width {
    i64 d, units;
    __device__ explicit Width(const Args& a) : d(a.i[1]), units(a.i[1] / V) {}
};

// EITHER runs f<8> where rows are whole pieces of 8 elements, else f<1>.
#define EITHER(f)               \
    if (a.i[1] % 8 == 0) f<8>(a); \
    else f<1>(a)

// p: x [N, D], routing, y [M, D].
template <int V> __device__ __forceinline__ void gather(const Args& a) {
    const Width<V> w(a);
    const Routing r(a.p[1], a);
    for (i64 i = thread_id(); i < r.used * w.units; i += num_threads()) {
        const i64 row = i / w.units, at = i % w.units * V;
        Words<V * (int)sizeof(act_t)> x;
        x.ld((const act_t*)a.p[0] + r.token[row] * w.d + at);
        x.st((act_t*)a.p[2] + row * w.d + at);
    }
}
extern "C" __global__ void __launch_bounds__(256) moe_gather(Args a) { EITHER(gather); }

// p: routing, dy [M, D], what is added or null, dx [N, D].
template <int V> __device__ __forceinline__ void gather_backward(const Args& a) {
    const Width<V> w(a);
    const Routing r(a.p[0], a);
    for (i64 i = thread_id(); i < a.i[0] * w.units; i += num_threads()) {
        const i64 t = i / w.units, at = i % w.units * V;
        float sum[V], x[V];
#pragma unroll
        for (int k = 0; k < V; k++) sum[k] = 0.f;
        if (a.p[2]) load<V>((const act_t*)a.p[2] + t * w.d + at, sum);
        for (int j = r.first[t]; j < r.first[t + 1]; j++) {
            load<V>((const act_t*)a.p[1] + (i64)r.rows[j] * w.d + at, x);
#pragma unroll
            for (int k = 0; k < V; k++) sum[k] += x[k];
        }
        store<V>((act_t*)a.p[3] + t * w.d + at, sum);
    }
}
extern "C" __global__ void __launch_bounds__(256) moe_gather_backward(Args a) { EITHER(gather_backward); }

// p: x [M, D], gates f32 [M], routing, y [N, D].
template <int V> __device__ __forceinline__ void combine(const Args& a) {
    const Width<V> w(a);
    const Routing r(a.p[2], a);
    const float* gates = (const float*)a.p[1];
    for (i64 i = thread_id(); i < a.i[0] * w.units; i += num_threads()) {
        const i64 t = i / w.units, at = i % w.units * V;
        float sum[V], x[V];
#pragma unroll
        for (int k = 0; k < V; k++) sum[k] = 0.f;
        for (int j = r.first[t]; j < r.first[t + 1]; j++) {
            const i64 row = r.rows[j];
            const float g = gates[row];
            load<V>((const act_t*)a.p[0] + row * w.d + at, x);
#pragma unroll
            for (int k = 0; k < V; k++) sum[k] = __fmaf_rn(g, x[k], sum[k]);
        }
        store<V>((act_t*)a.p[3] + t * w.d + at, sum);
    }
}
extern "C" __global__ void __launch_bounds__(256) moe_combine(Args a) { EITHER(combine); }

// p: x [M, D], gates f32 [M], routing, dy [N, D], dx [M, D] (may be x), dgates f32 [M]. A warp makes
// a row.
template <int V> __device__ __forceinline__ void combine_backward(const Args& a) {
    const Width<V> w(a);
    const Routing r(a.p[2], a);
    const float* gates = (const float*)a.p[1];
    const int lane = threadIdx.x % 32;
    for (i64 row = thread_id() / 32; row < r.used; row += num_threads() / 32) {
        const act_t *x = (const act_t*)a.p[0] + row * w.d, *dy = (const act_t*)a.p[3] + r.token[row] * w.d;
        act_t* dx = (act_t*)a.p[4] + row * w.d;
        const float g = gates[row];
        float dot = 0.f;
        for (i64 u = lane; u < w.units; u += 32) {
            float xs[V], d[V];
            load<V>(x + u * V, xs);
            load<V>(dy + u * V, d);
#pragma unroll
            for (int k = 0; k < V; k++) dot = __fmaf_rn(d[k], xs[k], dot), d[k] *= g;
            store<V>(dx + u * V, d);
        }
        dot = warp_sum(dot);
        if (lane == 0) ((float*)a.p[5])[row] = dot;
    }
}
extern "C" __global__ void __launch_bounds__(256) moe_combine_backward(Args a) { EITHER(combine_backward); }
