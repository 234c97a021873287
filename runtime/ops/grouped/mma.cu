// Grouped matrix products on tensor cores through mma.sync m16n8k16: bf16 operands, f32 sums; N
// and K multiples of 8. It runs on every GPU from Ampere on; wgmma.cu, which says what
// is computed of which arguments, is the faster twin for Hopper.
//
// A block makes a tile of 128 x 128 with eight warps of 64 x 32, over stages of 32 terms that
// come in the background. grid: x tiles of columns; y tiles of rows, rows / 128 + E at most
// (forward, input), or of weights' rows, with z the expert (weight).
#define MTC_MMA
#include "mtc.cuh"
#ifndef MTC_F32

constexpr int TILE = 128, BK = 32, STAGES = 3;
constexpr int LD_K = BK + 8, LD_MN = TILE + 8;  // elements of a row in shared memory: an odd number of 16-byte units
constexpr u32 OPERAND = TILE * LD_K * 2, STAGE = 2 * OPERAND, BYTES = STAGES * STAGE;

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

template <bool TB> __device__ __forceinline__ void by_rows(const Args& a, i64 terms, i64 width) {
    const int* first = (const int*)a.p[4];
    const Rows t = rows_of(first, (int)a.i[3], blockIdx.y);
    if (t.e < 0) return;
    const int n0 = blockIdx.x * TILE;
    const bf16* w = (const bf16*)a.p[1] + t.e * a.i[1] * a.i[2];
    float acc[4][4][4];
    product<false, TB>(acc, {(const bf16*)a.p[0], terms, t.at, 0, t.end}, {w, a.i[2], n0, n0, (int)a.i[1]}, 0, (int)terms);
    bf16* to = (bf16*)a.p[2];
    const bf16* add = (const bf16*)a.p[3];
    each(acc, [&](int m, int n, float lo, float hi) {
        if (t.at + m >= t.end || n0 + n >= width) return;
        const i64 at = (t.at + m) * width + n0 + n;
        if (add) {
            const u32 w = *(const u32*)(add + at);
            lo += bf16_lo(w), hi += bf16_hi(w);
        }
        *(u32*)(to + at) = pack_bf16(lo, hi);
    });
}

extern "C" __global__ void __launch_bounds__(256) grouped_forward(Args a) { by_rows<false>(a, a.i[2], a.i[1]); }

extern "C" __global__ void __launch_bounds__(256) grouped_input(Args a) { by_rows<true>(a, a.i[1], a.i[2]); }

extern "C" __global__ void __launch_bounds__(256) grouped_weight(Args a) {
    const int* first = (const int*)a.p[4];
    const int e = blockIdx.z, m0 = blockIdx.y * TILE, k0 = blockIdx.x * TILE, end = first[e + 1];
    float acc[4][4][4];
    product<true, true>(acc, {(const bf16*)a.p[0], a.i[1], 0, m0, end}, {(const bf16*)a.p[1], a.i[2], 0, k0, end}, first[e], end);
    float* to = (float*)a.p[2];
    const float* add = (const float*)a.p[3];
    each(acc, [&](int m, int n, float lo, float hi) {
        if (m0 + m >= a.i[1] || k0 + n >= a.i[2]) return;
        const i64 at = (e * a.i[1] + m0 + m) * a.i[2] + k0 + n;
        if (add) lo += add[at], hi += add[at + 1];
        *(float2*)(to + at) = float2{lo, hi};
    });
}
#endif
