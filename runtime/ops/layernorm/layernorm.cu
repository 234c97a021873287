#include "mtc.cuh"

// S0 is the lanes of a team, S1 the units of 8 elements that a lane holds, 0 where a row has
// none.
//mtc:spec 32 0
//mtc:spec 256 0
//mtc:spec 8 2
//mtc:spec 16 1
//mtc:spec 32 2
//mtc:spec 32 3
//mtc:spec 32 4
//mtc:spec 128 4
//mtc:spec 224 2
//mtc:spec 512 2
//mtc:spec 1024 8
#define LANES (S0 ? S0 : 32)
#define BLOCK (LANES > 32 ? LANES : TEAM_THREADS)

// moments are the mean of a row and the sum of the squares of deviations from it: not of x, which
// would cancel where the mean is large. per is 1 / n.
template <bool FAST>
__device__ __forceinline__ float2 moments(const Kept<act_t, LANES, S1, FAST>& x, int n, float per, const Team<LANES>& team) {
    constexpr int E = FAST ? 8 : 1;
    float s = 0.0f;
    each_unit<LANES, S1, FAST>(n, team.lane, [&](int k, int i) {
        float v[E];
        x.get(k, i, v);
#pragma unroll
        for (int e = 0; e < E; e++) s += v[e];
    });
    auto squares = [&](float mean) {
        float d = 0.0f;
        each_unit<LANES, S1, FAST>(n, team.lane, [&](int k, int i) {
            float v[E];
            x.get(k, i, v);
#pragma unroll
            for (int e = 0; e < E; e++) d += (v[e] - mean) * (v[e] - mean);
        });
        return d;
    };
    if constexpr (LANES > 32 && FAST) {
        // Each warp takes those of its own elements, so that the block waits but once.
        constexpr int W = LANES > 32 ? LANES / 32 : 1;
        __shared__ float4 part[W];
        int own = 0;
#pragma unroll
        for (int k = 0; k < S1; k++) own += min(max(n - (k * LANES + team.lane / 32 * 32) * 8, 0), 256);
        const float mean = warp_sum(s) * (own ? 1.0f / (float)own : 0.0f), d = warp_sum(squares(mean));
        if (team.lane % 32 == 0) part[team.lane / 32] = make_float4(mean, d, (float)own, 0.0f);
        __syncthreads();
        float sum = 0.0f, dev = 0.0f;
#pragma unroll
        for (int w = 0; w < W; w++) sum += part[w].x * part[w].z;
        sum *= per;
#pragma unroll
        for (int w = 0; w < W; w++) dev += part[w].y + part[w].z * (part[w].x - sum) * (part[w].x - sum);
        return make_float2(sum, dev);
    } else {
        const float mean = team.sum(s) * per;
        return make_float2(mean, team.sum(squares(mean)));
    }
}

// p = {x, weight or null, bias or null, y, mean, inv}, i = {rows, D}, f = {eps}.
template <bool FAST> __device__ __forceinline__ void forward(const Args& a) {
    constexpr int E = FAST ? 8 : 1;
    const int n = (int)a.i[1];
    const Team<LANES> team(a.i[0]);
    const wgt_t *weight = (const wgt_t*)a.p[1], *bias = (const wgt_t*)a.p[2];
    act_t* y = (act_t*)a.p[3] + team.row * n;
    const Kept<act_t, LANES, S1, FAST> x((const act_t*)a.p[0] + team.row * n, n, team.lane);
    const float per = 1.0f / (float)n;
    const float2 m = moments<FAST>(x, n, per, team);
    const float mean = m.x;
    // A sum beyond float must not pass as a row of zeros.
    const float inv = m.y > 3.4e38f ? nanf("") : inv_root(m.y * per + a.f[0]);
    if (!team.live) return;
    each_unit<LANES, S1, FAST>(n, team.lane, [&](int k, int i) {
        float v[E], w[E], b[E];
        x.get(k, i, v);
        if (weight) load<E>(weight + i, w);
        if (bias) load<E>(bias + i, b);
#pragma unroll
        for (int e = 0; e < E; e++) {
            v[e] = (v[e] - mean) * inv;
            if (weight) v[e] *= w[e];
            if (bias) v[e] += b[e];
        }
        store<E>(y + i, v);
    });
    if (team.lane == 0) {
        ((float*)a.p[4])[team.row] = mean;
        ((float*)a.p[5])[team.row] = inv;
    }
}

extern "C" __global__ void __launch_bounds__(BLOCK) layernorm_forward(Args a) {
    if constexpr (S1 > 0) {
        if (aligned(bits_of(a.p[0]) | bits_of(a.p[1]) | bits_of(a.p[2]) | bits_of(a.p[3]))) return forward<true>(a);
    }
    forward<false>(a);
}

// dx alone.
template <bool FAST> __device__ __forceinline__ void backward(const Args& a) {
    constexpr int E = FAST ? 8 : 1;
    const int n = (int)a.i[1];
    const Team<LANES> team(a.i[0]);
    const i64 at = team.row * n;
    const wgt_t* weight = (const wgt_t*)a.p[1];
    const act_t* add = a.p[5] ? (const act_t*)a.p[5] + at : nullptr;
    act_t* dx = (act_t*)a.p[6] + at;
    const Kept<act_t, LANES, S1, FAST> x((const act_t*)a.p[0] + at, n, team.lane);
    const Kept<act_t, LANES, S1, FAST> dy((const act_t*)a.p[4] + at, n, team.lane);
    const Kept<act_t, LANES, S1, FAST> more(add, n, team.lane);
    const float mean = ((const float*)a.p[2])[team.row], inv = ((const float*)a.p[3])[team.row];
    float sum = 0.0f, dot = 0.0f;
    each_unit<LANES, S1, FAST>(n, team.lane, [&](int k, int i) {
        float v[E], g[E], w[E];
        x.get(k, i, v);
        dy.get(k, i, g);
        if (weight) load<E>(weight + i, w);
#pragma unroll
        for (int e = 0; e < E; e++) {
            const float t = weight ? g[e] * w[e] : g[e];
            sum += t;
            dot += t * ((v[e] - mean) * inv);
        }
    });
    const float2 total = team.sum2(sum, dot);
    const float per = 1.0f / (float)n, m1 = total.x * per, m2 = total.y * per;
    if (!team.live) return;
    each_unit<LANES, S1, FAST>(n, team.lane, [&](int k, int i) {
        float v[E], g[E], w[E], m[E];
        x.get(k, i, v);
        dy.get(k, i, g);
        if (weight) load<E>(weight + i, w);
        if (add) more.get(k, i, m);
#pragma unroll
        for (int e = 0; e < E; e++) {
            const float t = weight ? g[e] * w[e] : g[e];
            const float d = (t - m1 - (v[e] - mean) * inv * m2) * inv;
            v[e] = add ? m[e] + d : d;
        }
        store<E>(dx + i, v);
    });
}

// The whole backward pass in one sweep over the rows: dx, and of each block the sums of dweight and
// dbias over its rows, [blocks, 2, D] in work. All is aligned.
// p = {x, weight or null, mean, inv, dy, add or null, dx, add or null, dweight or null, add or null,
// dbias or null}, i = {rows, D}.
template <int UNITS> __device__ __forceinline__ void sweep(const Args& a) {
    const int n = (int)a.i[1];
    const i64 rows = a.i[0], blocks = LANES <= 32 ? ceil_div(rows, TEAM_THREADS / LANES) : rows;
    float dw[UNITS][8], db[UNITS][8];
#pragma unroll
    for (int k = 0; k < UNITS; k++)
#pragma unroll
        for (int e = 0; e < 8; e++) dw[k][e] = db[k][e] = 0.0f;
    // A team that is a block waits for its sums: it reads the next row before.
    constexpr bool AHEAD = LANES > 32;
    using Row = Kept<act_t, LANES, UNITS, true>;
    const act_t *xs = (const act_t*)a.p[0], *dys = (const act_t*)a.p[4], *adds = (const act_t*)a.p[5];
    const int lane = Team<LANES>(rows).lane;
    const Weights<LANES, UNITS, (UNITS <= 2)> kept((const wgt_t*)a.p[1], n, lane);
    auto part = [&](const act_t* t, i64 row) { return Row(t && row < rows ? t + row * n : nullptr, n, lane); };
    Row nextx = part(AHEAD ? xs : nullptr, blockIdx.x), nextdy = part(AHEAD ? dys : nullptr, blockIdx.x), nextmore = part(AHEAD ? adds : nullptr, blockIdx.x);
    const float *means = (const float*)a.p[2], *invs = (const float*)a.p[3];
    const float per = 1.0f / (float)n;
    float nextmean = AHEAD ? means[blockIdx.x] : 0.0f, nextinv = AHEAD ? invs[blockIdx.x] : 0.0f;
    bool odd = false;
    for (i64 block = blockIdx.x; block < blocks; block += gridDim.x, odd = !odd) {
        const Team<LANES> team(rows, block);
        const bool add = adds;
        act_t* dx = (act_t*)a.p[6] + team.row * n;
        const Row x = AHEAD ? nextx : part(xs, team.row), dy = AHEAD ? nextdy : part(dys, team.row), more = AHEAD ? nextmore : part(adds, team.row);
        const float mean = AHEAD ? nextmean : means[team.row], inv = AHEAD ? nextinv : invs[team.row];
        if (AHEAD) {
            const i64 next = block + gridDim.x;
            nextx = part(xs, next), nextdy = part(dys, next), nextmore = part(adds, next);
            if (next < rows) nextmean = means[next], nextinv = invs[next];
        }
        float sum = 0.0f, dot = 0.0f;
        each_unit<LANES, UNITS, true>(n, team.lane, [&](int k, int i) {
            float v[8], g[8], w[8];
            x.get(k, i, v);
            dy.get(k, i, g);
            kept.get(k, i, w);
#pragma unroll
            for (int e = 0; e < 8; e++) {
                const float t = g[e] * w[e], xhat = (v[e] - mean) * inv;
                sum += t;
                dot += t * xhat;
                if (team.live) dw[k][e] += g[e] * xhat, db[k][e] += g[e];
            }
        });
        const float2 total = team.sum2(sum, dot, odd);
        const float m1 = total.x * per, m2 = total.y * per;
        if (!team.live) continue;
        each_unit<LANES, UNITS, true>(n, team.lane, [&](int k, int i) {
            float v[8], g[8], w[8], m[8];
            x.get(k, i, v);
            dy.get(k, i, g);
            kept.get(k, i, w);
            if (add) more.get(k, i, m);
#pragma unroll
            for (int e = 0; e < 8; e++) {
                const float t = g[e] * w[e];
                const float d = (t - m1 - (v[e] - mean) * inv * m2) * inv;
                v[e] = add ? m[e] + d : d;
            }
            store<8>(dx + i, v);
        });
    }
    float* out = (float*)a.work + (i64)blockIdx.x * 2 * n;
    sweep_sums<LANES, UNITS>(dw, n, out);
    sweep_sums<LANES, UNITS>(db, n, out + n);
}

extern "C" __global__ void __launch_bounds__(BLOCK, sweep_share<LANES, S1, 2>) layernorm_backward(Args a) {
    if constexpr (sweeps<LANES, S1>) sweep<S1>(a);
}

// The second launch: blocks of 32 of the 2 D sums.
extern "C" __global__ void __launch_bounds__(1024) layernorm_backward_sums(Args a) {
    if constexpr (sweeps<LANES, S1>) {
        const i64 n = a.i[1], j = (i64)blockIdx.x * 32 + threadIdx.x % 32;
        const float s = fold_terms((const float*)a.work, sweep_blocks<LANES, S1, 2>(a.i[0]), 2 * n, j, j < 2 * n);
        if (threadIdx.x >= 32 || j >= 2 * n) return;
        const float* add = (const float*)(j < n ? a.p[7] : a.p[9]);
        float* out = (float*)(j < n ? a.p[8] : a.p[10]);
        const i64 c = j < n ? j : j - n;
        if (out) out[c] = plus(add, c, s);
    }
}

// The same in passes of their own, for rows that are not held or not aligned: these first, since dx
// may lie where x or dy does.
extern "C" __global__ void __launch_bounds__(BLOCK) layernorm_backward_input(Args a) {
    if constexpr (S1 > 0) {
        if (aligned(bits_of(a.p[0]) | bits_of(a.p[1]) | bits_of(a.p[4]) | bits_of(a.p[5]) | bits_of(a.p[6])))
            return backward<true>(a);
    }
    backward<false>(a);
}

// Terms are dy * xhat.
struct Terms {
    const act_t *x, *dy;
    const float *mean, *inv;
    i64 d;
    template <int E> __device__ __forceinline__ void operator()(i64 r, i64 c, float (&v)[E]) const {
        float g[E];
        load<E>(x + r * d + c, v);
        load<E>(dy + r * d + c, g);
        const float m = mean[r], s = inv[r];
#pragma unroll
        for (int e = 0; e < E; e++) v[e] = g[e] * ((v[e] - m) * s);
    }
};

extern "C" __global__ void __launch_bounds__(256) layernorm_weight_terms(Args a) {
    if (!a.p[8]) return;
    const i64 d = a.i[1];
    const Terms t = {(const act_t*)a.p[0], (const act_t*)a.p[4], (const float*)a.p[2], (const float*)a.p[3], d};
    column_terms(a.i[0], d, d % 8 == 0 && aligned(bits_of(t.x) | bits_of(t.dy)), (float*)a.work, t);
}

extern "C" __global__ void __launch_bounds__(1024) layernorm_weight_sums(Args a) {
    if (a.p[8]) column_finish(a.i[0], a.i[1], a.i[1], (const float*)a.work, (const float*)a.p[7], (float*)a.p[8]);
}

extern "C" __global__ void __launch_bounds__(256) layernorm_bias_terms(Args a) {
    if (a.p[10]) column_values((const act_t*)a.p[4], a.i[0], a.i[1], a.i[1], (float*)a.work);
}

extern "C" __global__ void __launch_bounds__(1024) layernorm_bias_sums(Args a) {
    if (a.p[10]) column_finish(a.i[0], a.i[1], a.i[1], (const float*)a.work, (const float*)a.p[9], (float*)a.p[10]);
}
