// Grouped matrix products on tensor cores through mma.sync m16n8k16: bf16 operands, f32 sums; N
// and K multiples of 8. It runs on every GPU from Ampere on; wgmma.cu, which says what
// is computed of which arguments, is the faster twin for Hopper.
//
// A block makes a tile of 128 x 128 with eight warps of 64 x 32, over stages of 32 terms that
// come in the background. grid: x tiles of columns; y tiles of rows, rows / 128 + E at most
// (forward, input; in layers of z where there are more than a grid takes), or of weights' rows, with z
// the expert (weight).
#define MTC_MMA
#include "mtc.cuh"
#ifndef MTC_F32

constexpr int TILE = 128, BK = 32, STAGES = 3;
constexpr int LD_K = BK + 8, LD_MN = TILE + 8;  // elements of a row in shared memory: an odd number of 16-byte units
constexpr u32 OPERAND = TILE * LD_K * 2, STAGE = 2 * OPERAND;

enum Kind { FORWARD, INPUT, WEIGHT };

// Geom is the arguments of a launch, as launch.go orders them.
struct Geom {
    const bf16 *left, *right, *add;
    void* out;
    const int* first;
    i64 rows;
    int n, k, experts;
    __device__ Geom(const Args& a, Kind kind) : rows(a.i[0] * a.i[4]), n((int)a.i[2]), k((int)a.i[1]), experts((int)a.i[3]) {
        const bool f = kind == FORWARD;
        left = (const bf16*)a.p[f ? 0 : 2], right = (const bf16*)a.p[f ? 1 : 0], first = (const int*)a.p[f ? 2 : 1];
        add = (const bf16*)a.p[f ? 4 : 3], out = a.p[f ? 3 : 4];  // forward: a bias for each expert
    }
    __device__ __forceinline__ int count(int e) const { return first[e + 1] - first[e]; }
};

// Tile of rows of one expert.
struct Rows {
    int e, at, end;
};

// rows_of gives the i-th tile of 128 rows, or none (e < 0).
__device__ __forceinline__ Rows rows_of(const int* first, int experts, int i) {
    for (int e = 0; e < experts; e++) {
        const int n = first[e + 1] - first[e], t = (n + TILE - 1) / TILE;
        if (i < t) return {e, first[e] + i * TILE, first[e + 1]};
        i -= t;
    }
    return {-1, 0, 0};
}

// Operand is a matrix in memory: rows of width elements; a tile of it starts at (row, col).
struct Operand {
    const bf16* p;
    i64 width;
    int row, col, rows;  // rows: what lies behind is zero
};

// bring starts copying a tile of R rows, C elements wide, to rows of LD elements.
template <int R, int C, int LD> __device__ __forceinline__ void bring(u32 to, const Operand& o, int row, int col) {
#pragma unroll
    for (int i = threadIdx.x; i < R * C / 8; i += 256) {
        const int r = i / (C / 8), c = i % (C / 8) * 8;
        const bool there = row + r < o.rows && col + c < o.width;
        copy16(to + (r * LD + c) * 2, there ? o.p + (row + r) * o.width + col + c : o.p, there);
    }
}

// product sums over terms k0 to kend. TA: the left operand is stored with terms as its rows; TB: the
// right one is.
template <bool TA, bool TB> __device__ __forceinline__ void product(float (&acc)[4][4][4], const Operand& a, const Operand& b, int k0, int kend) {
    const u32 base = smem_at(smem);
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, m0 = warp / 4 * 64, n0 = warp % 4 * 32;
#pragma unroll
    for (int i = 0; i < 64; i++) acc[i / 16][i / 4 % 4][i % 4] = 0.f;
    const int steps = (kend - k0 + BK - 1) / BK;
    auto start = [&](int i) {
        if (i < steps) {
            const u32 to = base + i % STAGES * STAGE;
            const int k = k0 + i * BK;
            if (TA) bring<BK, TILE, LD_MN>(to, a, k, a.col);
            else bring<TILE, BK, LD_K>(to, a, a.row, k);
            if (TB) bring<BK, TILE, LD_MN>(to + OPERAND, b, k, b.col);
            else bring<TILE, BK, LD_K>(to + OPERAND, b, b.row, k);
        }
        copies_commit();
    };
    for (int i = 0; i < STAGES - 1; i++) start(i);
#pragma unroll 1
    for (int i = 0; i < steps; i++) {
        copies_wait<STAGES - 2>();
        __syncthreads();
        start(i + STAGES - 1);
        const u32 at = base + i % STAGES * STAGE, bt = at + OPERAND;
#pragma unroll
        for (int k = 0; k < BK; k += 16) {
            u32 x[4][4], y[2][4];
#pragma unroll
            for (int j = 0; j < 4; j++) {
                const int m = m0 + 16 * j;
                if (TA) ldmatrix_t(x[j], at + ((k + lane / 16 * 8 + lane % 8) * LD_MN + m + lane / 8 % 2 * 8) * 2);
                else ldmatrix(x[j], at + ((m + lane % 16) * LD_K + k + lane / 16 * 8) * 2);
            }
#pragma unroll
            for (int j = 0; j < 2; j++) {
                const int n = n0 + 16 * j;
                if (TB) ldmatrix_t(y[j], bt + ((k + lane / 8 % 2 * 8 + lane % 8) * LD_MN + n + lane / 16 * 8) * 2);
                else ldmatrix(y[j], bt + ((n + lane / 16 * 8 + lane % 8) * LD_K + k + lane / 8 % 2 * 8) * 2);
            }
#pragma unroll
            for (int j = 0; j < 4; j++)
#pragma unroll
                for (int n = 0; n < 4; n++) mma(acc[j][n], x[j], y[n / 2][n % 2 * 2], y[n / 2][n % 2 * 2 + 1]);
        }
    }
    copies_wait<0>();
}

// each calls f(row, column, two sums) for the lane's results in the tile.
template <class F> __device__ __forceinline__ void each(const float (&acc)[4][4][4], F f) {
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int m0 = warp / 4 * 64 + lane / 4, n0 = warp % 4 * 32 + lane % 4 * 2;
#pragma unroll
    for (int j = 0; j < 4; j++)
#pragma unroll
        for (int r = 0; r < 2; r++)
#pragma unroll
            for (int n = 0; n < 4; n++) f(m0 + 16 * j + 8 * r, n0 + 8 * n, acc[j][n][2 * r], acc[j][n][2 * r + 1]);
}

template <Kind KIND> __device__ __forceinline__ void by_rows(const Args& a) {
    const Geom g(a, KIND);
    const Rows t = rows_of(g.first, g.experts, (int)(blockIdx.z * gridDim.y + blockIdx.y));
    if (t.e < 0) return;
    const i64 terms = KIND == FORWARD ? g.k : g.n, width = KIND == FORWARD ? g.n : g.k;
    const int n0 = blockIdx.x * TILE;
    float acc[4][4][4];
    product<false, KIND == INPUT>(acc, {g.left, terms, t.at, 0, t.end}, {g.right + (i64)t.e * g.n * g.k, g.k, n0, n0, g.n}, 0, (int)terms);
    each(acc, [&](int m, int n, float lo, float hi) {
        if (t.at + m >= t.end || n0 + n >= width) return;
        const i64 at = (t.at + m) * width + n0 + n;
        if (g.add) {
            const u32 w = *(const u32*)(g.add + (KIND == FORWARD ? t.e * width + n0 + n : at));
            lo += bf16_lo(w), hi += bf16_hi(w);
        }
        *(u32*)((bf16*)g.out + at) = pack_bf16(lo, hi);
    });
}

extern "C" __global__ void __launch_bounds__(256) grouped_forward(Args a) { by_rows<FORWARD>(a); }

extern "C" __global__ void __launch_bounds__(256) grouped_input(Args a) { by_rows<INPUT>(a); }

extern "C" __global__ void __launch_bounds__(256) grouped_weight(Args a) {
    const Geom g(a, WEIGHT);
    const int e = blockIdx.z, m0 = blockIdx.y * TILE, k0 = blockIdx.x * TILE, end = g.first[e + 1];
    float acc[4][4][4];
    product<true, true>(acc, {g.left, g.n, 0, m0, end}, {g.right, g.k, 0, k0, end}, g.first[e], end);
    float* to = (float*)g.out;
    const float* add = (const float*)g.add;
    each(acc, [&](int m, int n, float lo, float hi) {
        if (m0 + m >= g.n || k0 + n >= g.k) return;
        const i64 at = ((i64)e * g.n + m0 + m) * g.k + k0 + n;
        if (add) lo += add[at], hi += add[at + 1];
        *(float2*)(to + at) = float2{lo, hi};
    });
}
#endif
