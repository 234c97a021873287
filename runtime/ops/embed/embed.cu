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
//  3. embed_tiles      walks tiles of 64 sorted rows. A run of one id that lies within a tile, or a little
//                      beyond, goes to dweight; what a longer run has in a tile goes to scratch memory,
//                      from where the last block that has some of it adds it up, in the order of the tiles
//
// Work: two lists of sorted rows (id and row), the counts, how many blocks are done with their part of a
// long run, and the parts.
// p = {ids, dy, add or null, dweight f32}, i = {rows, V, D}. Mirrored in cuda.go.

#define BINS 512
#define BIN_BITS 9
#define CHUNK 1024  // rows that one block places, a thread each
#define TILE 64
#define OVER 32   // entries behind a tile in which a run may end that started in it
#define SLICE 128 // threads of a tile's block, at most: many small blocks end at about the same time
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
// arrived counts, for the tile where a long run starts and each slice of columns, the blocks that are done.
__device__ __forceinline__ u32* arrived(const Args& a) { return (u32*)((char*)counts(a) + round16(4 * BINS * num_chunks(a.i[0]))); }
__device__ __forceinline__ i64 num_arrived(const Args& a) { return num_tiles(a.i[0]) * ceil_div(ceil_div(a.i[2], COLUMNS), SLICE); }
__device__ __forceinline__ void clear_arrived(const Args& a) {
    for (i64 k = thread_id(); k < num_arrived(a); k += num_threads()) arrived(a)[k] = 0;
}
// parts of long runs: part 0 continues from the tile before, part 1 starts in the tile.
__device__ __forceinline__ float* part(const Args& a, int k, i64 tile) {
    float* base = (float*)((char*)arrived(a) + round16(4 * num_arrived(a)));
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
    if (pass == 0) clear_arrived(a);
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
    clear_arrived(a);
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
        if (warp * 32 >= rows) return;
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

// walk goes through the entries from..n of a tile's window for the columns c to c + E. s[1 + k] is entry k, with the
// neighbours in front and behind. continues says that the first run has parts in tiles before, goes_on that
// the last has some behind.
template <int E>
__device__ __forceinline__ void walk(const Args& a, const Sorted* s, int from, int n, bool continues, bool goes_on, i64 tile, i64 c) {
    const i64 d = a.i[2];
    const act_t* dy = (const act_t*)a.p[1] + c;
    float* dw = (float*)a.p[3] + c;
    float acc[E];
#pragma unroll
    for (int e = 0; e < E; e++) acc[e] = 0.0f;
    constexpr int AHEAD = 4;
    for (int k = from; k < n; k += AHEAD) {
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
    if (goes_on) store<E>(part(a, continues ? 0 : 1, tile) + c, acc);
}

// join adds up the parts of a run that has one in each of the tiles first..last.
template <int E> __device__ __forceinline__ void join(const Args& a, i64 first, i64 last, u32 id, i64 c) {
    float* dw = (float*)a.p[3] + id * a.i[2] + c;
    float acc[E], v[E];
    load<E>(part(a, 1, first) + c, acc);
    load<E>(dw, v);
    // The most frequent token has a part in many tiles.
    constexpr int AHEAD = 4;
    for (i64 t = first + 1; t <= last; t += AHEAD) {
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
#pragma unroll
    for (int e = 0; e < E; e++) v[e] += acc[e];
    store<E>(dw, v);
}

__device__ __forceinline__ bool fast_columns(const Args& a) {
    return a.i[2] % COLUMNS == 0 && aligned(bits_of(a.p[1]) | bits_of(a.p[3]));
}

// leading is how many of n entries from s on have the id; each warp counts by itself.
__device__ __forceinline__ int leading(const Sorted* s, int n, u32 id) {
    int sum = 0;
    for (int k = threadIdx.x % 32; k - (int)(threadIdx.x % 32) < n; k += 32) sum += __popc(__ballot_sync(FULL, k < n && s[k].id == id));
    return sum;
}

// Blocks (tiles, slices of blockDim * COLUMNS columns). A run that ends no more than OVER entries behind the tile
// in which it starts is that tile's. Others have a part in each tile, and the block that is the last
// of them to be done with its own adds them up, in order.
extern "C" __global__ void __launch_bounds__(SLICE, 8) embed_tiles(Args a) {
    __shared__ Sorted s[TILE + OVER + 2];
    __shared__ i64 spans[2][2];
    __shared__ bool last_of[2];
    const i64 rows = a.i[0], d = a.i[2], tile = blockIdx.x, start = tile * TILE;
    const Sorted* list = sorted(a);
    int n = (int)imin(TILE, rows - start);
    for (int k = threadIdx.x; k < TILE + OVER + 2; k += blockDim.x) {
        const i64 at = start + k - 1;
        s[k] = at >= 0 && at < rows ? list[at] : Sorted{~0u, 0};
    }
    const u32 long_ago = tile > 1 ? list[start - TILE - 1].id : ~0u;
    __syncthreads();
    const u32 first = s[1].id, end = s[n].id;
    int from = 0;
    bool continues = s[0].id == first, goes_on = false;
    const bool whole = s[0].id == end;  // the tile lies within a run that started before
    if (continues && long_ago != first) {
        const int before = leading(s + 1, OVER + 1, first);
        if (before <= OVER) from = before, continues = false;
    }
    if (n == TILE) {
        const int behind = leading(s + 1 + TILE, OVER + 1, end);
        if (whole ? continues : behind > OVER) {
            goes_on = behind > 0;
        } else if (!whole) {
            n += behind;
        }
    }
    const i64 base = (i64)blockIdx.y * blockDim.x * COLUMNS, stop = imin(d, base + blockDim.x * COLUMNS);
    const bool fast = fast_columns(a);
    if (fast) {
        const i64 c = base + threadIdx.x * COLUMNS;
        if (c < d) walk<COLUMNS>(a, s, from, n, continues, goes_on, tile, c);
    } else {
        for (i64 c = base + threadIdx.x; c < stop; c += blockDim.x) walk<1>(a, s, from, n, continues, goes_on, tile, c);
    }
    if (!continues && !goes_on) return;
    __threadfence();
    __syncthreads();
    const bool starts = goes_on && !whole;  // a long run
    if (threadIdx.x < 32) {
        // The tiles with a part: 32 are looked at at once.
        i64 lo = tile, hi = tile;
        if (continues) {
            lo--;
            for (int more = 32; more == 32; lo -= more) {
                const i64 at = (lo - threadIdx.x) * TILE - 1;
                more = __popc(__ballot_sync(FULL, at >= 0 && list[at].id == first));
            }
        }
        if (goes_on) {
            hi++;
            for (int more = 32; more == 32; hi += more) {
                const i64 at = (hi + 1 + threadIdx.x) * TILE;
                more = __popc(__ballot_sync(FULL, at < rows && list[at].id == end));
            }
        }
        if (threadIdx.x == 0 && continues || threadIdx.x == 1 && starts) {
            const i64 from = threadIdx.x ? tile : lo, to = threadIdx.x || whole ? hi : tile;
            spans[threadIdx.x][0] = from, spans[threadIdx.x][1] = to;
            last_of[threadIdx.x] = atomicAdd(arrived(a) + from * gridDim.y + blockIdx.y, 1u) == (u32)(to - from);
        }
    }
    __syncthreads();
#pragma unroll 1
    for (int k = 0; k < 2; k++) {
        if (!(k ? starts : continues) || !last_of[k]) continue;
        __threadfence();
        if (fast) {
            const i64 c = base + threadIdx.x * COLUMNS;
            if (c < d) join<COLUMNS>(a, spans[k][0], spans[k][1], k ? end : first, c);
        } else {
            for (i64 c = base + threadIdx.x; c < stop; c += blockDim.x) join<1>(a, spans[k][0], spans[k][1], k ? end : first, c);
        }
    }
}
