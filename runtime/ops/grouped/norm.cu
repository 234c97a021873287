// A norm of the experts' rows with a weight and a bias for each expert (norm.go). A row here is a
// group: Per elements with one mean and one inverse root.
//
// p = {x [M, D], weight [E, Per] or null, routing, center [M, D / Per] or null, inv [M, D / Per], ...},
// i = {tokens N, D, experts E, slots C, Per}, f = {eps}.
#include "mtc.cuh"

// S0 is the lanes of a team, S1 the units of 8 elements that a lane holds, 0 where a group has none.
//mtc:spec 0 0
//mtc:spec 32 0
//mtc:spec 256 0
//mtc:spec 8 2
//mtc:spec 16 1
//mtc:spec 32 2
//mtc:spec 32 4
//mtc:spec 128 4
//mtc:spec 512 2
//mtc:spec 512 8
#define LANES (S0 ? S0 : 32)
#define BLOCK (LANES > 32 ? LANES : TEAM_THREADS)

// Groups are those in use, and to which expert each belongs.
struct Groups {
    const int* expert;
    i64 count;
    u32 heads;
    __device__ explicit Groups(const Args& a) {
        const int* w = (const int*)a.p[2];
        const i64 n = a.i[0], e = a.i[2], m = n * a.i[3];
        heads = (u32)(a.i[1] / a.i[4]);
        expert = w + (e + 1 + 15) / 16 * 16 + n + 1 + 2 * m;
        count = w[e] * (i64)heads;
    }
    // none says that a block has no group: all of its threads end.
    __device__ bool none() const { return (i64)blockIdx.x * (LANES <= 32 ? TEAM_THREADS / LANES : 1) >= count; }
};

// p[5] = bias [E, D] or null, p[6] = y [M, D].
template <bool FAST> __device__ __forceinline__ void forward(const Args& a, const Groups& groups) {
    constexpr int E = FAST ? 8 : 1;
    const int n = (int)a.i[4];
    const Team<LANES> team(groups.count);
    const i64 e = groups.expert[team.row / groups.heads];
    const wgt_t* weight = a.p[1] ? (const wgt_t*)a.p[1] + e * n : nullptr;
    const wgt_t* bias = a.p[5] ? (const wgt_t*)a.p[5] + e * a.i[1] + team.row % groups.heads * n : nullptr;
    act_t* y = (act_t*)a.p[6] + team.row * n;
    const Kept<act_t, LANES, S1, FAST> x((const act_t*)a.p[0] + team.row * n, n, team.lane);
    const float per = 1.0f / (float)n;
    float mean = 0.0f;
    if (a.p[3]) {
        float s = 0.0f;
        each_unit<LANES, S1, FAST>(n, team.lane, [&](int k, int i) {
            float v[E];
            x.get(k, i, v);
#pragma unroll
            for (int u = 0; u < E; u++) s += v[u];
        });
        mean = team.sum(s) * per;
    }
    float d = 0.0f;
    each_unit<LANES, S1, FAST>(n, team.lane, [&](int k, int i) {
        float v[E];
        x.get(k, i, v);
#pragma unroll
        for (int u = 0; u < E; u++) d = fmaf(v[u] - mean, v[u] - mean, d);
    });
    d = team.sum(d);
    // A sum beyond float must not pass as a row of zeros.
    const float inv = d > 3.4e38f ? nanf("") : inv_root(fmaf(d, per, a.f[0]));
    if (!team.live) return;
    each_unit<LANES, S1, FAST>(n, team.lane, [&](int k, int i) {
        float v[E], w[E], b[E];
        x.get(k, i, v);
        if (weight) load<E>(weight + i, w);
        if (bias) load<E>(bias + i, b);
#pragma unroll
        for (int u = 0; u < E; u++) {
            v[u] = (v[u] - mean) * inv;
            if (weight) v[u] *= w[u];
            if (bias) v[u] += b[u];
        }
        store<E>(y + i, v);
    });
    if (team.lane == 0) {
        if (a.p[3]) ((float*)a.p[3])[team.row] = mean;
        ((float*)a.p[4])[team.row] = inv;
    }
}

extern "C" __global__ void __launch_bounds__(BLOCK) grouped_norm(Args a) {
    const Groups groups(a);
    if (groups.none()) return;
    if constexpr (S1 > 0) {
        if (aligned(bits_of(a.p[0]) | bits_of(a.p[1]) | bits_of(a.p[5]) | bits_of(a.p[6]))) return forward<true>(a, groups);
    }
    forward<false>(a, groups);
}

// p[5] = dy [M, D], p[6] = add or null, p[7] = dx.
template <bool FAST> __device__ __forceinline__ void input(const Args& a, const Groups& groups) {
    constexpr int E = FAST ? 8 : 1;
    const int n = (int)a.i[4];
    const Team<LANES> team(groups.count);
    const i64 at = team.row * n, e = groups.expert[team.row / groups.heads];
    const wgt_t* weight = a.p[1] ? (const wgt_t*)a.p[1] + e * n : nullptr;
    const act_t* add = a.p[6] ? (const act_t*)a.p[6] + at : nullptr;
    act_t* dx = (act_t*)a.p[7] + at;
    const Kept<act_t, LANES, S1, FAST> x((const act_t*)a.p[0] + at, n, team.lane);
    const Kept<act_t, LANES, S1, FAST> dy((const act_t*)a.p[5] + at, n, team.lane);
    const Kept<act_t, LANES, S1, FAST> more(add, n, team.lane);
    const float mean = a.p[3] ? ((const float*)a.p[3])[team.row] : 0.0f, inv = ((const float*)a.p[4])[team.row];
    float sum = 0.0f, dot = 0.0f;
    each_unit<LANES, S1, FAST>(n, team.lane, [&](int k, int i) {
        float v[E], g[E], w[E];
        x.get(k, i, v);
        dy.get(k, i, g);
        if (weight) load<E>(weight + i, w);
#pragma unroll
        for (int u = 0; u < E; u++) {
            const float t = weight ? g[u] * w[u] : g[u];
            sum += t;
            dot = fmaf(t, (v[u] - mean) * inv, dot);
        }
    });
    const float2 total = team.sum2(sum, dot);
    const float per = 1.0f / (float)n, m1 = a.p[3] ? total.x * per : 0.0f, m2 = total.y * per;
    if (!team.live) return;
    each_unit<LANES, S1, FAST>(n, team.lane, [&](int k, int i) {
        float v[E], g[E], w[E], m[E];
        x.get(k, i, v);
        dy.get(k, i, g);
        if (weight) load<E>(weight + i, w);
        if (add) more.get(k, i, m);
#pragma unroll
        for (int u = 0; u < E; u++) {
            const float t = weight ? g[u] * w[u] : g[u];
            const float d = (t - m1 - (v[u] - mean) * inv * m2) * inv;
            v[u] = add ? m[u] + d : d;
        }
        store<E>(dx + i, v);
    });
}

extern "C" __global__ void __launch_bounds__(BLOCK) grouped_norm_input(Args a) {
    const Groups groups(a);
    if (groups.none()) return;
    if constexpr (S1 > 0) {
        if (aligned(bits_of(a.p[0]) | bits_of(a.p[1]) | bits_of(a.p[5]) | bits_of(a.p[6]) | bits_of(a.p[7]))) return input<true>(a, groups);
    }
    input<false>(a, groups);
}

// The gradients of weight and bias, in f32: the rows of an expert are cut into 16 parts by their number alone,
// which are summed in order, and then added in order.
// p[5] = dy, p[6] = add or null, p[7] = dweight [E, Per] or null, p[8] = add or null, p[9] = dbias [E, D] or null.
// work: [2, PARTS, E, D].
constexpr int PARTS = 16;

// grid: x columns by 256, y experts, z parts.
extern "C" __global__ void __launch_bounds__(256) grouped_norm_parts(Args a) {
    const i64 d = a.i[1], c = (i64)blockIdx.x * 256 + threadIdx.x, e = blockIdx.y, part = blockIdx.z;
    if (c >= d) return;
    const int* first = (const int*)a.p[2];
    const i64 at = first[e], rows = first[e + 1] - at, hi = at + rows * (part + 1) / PARTS;
    const i64 heads = d / a.i[4], head = c / a.i[4];
    const act_t *x = (const act_t*)a.p[0], *dy = (const act_t*)a.p[5];
    const float *center = (const float*)a.p[3], *inv = (const float*)a.p[4];
    float dw = 0.0f, db = 0.0f;
#pragma unroll 4
    for (i64 r = at + rows * part / PARTS; r < hi; r++) {
        const float g = to_f(dy[r * d + c]), mean = center ? center[r * heads + head] : 0.0f;
        dw = fmaf(g, (to_f(x[r * d + c]) - mean) * inv[r * heads + head], dw);
        db += g;
    }
    float* work = (float*)a.work + (part * a.i[2] + e) * d + c;
    work[0] = dw;
    work[PARTS * a.i[2] * d] = db;
}

// grid: x the E * D results of a bias by 256; those of a weight are at most as many.
extern "C" __global__ void __launch_bounds__(256) grouped_norm_sums(Args a) {
    const i64 d = a.i[1], per = a.i[4], size = a.i[2] * d, i = thread_id();
    const float* work = (const float*)a.work;
    if (a.p[7] && i < a.i[2] * per) {
        const i64 e = i / per, j = i % per;
        float sum = 0.0f;
        for (int part = 0; part < PARTS; part++)
            for (i64 c = j; c < d; c += per) sum += work[part * size + e * d + c];
        ((float*)a.p[7])[i] = plus((const float*)a.p[6], i, sum);
    }
    if (a.p[9] && i < size) {
        float sum = 0.0f;
        for (int part = 0; part < PARTS; part++) sum += work[(PARTS + part) * size + i];
        ((float*)a.p[9])[i] = plus((const float*)a.p[8], i, sum);
    }
}
