#include "mtc.cuh"

#define BLOCK (1 << 15)  // elements of one part: squares.go's Block
enum { SKIP = 6 };       // of the step's scalars (plan/scalars.go)

// block_squares adds the squares of a block's elements in the order of squares_cpu.go. get(i, v) sets v to four
// elements from i on; the last ones may lie behind end.
template <class F> __device__ __forceinline__ double block_squares(i64 start, i64 end, F get) {
    double of[4] = {0.0, 0.0, 0.0, 0.0};
    if (end - start == BLOCK) {
#pragma unroll 8
        for (int k = 0; k < BLOCK; k += 256 * 4) {
            float v[4];
            get(start + k + threadIdx.x * 4, v);
#pragma unroll
            for (int e = 0; e < 4; e++) of[e] += (double)v[e] * (double)v[e];
        }
    } else {
        for (i64 i = start + threadIdx.x * 4; i < end; i += 256 * 4) {
            float v[4];
            get(i, v);
            for (int e = 0; e < 4 && i + e < end; e++) of[e] += (double)v[e] * (double)v[e];
        }
    }
    return block_sum<256>((of[0] + of[1]) + (of[2] + of[3]));
}

// Parts: p = {grad f32, parts f64}, i = {elems, first block, blocks, first of a second range, blocks of it}. The
// last blocks, which were made last, are read first: they may still be in a cache.
extern "C" __global__ void __launch_bounds__(256) squares_parts(Args a) {
    const float* g = (const float*)a.p[0];
    const i64 at = a.i[2] + a.i[4] - 1 - (i64)blockIdx.x;
    if (at < 0) return;
    const i64 block = at < a.i[2] ? a.i[1] + at : a.i[3] + at - a.i[2];
    const i64 start = block * BLOCK, end = imin(a.i[0], start + BLOCK);
    const bool fast = aligned(bits_of(g));
    const double s = block_squares(start, end, [&](i64 i, float (&v)[4]) {
        if (fast && i + 4 <= end) {
            load<4>(g + i, v);
        } else {
            for (int e = 0; e < 4; e++) v[e] = i + e < end ? g[i + e] : 0.0f;
        }
    });
    if (threadIdx.x == 0) ((double*)a.p[1])[block] = s;
}

// Total: p = {parts f64, norm f64, scalars or null}, i = {elems}.
extern "C" __global__ void __launch_bounds__(1024) squares_total(Args a) {
    const double* part = (const double*)a.p[0];
    const i64 n = ceil_div(a.i[0], BLOCK);
    double s = 0.0;
#pragma unroll 4
    for (i64 i = threadIdx.x; i < n; i += 1024) s += part[i];
    s = block_sum<1024>(s);
    if (threadIdx.x != 0) return;
    *(double*)a.p[1] = s;
    if (a.p[2] && (isnan(s) || isinf(s))) ((double*)a.p[2])[SKIP] = 1.0;
}

// to_half is the bf16 nearest to x, ties to even; NaN stays NaN.
__device__ __forceinline__ u32 to_half(float x) {
    const u32 b = __float_as_uint(x);
    return x != x ? (b >> 16) | 0x40u : (b + 0x7fffu + ((b >> 16) & 1u)) >> 16;
}

// Round: p = {grad f32, parts f64, half bf16}, i = {elems, even}. Parts are of the rounded gradient.
extern "C" __global__ void __launch_bounds__(256) squares_round(Args a) {
    const float* g = (const float*)a.p[0];
    u32* half = (u32*)a.p[2];
    const i64 start = (i64)blockIdx.x * BLOCK, end = imin(a.i[0], start + BLOCK);
    if (start >= end) return;
    const bool fast = aligned(bits_of(g) | bits_of(half));
    const double s = block_squares(start, end, [&](i64 i, float (&v)[4]) {
        u32 h[4];
        if (fast && i + 4 <= end) {
            load_cs<4>(g + i, v);
        } else {
            for (int e = 0; e < 4; e++) v[e] = i + e < end ? g[i + e] : 0.0f;
        }
#pragma unroll
        for (int e = 0; e < 4; e++) h[e] = to_half(v[e]), v[e] = __uint_as_float(h[e] << 16);
        half[i / 2] = h[0] | h[1] << 16;
        if (i + 2 < end) half[i / 2 + 1] = h[2] | h[3] << 16;
    });
    if (threadIdx.x == 0) ((double*)a.p[1])[blockIdx.x] = s;
}
