// Grouped matrix products on Hopper's tensor cores. Rows of a matrix belong to experts, those of
// one expert side by side; each expert has weights of its own. bf16 operands, f32 sums.
//
//   grouped_forward   Y[r, n]     = bias[e][n] + sum over k of X[r, k] W[e][n, k]
//   grouped_input     DX[r, k]    = add + sum over n of DY[r, n] W[e][n, k]
//   grouped_weight    DW[e][n, k] = add + sum over e's rows r of DY[r, n] X[r, k], in f32
//
// first [E + 1] (i32) is the head of a routing: expert e has the rows first[e] to first[e + 1]. What
// is behind first[E] is neither read into a result nor written. N and K are multiples of 8.
//
// A block is one group of four warps that only starts copies, and two that compute 64 rows of a
// tile of 128 x 256 each, over stages of 64 terms. Blocks stay and take tiles by a counter; which
// block makes a tile does not change it. Every result is a sum in one fixed order, whatever the
// number of rows. Tiles of weight gradients start with the expert that has most rows.
#define MTC_HOPPER
#include "mtc.cuh"
#if !defined(MTC_F32) && (defined(__CUDA_ARCH_FEAT_SM90_ALL) || defined(MTC_EMU))

constexpr int BM = 128, BN = 256, BK = 64, SLOTS = 4, GROUPS = 2;
constexpr int BOX = 64 * 64 * 2;  // bytes of a box: 64 rows, 64 elements wide
constexpr u32 A_BYTES = 2 * BOX, B_BYTES = 4 * BOX, SLOT = A_BYTES + B_BYTES;
constexpr u32 FULL_AT = 0, EMPTY_AT = 64, TILES = 128, SLOTS_AT = 1024;
constexpr int MAX_EXPERTS = 1024;

// Scratch lies at the head of a.work.
struct Scratch {
    Map a, b;
    int next, pad[31];
    int tiles[MAX_EXPERTS + 1];  // row tiles of the experts before e
    int order[MAX_EXPERTS];      // experts, most rows first
};

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

// prepare writes the maps, the counter, and how tiles are numbered; one block of 256 threads.
template <Kind KIND> __device__ __forceinline__ void prepare(const Args& a) {
    const Geom g(a, KIND);
    Scratch* s = (Scratch*)a.work;
    if (threadIdx.x < 32) {
        const u32 room = smem_at(smem);
        make_map(&s->a, room, g.left, KIND == FORWARD ? g.k : g.n, 1, g.rows, 1);
        if (KIND == WEIGHT) make_map(&s->b, room, g.right, g.k, 1, g.rows, 1);
        else make_map(&s->b, room, g.right, g.k, 1, g.n, g.experts);
    }
    if (threadIdx.x == 32) {
        s->next = 0;
        int sum = 0;
        for (int e = 0; e < g.experts; e++) s->tiles[e] = sum, sum += (g.count(e) + BM - 1) / BM;
        s->tiles[g.experts] = sum;
    }
    for (int e = threadIdx.x; e < g.experts; e += blockDim.x) {
        const int mine = g.count(e);
        int rank = 0;
        for (int o = 0; o < g.experts; o++) rank += g.count(o) > mine || (g.count(o) == mine && o < e);
        s->order[rank] = e;
    }
}

// Tile is where a tile lies: m and n in the result, and what is summed over.
struct Tile {
    int e, m, n, end;  // end: of the rows (forward, input)
    int k, steps;      // first term, and how many stages of 64
    int kend;          // end of the terms
};

template <Kind KIND> struct Problem {
    const Geom g;
    const Scratch* s;
    int mt, nt;
    __device__ explicit Problem(const Args& a) : g(a, KIND), s((const Scratch*)a.work) {
        const int out = KIND == FORWARD ? g.n : g.k;
        nt = (out + BN - 1) / BN, mt = (g.n + BM - 1) / BM;
    }
    __device__ __forceinline__ int total() const { return nt * (KIND == WEIGHT ? g.experts * mt : s->tiles[g.experts]); }
    __device__ __forceinline__ Tile at(int i) const {
        Tile t;
        t.n = i % nt * BN, i /= nt;
        if (KIND == WEIGHT) {
            t.e = s->order[i / mt], t.m = i % mt * BM, t.end = g.n;
            t.k = g.first[t.e], t.kend = g.first[t.e + 1];
        } else {
            int lo = 0, hi = g.experts - 1;  // the last expert that starts at or before tile i
            while (lo < hi) {
                const int mid = (lo + hi + 1) / 2;
                if (s->tiles[mid] <= i) lo = mid;
                else hi = mid - 1;
            }
            t.e = lo, t.m = g.first[lo] + (i - s->tiles[lo]) * BM, t.end = g.first[lo + 1];
            t.k = 0, t.kend = KIND == FORWARD ? g.k : g.n;
        }
        t.steps = (t.kend - t.k + BK - 1) / BK;
        return t;
    }
};

template <Kind KIND> __device__ __forceinline__ void copies(const Args& a, u32 base) {
    Scratch* s = (Scratch*)a.work;
    acquire_map(&s->a), acquire_map(&s->b);
    const Problem<KIND> p(a);
    const int total = p.total();
    Tiles tiles(base, TILES);
    Ring<SLOTS> ring;
    int next = next_number(&s->next);
    for (;;) {
        const int tile = next;
        tiles.give(tile < total ? tile : -1);
        if (tile >= total) break;
        next = next_number(&s->next);
        const Tile t = p.at(tile);
#pragma unroll 1
        for (int i = 0; i < t.steps; i++) {
            const u32 to = base + SLOTS_AT + ring.slot * SLOT, full = base + FULL_AT + 8 * ring.slot;
            const int k = t.k + i * BK;
            bar_wait(base + EMPTY_AT + 8 * ring.slot, ring.phase ^ 1);
            bar_expect(full, SLOT);
#pragma unroll
            for (int j = 0; j < BM / 64; j++) {
                if (KIND == WEIGHT) copy_box(to + j * BOX, &s->a, t.m + 64 * j, 0, k, 0, full);
                else copy_box(to + j * BOX, &s->a, k, 0, t.m + 64 * j, 0, full);
            }
#pragma unroll
            for (int j = 0; j < BN / 64; j++) {
                const u32 at = to + A_BYTES + j * BOX;
                if (KIND == FORWARD) copy_box(at, &s->b, k, 0, t.n + 64 * j, t.e, full);
                if (KIND == INPUT) copy_box(at, &s->b, t.n + 64 * j, 0, k, t.e, full);
                if (KIND == WEIGHT) copy_box(at, &s->b, t.n + 64 * j, 0, k, 0, full);
            }
            ring.next();
        }
    }
}

// blank zeroes the rows from valid on in some boxes of a stage: they belong to the next expert.
__device__ __forceinline__ void blank(u32 slot, int box, int boxes, int valid) {
    const int chunks = (64 - valid) * 8;
    for (int i = threadIdx.x % 128; i < boxes * chunks; i += 128)
        *(uint4*)(smem + slot + (box + i / chunks) * BOX + valid * 128 + i % chunks * 16) = uint4{0, 0, 0, 0};
}

// put_row writes one row (half R of the lane's rows) of 256 sums, as far as there are columns. The
// four lanes of a row trade their pairs, so that each writes 16 bytes.
template <int R> __device__ __forceinline__ void put_row(bf16* to, const bf16* add, const float (&x)[BN / 2], bool there, int columns) {
    const int c = threadIdx.x % 4;
#pragma unroll
    for (int n = 0; n < BN / 8; n += 4) {
        u32 mine[4], from[4], got[4];
#pragma unroll
        for (int i = 0; i < 4; i++) {
            float lo = x[(n + i) * 4 + R * 2], hi = x[(n + i) * 4 + R * 2 + 1];
            if (add && there && (n + i) * 8 < columns) {  // rounded once
                const u32 w = *(const u32*)(add + (n + i) * 8 + c * 2);
                lo += bf16_lo(w), hi += bf16_hi(w);
            }
            mine[i] = pack_bf16(lo, hi);
        }
        // got[i] is lane i's mine[c].
        from[0] = c & 2 ? (c & 1 ? mine[3] : mine[2]) : (c & 1 ? mine[1] : mine[0]);
#pragma unroll
        for (int k = 1; k < 4; k++) {
            const int o = c ^ k;
            from[k] = __shfl_xor_sync(FULL, o & 2 ? (o & 1 ? mine[3] : mine[2]) : (o & 1 ? mine[1] : mine[0]), k);
        }
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int k = i ^ c;
            got[i] = k & 2 ? (k & 1 ? from[3] : from[2]) : (k & 1 ? from[1] : from[0]);
        }
        if (there && (n + c) * 8 < columns) *(uint4*)(to + (n + c) * 8) = uint4{got[0], got[1], got[2], got[3]};
    }
}

// put writes one row of a tile's sums.
template <Kind KIND, int R> __device__ __forceinline__ void put(const Problem<KIND>& p, const Tile& t, const float (&acc)[BN / 2], int row) {
    const bool there = row < t.end;
    const int width = KIND == FORWARD ? p.g.n : p.g.k;
    if (KIND == WEIGHT) {
        const i64 to = ((i64)t.e * p.g.n + row) * width + t.n + threadIdx.x % 4 * 2;
        float* d = (float*)p.g.out + to;
        const float* add = p.g.add && there ? (const float*)p.g.add + to : nullptr;
        // What is added to may be the result: AHEAD pairs are read before the first is written, or each would
        // wait for memory.
        constexpr int AHEAD = 16;
#pragma unroll
        for (int n = 0; n < BN / 8; n += AHEAD) {
            float2 old[AHEAD];
#pragma unroll
            for (int i = 0; i < AHEAD; i++) old[i] = add && t.n + (n + i) * 8 < width ? *(const float2*)(add + (n + i) * 8) : float2{0.f, 0.f};
#pragma unroll
            for (int i = 0; i < AHEAD; i++) {
                if (!there || t.n + (n + i) * 8 >= width) continue;
                const float x = acc[4 * (n + i) + 2 * R], y = acc[4 * (n + i) + 2 * R + 1];
                *(float2*)(d + (n + i) * 8) = add ? float2{x + old[i].x, y + old[i].y} : float2{x, y};
            }
        }
    } else {
        const i64 to = (i64)row * width + t.n;
        const i64 from = KIND == FORWARD ? (i64)t.e * width + t.n : to;
        put_row<R>((bf16*)p.g.out + to, p.g.add ? p.g.add + from : nullptr, acc, there, width - t.n);
    }
}

template <Kind KIND> __device__ __forceinline__ void sums(const Args& a, u32 base) {
    const int group = threadIdx.x / 128 - 1, warp = threadIdx.x / 32 % 4, lane = threadIdx.x % 32;
    const Problem<KIND> p(a);
    Tiles tiles(base, TILES);
    Ring<SLOTS> ring;
    constexpr int TA = KIND == WEIGHT, TB = KIND != FORWARD;
    for (;;) {
        const int tile = tiles.take();
        if (tile < 0) break;
        const Tile t = p.at(tile);
        float acc[BN / 2];
        int last = 0;
#pragma unroll
        for (int i = 0; i < BN / 2; i++) acc[i] = 0.f;
#pragma unroll 1
        for (int i = 0; i < t.steps; i++) {
            const u32 slot = SLOTS_AT + ring.slot * SLOT;
            bar_wait(base + FULL_AT + 8 * ring.slot, ring.phase);
            if (KIND == WEIGHT && t.kend - t.k - i * BK < BK) {
                const int valid = t.kend - t.k - i * BK;
                blank(slot, group, 1, valid);
                blank(slot, 2 + 2 * group, 2, valid);
                fence_async();
                named_sync(1, 128 * GROUPS);
            }
            const u32 at = base + slot + group * BOX, bt = base + slot + A_BYTES;
            const u64 da = TA ? mn_major<64>(at) : k_major(at), db = TB ? mn_major<64>(bt) : k_major(bt);
            wgmma_fence();
#pragma unroll
            for (int k = 0; k < BK / 16; k++) wgmma<TB, TA>(acc, da + k * (TA ? 128 : 2), db + k * (TB ? 128 : 2), 1);
            wgmma_commit();
            wgmma_wait<1>();
            if (i > 0) leave(base + EMPTY_AT + 8 * last);
            last = ring.slot;
            ring.next();
        }
        wgmma_wait<0>();
        keep(acc);
        if (t.steps > 0) leave(base + EMPTY_AT + 8 * last);
        const int row = t.m + group * 64 + warp * 16 + lane / 4;
        put<KIND, 0>(p, t, acc, row);
        put<KIND, 1>(p, t, acc, row + 8);
    }
}

template <Kind KIND> __device__ __forceinline__ void run(const Args& a) {
    const u32 base = smem_at(smem);
    if (threadIdx.x == 0) {
        for (int i = 0; i < SLOTS; i++) bar_init(base + FULL_AT + 8 * i, 1), bar_init(base + EMPTY_AT + 8 * i, 4 * GROUPS);
        Tiles::init(base, TILES, 4 * GROUPS);
        bar_fence();
    }
    __syncthreads();
    if (threadIdx.x < 128) {
        fewer_registers<40>();
        if (threadIdx.x == 0) copies<KIND>(a, base);
    } else {
        more_registers<232>();
        sums<KIND>(a, base);
    }
}

extern "C" __global__ void __launch_bounds__(256) grouped_forward_prepare(Args a) { prepare<FORWARD>(a); }
extern "C" __global__ void __launch_bounds__(256) grouped_input_prepare(Args a) { prepare<INPUT>(a); }
extern "C" __global__ void __launch_bounds__(256) grouped_weight_prepare(Args a) { prepare<WEIGHT>(a); }
extern "C" __global__ void __launch_bounds__(128 * (GROUPS + 1), 1) grouped_forward(Args a) { run<FORWARD>(a); }
extern "C" __global__ void __launch_bounds__(128 * (GROUPS + 1), 1) grouped_input(Args a) { run<INPUT>(a); }
extern "C" __global__ void __launch_bounds__(128 * (GROUPS + 1), 1) grouped_weight(Args a) { run<WEIGHT>(a); }
#endif
