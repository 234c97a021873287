#include "mtc.cuh"

// S0 is the threads of a row's block; S1 the KiB of dynamic shared memory in which crossentropy_loss
// keeps a row, or its beginning, between its two passes. What does not fit is read again.
//mtc:spec 256 0
//mtc:spec 512 0
//mtc:spec 512 104
//mtc:spec 1024 224
#define THREADS (S0 ? S0 : 512)

// A thread takes the same elements of a row wherever the row lies in memory, so a row's result
// does not depend on the chunk it is in. Rows of an odd length begin at any address; their
// units are put together from aligned words.
#define E 8

// The lowest float, where a maximum starts, and what counts nothing against it.
#define LOWEST -3.402823466e38f
#define NOTHING (-__int_as_float(0x7f800000))

// load_row reads the unit at p, of which `room` elements are in the row; the others become
// NOTHING.
__device__ __forceinline__ void load_row(const act_t* p, i64 room, float (&v)[E]) {
    if (room >= E) {
        if (aligned(bits_of(p))) return load<E>(p, v);
#ifndef MTC_F32
        // Words of 4 bytes; with p between two of them, one more. A word with an element of the
        // tensor lies within its allocation.
        const u32* w = (const u32*)(bits_of(p) & ~(u64)3);
        if (bits_of(p) & 2) {
            u32 at = w[0];
#pragma unroll
            for (int k = 0; k < E; k += 2) {
                const u32 next = w[k / 2 + 1];
                v[k] = bf16_hi(at), v[k + 1] = bf16_lo(next);
                at = next;
            }
        } else {
#pragma unroll
            for (int k = 0; k < E; k += 2) v[k] = bf16_lo(w[k / 2]), v[k + 1] = bf16_hi(w[k / 2]);
        }
        return;
#endif
    }
#pragma unroll
    for (int k = 0; k < E; k++) v[k] = k < room ? to_f(p[k]) : NOTHING;
}

__device__ __forceinline__ void store_row(act_t* p, i64 room, const float (&v)[E]) {
    if (room >= E) {
        if (aligned(bits_of(p))) return store<E>(p, v);
#ifndef MTC_F32
        if (bits_of(p) & 2) {
            p[0] = to_bf16(v[0]);
#pragma unroll
            for (int k = 1; k < E - 1; k += 2) *(u32*)(p + k) = pack_bf16(v[k], v[k + 1]);
            p[E - 1] = to_bf16(v[E - 1]);
        } else {
#pragma unroll
            for (int k = 0; k < E; k += 2) *(u32*)(p + k) = pack_bf16(v[k], v[k + 1]);
        }
        return;
#endif
    }
#pragma unroll
    for (int k = 0; k < E; k++)
        if (k < room) p[k] = from_f<act_t>(v[k]);
}

// Sum is the running maximum of elements and the sum of exp(x - top). NaN stays in sum.
struct Sum {
    float top, sum;
    __device__ __forceinline__ void add(const float (&v)[E]) {
        float t = v[0];
#pragma unroll
        for (int k = 1; k < E; k++) t = fmaxf(t, v[k]);
        if (t > top) {
            sum *= exp_of(top - t);
            top = t;
        }
#pragma unroll
        for (int k = 0; k < E; k++) sum += exp_of(v[k] - top);
    }
    __device__ __forceinline__ void add(const Unit<act_t>& w) {
        float x[E];
        unpack<E>(w, x, act_t());
        add(x);
    }
};

// A thread of a row's block has the units threadIdx.x, threadIdx.x + THREADS, ... of the row. Between
// the passes the first HELD stay in its registers, where the row is aligned; those after them in shared
// memory, as many as there is room for.
extern __shared__ uint4 kept_words[];
#define STEP ((i64)THREADS * E)
#ifdef MTC_F32
#define HELD 0
#else
#define HELD (THREADS == 1024 ? 5 : 0)  // such rows have more
#endif

// kept is where the element at is kept, if there is room.
__device__ __forceinline__ act_t* kept(i64 at) { return (act_t*)kept_words + (at - HELD * STEP); }
__device__ __forceinline__ bool is_kept(i64 at) {
    constexpr i64 ROOM = S1 * 1024 / (i64)sizeof(act_t) / STEP * STEP;
    return ROOM > 0 && at >= HELD * STEP && at < HELD * STEP + ROOM;
}

// AHEAD is how many units of a row a thread reads before it uses the first: with 512 threads half of
// a row of 50,257.
#define AHEAD (THREADS == 512 ? 7 : 4)

// Row is what a thread holds of a row, and whether it does.
template <int N> struct Row {
    Unit<act_t> held[N ? N : 1];
    bool whole;
};

// row_sum is the maximum of a row and its sum of exponentials, the same in all threads. KEEP says
// that a second pass follows.
template <bool KEEP, int N> __device__ __forceinline__ Sum row_sum(const act_t* row, i64 v, Row<N>& mine) {
    Sum s = {LOWEST, 0.0f};
    const bool whole = mine.whole = aligned(bits_of(row));
    const i64 first = (i64)threadIdx.x * E;
    auto one = [&](i64 at) {
        float x[E];
        load_row(row + at, v - at, x);
        if (KEEP && is_kept(at)) store<E>(kept(at), x);
        s.add(x);
    };
    if (!whole) {
        for (i64 at = first; at < v; at += STEP) one(at);
    } else {
        if constexpr (N > 0) {
#pragma unroll
            for (int k = 0; k < N; k++) mine.held[k].ld(row + first + k * STEP);
            __syncwarp();  // the compiler must not put off reads until they are used
#pragma unroll
            for (int k = 0; k < N; k++) s.add(mine.held[k]);
        }
        for (i64 base = N * STEP; base < v; base += AHEAD * STEP) {  // as often in all lanes
            const i64 at = base + first;
            Unit<act_t> w[AHEAD];
#pragma unroll
            for (int k = 0; k < AHEAD; k++)
                if (at + k * STEP + E <= v) w[k].ld(row + at + k * STEP);
            __syncwarp();
#pragma unroll
            for (int k = 0; k < AHEAD; k++) {
                if (at + k * STEP + E > v) break;
                if (KEEP && is_kept(at + k * STEP)) w[k].st(kept(at + k * STEP));
                s.add(w[k]);
            }
        }
        // What is less than a unit at the end belongs to the thread that would have the unit.
        const i64 last = v / E;
        if (v % E && last % THREADS == threadIdx.x) one(last * E);
    }
    const float top = block_max<THREADS>(s.top);
    return Sum{top, block_sum<THREADS>(s.sum * exp_of(s.top - top))};
}

// loss_of is a row's loss, or 0 for a row without a target; work[row] keeps it for the sum.
__device__ __forceinline__ double loss_of(Sum s, float hit) { return ((double)s.top - (double)hit) + log((double)s.sum); }

__device__ __forceinline__ int target_of(const Args& a, i64 row) {
    const int t = ((const int*)a.p[1])[row];
    if (t >= a.i[1]) __trap();
    return t;
}

// p = {logits, targets i32, partials f64[2]}, i = {rows, V, pitch: elements from one row to the next}.
extern "C" __global__ void __launch_bounds__(THREADS) crossentropy_eval(Args a) {
    const i64 row = blockIdx.x, v = a.i[1];
    const int target = target_of(a, row);
    double* losses = (double*)a.work;
    if (target < 0) {
        if (threadIdx.x == 0) losses[row] = 0.0;
        return;
    }
    const act_t* logits = (const act_t*)a.p[0] + row * a.i[2];
    Row<0> mine;
    const Sum s = row_sum<false>(logits, v, mine);
    if (threadIdx.x == 0) losses[row] = loss_of(s, to_f(logits[target]));
}

// p = {logits, targets i32, partials f64[2], scalars f64, dlogits}; dlogits may be logits. The
// scalar 2 is plan.ScalarInvTokens.
extern "C" __global__ void __launch_bounds__(THREADS, S1 && S1 <= 104 ? 2 : 1) crossentropy_loss(Args a) {
    const i64 row = blockIdx.x, v = a.i[1];
    const int target = target_of(a, row);
    double* losses = (double*)a.work;
    const act_t* logits = (const act_t*)a.p[0] + row * a.i[2];
    act_t* d = (act_t*)a.p[4] + row * a.i[2];
    for (i64 at = v + threadIdx.x; at < a.i[2]; at += THREADS) d[at] = from_f<act_t>(0.f);  // a product may run over the gap
    if (target < 0) {
        const float zero[E] = {0, 0, 0, 0, 0, 0, 0, 0};
        for (i64 at = threadIdx.x * E; at < v; at += STEP) store_row(d + at, v - at, zero);
        if (threadIdx.x == 0) losses[row] = 0.0;
        return;
    }
    Row<HELD> mine;
    const Sum s = row_sum<true>(logits, v, mine);
    if (threadIdx.x == 0) losses[row] = loss_of(s, to_f(logits[target]));
    __syncthreads();  // the target's logit is read before its gradient takes the place
    const double inv_tokens = ((const double*)a.p[3])[2];
    const float inv = (float)inv_tokens, scale = (float)(inv_tokens / (double)s.sum);
    auto read = [=](i64 at, float (&x)[E]) {
        if (is_kept(at)) {
            load<E>(kept(at), x);
        } else {
            load_row(logits + at, v - at, x);
        }
    };
    auto write = [=](i64 at, float (&x)[E]) {
#pragma unroll
        for (int k = 0; k < E; k++) x[k] = exp_of(x[k] - s.top) * scale;
        if ((u64)(target - at) < E) {
#pragma unroll
            for (int k = 0; k < E; k++)
                if (at + k == target) x[k] -= inv;
        }
        store_row(d + at, v - at, x);
    };
    const i64 first = (i64)threadIdx.x * E;
    if constexpr (HELD > 0) {
        if (mine.whole) {
#pragma unroll
            for (int k = 0; k < HELD; k++) {
                float x[E];
                unpack<E>(mine.held[k], x, act_t());
                write(first + k * STEP, x);
            }
        }
    }
    for (i64 at = first + (mine.whole ? HELD * STEP : 0); at < v; at += 2 * STEP) {
        float x[E], y[E];
        const bool two = at + STEP < v;
        read(at, x);
        if (two) read(at + STEP, y);
        write(at, x);
        if (two) write(at + STEP, y);
    }
}

// The second launch, one block: partials += {losses, targets}. Rows are added in groups of 32, each
// in one order, and the groups one after the other: chunks of whole groups give the same bits as
// all rows at once.
extern "C" __global__ void __launch_bounds__(1024) crossentropy_sum(Args a) {
    __shared__ double some[32], has[32];
    const double* losses = (const double*)a.work;
    double* partials = (double*)a.p[2];
    double sum = 0.0, count = 0.0;
    if (threadIdx.x == 0) sum = partials[0], count = partials[1];
    for (i64 first = 0; first < a.i[0]; first += 1024) {
        const i64 r = first + threadIdx.x;
        const bool in = r < a.i[0];
        const double loss = warp_sum(in ? losses[r] : 0.0);
        const double n = warp_sum(in && ((const int*)a.p[1])[r] >= 0 ? 1.0 : 0.0);
        __syncthreads();
        if (threadIdx.x % 32 == 0) some[threadIdx.x / 32] = loss, has[threadIdx.x / 32] = n;
        __syncthreads();
        if (threadIdx.x == 0) {
#pragma unroll
            for (int k = 0; k < 32; k++) sum += some[k], count += has[k];
        }
    }
    if (threadIdx.x == 0) partials[0] = sum, partials[1] = count;
}
