#include "mtc.cuh"

// Which products are rounded is written out, as in qkrope.cu. A row here is a group: Per elements with one inverse root mean square. S0 is the lanes of a
// team, S1 the units of 8 elements that a lane holds, 0 where a row has none.
//mtc:spec 32 0
//mtc:spec 256 0
//mtc:spec 8 2
//mtc:spec 16 1
//mtc:spec 32 2
//mtc:spec 32 4
//mtc:spec 128 4
//mtc:spec 448 1
//mtc:spec 512 1
//mtc:spec 512 2
//mtc:spec 1024 8
#define LANES (S0 ? S0 : 32)
#define BLOCK (LANES > 32 ? LANES : TEAM_THREADS)

// p = {x, weight or null, y, inv}, i = {rows, D, Per}, f = {eps}.
template <bool FAST> __device__ __forceinline__ void forward(const Args& a) {
    constexpr int E = FAST ? 8 : 1;
    const int n = (int)a.i[2];
    const i64 rows = a.i[0] * (a.i[1] / n);
    const Team<LANES> team(rows);
    const act_t* x = (const act_t*)a.p[0] + team.row * n;
    act_t* y = (act_t*)a.p[2] + team.row * n;
    const wgt_t* weight = (const wgt_t*)a.p[1];
    const Kept<act_t, LANES, S1, FAST> kept(x, n, team.lane);
    const float per = 1.0f / (float)n;
    float s = 0.0f;
    each_unit<LANES, S1, FAST>(n, team.lane, [&](int k, int i) {
        float v[E];
        kept.get(k, i, v);
#pragma unroll
        for (int e = 0; e < E; e++) s = fmaf(v[e], v[e], s);
    });
    s = team.sum(s);
    // A sum beyond float must not pass as a row of zeros.
    const float inv = s > 3.4e38f ? nanf("") : inv_root(fmaf(s, per, a.f[0]));
    if (!team.live) return;
    each_unit<LANES, S1, FAST>(n, team.lane, [&](int k, int i) {
        float v[E], w[E];
        kept.get(k, i, v);
        if (weight) load<E>(weight + i, w);
#pragma unroll
        for (int e = 0; e < E; e++) {
            v[e] *= inv;
            if (weight) v[e] *= w[e];
        }
        store<E>(y + i, v);
    });
    if (team.lane == 0) ((float*)a.p[3])[team.row] = inv;
}

extern "C" __global__ void __launch_bounds__(BLOCK) rmsnorm_forward(Args a) {
    if constexpr (S1 > 0) {
        if (aligned(bits_of(a.p[0]) | bits_of(a.p[1]) | bits_of(a.p[2]))) return forward<true>(a);
    }
    forward<false>(a);
}

// dx alone.
template <bool FAST> __device__ __forceinline__ void backward(const Args& a) {
    constexpr int E = FAST ? 8 : 1;
    const int n = (int)a.i[2];
    const i64 rows = a.i[0] * (a.i[1] / n);
    const Team<LANES> team(rows);
    const i64 at = team.row * n;
    const wgt_t* weight = (const wgt_t*)a.p[1];
    const act_t* add = a.p[4] ? (const act_t*)a.p[4] + at : nullptr;
    act_t* dx = (act_t*)a.p[5] + at;
    const Kept<act_t, LANES, S1, FAST> x((const act_t*)a.p[0] + at, n, team.lane);
    const Kept<act_t, LANES, S1, FAST> dy((const act_t*)a.p[3] + at, n, team.lane);
    const Kept<act_t, LANES, S1, FAST> more(add, n, team.lane);
    const float inv = ((const float*)a.p[2])[team.row];
    float dot = 0.0f;
    each_unit<LANES, S1, FAST>(n, team.lane, [&](int k, int i) {
        float v[E], g[E], w[E];
        x.get(k, i, v);
        dy.get(k, i, g);
        if (weight) load<E>(weight + i, w);
#pragma unroll
        for (int e = 0; e < E; e++) dot = fmaf(weight ? g[e] * w[e] : g[e], v[e], dot);
    });
    const float mean = team.sum(dot) * inv * (1.0f / (float)n);
    if (!team.live) return;
    each_unit<LANES, S1, FAST>(n, team.lane, [&](int k, int i) {
        float v[E], g[E], w[E], m[E];
        x.get(k, i, v);
        dy.get(k, i, g);
        if (weight) load<E>(weight + i, w);
        if (add) more.get(k, i, m);
#pragma unroll
        for (int e = 0; e < E; e++) {
            const float d = fmaf(-(v[e] * inv), mean, weight ? g[e] * w[e] : g[e]);
            v[e] = add ? fmaf(d, inv, m[e]) : d * inv;
        }
        store<E>(dx + i, v);
    });
}

// The whole backward pass in one sweep over the groups: dx, and of each block the sum of dweight
// over its groups, [blocks, Per] in work. All is aligned.
// p = {x, weight or null, inv, dy, add or null, dx, add or null, dweight or null},
// i = {rows, D, Per}.
template <int UNITS> __device__ __forceinline__ void sweep(const Args& a) {
    const int n = (int)a.i[2];
    const i64 rows = a.i[0] * (a.i[1] / n), blocks = LANES <= 32 ? ceil_div(rows, TEAM_THREADS / LANES) : rows;
    float dw[UNITS][8];
#pragma unroll
    for (int k = 0; k < UNITS; k++)
#pragma unroll
        for (int e = 0; e < 8; e++) dw[k][e] = 0.0f;
    // Where few share a multiprocessor, and where a team holds little, the next row is read before this
    // one's sum is waited for.
    constexpr bool AHEAD = LANES > 32 ? sweep_share<LANES, UNITS, 1> <= 2 : UNITS == 1;
    using Row = Kept<act_t, LANES, UNITS, true>;
    const act_t *xs = (const act_t*)a.p[0], *dys = (const act_t*)a.p[3], *adds = (const act_t*)a.p[4];
    const Team<LANES> first(rows);
    const int lane = first.lane;
    const Weights<LANES, UNITS, (UNITS <= 2 && sweep_share<LANES, UNITS, 1> < 4)> kept((const wgt_t*)a.p[1], n, lane);
    auto part = [&](const act_t* t, i64 row) { return Row(t && row < rows ? t + row * n : nullptr, n, lane); };
    Row nextx = part(AHEAD ? xs : nullptr, first.row), nextdy = part(AHEAD ? dys : nullptr, first.row), nextmore = part(AHEAD ? adds : nullptr, first.row);
    const float* invs = (const float*)a.p[2];
    const float per = 1.0f / (float)n;
    float nextinv = AHEAD ? invs[first.row] : 0.0f;
    bool odd = false;
    for (i64 block = blockIdx.x; block < blocks; block += gridDim.x, odd = !odd) {
        const Team<LANES> team(rows, block);
        const bool add = adds;
        act_t* dx = (act_t*)a.p[5] + team.row * n;
        const Row x = AHEAD ? nextx : part(xs, team.row), dy = AHEAD ? nextdy : part(dys, team.row), more = AHEAD ? nextmore : part(adds, team.row);
        const float inv = AHEAD ? nextinv : invs[team.row];
        if (AHEAD) {
            const i64 next = Team<LANES>(rows, block + gridDim.x).row;
            nextx = part(xs, next), nextdy = part(dys, next), nextmore = part(adds, next);
            nextinv = invs[next];
        }
        float dot = 0.0f;
        each_unit<LANES, UNITS, true>(n, team.lane, [&](int k, int i) {
            float v[8], g[8], w[8];
            x.get(k, i, v);
            dy.get(k, i, g);
            kept.get(k, i, w);
#pragma unroll
            for (int e = 0; e < 8; e++) {
                dot = fmaf(g[e] * w[e], v[e], dot);
                if (team.live) dw[k][e] = fmaf(g[e], v[e] * inv, dw[k][e]);
            }
        });
        const float mean = team.sum2(dot, 0.0f, odd).x * inv * per;
        if (!team.live) continue;
        each_unit<LANES, UNITS, true>(n, team.lane, [&](int k, int i) {
            float v[8], g[8], w[8], m[8];
            x.get(k, i, v);
            dy.get(k, i, g);
            kept.get(k, i, w);
            if (add) more.get(k, i, m);
#pragma unroll
            for (int e = 0; e < 8; e++) {
                const float d = fmaf(-(v[e] * inv), mean, g[e] * w[e]);
                v[e] = add ? fmaf(d, inv, m[e]) : d * inv;
            }
            store<8>(dx + i, v);
        });
    }
    sweep_sums<LANES, UNITS>(dw, n, (float*)a.work + (i64)blockIdx.x * n);
}

extern "C" __global__ void __launch_bounds__(BLOCK, sweep_share<LANES, S1, 1>) rmsnorm_backward(Args a) {
    if constexpr (sweeps<LANES, S1>) sweep<S1>(a);
}

// The second launch: blocks of 32 columns.
extern "C" __global__ void __launch_bounds__(1024) rmsnorm_backward_sums(Args a) {
    if constexpr (sweeps<LANES, S1>) {
        const i64 n = a.i[2], j = (i64)blockIdx.x * 32 + threadIdx.x % 32;
        const float s = fold_terms((const float*)a.work, sweep_blocks<LANES, S1, 1>(a.i[0] * (a.i[1] / n)), n, j, j < n);
        if (threadIdx.x < 32 && j < n) ((float*)a.p[7])[j] = plus((const float*)a.p[6], j, s);
    }
}

// The same in passes of their own, for groups that are not held or not aligned: the weight first,
// since dx may lie where x or dy does.
extern "C" __global__ void __launch_bounds__(BLOCK) rmsnorm_backward_input(Args a) {
    if constexpr (S1 > 0) {
        if (aligned(bits_of(a.p[0]) | bits_of(a.p[1]) | bits_of(a.p[3]) | bits_of(a.p[4]) | bits_of(a.p[5])))
            return backward<true>(a);
    }
    backward<false>(a);
}

// Terms are dy * x * inv.
struct Terms {
    const act_t *x, *dy;
    const float* inv;
    i64 d, groups;
    u32 per;
    template <int E> __device__ __forceinline__ void operator()(i64 r, i64 c, float (&v)[E]) const {
        float g[E];
        load<E>(x + r * d + c, v);
        load<E>(dy + r * d + c, g);
        const float s = inv[r * groups + (u32)c / per];
#pragma unroll
        for (int e = 0; e < E; e++) v[e] = g[e] * (v[e] * s);
    }
};

extern "C" __global__ void __launch_bounds__(256) rmsnorm_weight_terms(Args a) {
    const i64 d = a.i[1], per = a.i[2];
    const Terms t = {(const act_t*)a.p[0], (const act_t*)a.p[3], (const float*)a.p[2], d, d / per, (u32)per};
    column_terms(a.i[0], d, d % 8 == 0 && per % 8 == 0 && aligned(bits_of(t.x) | bits_of(t.dy)), (float*)a.work, t);
}

extern "C" __global__ void __launch_bounds__(1024) rmsnorm_weight_sums(Args a) {
    column_finish(a.i[0], a.i[1], a.i[2], (const float*)a.work, (const float*)a.p[6], (float*)a.p[7]);
}
