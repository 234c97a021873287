#include "mtc.cuh"

// p = {ids i32 [rows], weight [V, D], y [rows, D]}, i = {rows, V, D}. A block does max(1, 256 /
// items) rows, items = ceil(D / 8). An id that the table lacks stops the program.
extern "C" __global__ void __launch_bounds__(256) embed_forward(Args a) {
    const i64 rows = a.i[0], d = a.i[2];
    const u32 items = (u32)((d + 7) / 8), per_block = items < 256 ? 256 / items : 1;
    const u32 in_block = threadIdx.x / items;
    const i64 row = (i64)blockIdx.x * per_block + (per_block > 1 ? in_block : 0);
    if (per_block > 1 && in_block >= per_block || row >= rows) return;
    const int id = ((const int*)a.p[0])[row];
    if (id < 0 || id >= a.i[1]) __trap();
    const wgt_t* from = (const wgt_t*)a.p[1] + (i64)id * d;
    act_t* to = (act_t*)a.p[2] + row * d;
    const u32 first = per_block > 1 ? threadIdx.x % items : threadIdx.x;
    const u32 step = per_block > 1 ? items : blockDim.x;
    if (d % 8 == 0 && aligned(bits_of(a.p[1]) | bits_of(a.p[2]))) {
        for (u32 k = first; k < items; k += step) {
            Unit<act_t> w;
            w.ld(from + 8 * k);
            w.st(to + 8 * k);
        }
        return;
    }
    for (u32 k = first; k < d; k += step) to[k] = from[k];
}

// ---- backward ------------------------------------------------------------------------------
// dweight[v] = add[v] + the sum of dy over the rows whose id is v, in the order of the rows.
//
//  1. embed_start      dweight = add, or 0 (left out when they share memory)
//  2. embed_count and _place, once for each 9 bits of an id: a stable sort of the rows by id; for few
//                      rows embed_group brings those of an id together in one launch
//  3. embed_tiles      walks tiles of 64 sorted rows. A run of one id that lies within a tile goes
//                      to dweight; what a longer run has in a tile goes to scratch memory
//  4. embed_join       adds up those runs, each at the tile where it starts
//
// Work: two lists of sorted rows (id and row), the counts, and the parts of long runs.
// p = {ids, dy, add or null, dweight f32}, i = {rows, V, D}. Mirrored in cuda.go.

#define BINS 512
#define BIN_BITS 9
#define CHUNK 1024  // rows that one block places, a thread each
#define TILE 64
#define COLUMNS 4  // of a thread: 16 bytes of the table's gradient

struct Sorted {
    u32 id, row;
};

__device__ __forceinline__ i64 round16(i64 n) { return (n + 15) / 16 * 16; }
__device__ __forceinline__ i64 num_chunks(i64 rows) { return ceil_div(rows, CHUNK); }
__device__ __forceinline__ i64 num_tiles(i64 rows) { return ceil_div(rows, TILE); }

__device__ __forceinline__ Sorted* list(const Args& a, int k) {
    return (Sorted*)((char*)a.work + k * round16(8 * a.i[0]));
}
__device__ __forceinline__ u32* counts(const Args& a) { return (u32*)list(a, 2); }
// parts of long runs: part 0 continues from the tile before, part 1 starts in the tile.
__device__ __forceinline__ float* part(const Args& a, int k, i64 tile) {
    float* base = (float*)((char*)counts(a) + round16(4 * BINS * num_chunks(a.i[0])));
    return base + (k * num_tiles(a.i[0]) + tile) * a.i[2];
}

// passes is how often the sort runs for ids below v.
__device__ __forceinline__ int passes(i64 v) {
    int n = 1;
    while (n < 3 && (v - 1) >> (n * BIN_BITS)) n++;
    return n;
}

// entry is a thread's row of a chunk in a pass; its id is ~0 where there is none.
__device__ __forceinline__ Sorted entry(const Args& a, int pass) {
    const i64 r = (i64)blockIdx.x * CHUNK + threadIdx.x;
    if (r >= a.i[0]) return Sorted{~0u, 0};
    return pass > 0 ? list(a, (pass - 1) % 2)[r] : Sorted{((const u32*)a.p[0])[r], (u32)r};
}
__device__ __forceinline__ const Sorted* sorted(const Args& a) { return list(a, (passes(a.i[1]) - 1) % 2); }

extern "C" __global__ void __launch_bounds__(MAP_THREADS) embed_start(Args a) {
    const i64 n = a.i[1] * a.i[2];
    if (!a.p[2]) return fill_floats((float*)a.p[3], n, 0.0f);
    const float* const in[1] = {(const float*)a.p[2]};
    float* const out[1] = {(float*)a.p[3]};
    map<2>(n, in, out, [](const float (&x)[1], float (&y)[1]) { y[0] = x[0]; });
}

// check stops the program at an id that the table lacks.
__device__ __forceinline__ void check(const Args& a, u32 id) {
    if (id >= a.i[1] || a.i[1] > 1 << (3 * BIN_BITS)) __trap();
}

// count_pass: how many rows of a chunk have each value of the pass's bits, [chunks, BINS]. Sums of whole
// numbers are the same in any order.
__device__ __forceinline__ void count_pass(const Args& a, int pass) {
    __shared__ u32 n[BINS];
    const Sorted e = entry(a, pass);
    const bool is = (i64)blockIdx.x * CHUNK + threadIdx.x < a.i[0];
    if (pass == 0 && is) check(a, e.id);
    if (threadIdx.x < BINS) n[threadIdx.x] = 0;
    __syncthreads();
    if (is) atomicAdd(&n[e.id >> (pass * BIN_BITS) & (BINS - 1)], 1u);
    __syncthreads();
    if (threadIdx.x < BINS) counts(a)[(i64)blockIdx.x * BINS + threadIdx.x] = n[threadIdx.x];
}

// upto is the sum of v over the threads up to this one; all threads of a block of 1024 take part.
__device__ __forceinline__ u32 upto(u32 v) {
    __shared__ u32 of_warp[32];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
#pragma unroll
    for (int d = 1; d < 32; d *= 2) {
        const u32 other = __shfl_up_sync(FULL, v, d);
        if (lane >= d) v += other;
    }
    __syncthreads();
    if (lane == 31) of_warp[warp] = v;
    __syncthreads();
    u32 before = lane < warp ? of_warp[lane] : 0;
#pragma unroll
    for (int d = 16; d > 0; d /= 2) before += __shfl_xor_sync(FULL, before, d);
    return v + before;
}

// place_pass moves the rows of a chunk to their places, in order: behind all rows of lower values, those
// of the value in chunks before, in warps before, and in lanes before.
__device__ __forceinline__ void place_pass(const Args& a, int pass) {
    constexpr int WARPS = CHUNK / 32, HALVES = CHUNK / BINS;
    __shared__ u32 all[HALVES][BINS], before[HALVES][BINS];
    __shared__ u16 n[BINS][WARPS + 2];
    const Sorted e = entry(a, pass);
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int bin = threadIdx.x % BINS, half = threadIdx.x / BINS;
    for (int w = half; w < WARPS; w += HALVES) n[bin][w] = 0;
    // Each half of the threads takes every second chunk.
    u32 total = 0, mine = 0;
    const u32* c = counts(a) + bin;
#pragma unroll 8
    for (i64 k = half; k < num_chunks(a.i[0]); k += HALVES) {
        const u32 v = c[k * BINS];
        total += v;
        mine += k < blockIdx.x ? v : 0;
    }
    all[half][bin] = total, before[half][bin] = mine;
    __syncthreads();
    const bool is = (i64)blockIdx.x * CHUNK + threadIdx.x < a.i[0];
    const u32 value = is ? e.id >> (pass * BIN_BITS) & (BINS - 1) : BINS;  // BINS: of a lane without a row
    const u32 same = __match_any_sync(FULL, value);
    const u32 place = __popc(same & ((1u << lane) - 1));
    if (is && place == 0) n[value][warp] = (u16)__popc(same);
    total = half == 0 ? all[0][bin] + all[1][bin] : 0;
    const u32 lower = upto(total) - total;  // waits for n
    if (half == 0) {
        all[0][bin] = lower + before[0][bin] + before[1][bin];
        u16 sum = 0;
        for (int w = 0; w < WARPS; w++) {
            const u16 v = n[bin][w];
            n[bin][w] = sum;
            sum += v;
        }
    }
    __syncthreads();
    if (is) list(a, pass % 2)[all[0][value] + n[value][warp] + place] = e;
}

extern "C" __global__ void __launch_bounds__(CHUNK) embed_count0(Args a) { count_pass(a, 0); }
extern "C" __global__ void __launch_bounds__(CHUNK) embed_count1(Args a) { count_pass(a, 1); }
extern "C" __global__ void __launch_bounds__(CHUNK) embed_count2(Args a) { count_pass(a, 2); }
extern "C" __global__ void __launch_bounds__(CHUNK) embed_place0(Args a) { place_pass(a, 0); }
extern "C" __global__ void __launch_bounds__(CHUNK) embed_place1(Args a) { place_pass(a, 1); }
extern "C" __global__ void __launch_bounds__(CHUNK) embed_place2(Args a) { place_pass(a, 2); }

// embed_group brings the rows of each id together, for up to SORT_ROWS rows and ids below 2^26, in one launch:
// block g has the ids that are g modulo GROUPS, which it finds by reading all. They stand behind those
// of the blocks before, by id, and by row. Few are ranked by comparing each with each; more are
// sorted: warp w has the rows from 256 w on, in rounds of 32, and keeps them in registers; they change places
// through shared memory. What is there of a warp is counted in n[value][warp], which a scan turns into places.
#define GROUPS 128
#define SORT_ROWS 8192
#define SORT_THREADS 1024
#define SORT_EACH (SORT_ROWS / SORT_THREADS)
#define SORT_COUNTS (BINS * SORT_THREADS / 32)
#define ROW_BITS 13
extern __shared__ u32 sort_words[];

extern "C" __global__ void __launch_bounds__(SORT_THREADS) embed_group(Args a) {
    __shared__ u32 before_warp[SORT_THREADS / 32], lower_warp[SORT_THREADS / 32];
    u32* ids = sort_words;
    u16 *row_of = (u16*)(ids + SORT_ROWS), *n = row_of + SORT_ROWS;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, first = warp * (SORT_ROWS / (SORT_THREADS / 32)) + lane;
    u32 id[SORT_EACH];
    u16 row[SORT_EACH];
#pragma unroll
    for (int k = 0; k < SORT_EACH; k++) id[k] = first + k * 32 < a.i[0] ? ((const u32*)a.p[0])[first + k * 32] : ~0u;
    u32 here[SORT_EACH], found = 0, lower = 0;
#pragma unroll
    for (int k = 0; k < SORT_EACH; k++) {
        const bool is = first + k * 32 < a.i[0];
        if (is) check(a, id[k]);
        here[k] = __ballot_sync(FULL, is && id[k] % GROUPS == blockIdx.x);
        found += __popc(here[k]);
        lower += is && id[k] % GROUPS < blockIdx.x;
    }
    lower = warp_sum(lower);
    if (lane == 0) before_warp[warp] = found, lower_warp[warp] = lower;
    __syncthreads();
    const u32 others = before_warp[lane];
    const int rows = (int)warp_sum(others);
    u32 at = warp_sum(lane < warp ? others : 0u);
    Sorted* to = list(a, (passes(a.i[1]) - 1) % 2) + warp_sum(lower_warp[lane]);
#pragma unroll
    for (int k = 0; k < SORT_EACH; k++) {
        if (here[k] >> lane & 1) {
            const u32 place = at + __popc(here[k] & ((1u << lane) - 1));
            ids[place] = id[k] / GROUPS << ROW_BITS | place, row_of[place] = (u16)(first + k * 32);
        }
        at += __popc(here[k]);
    }
    __syncthreads();
    if (rows <= SORT_THREADS) {
        if (threadIdx.x < -rows % 4u) ids[rows + threadIdx.x] = ~0u;
        __syncthreads();
        const u32 key = threadIdx.x < rows ? ids[threadIdx.x] : 0;
        int rank = 0;
#pragma unroll 4
        for (int k = 0; k < rows; k += 4) {
            const uint4 v = *(const uint4*)(ids + k);
            rank += (v.x < key) + (v.y < key) + (v.z < key) + (v.w < key);
        }
        if (threadIdx.x < rows) to[rank] = Sorted{(key >> ROW_BITS) * GROUPS + blockIdx.x, row_of[threadIdx.x]};
        return;
    }
#pragma unroll
    for (int k = 0; k < SORT_EACH; k++) {
        const int r = first + k * 32;
        // What is no row has the largest id, and stays behind all rows.
        id[k] = r < rows ? ids[r] >> ROW_BITS : ~0u, row[k] = r < rows ? row_of[r] : 0;
    }
    const int times = passes(ceil_div(a.i[1], GROUPS));
    for (int pass = 0; pass < times; pass++) {
        uint4* some = (uint4*)(n + threadIdx.x * (SORT_COUNTS / SORT_THREADS));  // two times 8 counts
        some[0] = some[1] = make_uint4(0, 0, 0, 0);
        __syncthreads();
        u16 rank[SORT_EACH];
#pragma unroll
        for (int k = 0; k < SORT_EACH; k++) {
            const u32 bin = id[k] >> (pass * BIN_BITS) & (BINS - 1);
            u16* count = n + bin * (SORT_THREADS / 32) + warp;
            const u32 same = __match_any_sync(FULL, bin), before = __popc(same & ((1u << lane) - 1));
            rank[k] = (u16)(*count + before);
            __syncwarp();
            if (before == 0) *count += (u16)__popc(same);
            __syncwarp();
        }
        __syncthreads();
        u32 c[8] = {some[0].x, some[0].y, some[0].z, some[0].w, some[1].x, some[1].y, some[1].z, some[1].w};
        u32 sum = 0;
#pragma unroll
        for (int k = 0; k < 8; k++) sum += (c[k] & 0xffff) + (c[k] >> 16);
        u32 upto = sum;
#pragma unroll
        for (int d = 1; d < 32; d *= 2) {
            const u32 other = __shfl_sync(FULL, upto, lane - d);
            if (lane >= d) upto += other;
        }
        if (lane == 31) before_warp[warp] = upto;
        __syncthreads();
        u32 at = upto - sum;
        for (int w = 0; w < warp; w++) at += before_warp[w];
#pragma unroll
        for (int k = 0; k < 8; k++) {
            const u32 next = at + (c[k] & 0xffff);
            const u32 after = next + (c[k] >> 16);
            c[k] = at | next << 16;
            at = after;
        }
        some[0] = make_uint4(c[0], c[1], c[2], c[3]), some[1] = make_uint4(c[4], c[5], c[6], c[7]);
        __syncthreads();
#pragma unroll
        for (int k = 0; k < SORT_EACH; k++) {
            const u32 bin = id[k] >> (pass * BIN_BITS) & (BINS - 1), to = n[bin * (SORT_THREADS / 32) + warp] + rank[k];
            ids[to] = id[k], row_of[to] = row[k];
        }
        __syncthreads();
#pragma unroll
        for (int k = 0; k < SORT_EACH; k++) id[k] = ids[first + k * 32], row[k] = row_of[first + k * 32];
    }
#pragma unroll
    for (int k = 0; k < SORT_EACH; k++)
        if (first + k * 32 < rows) to[first + k * 32] = Sorted{id[k] * GROUPS + blockIdx.x, row[k]};
}

// walk goes through a tile's rows for the columns c to c + E. s[1 + k] is the tile's entry k,
// with the neighbours in front and behind; an id of ~0 stands where there is none.
template <int E> __device__ __forceinline__ void walk(const Args& a, const Sorted* s, int n, i64 tile, i64 c) {
    const i64 d = a.i[2];
    const act_t* dy = (const act_t*)a.p[1] + c;
    float* dw = (float*)a.p[3] + c;
    float acc[E];
#pragma unroll
    for (int e = 0; e < E; e++) acc[e] = 0.0f;
    bool continues = s[0].id == s[1].id;
    constexpr int AHEAD = 8;
    for (int k = 0; k < n; k += AHEAD) {
        // Rows, and what they are added to where a run ends, are read before the first is used. An id has
        // one run in the tile, so nothing that is read is written here before.
        Words<E * (int)sizeof(act_t)> v[AHEAD];
        float old[AHEAD][E];
#pragma unroll
        for (int j = 0; j < AHEAD; j++) {
            if (k + j >= n) break;
            v[j].ld(dy + (i64)s[1 + k + j].row * d);
            const u32 id = s[1 + k + j].id;
            if (id != s[2 + k + j].id && id != s[0].id) load<E>(dw + id * d, old[j]);
        }
#pragma unroll
        for (int j = 0; j < AHEAD; j++) {
            if (k + j >= n) break;
            float x[E];
            unpack<E>(v[j], x, act_t());
#pragma unroll
            for (int e = 0; e < E; e++) acc[e] += x[e];
            const u32 id = s[1 + k + j].id;
            if (id == s[2 + k + j].id) continue;
            if (continues) {
                store<E>(part(a, 0, tile) + c, acc);
            } else {
#pragma unroll
                for (int e = 0; e < E; e++) old[j][e] += acc[e];
                store<E>(dw + id * d, old[j]);
            }
            continues = false;
#pragma unroll
            for (int e = 0; e < E; e++) acc[e] = 0.0f;
        }
    }
    if (s[n].id == s[n + 1].id) store<E>(part(a, continues ? 0 : 1, tile) + c, acc);
}

__device__ __forceinline__ bool fast_columns(const Args& a) {
    return a.i[2] % COLUMNS == 0 && aligned(bits_of(a.p[1]) | bits_of(a.p[3]));
}

// Blocks (tiles, slices of blockDim * COLUMNS columns).
extern "C" __global__ void __launch_bounds__(256) embed_tiles(Args a) {
    __shared__ Sorted s[TILE + 2];
    const i64 rows = a.i[0], d = a.i[2], tile = blockIdx.x;
    const int n = (int)imin(TILE, rows - tile * TILE);
    for (int k = threadIdx.x; k < n + 2; k += blockDim.x) {
        const i64 at = tile * TILE + k - 1;
        s[k] = at >= 0 && at < rows ? sorted(a)[at] : Sorted{~0u, 0};
    }
    __syncthreads();
    const i64 base = (i64)blockIdx.y * blockDim.x * COLUMNS;
    if (fast_columns(a)) {
        const i64 c = base + threadIdx.x * COLUMNS;
        if (c < d) walk<COLUMNS>(a, s, n, tile, c);
        return;
    }
    for (i64 c = base + threadIdx.x; c < imin(d, base + blockDim.x * COLUMNS); c += blockDim.x) walk<1>(a, s, n, tile, c);
}

template <int E> __device__ __forceinline__ void join(const Args& a, i64 tile, i64 last, u32 id, i64 c) {
    float* dw = (float*)a.p[3] + id * a.i[2] + c;
    float acc[E], v[E];
    load<E>(part(a, 1, tile) + c, acc);
    // The most frequent token has a part in many tiles.
    constexpr int AHEAD = 16;
    for (i64 t = tile + 1; t <= last; t += AHEAD) {
        float more[AHEAD][E];
#pragma unroll
        for (int k = 0; k < AHEAD; k++)
            if (t + k <= last) load<E>(part(a, 0, t + k) + c, more[k]);
#pragma unroll
        for (int k = 0; k < AHEAD; k++) {
            if (t + k > last) break;
#pragma unroll
            for (int e = 0; e < E; e++) acc[e] += more[k][e];
        }
    }
    load<E>(dw, v);
#pragma unroll
    for (int e = 0; e < E; e++) v[e] += acc[e];
    store<E>(dw, v);
}

// Blocks as of embed_tiles.
extern "C" __global__ void __launch_bounds__(256) embed_join(Args a) {
    const Sorted* s = sorted(a);
    const i64 rows = a.i[0], d = a.i[2], tile = blockIdx.x, start = tile * TILE, end = imin(rows, start + TILE);
    if (end == rows) return;
    const u32 id = s[end - 1].id;
    if (s[end].id != id) return;                                        // no run goes on
    if (s[start].id == id && start > 0 && s[start - 1].id == id) return;  // it did not start here
    // The last tile that begins in the run. Each warp looks at 32 at once: one after the other they are as
    // many latencies of memory as the most frequent token has tiles.
    i64 last = tile + 1;
    for (int more = 32; more == 32; last += more) {
        const i64 at = (last + 1 + threadIdx.x % 32) * TILE;
        more = __popc(__ballot_sync(FULL, at < rows && s[at].id == id));
    }
    const i64 base = (i64)blockIdx.y * blockDim.x * COLUMNS;
    if (fast_columns(a)) {
        const i64 c = base + threadIdx.x * COLUMNS;
        if (c < d) join<COLUMNS>(a, tile, last, id, c);
        return;
    }
    for (i64 c = base + threadIdx.x; c < imin(d, base + blockDim.x * COLUMNS); c += blockDim.x) join<1>(a, tile, last, id, c);
}
