// Attention on tensor cores through mma.sync m16n8k16: bf16 operands, f32 sums; heads of a
// multiple of 16 elements, 256 at most. It runs on every GPU from Ampere on; wgmma.cu is the
// faster twin for Hopper.
//
// A warp owns 16 rows of the product S = Q K^T (or of its transpose) and all columns of a
// block. What it gets as accumulators is, rounded to bf16, the left operand of the next
// product, so P and dS never touch shared memory. Rows of tiles in shared memory are padded by
// 16 bytes, which makes an odd number of 16-byte units: ldmatrix then meets no bank twice.
//
// S0: elements of a head. S1: 1 with a soft cap. S2: 1 where documents share rows.
//mtc:spec 64 0
//mtc:spec 128 0
//mtc:spec 128 1
//mtc:spec 256 1
//mtc:spec 64 0 1
//mtc:spec 128 1 1
#define MTC_MMA
#include "mtc.cuh"
#ifndef MTC_F32

constexpr int HD = S0 ? S0 : 64;
constexpr bool CAP = S1 != 0, DOCS = S2 != 0;
constexpr int LD = HD + 8;  // elements of a row in shared memory
constexpr int KS = HD / 16;
constexpr bool WIDE = HD > 128;
constexpr float LOG2E = 1.4426950408889634f, LN2 = 0.6931471805599453f;
#define INF __int_as_float(0x7f800000)

// Geom is the constants of a launch.
struct Geom {
    int batch, seq, pos, heads, kv, window;
    bool causal;
    float cap, scale;
    const int* starts;  // DOCS: of the sequence's positions, where their documents begin; they ascend
    __device__ explicit Geom(const Args& a)
        : batch((int)a.i[0]), seq((int)a.i[1]), pos((int)a.i[2]), heads((int)a.i[3]), kv((int)a.i[4]),
          window((int)imin(a.i[6], 1 << 30)), causal(a.i[7] != 0), cap(a.f[0]), scale(a.f[1]), starts(nullptr) {}
    // documents takes the starts of the sequence whose first row is row.
    __device__ __forceinline__ void documents(const void* of, i64 row) {
        if constexpr (DOCS) starts = (const int*)of + row;
    }
    __device__ __forceinline__ int start(int t) const { return starts[min(t, seq - 1)]; }
    // sees reports whether the query at position t sees key u.
    __device__ __forceinline__ bool sees(int t, int u) const {
        if (causal && u > t) return false;
        if constexpr (DOCS) {
            if (u < start(t)) return false;
        }
        return window == 0 || (t - u < window && u - t < window);
    }
    // all_see reports whether all queries t0..t1 see all keys u0..u1.
    __device__ __forceinline__ bool all_see(int t0, int t1, int u0, int u1) const {
        if (causal && u1 > t0) return false;
        if constexpr (DOCS) {
            if (u0 < start(t1)) return false;
        }
        return window == 0 || (t1 - u0 < window && u1 - t0 < window);
    }
    // keys gives the half-open range of the keys that some query of t0..t1 sees, among n.
    __device__ __forceinline__ void keys(int t0, int t1, int n, int& lo, int& hi) const {
        lo = 0, hi = causal ? min(n, t1 + 1) : n;
        if (window) lo = max(0, t0 - window + 1), hi = min(hi, t1 + window);
        if constexpr (DOCS) lo = max(lo, start(t0));
    }
    // queries gives the half-open range of the queries that see some key of u0..u1, among n.
    __device__ __forceinline__ void queries(int u0, int u1, int n, int& lo, int& hi) const {
        lo = causal ? u0 : 0, hi = n;
        if (window) {
            hi = min(hi, u1 + window);
            if (!causal) lo = max(0, u0 - window + 1);
        }
        if constexpr (DOCS) {  // up to the end of u1's document
            int in = min(u1, hi), past = hi;
            while (in < past) {
                const int mid = (in + past) / 2;
                if (start(mid) > u1) past = mid;
                else in = mid + 1;
            }
            hi = past;
        }
    }
    // logit_factor turns what capped() returns into exponents of 2.
    __device__ __forceinline__ float logit_factor() const { return CAP ? LOG2E : scale * LOG2E; }
};

// tanh_of is exact to about 1e-7, where tanh.approx would move a capped logit by 0.02.
__device__ __forceinline__ float tanh_of(float x) {
    return 1.f - __fdividef(2.f, exp2_fast(2.f * LOG2E * fminf(x, 40.f)) + 1.f);
}

// Rows is a matrix in global memory, [n][stride] from p on.
struct Rows {
    const bf16* p;
    i64 stride;
    int n;
};

// fetch copies rows r0.. of m to a tile of ROWS rows; rows that m lacks become zero.
template <int ROWS, int THREADS> __device__ __forceinline__ void fetch(u32 tile, const Rows& m, int r0) {
    constexpr int UNITS = HD / 8;
    for (int i = threadIdx.x; i < ROWS * UNITS; i += THREADS) {
        int r = i / UNITS, c = i % UNITS;
        bool there = r0 + r < m.n;
        copy16(tile + (r * LD + c * 8) * 2, m.p + (there ? (i64)(r0 + r) * m.stride + c * 8 : 0), there);
    }
}

// left is the address that a lane gives ldmatrix for a 16 x 16 left operand at (row, col) of a
// tile; right for a 16 (columns of the result) x 16 right operand that is stored like the
// left one, transposed; flat for a 16 x 16 (columns) right operand stored as it is.
__device__ __forceinline__ u32 left(u32 tile, int row, int col) {
    int l = threadIdx.x % 32;
    return tile + ((row + l % 16) * LD + col + l / 16 * 8) * 2;
}
__device__ __forceinline__ u32 right(u32 tile, int row, int col) {
    int l = threadIdx.x % 32;
    return tile + ((row + l % 8 + l / 16 * 8) * LD + col + l / 8 % 2 * 8) * 2;
}
__device__ __forceinline__ u32 flat(u32 tile, int row, int col) {
    int l = threadIdx.x % 32;
    return tile + ((row + l % 8 + l / 8 % 2 * 8) * LD + col + l / 16 * 8) * 2;
}

// scores is x[16][8 N] = A B^T over a head's elements: A rows of one tile, B rows of another.
template <int N> __device__ __forceinline__ void scores(float (&x)[N][4], u32 a, int row, u32 b) {
#pragma unroll
    for (int k = 0; k < KS; k++) {
        u32 fa[4];
        ldmatrix(fa, left(a, row, k * 16));
#pragma unroll
        for (int n = 0; n < N; n += 2) {
            u32 fb[4];
            ldmatrix(fb, right(b, n * 8, k * 16));
            mma(x[n], fa, fb[0], fb[1]);
            mma(x[n + 1], fa, fb[2], fb[3]);
        }
    }
}

// gather adds X B to acc: X is 16 x 8 N in registers, rounded here, B the columns from col on
// of a tile of 8 N rows.
template <int N, int M>
__device__ __forceinline__ void gather(float (&acc)[M][4], const float (&x)[N][4], u32 b, int col) {
#pragma unroll
    for (int k = 0; k < N / 2; k++) {
        u32 fa[4] = {pack_bf16(x[2 * k][0], x[2 * k][1]), pack_bf16(x[2 * k][2], x[2 * k][3]),
                     pack_bf16(x[2 * k + 1][0], x[2 * k + 1][1]), pack_bf16(x[2 * k + 1][2], x[2 * k + 1][3])};
#pragma unroll
        for (int n = 0; n < M; n += 2) {
            u32 fb[4];
            ldmatrix_t(fb, flat(b, k * 16, col + n * 8));
            mma(acc[n], fa, fb[0], fb[1]);
            mma(acc[n + 1], fa, fb[2], fb[3]);
        }
    }
}

template <int N> __device__ __forceinline__ void zero(float (&x)[N][4]) {
#pragma unroll
    for (int n = 0; n < N; n++)
#pragma unroll
        for (int e = 0; e < 4; e++) x[n][e] = 0.f;
}

// ---- forward -------------------------------------------------------------------------------

constexpr int FM = WIDE ? 64 : 128;  // queries of a block
constexpr int FN = WIDE ? 32 : 64;   // keys of a block
constexpr int FT = FM * 2;           // threads: a warp for 16 queries
constexpr int FX = FN / 8;

// forward is one block of queries of one head. The queries' rows are q.n rows at positions
// first.., the keys' rows positions 0.. Blocks of keys stand on multiples of FN whatever the
// queries are, and a block of which a row sees nothing does not change the row: a row has the
// same bits in training, prefill and decoding.
__device__ __forceinline__ void forward(const Geom& g, Rows q, Rows k, Rows v, bf16* y, float* lse, i64 lse_stride,
                                        int t0, int first) {
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const u32 base = smem_at(smem);
    constexpr u32 TILE = FN * LD * 2;
    const u32 qtile = WIDE ? base + 4 * TILE : base;
    int lo, hi;
    g.keys(first + t0, first + min(t0 + FM, q.n) - 1, k.n, lo, hi);
    const int j0 = lo / FN, j1 = (hi + FN - 1) / FN;

    fetch<FM, FT>(qtile, q, t0);
    copies_commit();
    u32 fq[WIDE ? 1 : KS][4];
    if constexpr (!WIDE) {
        copies_wait<0>();
        __syncthreads();
#pragma unroll
        for (int kk = 0; kk < KS; kk++) ldmatrix(fq[kk], left(qtile, warp * 16, kk * 16));
        __syncthreads();  // keys and values take the place of the queries
    }
    fetch<FN, FT>(base, k, j0 * FN);
    fetch<FN, FT>(base + TILE, v, j0 * FN);
    copies_commit();

    float o[HD / 8][4];
    zero(o);
    float m[2] = {-INF, -INF}, l[2] = {0.f, 0.f};
    const float c = g.logit_factor();
    const int r0 = first + t0 + warp * 16 + lane / 4;  // positions of the lane's rows: r0, r0 + 8
    for (int j = j0; j < j1; j++) {
        const u32 kt = base + (j - j0) % 2 * 2 * TILE, vt = kt + TILE;
        if (j + 1 < j1) {
            const u32 next = base + (j + 1 - j0) % 2 * 2 * TILE;
            fetch<FN, FT>(next, k, (j + 1) * FN);
            fetch<FN, FT>(next + TILE, v, (j + 1) * FN);
        }
        copies_commit();
        copies_wait<1>();
        __syncthreads();

        float s[FX][4];
        zero(s);
        if constexpr (WIDE) {
            scores(s, qtile, warp * 16, kt);
        } else {
#pragma unroll
            for (int kk = 0; kk < KS; kk++)
#pragma unroll
                for (int n = 0; n < FX; n += 2) {
                    u32 fb[4];
                    ldmatrix(fb, right(kt, n * 8, kk * 16));
                    mma(s[n], fq[kk], fb[0], fb[1]);
                    mma(s[n + 1], fq[kk], fb[2], fb[3]);
                }
        }
        if constexpr (CAP) {
            const float in = g.scale / g.cap;
#pragma unroll
            for (int n = 0; n < FX; n++)
#pragma unroll
                for (int e = 0; e < 4; e++) s[n][e] = g.cap * tanh_of(s[n][e] * in);
        }
        const int u0 = j * FN;
        if (u0 + FN > k.n || !g.all_see(first + t0, first + t0 + FM - 1, u0, u0 + FN - 1)) {
#pragma unroll
            for (int n = 0; n < FX; n++)
#pragma unroll
                for (int e = 0; e < 4; e++) {
                    int u = u0 + n * 8 + lane % 4 * 2 + e % 2;
                    if (u >= k.n || !g.sees(r0 + e / 2 * 8, u)) s[n][e] = -INF;
                }
        }
#pragma unroll
        for (int r = 0; r < 2; r++) {
            float x = m[r];
#pragma unroll
            for (int n = 0; n < FX; n++) x = fmaxf(x, fmaxf(s[n][2 * r], s[n][2 * r + 1]));
            x = fmaxf(x, __shfl_xor_sync(FULL, x, 1));
            x = fmaxf(x, __shfl_xor_sync(FULL, x, 2));
            const float top = x == -INF ? 0.f : x, at = top * c;
            const float alpha = exp2_fast((m[r] - top) * c);  // exactly 1 when the maximum stays
            m[r] = x;
            float sum = 0.f;
#pragma unroll
            for (int n = 0; n < FX; n++)
#pragma unroll
                for (int e = 2 * r; e < 2 * r + 2; e++) {
                    s[n][e] = exp2_fast(__fmaf_rn(s[n][e], c, -at));
                    sum += s[n][e];
                }
            l[r] = __fmaf_rn(l[r], alpha, sum);  // of the lane's columns; added up at the end
#pragma unroll
            for (int n = 0; n < HD / 8; n++) o[n][2 * r] *= alpha, o[n][2 * r + 1] *= alpha;
        }
        gather(o, s, vt, 0);
        __syncthreads();
    }
#pragma unroll
    for (int r = 0; r < 2; r++) {
        l[r] += __shfl_xor_sync(FULL, l[r], 1);
        l[r] += __shfl_xor_sync(FULL, l[r], 2);
        const int t = t0 + warp * 16 + lane / 4 + 8 * r;
        if (t >= q.n) continue;
        const float inv = 1.f / l[r];
        bf16* row = y + (i64)t * q.stride + lane % 4 * 2;
#pragma unroll
        for (int n = 0; n < HD / 8; n++) *(u32*)(row + n * 8) = pack_bf16(o[n][2 * r] * inv, o[n][2 * r + 1] * inv);
        if (lse && lane % 4 == 0) lse[(i64)t * lse_stride] = (m[r] * c + log2f(l[r])) * LN2;
    }
}

extern "C" __global__ void __launch_bounds__(FT) attention_forward(Args a) {
    Geom g(a);
    const int h = blockIdx.x % g.heads, b = blockIdx.x / g.heads;
    const i64 wq = (i64)g.heads * HD, wk = (i64)g.kv * HD, row = (i64)b * g.seq;
    g.documents(a.p[5], row);
    const i64 oq = row * wq + (i64)h * HD, ok = row * wk + (i64)(h / (g.heads / g.kv)) * HD;
    // Late queries see most keys: they come first.
    const int t0 = (gridDim.y - 1 - blockIdx.y) * FM;
    forward(g, {(const bf16*)a.p[0] + oq, wq, g.seq}, {(const bf16*)a.p[1] + ok, wk, g.seq},
            {(const bf16*)a.p[2] + ok, wk, g.seq}, (bf16*)a.p[3] + oq, (float*)a.p[4] + row * g.heads + h, g.heads, t0, 0);
}

// attention_store puts the new rows of k and v into the caches.
extern "C" __global__ void attention_store(Args a) {
    const Geom g(a);
    const i64 wk = (i64)g.kv * HD, n = (i64)g.batch * g.seq * wk / 8;
    const i64 at = g.pos * wk / 8;
    for (i64 i = thread_id(); i < n; i += num_threads()) {
        ((uint4*)a.p[3])[at + i] = ((const uint4*)a.p[1])[i];
        ((uint4*)a.p[4])[at + i] = ((const uint4*)a.p[2])[i];
    }
}

extern "C" __global__ void __launch_bounds__(FT) attention_cached(Args a) {
    const Geom g(a);
    const int h = blockIdx.x, n = g.batch * g.seq;
    const i64 wq = (i64)g.heads * HD, wk = (i64)g.kv * HD;
    const i64 ok = (i64)(h / (g.heads / g.kv)) * HD;
    forward(g, {(const bf16*)a.p[0] + (i64)h * HD, wq, n}, {(const bf16*)a.p[3] + ok, wk, g.pos + n},
            {(const bf16*)a.p[4] + ok, wk, g.pos + n}, (bf16*)a.p[5] + (i64)h * HD, nullptr, 0, blockIdx.y * FM, g.pos);
}

// ---- backward ------------------------------------------------------------------------------

constexpr int BO = 64;               // rows that a block owns: a warp for 16
constexpr int BS = 32;               // rows of a block that it streams
constexpr int BT = BO * 2;           // threads
constexpr int BX = BS / 8;
constexpr int STAGES = WIDE ? 1 : 2;
constexpr int OUT = WIDE ? (HD + 31) / 32 * 16 : HD;  // columns of dk and dv that a block makes

// Stats is the scratch of backward: the rows' lse * log2(e), then their delta, each
// [B][H][padded T]. The padding holds rows that nothing sees.
struct Stats {
    float *lse2, *delta;
    int padded;
    __device__ Stats(const Args& a, const Geom& g) {
        padded = (g.seq + 127) / 128 * 128;
        lse2 = (float*)a.work;
        delta = lse2 + (i64)g.batch * g.heads * padded;
    }
};

// attention_stats: delta = rowsum(dy * y), by groups of lanes that read 16 bytes each.
extern "C" __global__ void __launch_bounds__(256) attention_stats(Args a) {
    const Geom g(a);
    const Stats st(a, g);
    constexpr int UNITS = HD / 8, LANES = UNITS <= 2 ? 2 : UNITS <= 4 ? 4 : UNITS <= 8 ? 8 : UNITS <= 16 ? 16 : 32;
    const i64 i = thread_id() / LANES, rows = (i64)g.batch * st.padded * g.heads;
    const int lane = threadIdx.x % LANES;
    const int h = (int)(i % g.heads);
    const i64 bt = i / g.heads;
    const int t = (int)(bt % st.padded), b = (int)(bt / st.padded);
    const bool there = i < rows && t < g.seq;
    float sum = 0.f;
    const i64 row = (i64)b * g.seq + t;
    if (there && lane < UNITS) {
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
}

// weigh turns scores x and dP into P (in x) and dS / scale (in d).
__device__ __forceinline__ void weigh(const Geom& g, float& x, float& d, float c, float lse2, float delta, bool seen) {
    float slope = 1.f;
    if constexpr (CAP) {
        const float th = tanh_of(x * (g.scale / g.cap));
        x = g.cap * th, slope = 1.f - th * th;
    }
    x = seen ? exp2_fast(__fmaf_rn(x, c, -lse2)) : 0.f;
    d = x * (d - delta);
    if constexpr (CAP) d *= slope;
}

// put stores two elements of a gradient, with what is added to it.
__device__ __forceinline__ void put(bf16* to, const bf16* add, i64 at, float x, float y) {
    if (add) {
        const u32 w = *(const u32*)(add + at);
        x += bf16_lo(w), y += bf16_hi(w);
    }
    *(u32*)(to + at) = pack_bf16(x, y);
}

// attention_dkdv: a block owns 64 keys of one head of k and v and meets all queries of the
// heads that share it, in order. It works on the transposes: S^T = K Q^T, dP^T = V dY^T,
// dV += P^T dY, dK += dS^T Q. Heads of more than 128 elements are made in two halves (z).
extern "C" __global__ void __launch_bounds__(BT) attention_dkdv(Args a) {
    Geom g(a);
    const Stats st(a, g);
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int kvh = blockIdx.x % g.kv, b = blockIdx.x / g.kv, group = g.heads / g.kv;
    const int u0 = blockIdx.y * BO;
    const i64 wq = (i64)g.heads * HD, wk = (i64)g.kv * HD, row = (i64)b * g.seq;
    const i64 ok = row * wk + (i64)kvh * HD, oq = row * wq + (i64)kvh * group * HD;
    g.documents(a.p[12], row);
    const int col = blockIdx.z ? HD - OUT : 0, skip = blockIdx.z ? 2 * OUT - HD : 0;

    constexpr u32 OWN = BO * LD * 2, TILE = BS * LD * 2;
    const u32 kt = smem_at(smem), vt = kt + OWN, stages = vt + OWN;
    const Rows k{(const bf16*)a.p[1] + ok, wk, g.seq}, v{(const bf16*)a.p[2] + ok, wk, g.seq};
    const bf16 *qp = (const bf16*)a.p[0] + oq, *dyp = (const bf16*)a.p[5] + oq;
    fetch<BO, BT>(kt, k, u0);
    fetch<BO, BT>(vt, v, u0);

    int lo, hi;
    g.queries(u0, min(u0 + BO, g.seq) - 1, g.seq, lo, hi);
    const int i0 = lo / BS, n = (hi + BS - 1) / BS - i0, total = n * group;
    auto get = [&](int it) {
        const int h = it / n, t = (i0 + it % n) * BS;
        const u32 to = stages + it % STAGES * 2 * TILE;
        fetch<BS, BT>(to, {qp + (i64)h * HD, wq, g.seq}, t);
        fetch<BS, BT>(to + TILE, {dyp + (i64)h * HD, wq, g.seq}, t);
    };
    if (STAGES == 2 && total > 0) get(0);
    copies_commit();

    float dk[OUT / 8][4], dv[OUT / 8][4];
    zero(dk);
    zero(dv);
    const float c = g.logit_factor();
    const int r0 = u0 + warp * 16 + lane / 4;
    for (int it = 0; it < total; it++) {
        if constexpr (STAGES == 2) {
            if (it + 1 < total) get(it + 1);
            copies_commit();
            copies_wait<1>();
        } else {
            get(it);
            copies_commit();
            copies_wait<0>();
        }
        const int t0 = (i0 + it % n) * BS;
        const i64 stat = ((i64)b * g.heads + kvh * group + it / n) * st.padded + t0 + lane % 4 * 2;
        float lse2[BX][2], delta[BX][2];
#pragma unroll
        for (int x = 0; x < BX; x++) {
            const float2 p = *(const float2*)(st.lse2 + stat + x * 8), d = *(const float2*)(st.delta + stat + x * 8);
            lse2[x][0] = p.x, lse2[x][1] = p.y, delta[x][0] = d.x, delta[x][1] = d.y;
        }
        __syncthreads();
        const u32 qt = stages + it % STAGES * 2 * TILE, dyt = qt + TILE;
        float s[BX][4], ds[BX][4];
        zero(s);
        zero(ds);
        scores(s, kt, warp * 16, qt);
        scores(ds, vt, warp * 16, dyt);
        const bool all = g.all_see(t0, t0 + BS - 1, u0, u0 + BO - 1);
#pragma unroll
        for (int x = 0; x < BX; x++)
#pragma unroll
            for (int e = 0; e < 4; e++) {
                const int t = t0 + x * 8 + lane % 4 * 2 + e % 2;
                weigh(g, s[x][e], ds[x][e], c, lse2[x][e % 2], delta[x][e % 2], all || g.sees(t, r0 + e / 2 * 8));
            }
        gather(dv, s, dyt, col);
        gather(dk, ds, qt, col);
        __syncthreads();
    }
    copies_wait<0>();
#pragma unroll
    for (int r = 0; r < 2; r++) {
        const int u = r0 + 8 * r;
        if (u >= g.seq) continue;
        const i64 at = ok + (i64)u * wk + col + lane % 4 * 2;
#pragma unroll
        for (int x = 0; x < OUT / 8; x++) {
            if (x * 8 < skip) continue;
            put((bf16*)a.p[7], (const bf16*)a.p[10], at + x * 8, dk[x][2 * r] * g.scale, dk[x][2 * r + 1] * g.scale);
            put((bf16*)a.p[8], (const bf16*)a.p[11], at + x * 8, dv[x][2 * r], dv[x][2 * r + 1]);
        }
    }
}

// attention_dq: a block owns 64 queries of one head and meets all keys that they see:
// S = Q K^T, dP = dY V^T, dQ += dS K.
extern "C" __global__ void __launch_bounds__(BT) attention_dq(Args a) {
    Geom g(a);
    const Stats st(a, g);
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int h = blockIdx.x % g.heads, b = blockIdx.x / g.heads;
    const int t0 = (gridDim.y - 1 - blockIdx.y) * BO;
    const i64 wq = (i64)g.heads * HD, wk = (i64)g.kv * HD, row = (i64)b * g.seq;
    const i64 oq = row * wq + (i64)h * HD, ok = row * wk + (i64)(h / (g.heads / g.kv)) * HD;
    g.documents(a.p[12], row);

    constexpr u32 OWN = BO * LD * 2, TILE = BS * LD * 2;
    const u32 qt = smem_at(smem), dyt = qt + OWN, stages = dyt + OWN;
    const Rows k{(const bf16*)a.p[1] + ok, wk, g.seq}, v{(const bf16*)a.p[2] + ok, wk, g.seq};
    fetch<BO, BT>(qt, {(const bf16*)a.p[0] + oq, wq, g.seq}, t0);
    fetch<BO, BT>(dyt, {(const bf16*)a.p[5] + oq, wq, g.seq}, t0);

    int lo, hi;
    g.keys(t0, min(t0 + BO, g.seq) - 1, g.seq, lo, hi);
    const int j0 = lo / BS, total = (hi + BS - 1) / BS - j0;
    auto get = [&](int it) {
        const u32 to = stages + it % STAGES * 2 * TILE;
        fetch<BS, BT>(to, k, (j0 + it) * BS);
        fetch<BS, BT>(to + TILE, v, (j0 + it) * BS);
    };
    if (STAGES == 2) get(0);
    copies_commit();

    float dq[HD / 8][4];
    zero(dq);
    const float c = g.logit_factor();
    const int r0 = t0 + warp * 16 + lane / 4;
    const i64 stat = ((i64)b * g.heads + h) * st.padded + r0;  // the padding covers a block
    const float lse2[2] = {st.lse2[stat], st.lse2[stat + 8]}, delta[2] = {st.delta[stat], st.delta[stat + 8]};
    for (int it = 0; it < total; it++) {
        if constexpr (STAGES == 2) {
            if (it + 1 < total) get(it + 1);
            copies_commit();
            copies_wait<1>();
        } else {
            get(it);
            copies_commit();
            copies_wait<0>();
        }
        __syncthreads();
        const u32 kt = stages + it % STAGES * 2 * TILE, vt = kt + TILE;
        const int u0 = (j0 + it) * BS;
        float s[BX][4], ds[BX][4];
        zero(s);
        zero(ds);
        scores(s, qt, warp * 16, kt);
        scores(ds, dyt, warp * 16, vt);
        const bool all = u0 + BS <= g.seq && g.all_see(t0, t0 + BO - 1, u0, u0 + BS - 1);
#pragma unroll
        for (int x = 0; x < BX; x++)
#pragma unroll
            for (int e = 0; e < 4; e++) {
                const int u = u0 + x * 8 + lane % 4 * 2 + e % 2;
                weigh(g, s[x][e], ds[x][e], c, lse2[e / 2], delta[e / 2], all || (u < g.seq && g.sees(r0 + e / 2 * 8, u)));
            }
        gather(dq, ds, kt, 0);
        __syncthreads();
    }
#pragma unroll
    for (int r = 0; r < 2; r++) {
        const int t = r0 + 8 * r;
        if (t >= g.seq) continue;
        const i64 at = oq + (i64)t * wq + lane % 4 * 2;
#pragma unroll
        for (int x = 0; x < HD / 8; x++)
            put((bf16*)a.p[6], (const bf16*)a.p[9], at + x * 8, dq[x][2 * r] * g.scale, dq[x][2 * r + 1] * g.scale);
    }
}
#endif
