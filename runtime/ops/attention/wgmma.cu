// Attention on Hopper's tensor cores: wgmma, tiles brought by the bulk copy engine, blocks that
// stay and take tiles of work one after another. bf16 operands, f32 sums; heads of 64 or 128.
//
// A block is one group of four warps that only starts copies, and two or three that compute,
// 64 rows of a tile each. Tiles in shared memory are columns of 64 elements wide, 128 bytes a
// row, swizzled as wgmma wants it; the same tile serves as a K-major and as an MN-major operand,
// so nothing is transposed. What a product leaves in registers is, rounded to bf16, the left
// operand of the next one. Tiles of work are handed out by a counter, the longest first: which
// block makes a tile does not change its result.
//
// The first launch of a pass (attention_maps, attention_stats) writes the descriptions of the
// tensors and the counters to scratch. Copies of rows that a tensor lacks bring zeros.
//
// S0: elements of a head. S1: 1 with a soft cap.
//mtc:spec 64 0
//mtc:spec 64 1
//mtc:spec 128 0
//mtc:spec 128 1
#define MTC_HOPPER
#include "mtc.cuh"
#if !defined(MTC_F32) && (defined(__CUDA_ARCH_FEAT_SM90_ALL) || defined(MTC_EMU))

constexpr int HD = S0 ? S0 : 64;
static_assert(HD == 64 || HD == 128, "heads of 64 or 128 elements");
constexpr bool CAP = S1 != 0;
constexpr int HALVES = HD / 64;
constexpr float LOG2E = 1.4426950408889634f, LN2 = 0.6931471805599453f;
#define INF __int_as_float(0x7f800000)

// Geom is the constants of a launch.
struct Geom {
    int batch, seq, pos, heads, kv, window;
    bool causal;
    float cap, scale;
    __device__ explicit Geom(const Args& a)
        : batch((int)a.i[0]), seq((int)a.i[1]), pos((int)a.i[2]), heads((int)a.i[3]), kv((int)a.i[4]),
          window((int)imin(a.i[6], 1 << 30)), causal(a.i[7] != 0), cap(a.f[0]), scale(a.f[1]) {}
    // sees reports whether the query at position t sees key u.
    __device__ __forceinline__ bool sees(int t, int u) const {
        if (causal && u > t) return false;
        return window == 0 || (t - u < window && u - t < window);
    }
    // all_see reports whether all queries t0..t1 see all keys u0..u1.
    __device__ __forceinline__ bool all_see(int t0, int t1, int u0, int u1) const {
        if (causal && u1 > t0) return false;
        return window == 0 || (t1 - u0 < window && u1 - t0 < window);
    }
    // keys gives the half-open range of the keys that some query of t0..t1 sees, among n.
    __device__ __forceinline__ void keys(int t0, int t1, int n, int& lo, int& hi) const {
        lo = 0, hi = causal ? min(n, t1 + 1) : n;
        if (window) lo = max(0, t0 - window + 1), hi = min(hi, t1 + window);
    }
    // queries gives the half-open range of the queries that see some key of u0..u1, among n.
    __device__ __forceinline__ void queries(int u0, int u1, int n, int& lo, int& hi) const {
        lo = causal ? u0 : 0, hi = n;
        if (window) {
            hi = min(hi, u1 + window);
            if (!causal) lo = max(0, u0 - window + 1);
        }
    }
    __device__ __forceinline__ float logit_factor() const { return CAP ? LOG2E : scale * LOG2E; }
};

// tanh_of is exact to about 1e-7, where tanh.approx would move a capped logit by 0.02.
__device__ __forceinline__ float tanh_of(float x) {
    return 1.f - __fdividef(2.f, exp2_fast(2.f * LOG2E * fminf(x, 40.f)) + 1.f);
}

// Scratch is the head of a.work.
struct Scratch {
    Map q, k, v, dy;
    int next[3];  // counters of tiles: forward or dk and dv, dq
};
constexpr int SCRATCH = 1024;

// Stats is what backward keeps behind the maps: the rows' lse * log2(e), then their delta, each
// [B][H][padded T]. The padding holds rows that nothing sees.
struct Stats {
    float *lse2, *delta;
    int padded;
    __device__ Stats(const Args& a, const Geom& g) {
        padded = (g.seq + 127) / 128 * 128;
        lse2 = (float*)((char*)a.work + SCRATCH);
        delta = lse2 + (i64)g.batch * g.heads * padded;
    }
};

__device__ __forceinline__ void prepare(const Args& a, const void* q, const void* k, const void* v, const void* dy, i64 b, i64 tq, i64 tk) {
    Scratch* s = (Scratch*)a.work;
    const u32 room = smem_at(smem);
    make_map(&s->q, room, (const bf16*)q, HD, a.i[3], tq, b);
    make_map(&s->k, room, (const bf16*)k, HD, a.i[4], tk, b);
    make_map(&s->v, room, (const bf16*)v, HD, a.i[4], tk, b);
    if (dy) make_map(&s->dy, room, (const bf16*)dy, HD, a.i[3], tq, b);
    if (threadIdx.x < 3) s->next[threadIdx.x] = 0;
}

// ---- shared memory: barriers, then a few floats, then tiles.

constexpr int MAX_SLOTS = 8;
constexpr u32 FULL_BAR = 0, EMPTY_BAR = 64, OWN_FULL = 128, OWN_EMPTY = 136, TILES = 144;
constexpr u32 FTILES_AT = 1024;                     // of forward
constexpr u32 STATS_AT = 1024, STATS_BYTES = 4096;  // backward: lse2 and delta of each slot's queries
constexpr u32 TILES_AT = STATS_AT + STATS_BYTES;

__device__ __forceinline__ void init_barriers(u32 base, int consumers) {
    if (threadIdx.x == 0) {
        for (int i = 0; i < MAX_SLOTS; i++) bar_init(base + FULL_BAR + 8 * i, 1), bar_init(base + EMPTY_BAR + 8 * i, consumers * 4);
        bar_init(base + OWN_FULL, 1), bar_init(base + OWN_EMPTY, consumers * 4);
        Tiles::init(base, TILES, consumers * 4);
        bar_fence();
    }
    __syncthreads();
}

// bring copies ROWS rows from row on as a tile: HALVES columns of ROWS rows.
template <int ROWS> __device__ __forceinline__ void bring(u32 to, const Map* m, int head, int row, int b, u32 bar) {
#pragma unroll
    for (int h = 0; h < HALVES; h++)
#pragma unroll
        for (int r = 0; r < ROWS; r += 64) copy_box(to + (h * ROWS + r) * 128, m, h * 64, head, row + r, b, bar);
}

// scores starts x = A B^T over a head's elements: A 64 rows of a tile of RA rows, B of RB.
template <int RA, int RB, int N> __device__ __forceinline__ void scores(float (&x)[N], u32 a, u32 b) {
    const u64 da = k_major(a), db = k_major(b);
#pragma unroll
    for (int k = 0; k < HD / 16; k++)
        wgmma<0>(x, da + k / 4 * (RA * 8) + k % 4 * 2, db + k / 4 * (RB * 8) + k % 4 * 2, k > 0);
}

// gather starts acc += X B: X [64][16 K] in registers, B a tile of 16 K rows.
template <int K, int N> __device__ __forceinline__ void gather(float (&acc)[N], const u32 (&x)[K][4], u32 b) {
    const u64 db = mn_major<16 * K>(b);
#pragma unroll
    for (int k = 0; k < K; k++) wgmma<1>(acc, x[k], db + k * 128, 1);
}

// rounded makes a left operand of sums.
template <int N> __device__ __forceinline__ void rounded(u32 (&to)[N / 8][4], const float (&x)[N]) {
#pragma unroll
    for (int k = 0; k < N / 8; k++)
#pragma unroll
        for (int i = 0; i < 4; i++) to[k][i] = pack_bf16(x[8 * k + 2 * i], x[8 * k + 2 * i + 1]);
}

template <int N> __device__ __forceinline__ void zero(float (&x)[N]) {
#pragma unroll
    for (int i = 0; i < N; i++) x[i] = 0.f;
}

// put_row writes one row (half r of the lane's rows) of sums times factor, HD elements from to
// on, and what is added to it. The four lanes of a row trade their pairs, so that each
// writes 16 bytes.
__device__ __forceinline__ void put_row(bf16* to, const bf16* add, const float (&x)[HD / 2], int r, float factor, bool there) {
    const int c = threadIdx.x % 4;
#pragma unroll
    for (int n = 0; n < HD / 8; n += 4) {
        u32 mine[4], got[4];
        if (add) {  // sums with what is added are rounded once
            float2 f[4];
#pragma unroll
            for (int i = 0; i < 4; i++) {
                const u32 w = there ? *(const u32*)(add + (n + i) * 8 + c * 2) : 0;
                f[i].x = x[(n + i) * 4 + r * 2] * factor + bf16_lo(w), f[i].y = x[(n + i) * 4 + r * 2 + 1] * factor + bf16_hi(w);
                mine[i] = pack_bf16(f[i].x, f[i].y);
            }
        } else {
#pragma unroll
            for (int i = 0; i < 4; i++) mine[i] = pack_bf16(x[(n + i) * 4 + r * 2] * factor, x[(n + i) * 4 + r * 2 + 1] * factor);
        }
        // got[i] is lane i's mine[c].
        const u32 own = c & 2 ? (c & 1 ? mine[3] : mine[2]) : (c & 1 ? mine[1] : mine[0]);
        u32 from[4];
        from[0] = own;
#pragma unroll
        for (int k = 1; k < 4; k++) {
            const int o = c ^ k;
            const u32 give = o & 2 ? (o & 1 ? mine[3] : mine[2]) : (o & 1 ? mine[1] : mine[0]);
            from[k] = __shfl_xor_sync(FULL, give, k);
        }
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int k = i ^ c;
            got[i] = k & 2 ? (k & 1 ? from[3] : from[2]) : (k & 1 ? from[1] : from[0]);
        }
        if (there) *(uint4*)(to + (n + c) * 8) = uint4{got[0], got[1], got[2], got[3]};
    }
}

// ---- forward -------------------------------------------------------------------------------

constexpr int FC = HD == 64 ? 3 : 2;  // computing groups, 64 queries each
constexpr int FM = 64 * FC;           // queries of a tile
constexpr int FN = 128;               // keys of a block
constexpr int FSLOTS = 6;
constexpr u32 FQ = FM * HD * 2, FK = FN * HD * 2;

// Problem is what forward works on: queries at positions first.. of nq rows, nk keys.
struct Problem {
    int batch, nq, nk, first;
    bf16* y;
    float* lse;
    __device__ __forceinline__ int tiles(int heads) const { return (nq + FM - 1) / FM * batch * heads; }
    // Late queries see most keys: they come first. Heads that share keys lie side by side.
    __device__ __forceinline__ void tile(int i, int heads, int& b, int& h, int& t0) const {
        const int n = batch * heads;
        t0 = ((nq + FM - 1) / FM - 1 - i / n) * FM;
        b = i % n / heads, h = i % heads;
    }
    __device__ __forceinline__ void blocks(const Geom& g, int t0, int& j0, int& n) const {
        int lo, hi;
        g.keys(first + t0, first + min(t0 + FM, nq) - 1, nk, lo, hi);
        j0 = lo / FN, n = (hi + FN - 1) / FN - j0;
    }
};

__device__ __forceinline__ void forward_copies(const Args& a, const Geom& g, const Problem& p, u32 base) {
    Scratch* s = (Scratch*)a.work;
    acquire_map(&s->q), acquire_map(&s->k), acquire_map(&s->v);
    const u32 qt = base + FTILES_AT, slots = qt + FQ;
    Tiles tiles(base, TILES);
    Ring<FSLOTS> ring;
    const int total = p.tiles(g.heads);
    int next = next_number(&s->next[0]);
    for (u32 turn = 0;; turn++) {
        const int tile = next;
        tiles.give(tile < total ? tile : -1);
        if (tile >= total) break;
        next = next_number(&s->next[0]);
        int b, h, t0, j0, n;
        p.tile(tile, g.heads, b, h, t0);
        p.blocks(g, t0, j0, n);
        const int kvh = h / (g.heads / g.kv);
        bar_wait(base + OWN_EMPTY, (turn & 1) ^ 1);
        bar_expect(base + OWN_FULL, FQ);
        bring<FM>(qt, &s->q, h, t0, b, base + OWN_FULL);
        auto get = [&](const Map* m, int j) {
            bar_wait(base + EMPTY_BAR + 8 * ring.slot, ring.phase ^ 1);
            bar_expect(base + FULL_BAR + 8 * ring.slot, FK);
            bring<FN>(slots + ring.slot * FK, m, kvh, (j0 + j) * FN, b, base + FULL_BAR + 8 * ring.slot);
            ring.next();
        };
        get(&s->k, 0);
#pragma unroll 1
        for (int j = 1; j < n; j++) get(&s->k, j), get(&s->v, j - 1);
        get(&s->v, n - 1);
    }
}

// Softmax is the running maximum and sum of the lane's two rows (8 apart).
struct Softmax {
    float m[2], l[2];
    // step turns scores into weights and says by what to multiply earlier sums. A block of
    // which a row sees nothing changes nothing in it.
    __device__ __forceinline__ void step(float (&s)[FN / 2], float (&alpha)[2], float c) {
#pragma unroll
        for (int r = 0; r < 2; r++) {
            float x0 = m[r], x1 = m[r];
#pragma unroll
            for (int n = 0; n < FN / 8; n++) x0 = fmaxf(x0, s[4 * n + 2 * r]), x1 = fmaxf(x1, s[4 * n + 2 * r + 1]);
            float x = fmaxf(x0, x1);
            x = fmaxf(x, __shfl_xor_sync(FULL, x, 1));
            x = fmaxf(x, __shfl_xor_sync(FULL, x, 2));
            const float top = x == -INF ? 0.f : x, at = top * c;
            alpha[r] = exp2_fast((m[r] - top) * c);  // exactly 1 when the maximum stays
            m[r] = x;
            float s0 = 0.f, s1 = 0.f;
#pragma unroll
            for (int n = 0; n < FN / 8; n++) {
                float &e = s[4 * n + 2 * r], &f = s[4 * n + 2 * r + 1];
                e = exp2_fast(__fmaf_rn(e, c, -at)), f = exp2_fast(__fmaf_rn(f, c, -at));
                s0 += e, s1 += f;
            }
            l[r] = __fmaf_rn(l[r], alpha[r], s0 + s1);  // of the lane's columns; added up at the end
        }
    }
};

// logits applies the cap and hides what is not visible: rows at positions r0 and r0 + 8,
// columns are keys from u0 on.
__device__ __forceinline__ void logits(const Geom& g, float (&s)[FN / 2], int r0, int u0, int nk, int first_row) {
    if constexpr (CAP) {
        const float in = g.scale / g.cap;
#pragma unroll
        for (int i = 0; i < FN / 2; i++) s[i] = g.cap * tanh_of(s[i] * in);
    }
    if (u0 + FN > nk || !g.all_see(first_row, first_row + 63, u0, u0 + FN - 1)) {
        const int c0 = u0 + threadIdx.x % 4 * 2;
#pragma unroll
        for (int i = 0; i < FN / 2; i++) {
            const int u = c0 + i / 4 * 8 + i % 2;
            if (u >= nk || !g.sees(r0 + i / 2 % 2 * 8, u)) s[i] = -INF;
        }
    }
}

__device__ __forceinline__ void forward_sums(const Args& a, const Geom& g, const Problem& p, u32 base) {
    const int group = threadIdx.x / 128 - 1, warp = threadIdx.x / 32 % 4, lane = threadIdx.x % 32;
    const u32 qt = base + FTILES_AT + group * 64 * 128, slots = base + FTILES_AT + FQ;
    const float c = g.logit_factor();
    const int me = 1 + group, other = 1 + (group + 1) % FC;  // named barriers: whose turn it is to start products
    Tiles tiles(base, TILES);
    Ring<FSLOTS> ring;
    if (group == FC - 1) named_arrive(1, 256);
    for (u32 turn = 0;; turn++) {
        const int tile = tiles.take();
        if (tile < 0) break;
        int b, h, t0, j0, n;
        p.tile(tile, g.heads, b, h, t0);
        p.blocks(g, t0, j0, n);
        const int row = t0 + group * 64 + warp * 16 + lane / 4, r0 = p.first + row, first_row = p.first + t0 + group * 64;
        float s[FN / 2], o[HD / 2], alpha[2];
        u32 w[FN / 16][4];
        Softmax soft{{-INF, -INF}, {0.f, 0.f}};
        zero(o);

        bar_wait(base + OWN_FULL, turn & 1);
        bar_wait(base + FULL_BAR + 8 * ring.slot, ring.phase);
        wgmma_fence();
        scores<FM, FN>(s, qt, slots + ring.slot * FK);
        wgmma_commit();
        wgmma_wait<0>();
        keep(s);
        leave(base + EMPTY_BAR + 8 * ring.slot);
        ring.next();
        logits(g, s, r0, j0 * FN, p.nk, first_row);
        soft.step(s, alpha, c);
        rounded(w, s);
#pragma unroll 1
        for (int j = 1; j < n; j++) {
            // The next scores run beside the values of this block, and both beside the other
            // groups' exponentials.
            const int ks = ring.slot;
            bar_wait(base + FULL_BAR + 8 * ring.slot, ring.phase);
            ring.next();
            named_sync(me, 256);
            wgmma_fence();
            scores<FM, FN>(s, qt, slots + ks * FK);
            wgmma_commit();
            const int vs = ring.slot;
            bar_wait(base + FULL_BAR + 8 * ring.slot, ring.phase);
            ring.next();
            wgmma_fence();
            gather(o, w, slots + vs * FK);
            wgmma_commit();
            named_arrive(other, 256);
            wgmma_wait<1>();
            keep(s);
            leave(base + EMPTY_BAR + 8 * ks);
            logits(g, s, r0, (j0 + j) * FN, p.nk, first_row);
            soft.step(s, alpha, c);
            wgmma_wait<0>();
            keep(o);
            keep(w);
            leave(base + EMPTY_BAR + 8 * vs);
            rounded(w, s);
#pragma unroll
            for (int i = 0; i < HD / 2; i++) o[i] *= alpha[i / 2 % 2];
        }
        leave(base + OWN_EMPTY);
        bar_wait(base + FULL_BAR + 8 * ring.slot, ring.phase);
        wgmma_fence();
        gather(o, w, slots + ring.slot * FK);
        wgmma_commit();
        wgmma_wait<0>();
        keep(o);
        keep(w);
        leave(base + EMPTY_BAR + 8 * ring.slot);
        ring.next();
#pragma unroll
        for (int r = 0; r < 2; r++) {
            float l = soft.l[r];
            l += __shfl_xor_sync(FULL, l, 1);
            l += __shfl_xor_sync(FULL, l, 2);
            const int t = row + 8 * r;
            const bool there = t < p.nq;
            const i64 at = ((i64)b * p.nq + t) * g.heads + h;
            put_row(p.y + at * HD, nullptr, o, r, 1.f / l, there);
            if (p.lse && there && lane % 4 == 0) p.lse[at] = (soft.m[r] * c + log2f(l)) * LN2;
        }
    }
    if (group == 0) named_sync(1, 256);
}

constexpr int LOW = HD == 64 ? 32 : 40, HIGH = HD == 64 ? 160 : 232;  // registers of forward's copying and computing threads

__device__ __forceinline__ void forward(const Args& a, const Geom& g, const Problem& p) {
    const u32 base = smem_at(smem);
    init_barriers(base, FC);
    if (threadIdx.x < 128) {
        fewer_registers<LOW>();
        if (threadIdx.x == 0) forward_copies(a, g, p, base);
    } else {
        more_registers<HIGH>();
        forward_sums(a, g, p, base);
    }
}

extern "C" __global__ void __launch_bounds__(32) attention_maps(Args a) { prepare(a, a.p[0], a.p[1], a.p[2], nullptr, a.i[0], a.i[1], a.i[1]); }

extern "C" __global__ void __launch_bounds__(128 * (FC + 1), 1) attention_forward(Args a) {
    const Geom g(a);
    forward(a, g, {g.batch, g.seq, g.seq, 0, (bf16*)a.p[3], (float*)a.p[4]});
}

// attention_store puts the new rows of k and v into the caches, and writes the maps.
extern "C" __global__ void __launch_bounds__(256) attention_store(Args a) {
    const Geom g(a);
    const i64 wk = (i64)g.kv * HD, n = (i64)g.batch * g.seq * wk / 8;
    const i64 at = g.pos * wk / 8;
    for (i64 i = thread_id(); i < n; i += num_threads()) {
        ((uint4*)a.p[3])[at + i] = ((const uint4*)a.p[1])[i];
        ((uint4*)a.p[4])[at + i] = ((const uint4*)a.p[2])[i];
    }
    const i64 rows = (i64)g.batch * g.seq;
    if (blockIdx.x == 0 && threadIdx.x < 32) prepare(a, a.p[0], a.p[3], a.p[4], nullptr, 1, rows, g.pos + rows);
}

extern "C" __global__ void __launch_bounds__(128 * (FC + 1), 1) attention_cached(Args a) {
    const Geom g(a);
    const int n = g.batch * g.seq;
    forward(a, g, {1, n, g.pos + n, g.pos, (bf16*)a.p[5], nullptr});
}

// ---- backward ------------------------------------------------------------------------------

// attention_stats: delta = rowsum(dy * y), by groups of lanes that read 16 bytes each, and the
// maps.
extern "C" __global__ void __launch_bounds__(256) attention_stats(Args a) {
    const Geom g(a);
    const Stats st(a, g);
    constexpr int LANES = HD / 8;
    const i64 i = thread_id() / LANES, rows = (i64)g.batch * st.padded * g.heads;
    const int lane = threadIdx.x % LANES;
    const int h = (int)(i % g.heads);
    const i64 bt = i / g.heads;
    const int t = (int)(bt % st.padded), b = (int)(bt / st.padded);
    const bool there = i < rows && t < g.seq;
    float sum = 0.f;
    const i64 row = (i64)b * g.seq + t;
    if (there) {
        const i64 at = (row * g.heads + h) * HD + lane * 8;
        float y[8], dy[8];
        load<8>((const bf16*)a.p[3] + at, y);
        load<8>((const bf16*)a.p[5] + at, dy);
#pragma unroll
        for (int e = 0; e < 8; e++) sum += y[e] * dy[e];
    }
#pragma unroll
    for (int k = LANES / 2; k > 0; k >>= 1) sum += __shfl_xor_sync(FULL, sum, k);
    if (i < rows && lane == 0) {
        const i64 to = ((i64)b * g.heads + h) * st.padded + t;
        st.delta[to] = sum;
        st.lse2[to] = there ? ((const float*)a.p[4])[row * g.heads + h] * LOG2E : INF;
    }
    if (blockIdx.x == 0 && threadIdx.x < 32) prepare(a, a.p[0], a.p[1], a.p[2], a.p[5], g.batch, g.seq, g.seq);
}

// weight turns a score into P, and gives the slope of the cap.
__device__ __forceinline__ float weight(const Geom& g, float x, float c, float lse2, float& slope) {
    if constexpr (CAP) {
        const float th = tanh_of(x * (g.scale / g.cap));
        x = g.cap * th, slope = 1.f - th * th;
    }
    return exp2_fast(__fmaf_rn(x, c, -lse2));
}

constexpr int BC = 2;                       // computing groups
constexpr int BO = 64 * BC;                 // rows that a tile owns
constexpr int QN = 64;                      // queries of a block that dk and dv meet
constexpr int QSLOTS = HD == 64 ? 6 : 4, KSLOTS = HD == 64 ? 4 : 2;
constexpr int KN = 128;                     // keys of a block that dq meets
constexpr u32 OWN = BO * HD * 2, QTILE = QN * HD * 2, KTILE = KN * HD * 2;
static_assert(QSLOTS * QN * 8 <= STATS_BYTES, "room for lse2 and delta");

// The tiles of dk and dv: early keys are seen by most queries; they come first.
struct KeyTile {
    int b, kvh, u0, i0, n;  // n blocks of queries from block i0 on, for each head
    __device__ __forceinline__ KeyTile(const Geom& g, int tile) {
        const int m = g.batch * g.kv;
        u0 = tile / m * BO, b = tile % m / g.kv, kvh = tile % g.kv;
        int lo, hi;
        g.queries(u0, min(u0 + BO, g.seq) - 1, g.seq, lo, hi);
        i0 = lo / QN, n = (hi + QN - 1) / QN - i0;
    }
};

// attention_dkdv: a tile owns 128 keys of one head of k and v and meets all queries of the
// heads that share it, in order. It works on the transposes: S^T = K Q^T, dP^T = V dY^T,
// dV += P^T dY, dK += dS^T Q.
extern "C" __global__ void __launch_bounds__(128 * (BC + 1), 1) attention_dkdv(Args a) {
    const Geom g(a);
    const Stats st(a, g);
    Scratch* sc = (Scratch*)a.work;
    const u32 base = smem_at(smem), kt = base + TILES_AT, vt = kt + OWN, slots = vt + OWN;
    const int share = g.heads / g.kv;
    init_barriers(base, BC);
    if (threadIdx.x < 128) {
        fewer_registers<HD == 64 ? 40 : 24>();
        if (threadIdx.x != 0) return;
        acquire_map(&sc->q), acquire_map(&sc->k), acquire_map(&sc->v), acquire_map(&sc->dy);
        const int total = (g.seq + BO - 1) / BO * g.batch * g.kv;
        Tiles tiles(base, TILES);
        Ring<QSLOTS> ring;
        int next = next_number(&sc->next[0]);
        for (u32 turn = 0;; turn++) {
            const int tile = next;
            tiles.give(tile < total ? tile : -1);
            if (tile >= total) break;
            next = next_number(&sc->next[0]);
            const KeyTile k(g, tile);
            bar_wait(base + OWN_EMPTY, (turn & 1) ^ 1);
            bar_expect(base + OWN_FULL, 2 * OWN);
            bring<BO>(kt, &sc->k, k.kvh, k.u0, k.b, base + OWN_FULL);
            bring<BO>(vt, &sc->v, k.kvh, k.u0, k.b, base + OWN_FULL);
#pragma unroll 1
            for (int h = k.kvh * share; h < (k.kvh + 1) * share; h++)
#pragma unroll 1
                for (int i = k.i0; i < k.i0 + k.n; i++) {
                    const u32 bar = base + FULL_BAR + 8 * ring.slot, to = slots + ring.slot * 2 * QTILE;
                    const u32 stats = base + STATS_AT + ring.slot * QN * 8;
                    bar_wait(base + EMPTY_BAR + 8 * ring.slot, ring.phase ^ 1);
                    bar_expect(bar, 2 * QTILE + QN * 8);
                    bring<QN>(to, &sc->q, h, i * QN, k.b, bar);
                    bring<QN>(to + QTILE, &sc->dy, h, i * QN, k.b, bar);
                    const i64 stat = ((i64)k.b * g.heads + h) * st.padded + i * QN;
                    copy_bulk(stats, st.lse2 + stat, QN * 4, bar);
                    copy_bulk(stats + QN * 4, st.delta + stat, QN * 4, bar);
                    ring.next();
                }
        }
        return;
    }
    more_registers<HD == 64 ? 232 : 240>();
    const int group = threadIdx.x / 128 - 1, warp = threadIdx.x / 32 % 4, lane = threadIdx.x % 32;
    const float c = g.logit_factor();
    const u32 mine = group * 64 * 128;  // the group's rows in a tile
    Tiles tiles(base, TILES);
    Ring<QSLOTS> ring;
    for (u32 turn = 0;; turn++) {
        const int tile = tiles.take();
        if (tile < 0) break;
        const KeyTile k(g, tile);
        const int total = k.n * share, u = k.u0 + group * 64 + warp * 16 + lane / 4, first = k.u0 + group * 64;
        float dk[HD / 2], dv[HD / 2], s[QN / 2], ds[QN / 2];
        u32 ws[QN / 16][4], wd[QN / 16][4];
        zero(dk);
        zero(dv);
        bar_wait(base + OWN_FULL, turn & 1);
        int last = 0;
#pragma unroll 1
        for (int it = 0, i = k.i0; it < total; it++) {
            // dK of the block before runs beside the new scores.
            const u32 qt = slots + ring.slot * 2 * QTILE, dyt = qt + QTILE;
            if (it > 0) {
                wgmma_fence();
                gather(dk, wd, slots + last * 2 * QTILE);
            }
            wgmma_commit();
            bar_wait(base + FULL_BAR + 8 * ring.slot, ring.phase);
            wgmma_fence();
            scores<BO, QN>(s, kt + mine, qt);
            wgmma_commit();
            wgmma_wait<1>();
            keep(dk);
            keep(wd);
            if (it > 0) leave(base + EMPTY_BAR + 8 * last);
            wgmma_fence();
            scores<BO, QN>(ds, vt + mine, dyt);
            wgmma_commit();
            const u32 stats = base + STATS_AT + ring.slot * QN * 8 + lane % 4 * 8;
            const int t0 = i * QN;
            const bool all = g.all_see(t0, t0 + QN - 1, first, first + 63);
            wgmma_wait<1>();
            keep(s);
            const int t = t0 + lane % 4 * 2;
            if constexpr (CAP) {
#pragma unroll
                for (int x = 0; x < QN / 16; x++) {
                    float slope[8];
#pragma unroll
                    for (int e = 8 * x; e < 8 * x + 8; e++) {
                        const float2 l = shared2(stats + e / 4 * 32);
                        s[e] = weight(g, s[e], c, e % 2 ? l.y : l.x, slope[e % 8]);
                        if (!all && !g.sees(t + e / 4 * 8 + e % 2, u + e / 2 % 2 * 8)) s[e] = 0.f;
                    }
#pragma unroll
                    for (int i = 0; i < 4; i++) ws[x][i] = pack_bf16(s[8 * x + 2 * i], s[8 * x + 2 * i + 1]);
#pragma unroll
                    for (int e = 0; e < 8; e++) s[8 * x + e] *= slope[e];
                }
            } else {
                if (!all) {
#pragma unroll
                    for (int e = 0; e < QN / 2; e++)
                        if (!g.sees(t + e / 4 * 8 + e % 2, u + e / 2 % 2 * 8)) s[e] = -INF;
                }
#pragma unroll
                for (int x = 0; x < QN / 8; x++) {
                    const float2 l = shared2(stats + x * 32);
#pragma unroll
                    for (int e = 0; e < 4; e++) s[4 * x + e] = exp2_fast(__fmaf_rn(s[4 * x + e], c, -(e % 2 ? l.y : l.x)));
                }
                rounded(ws, s);
            }
            wgmma_wait<0>();
            keep(ds);
            wgmma_fence();
            gather(dv, ws, dyt);
            wgmma_commit();
#pragma unroll
            for (int x = 0; x < QN / 8; x++) {
                const float2 d = shared2(stats + QN * 4 + x * 32);
#pragma unroll
                for (int e = 0; e < 4; e++) {
                    float& y = ds[4 * x + e];
                    y = s[4 * x + e] * (y - (e % 2 ? d.y : d.x));  // s: P times the cap's slope
                }
            }
            rounded(wd, ds);
            wgmma_wait<0>();
            keep(dv);
            keep(ws);
            last = ring.slot;
            ring.next();
            if (++i == k.i0 + k.n) i = k.i0;
        }
        leave(base + OWN_EMPTY);
        wgmma_fence();
        gather(dk, wd, slots + last * 2 * QTILE);
        wgmma_commit();
        wgmma_wait<0>();
        keep(dk);
        keep(wd);
        leave(base + EMPTY_BAR + 8 * last);
        const bf16 *add_k = (const bf16*)a.p[10], *add_v = (const bf16*)a.p[11];
#pragma unroll
        for (int r = 0; r < 2; r++) {
            const bool there = u + 8 * r < g.seq;
            const i64 at = (((i64)k.b * g.seq + u + 8 * r) * g.kv + k.kvh) * HD;
            put_row((bf16*)a.p[7] + at, add_k ? add_k + at : add_k, dk, r, g.scale, there);
            put_row((bf16*)a.p[8] + at, add_v ? add_v + at : add_v, dv, r, 1.f, there);
        }
    }
}

// The tiles of dq: late queries see most keys; they come first.
struct QueryTile {
    int b, h, t0, j0, n;
    __device__ __forceinline__ QueryTile(const Geom& g, int tile) {
        const int m = g.batch * g.heads;
        t0 = ((g.seq + BO - 1) / BO - 1 - tile / m) * BO, b = tile % m / g.heads, h = tile % g.heads;
        int lo, hi;
        g.keys(t0, min(t0 + BO, g.seq) - 1, g.seq, lo, hi);
        j0 = lo / KN, n = (hi + KN - 1) / KN - j0;
    }
};

// attention_dq: a tile owns 128 queries of one head and meets all keys that they see:
// S = Q K^T, dP = dY V^T, dQ += dS K.
extern "C" __global__ void __launch_bounds__(128 * (BC + 1), 1) attention_dq(Args a) {
    const Geom g(a);
    const Stats st(a, g);
    Scratch* sc = (Scratch*)a.work;
    const u32 base = smem_at(smem), qt = base + TILES_AT, dyt = qt + OWN, slots = dyt + OWN;
    init_barriers(base, BC);
    if (threadIdx.x < 128) {
        fewer_registers<40>();
        if (threadIdx.x != 0) return;
        acquire_map(&sc->q), acquire_map(&sc->k), acquire_map(&sc->v), acquire_map(&sc->dy);
        const int total = (g.seq + BO - 1) / BO * g.batch * g.heads;
        Tiles tiles(base, TILES);
        Ring<KSLOTS> ring;
        int next = next_number(&sc->next[1]);
        for (u32 turn = 0;; turn++) {
            const int tile = next;
            tiles.give(tile < total ? tile : -1);
            if (tile >= total) break;
            next = next_number(&sc->next[1]);
            const QueryTile q(g, tile);
            const int kvh = q.h / (g.heads / g.kv);
            bar_wait(base + OWN_EMPTY, (turn & 1) ^ 1);
            bar_expect(base + OWN_FULL, 2 * OWN);
            bring<BO>(qt, &sc->q, q.h, q.t0, q.b, base + OWN_FULL);
            bring<BO>(dyt, &sc->dy, q.h, q.t0, q.b, base + OWN_FULL);
#pragma unroll 1
            for (int j = q.j0; j < q.j0 + q.n; j++) {
                const u32 bar = base + FULL_BAR + 8 * ring.slot, to = slots + ring.slot * 2 * KTILE;
                bar_wait(base + EMPTY_BAR + 8 * ring.slot, ring.phase ^ 1);
                bar_expect(bar, 2 * KTILE);
                bring<KN>(to, &sc->k, kvh, j * KN, q.b, bar);
                bring<KN>(to + KTILE, &sc->v, kvh, j * KN, q.b, bar);
                ring.next();
            }
        }
        return;
    }
    more_registers<232>();
    const int group = threadIdx.x / 128 - 1, warp = threadIdx.x / 32 % 4, lane = threadIdx.x % 32;
    const float c = g.logit_factor();
    const u32 mine = group * 64 * 128;
    Tiles tiles(base, TILES);
    Ring<KSLOTS> ring;
    for (u32 turn = 0;; turn++) {
        const int tile = tiles.take();
        if (tile < 0) break;
        const QueryTile q(g, tile);
        const int first = q.t0 + group * 64, t = first + warp * 16 + lane / 4;
        const i64 stat = ((i64)q.b * g.heads + q.h) * st.padded + t;  // the padding covers a tile
        const float lse2[2] = {st.lse2[stat], st.lse2[stat + 8]}, delta[2] = {st.delta[stat], st.delta[stat + 8]};
        float dq[HD / 2], s[KN / 2], ds[KN / 2];
        u32 wd[KN / 16][4];
        zero(dq);
        bar_wait(base + OWN_FULL, turn & 1);
        int last = 0;
#pragma unroll 1
        for (int j = 0; j < q.n; j++) {
            // dQ of the block before runs beside the new scores.
            const u32 kt = slots + ring.slot * 2 * KTILE, vt = kt + KTILE;
            if (j > 0) {
                wgmma_fence();
                gather(dq, wd, slots + last * 2 * KTILE);
            }
            wgmma_commit();
            bar_wait(base + FULL_BAR + 8 * ring.slot, ring.phase);
            wgmma_fence();
            scores<BO, KN>(s, qt + mine, kt);
            wgmma_commit();
            wgmma_wait<1>();
            keep(dq);
            keep(wd);
            if (j > 0) leave(base + EMPTY_BAR + 8 * last);
            wgmma_fence();
            scores<BO, KN>(ds, dyt + mine, vt);
            wgmma_commit();
            const int u0 = (q.j0 + j) * KN;
            const bool all = u0 + KN <= g.seq && g.all_see(first, first + 63, u0, u0 + KN - 1);
            wgmma_wait<1>();
            keep(s);
#pragma unroll
            for (int e = 0; e < KN / 2; e++) {
                float slope = 1.f;
                s[e] = weight(g, s[e], c, lse2[e / 2 % 2], slope);
                if constexpr (CAP) s[e] *= slope;
            }
            if (!all) {
                const int u = u0 + lane % 4 * 2;
#pragma unroll
                for (int e = 0; e < KN / 2; e++) {
                    const int x = u + e / 4 * 8 + e % 2;
                    if (x >= g.seq || !g.sees(t + e / 2 % 2 * 8, x)) s[e] = 0.f;
                }
            }
            wgmma_wait<0>();
            keep(ds);
#pragma unroll
            for (int e = 0; e < KN / 2; e++) ds[e] = s[e] * (ds[e] - delta[e / 2 % 2]);
            rounded(wd, ds);
            last = ring.slot;
            ring.next();
        }
        leave(base + OWN_EMPTY);
        wgmma_fence();
        gather(dq, wd, slots + last * 2 * KTILE);
        wgmma_commit();
        wgmma_wait<0>();
        keep(dq);
        keep(wd);
        leave(base + EMPTY_BAR + 8 * last);
        const bf16* add = (const bf16*)a.p[9];
#pragma unroll
        for (int r = 0; r < 2; r++) {
            const i64 at = (((i64)q.b * g.seq + t + 8 * r) * g.heads + q.h) * HD;
            put_row((bf16*)a.p[6] + at, add ? add + at : add, dq, r, g.scale, t + 8 * r < g.seq);
        }
    }
}
#endif
