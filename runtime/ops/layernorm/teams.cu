// The backward pass for rows of 264 to 1,024 elements in bf16: dx, and of each block the sums of dweight and
// dbias over its rows, in one sweep. A row has a warp for each 256 elements, a unit for each lane: few registers
// a lane, so that all warps that a multiprocessor holds have the next row in flight while they wait for each
// other. All is aligned.
//
// S0 is the warps of a row.
#include "mtc.cuh"

//mtc:spec 2
//mtc:spec 3
//mtc:spec 4
#define WARPS (S0 ? S0 : 3)
#define LANES (32 * WARPS)
#define THREADS 768  // of a block, which is alone on a multiprocessor; mirrored in cuda.go as what follows
#define TEAMS (THREADS / LANES)
#define BLOCKS 132  // at most
#define PARTS (2 * TEAMS * 2 * WARPS)  // floats that the warps of rows exchange, in two places that take turns

#ifndef MTC_F32
extern __shared__ uint4 words[];  // PARTS; then of each team the sums of its rows' columns, [2, D]

// p = {x, weight or null, mean, inv, dy, add or null, dx, add or null, dweight or null, add or null,
// dbias or null}, i = {rows, D}. work gets [blocks, 2, D].
template <bool ADDS> __device__ __forceinline__ void sweep(const Args& a) {
    using Row = Kept<act_t, LANES, 1, true>;
    const i64 rows = a.i[0], step = (i64)gridDim.x * TEAMS;
    const int n = (int)a.i[1], team = threadIdx.x / LANES, lane = threadIdx.x % LANES, i = lane * 8;
    const act_t *xs = (const act_t*)a.p[0], *dys = (const act_t*)a.p[4], *adds = (const act_t*)a.p[5];
    act_t* dxs = (act_t*)a.p[6];
    const float *means = (const float*)a.p[2], *invs = (const float*)a.p[3];
    const Weights<LANES, 1, true> weights((const wgt_t*)a.p[1], n, lane);
    const float per = -1.0f / (float)n;
    float dw[8], db[8];
#pragma unroll
    for (int e = 0; e < 8; e++) dw[e] = db[e] = 0.0f;
    auto of = [&](const act_t* t, i64 row) { return Row(row < rows ? t + row * n : nullptr, n, lane); };
    // Rows are dealt out to all blocks' first teams, then to their second: the last round is spread over all.
    i64 row = (i64)team * gridDim.x + blockIdx.x;
    Row x = of(xs, row), dy = of(dys, row), more(nullptr, n, lane);
    if (ADDS) more = of(adds, row);
    float mean = row < rows ? means[row] : 0.0f, inv = row < rows ? invs[row] : 0.0f;
    float* part = (float*)words + team * (2 * WARPS);
    // Teams go as many rounds as the first, though some have no row in the last.
    for (i64 begin = blockIdx.x; begin < rows; begin += step, row += step) {
        const bool live = row < rows && i < n;
        const float scale = inv, shift = -mean * inv;
        float xhat[8], d[8], v[8], g[8], w[8], sum = 0.0f, dot = 0.0f;
        if (live) {
            x.get(0, i, v);
            dy.get(0, i, g);
            weights.get(0, i, w);
            if (ADDS) more.get(0, i, d);
#pragma unroll
            for (int e = 0; e < 8; e++) {
                const float t = g[e] * w[e];
                xhat[e] = fmaf(v[e], scale, shift);
                sum += t;
                dot = fmaf(t, xhat[e], dot);
                dw[e] = fmaf(g[e], xhat[e], dw[e]), db[e] += g[e];
                d[e] = ADDS ? fmaf(t, scale, d[e]) : t * scale;
            }
        }
        const i64 next = row + step;
        x = of(xs, next), dy = of(dys, next);
        if (ADDS) more = of(adds, next);
        if (next < rows) mean = means[next], inv = invs[next];
        // Half of a warp adds up one sum, half the other.
        const bool low = lane % 32 < 16;
        float s = (low ? sum : dot) + __shfl_xor_sync(FULL, low ? dot : sum, 16);
#pragma unroll
        for (int k = 8; k > 0; k >>= 1) s += __shfl_xor_sync(FULL, s, k);
        if (lane % 16 == 0) part[lane / 16 % 2 * WARPS + lane / 32] = s;
        sync_threads(1 + team, LANES);
        sum = part[0], dot = part[WARPS];
#pragma unroll
        for (int k = 1; k < WARPS; k++) sum += part[k], dot += part[WARPS + k];
        part = part < (float*)words + PARTS / 2 ? part + PARTS / 2 : part - PARTS / 2;
        sum *= per * scale, dot *= per * scale;
        if (!live) continue;
#pragma unroll
        for (int e = 0; e < 8; e++) d[e] += fmaf(xhat[e], dot, sum);
        store<8>(dxs + row * n + i, d);
    }
    const float* all = (const float*)words + PARTS;
    float* sums = (float*)words + PARTS + team * 2 * n;
    if (i < n) store<8>(sums + i, dw), store<8>(sums + n + i, db);
    __syncthreads();
    for (int c = threadIdx.x * 4; c < 2 * n; c += THREADS * 4) {
        float s[4], v[4];
        load<4>(all + c, s);
#pragma unroll
        for (int t = 1; t < TEAMS; t++) {
            load<4>(all + t * 2 * n + c, v);
#pragma unroll
            for (int e = 0; e < 4; e++) s[e] += v[e];
        }
        store<4>((float*)a.work + (i64)blockIdx.x * 2 * n + c, s);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, 1) layernorm_teams(Args a) {
    if (a.p[5]) return sweep<true>(a);
    sweep<false>(a);
}

// The second launch: blocks of 256 threads for 16 of the 2 D sums, four threads beside each other for four each.
extern "C" __global__ void __launch_bounds__(256) layernorm_teams_sums(Args a) {
    constexpr int EACH = 64, AHEAD = (BLOCKS + EACH - 1) / EACH;
    __shared__ float of_warp[8][16];
    const int n = (int)a.i[1], at = threadIdx.x % 4 * 4, c = blockIdx.x * 16 + at;
    const int terms = (int)imin(BLOCKS, ceil_div(a.i[0], TEAMS));
    float v[AHEAD][4], s[4] = {0, 0, 0, 0};
#pragma unroll
    for (int u = 0; u < AHEAD; u++) {
        const int k = threadIdx.x / 4 + u * EACH;
#pragma unroll
        for (int e = 0; e < 4; e++) v[u][e] = 0.0f;
        if (k < terms) load<4>((const float*)a.work + (i64)k * 2 * n + c, v[u]);
    }
#pragma unroll
    for (int e = 0; e < 4; e++) {
#pragma unroll
        for (int u = 0; u < AHEAD; u++) s[e] += v[u][e];
#pragma unroll
        for (int k = 16; k >= 4; k >>= 1) s[e] += __shfl_xor_sync(FULL, s[e], k);
    }
    if (threadIdx.x % 32 < 4) store<4>(&of_warp[threadIdx.x / 32][at], s);
    __syncthreads();
    if (threadIdx.x >= 16) return;
    float sum = of_warp[0][threadIdx.x];
#pragma unroll
    for (int w = 1; w < 8; w++) sum += of_warp[w][threadIdx.x];
    const int j = blockIdx.x * 16 + threadIdx.x, col = j < n ? j : j - n;
    const float* add = (const float*)(j < n ? a.p[7] : a.p[9]);
    float* out = (float*)(j < n ? a.p[8] : a.p[10]);
    if (out) out[col] = plus(add, col, sum);
}
#endif
