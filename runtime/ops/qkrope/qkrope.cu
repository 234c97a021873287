#include "mtc.cuh"

// S2: where the norm stands (0: there is none, 1: before the rotation, 2: behind it), 4 more where no weight
// of a norm has a gradient. S3: pairs are
// (2j, 2j + 1) (interleaved), else (j, j + hd/2). With a norm S0 is the lanes of a team and S1 the units of
// 8 elements that a lane holds; without, S0 says to turn back. Heads are multiples of 16 elements, all
// addresses of 16 bytes.
//mtc:spec 0 0 0 0
//mtc:spec 0 0 0 1
//mtc:spec 1 0 0 0
//mtc:spec 1 0 0 1
//mtc:spec 4 1 1 0
//mtc:spec 8 2 1 0
//mtc:spec 8 2 2 0
//mtc:spec 8 2 1 1
//mtc:spec 8 2 2 1
//mtc:spec 16 1 1 0
//mtc:spec 16 1 2 0
//mtc:spec 16 1 1 1
//mtc:spec 16 1 2 1
//mtc:spec 32 4 1 0
//mtc:spec 32 4 2 0
//mtc:spec 16 1 5 0
//mtc:spec 8 1 6 0
//mtc:spec 16 1 6 0
//mtc:spec 32 4 6 0
#define NORMED (S2 != 0 && S1 > 0)
#define NORM (S2 % 4)
#define SUMS (S2 < 4)
#define LANES (S2 != 0 && S0 ? S0 : 32)

// p = {q, k, yq or dyq, yk or dyk, wq, wk, invq, invk, cs, starts}, and backward {add dq, add dk, dq, dk,
// add dwq, add dwk, dwq, dwk}; i = {rows, seq, pos, heads, kv heads, hd, interleaved, norm}, f = {eps}.

// angles_of are the cosines of a row's position, then its sines.
__device__ __forceinline__ const float* angles_of(const Args& a, i64 row) {
    i64 pos = a.i[2] + (i64)((u64)row % (u64)a.i[1]);
    if (a.p[9]) pos -= ((const int*)a.p[9])[row];  // where the row's document begins
    return (const float*)a.p[8] + pos * a.i[5];
}

// ---- without norms ---------------------------------------------------------------------------------

// HEADS heads share the angles that a thread has read.
#define HEADS 4

// An item is 8 pairs of each of HEADS heads, those of q before those of k, the elements of which are
// two units, hd/2 apart or side by side. items = hd / 16 * ceil(heads / HEADS); a block does max(1, 256 / items)
// rows, with thread t at item t % items. All loads of a thread come before its stores: results may lie
// where operands do.
extern "C" __global__ void __launch_bounds__(256, 2) qk_turn(Args a) {
    const u32 hd = (u32)a.i[5], half = hd / 2, qs = (u32)a.i[3], heads = qs + (u32)a.i[4];
    const u32 in_head = half / 8, groups = (heads + HEADS - 1) / HEADS;
    const u32 items = in_head * groups, per_block = items < 256 ? 256 / items : 1;
    const u32 in_block = threadIdx.x / items;
    const i64 row = (i64)blockIdx.x * per_block + (per_block > 1 ? in_block : 0);
    if (per_block > 1 && in_block >= per_block || row >= a.i[0]) return;
    const bool back = S0 != 0;
    const i64 qrow = row * qs * hd, krow = row * (heads - qs) * hd;
    const act_t *q = (const act_t*)a.p[back ? 2 : 0] + qrow, *k = (const act_t*)a.p[back ? 3 : 1] + krow;
    const act_t *addq = back && a.p[10] ? (const act_t*)a.p[10] + qrow : nullptr;
    const act_t *addk = back && a.p[11] ? (const act_t*)a.p[11] + krow : nullptr;
    act_t *yq = (act_t*)a.p[back ? 12 : 2] + qrow, *yk = (act_t*)a.p[back ? 13 : 3] + krow;
    const float* cs = angles_of(a, row);
    const u32 first = per_block > 1 ? threadIdx.x % items : threadIdx.x;
    const u32 step = per_block > 1 ? items : blockDim.x;
    for (u32 item = first; item < items; item += step) {
        const u32 group = item / in_head, j = item % in_head * 8;
        const u32 to = S3 ? 8 : half;  // from the first unit to the second
        const u32 in = S3 ? 2 * j : j;
        Unit<act_t> one[HEADS], two[HEADS];
#pragma unroll
        for (u32 h = 0; h < HEADS; h++) {
            const u32 head = group + h * groups;
            if (head >= heads) break;
            const act_t* x = (head < qs ? q + head * hd : k + (head - qs) * hd) + in;
            one[h].ld(x), two[h].ld(x + to);
        }
        float c[8], s[8];
        load<8>(cs + j, c);
        load<8>(cs + half + j, s);
#pragma unroll
        for (int e = 0; e < 8; e++) s[e] = S0 ? -s[e] : s[e];
#pragma unroll
        for (u32 h = 0; h < HEADS; h++) {
            const u32 head = group + h * groups;
            if (head >= heads) break;
            const u32 at = (head < qs ? head : head - qs) * hd + in;
            const act_t* add = head < qs ? addq : addk;
            act_t* y = head < qs ? yq : yk;
            float u[8], v[8];
            unpack<8>(one[h], u, act_t());
            unpack<8>(two[h], v, act_t());
            turn8<S3 != 0>(u, v, c, s);
            if (add) {
                float m[8], n[8];
                load<8>(add + at, m);
                load<8>(add + at + to, n);
#pragma unroll
                for (int e = 0; e < 8; e++) u[e] += m[e], v[e] += n[e];
            }
            store<8>(y + at, u);
            store<8>(y + at + to, v);
        }
    }
}

// ---- with norms --------------------------------------------------------------------------------------
// A team takes a group: a head of a row. A lane holds units of it and, besides, the units that theirs
// are turned with, which it reads too (from the first-level cache) and works on as their holders do.

// Group is a team's group, of q or of k.
struct Group {
    i64 at;  // its first element
    i64 g;   // its number on its side
    const float* cs;
    int side;
    __device__ __forceinline__ Group(const Args& a, i64 number, int which) : g(number), side(which) {
        at = g * a.i[5];
        cs = angles_of(a, (i64)((u64)g / (u64)a.i[3 + side]));
    }
    __device__ __forceinline__ const act_t* in(const Args& a, int p) const {
        return a.p[p + side] ? (const act_t*)a.p[p + side] + at : nullptr;
    }
};

// partner is where the unit begins that the one at i is turned with: the same one where pairs are
// side by side.
__device__ __forceinline__ int partner(int i, int n) { return S3 ? i : i < n / 2 ? i + n / 2 : i - n / 2; }

// Turned is the rotation of the unit at i: own * c + other * s, with the sign of s that its place asks for.
struct Turned {
    float c[8], s[8];
    __device__ __forceinline__ Turned(const float* cs, int i, int n, bool back) {
        if (S3) {
            float h[4], k[4];
            load<4>(cs + i / 2, h);
            load<4>(cs + n / 2 + i / 2, k);
#pragma unroll
            for (int e = 0; e < 8; e++) c[e] = h[e / 2], s[e] = (e % 2 == 0) != back ? -k[e / 2] : k[e / 2];
        } else {
            const int j = i < n / 2 ? i : i - n / 2;
            load<8>(cs + j, c);
            load<8>(cs + n / 2 + j, s);
            if ((i < n / 2) != back) {
#pragma unroll
                for (int e = 0; e < 8; e++) s[e] = -s[e];
            }
        }
    }
    // The result is rounded as if it were stored.
    __device__ __forceinline__ void operator()(const float (&own)[8], const float (&other)[8], float (&y)[8]) const {
        float r[8];
#pragma unroll
        for (int e = 0; e < 8; e++) r[e] = fmaf(own[e], c[e], (S3 ? own[e ^ 1] : other[e]) * s[e]);
#pragma unroll
        for (int e = 0; e < 8; e++) y[e] = round_to<act_t>(r[e]);
    }
};

// Both are a team's row and what its units are turned with.
template <int UNITS> struct Both {
    Unit<act_t> w[UNITS], o[UNITS];
    __device__ __forceinline__ Both(const act_t* row, int n, int lane) {
#pragma unroll
        for (int k = 0; k < UNITS; k++) {
            const int i = (k * LANES + lane) * 8;
            if (i >= n) continue;
            w[k].ld(row + i);
            if (!S3) o[k].ld(row + partner(i, n));
        }
    }
    __device__ __forceinline__ void get(int k, float (&own)[8], float (&other)[8]) const {
        unpack<8>(w[k], own, act_t());
        if (!S3) unpack<8>(o[k], other, act_t());
    }
};

// weigh is v * inv * weight at i, rounded as if it were stored.
__device__ __forceinline__ void weigh(float (&v)[8], float inv, const wgt_t* weight, int i) {
    float w[8];
    if (weight) load<8>(weight + i, w);
#pragma unroll
    for (int e = 0; e < 8; e++) {
        v[e] *= inv;
        if (weight) v[e] *= w[e];
        v[e] = round_to<act_t>(v[e]);
    }
}

template <int UNITS> __device__ __forceinline__ void forward(const Args& a) {
    const int n = (int)a.i[5];
    const i64 qs = a.i[0] * a.i[3];
    const Team<LANES> team(qs + a.i[0] * a.i[4]);
    const int side = team.row >= qs;
    const Group group(a, side ? team.row - qs : team.row, side);
    const wgt_t* weight = (const wgt_t*)a.p[4 + side];
    const Both<UNITS> x(group.in(a, 0), n, team.lane);
    float turned[UNITS][8];
    float s = 0.0f;
    each_unit<LANES, UNITS, true>(n, team.lane, [&](int k, int i) {
        float v[8], o[8];
        x.get(k, v, o);
        if (NORM == 2) {
            const Turned t(group.cs, i, n, false);
            t(v, o, turned[k]);
#pragma unroll
            for (int e = 0; e < 8; e++) v[e] = turned[k][e];
        }
#pragma unroll
        for (int e = 0; e < 8; e++) s = fmaf(v[e], v[e], s);
    });
    s = team.sum(s);
    // A sum beyond float must not pass as a row of zeros.
    const float inv = s > 3.4e38f ? nanf("") : inv_root(fmaf(s, 1.0f / (float)n, a.f[0]));
    __syncwarp();  // a lane reads what another one may store to
    if (!team.live) return;
    act_t* y = (act_t*)a.p[2 + side] + group.at;
    each_unit<LANES, UNITS, true>(n, team.lane, [&](int k, int i) {
        float v[8], o[8];
        if (NORM == 2) {
            weigh(turned[k], inv, weight, i);
            store<8>(y + i, turned[k]);
            return;
        }
        x.get(k, v, o);
        weigh(v, inv, weight, i);
        if (!S3) weigh(o, inv, weight, partner(i, n));
        const Turned t(group.cs, i, n, false);
        t(v, o, v);
        store<8>(y + i, v);
    });
    if (team.lane == 0) ((float*)a.p[6 + side])[group.g] = inv;
}

extern "C" __global__ void __launch_bounds__(TEAM_THREADS) qk_forward(Args a) {
    if constexpr (NORMED) forward<S1>(a);
}

// blocks_of is the number of blocks over a side's groups: with sums those of rmsnorm, else one for each
// round of teams.
template <int UNITS> __device__ __forceinline__ i64 blocks_of(i64 groups) {
    return SUMS ? sweep_blocks<LANES, UNITS, 1>(groups) : ceil_div(groups, TEAM_THREADS / LANES);
}

// The whole backward pass in one sweep: dx, and of each block the sum of dweight over its groups,
// [blocks, hd] in work. The blocks of q come first.
template <int UNITS> __device__ __forceinline__ void sweep(const Args& a) {
    const int n = (int)a.i[5];
    constexpr int TEAMS = TEAM_THREADS / LANES;
    const i64 qblocks = blocks_of<UNITS>(a.i[0] * a.i[3]);
    const int side = blockIdx.x >= qblocks;
    const i64 step = side ? gridDim.x - qblocks : qblocks;
    const i64 groups = a.i[0] * a.i[3 + side], blocks = ceil_div(groups, TEAMS);
    const wgt_t* weight = (const wgt_t*)a.p[4 + side];
    float dw[UNITS][8];
#pragma unroll
    for (int k = 0; k < UNITS; k++)
#pragma unroll
        for (int e = 0; e < 8; e++) dw[k][e] = 0.0f;
    for (i64 block = blockIdx.x - (side ? qblocks : 0); block < blocks; block += step) {
        const Team<LANES> team(groups, block);
        const Group group(a, team.row, side);
        const Both<UNITS> x(group.in(a, 0), n, team.lane), dy(group.in(a, 2), n, team.lane);
        const act_t* add = group.in(a, 10);
        const Kept<act_t, LANES, UNITS, true> more(add, n, team.lane);
        const float inv = ((const float*)a.p[6 + side])[group.g];
        // The norm's input and the gradient of its result; one of them lies behind the rotation.
        float v[UNITS][8], g[UNITS][8], v2[UNITS][8], g2[UNITS][8];
        float dot = 0.0f;
        each_unit<LANES, UNITS, true>(n, team.lane, [&](int k, int i) {
            float w[8];
            x.get(k, v[k], v2[k]);
            dy.get(k, g[k], g2[k]);
            if (NORM == 1) {
                const Turned t(group.cs, i, n, true);
                t(g[k], g2[k], g[k]);
            } else {
                const Turned t(group.cs, i, n, false);
                if (!S3) {
                    float own[8];
#pragma unroll
                    for (int e = 0; e < 8; e++) own[e] = v[k][e];
                    t(own, v2[k], v[k]);
                    const Turned to(group.cs, partner(i, n), n, false);
                    to(v2[k], own, v2[k]);
                } else {
                    t(v[k], v2[k], v[k]);
                }
            }
            if (weight) load<8>(weight + i, w);
#pragma unroll
            for (int e = 0; e < 8; e++) {
                dot = fmaf(weight ? g[k][e] * w[e] : g[k][e], v[k][e], dot);
                if (SUMS && team.live) dw[k][e] = fmaf(g[k][e], v[k][e] * inv, dw[k][e]);
            }
        });
        const float mean = team.sum(dot) * inv * (1.0f / (float)n);
        __syncwarp();  // a lane reads what another one may store to
        if (!team.live) continue;
        act_t* dx = (act_t*)a.p[12 + side] + group.at;
        // The gradient of the norm's input, but for a factor inv.
        auto input = [&](const float (&v)[8], const float (&g)[8], int i, float (&d)[8]) {
            float w[8];
            if (weight) load<8>(weight + i, w);
#pragma unroll
            for (int e = 0; e < 8; e++) d[e] = fmaf(-(v[e] * inv), mean, weight ? g[e] * w[e] : g[e]);
        };
        each_unit<LANES, UNITS, true>(n, team.lane, [&](int k, int i) {
            float d[8], m[8];
            input(v[k], g[k], i, d);
            if (add) more.get(k, i, m);
            if (NORM == 2) {
                float d2[8];
                if (!S3) input(v2[k], g2[k], partner(i, n), d2);
#pragma unroll
                for (int e = 0; e < 8; e++) {
                    d[e] = round_to<act_t>(d[e] * inv);
                    if (!S3) d2[e] = round_to<act_t>(d2[e] * inv);
                }
                const Turned t(group.cs, i, n, true);
                float r[8];
#pragma unroll
                for (int e = 0; e < 8; e++) r[e] = fmaf(d[e], t.c[e], (S3 ? d[e ^ 1] : d2[e]) * t.s[e]);
#pragma unroll
                for (int e = 0; e < 8; e++) d[e] = r[e];
            }
#pragma unroll
            for (int e = 0; e < 8; e++) {
                const float factor = NORM == 1 ? inv : 1.0f;
                d[e] = add ? fmaf(d[e], factor, m[e]) : d[e] * factor;
            }
            store<8>(dx + i, d);
        });
    }
    if (SUMS) sweep_sums<LANES, UNITS>(dw, n, (float*)a.work + (i64)blockIdx.x * n);
}

// A norm behind the rotation holds more.
extern "C" __global__ void __launch_bounds__(TEAM_THREADS, S1 > 2 ? 1 : S1 == 1 && NORM == 1 ? 3 : 2) qk_backward(Args a) {
    if constexpr (NORMED) sweep<S1>(a);
}

// The second launch: blocks of 32 columns, of q and of k.
extern "C" __global__ void __launch_bounds__(1024) qk_backward_sums(Args a) {
    if constexpr (NORMED && SUMS) {
        const int side = blockIdx.y;
        float* dw = (float*)a.p[16 + side];
        if (a.i[3 + side] == 0 || !dw) return;
        const i64 n = a.i[5], j = (i64)blockIdx.x * 32 + threadIdx.x % 32;
        const i64 qblocks = sweep_blocks<LANES, S1, 1>(a.i[0] * a.i[3]);
        const float* terms = (const float*)a.work + (side ? qblocks * n : 0);
        const float s = fold_terms(terms, sweep_blocks<LANES, S1, 1>(a.i[0] * a.i[3 + side]), n, j, j < n);
        if (threadIdx.x < 32 && j < n) dw[j] = plus((const float*)a.p[14 + side], j, s);
    }
}
