// Grouped matrix products in f32 arithmetic, for programs in f32 and for widths that the tensor
// cores do not take. wgmma.cu says what is computed of which arguments.
//
// A block makes a tile of 64 x 64, a thread 4 x 4 of it, over stages of 16 terms, which are added
// in ascending order. grid: as mma.cu's, with tiles of 64.
#include "mtc.cuh"

constexpr int TILE = 64, BK = 16;

enum Kind { FORWARD, INPUT, WEIGHT };

// Geom is the arguments of a launch, as launch.go orders them.
struct Geom {
    const act_t *left, *right, *add;
    void* out;
    const int* first;
    i64 rows;
    int n, k, experts;
    __device__ Geom(const Args& a, Kind kind) : rows(a.i[0] * a.i[4]), n((int)a.i[2]), k((int)a.i[1]), experts((int)a.i[3]) {
        const bool f = kind == FORWARD;
        left = (const act_t*)a.p[f ? 0 : 2], right = (const act_t*)a.p[f ? 1 : 0], first = (const int*)a.p[f ? 2 : 1];
        add = (const act_t*)a.p[f ? 4 : 3], out = a.p[f ? 3 : 4];  // forward: a bias for each expert
    }
    __device__ __forceinline__ int count(int e) const { return first[e + 1] - first[e]; }
};

// Tile of rows of one expert.
struct Rows {
    int e, at, end;
};

// rows_of gives the i-th tile of rows, or none (e < 0).
__device__ __forceinline__ Rows rows_of(const int* first, int experts, int i) {
    for (int e = 0; e < experts; e++) {
        const int n = first[e + 1] - first[e], t = (n + TILE - 1) / TILE;
        if (i < t) return {e, first[e] + i * TILE, first[e + 1]};
        i -= t;
    }
    return {-1, 0, 0};
}

// product sums left(m, k) * right(n, k) over the terms k0 to kend.
template <class L, class R> __device__ __forceinline__ void product(float (&acc)[4][4], i64 k0, i64 kend, L left, R right) {
    __shared__ float x[BK][TILE + 4], y[BK][TILE + 4];
    const int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
#pragma unroll
    for (int i = 0; i < 16; i++) acc[i / 4][i % 4] = 0.f;
    for (i64 k = k0; k < kend; k += BK) {
        for (int i = threadIdx.x; i < BK * TILE; i += 256) {
            const int at = i % TILE, l = i / TILE;
            x[l][at] = k + l < kend ? left(at, k + l) : 0.f;
            y[l][at] = k + l < kend ? right(at, k + l) : 0.f;
        }
        __syncthreads();
#pragma unroll
        for (int l = 0; l < BK; l++)
#pragma unroll
            for (int i = 0; i < 4; i++)
#pragma unroll
                for (int j = 0; j < 4; j++) acc[i][j] = __fmaf_rn(x[l][ty * 4 + i], y[l][tx * 4 + j], acc[i][j]);
        __syncthreads();
    }
}

// each calls f(row, column, sum) for the thread's results in the tile.
template <class F> __device__ __forceinline__ void each(const float (&acc)[4][4], F f) {
#pragma unroll
    for (int i = 0; i < 16; i++) f((int)threadIdx.x / 16 * 4 + i / 4, (int)threadIdx.x % 16 * 4 + i % 4, acc[i / 4][i % 4]);
}

template <Kind KIND> __device__ __forceinline__ void by_rows(const Args& a) {
    const Geom g(a, KIND);
    const Rows t = rows_of(g.first, g.experts, (int)(blockIdx.z * gridDim.y + blockIdx.y));
    if (t.e < 0) return;
    const i64 N = g.n, K = g.k, terms = KIND == FORWARD ? K : N, width = KIND == FORWARD ? N : K, c0 = (i64)blockIdx.x * TILE;
    const act_t *x = g.left, *w = g.right + t.e * N * K;
    float acc[4][4];
    product(
        acc, 0, terms, [&](int m, i64 k) { return t.at + m < t.end ? to_f(x[(t.at + m) * terms + k]) : 0.f; },
        [&](int n, i64 k) { return c0 + n < width ? to_f(w[KIND == FORWARD ? (c0 + n) * K + k : k * K + c0 + n]) : 0.f; });
    each(acc, [&](int m, int n, float v) {
        const i64 at = (t.at + m) * width + c0 + n;
        if (t.at + m < t.end && c0 + n < width) ((act_t*)g.out)[at] = from_f<act_t>(plus(g.add, KIND == FORWARD ? t.e * N + c0 + n : at, v));
    });
}

extern "C" __global__ void __launch_bounds__(256) grouped_forward(Args a) { by_rows<FORWARD>(a); }

extern "C" __global__ void __launch_bounds__(256) grouped_input(Args a) { by_rows<INPUT>(a); }

extern "C" __global__ void __launch_bounds__(256) grouped_weight(Args a) {
    const Geom g(a, WEIGHT);
    const i64 N = g.n, K = g.k, k0 = (i64)blockIdx.x * TILE, n0 = (i64)blockIdx.y * TILE, e = blockIdx.z;
    const act_t *dy = g.left, *x = g.right;
    float acc[4][4];
    product(
        acc, g.first[e], g.first[e + 1], [&](int n, i64 r) { return n0 + n < N ? to_f(dy[r * N + n0 + n]) : 0.f; },
        [&](int k, i64 r) { return k0 + k < K ? to_f(x[r * K + k0 + k]) : 0.f; });
    each(acc, [&](int n, int k, float v) {
        const i64 at = (e * N + n0 + n) * K + k0 + k;
        if (n0 + n < N && k0 + k < K) ((float*)g.out)[at] = plus((const float*)g.add, at, v);
    });
}
