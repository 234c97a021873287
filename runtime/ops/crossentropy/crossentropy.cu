#include "mtc.cuh"

// S0 is the threads of a row's block; S1 the KiB of dynamic shared memory in which crossentropy_loss
// keeps a row, or its beginning, between its two passes. What does not fit is read again. S2: logits have
// a soft cap, f = {cap}.
//mtc:spec 256 0
//mtc:spec 512 0
//mtc:spec 512 104
//mtc:spec 384 104
//mtc:spec 1024 224
//mtc:spec 256 0 1
//mtc:spec 512 104 1
//mtc:spec 384 104 1
//mtc:spec 1024 224 1
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

// Cap is the soft cap: cap * tanh(x / cap), rounded as if it were stored; without S2 it changes nothing.
struct Cap {
    float cap, inv;
    __device__ __forceinline__ explicit Cap(const Args& a) : cap(a.f[0]), inv(S2 ? 1.0f / a.f[0] : 0.0f) {}
    __device__ __forceinline__ float of(float x) const {
        if (!S2) return x;
#ifdef MTC_F32
        return cap * tanhf(x * inv);
#else
        return round_to<act_t>(cap * tanh_fast(x * inv));
#endif
    }
    // of a unit, of which `room` elements are in the row.
    __device__ __forceinline__ void of(float (&x)[E], int room) const {
#pragma unroll
        for (int k = 0; k < E; k++)
            if (S2 && k < room) x[k] = of(x[k]);
    }
    // slope is the derivative where z is what it made.
    __device__ __forceinline__ float slope(float z) const { return (1.0f - z * inv) * (1.0f + z * inv); }
};

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
    __device__ __forceinline__ void add(const Unit<act_t>& w, const Cap& cap) {
        float x[E];
        unpack<E>(w, x, act_t());
        cap.of(x, E);
        add(x);
    }
    // of_warp and of_block are that of all their threads. Where a block asks for many, odd tells whether it
    // is an odd one of them: they take turns over two places, so that threads wait but once.
    __device__ __forceinline__ Sum of_warp() const {
        const float t = warp_max(top);
        return Sum{t, warp_sum(sum * exp_of(top - t))};
    }
    __device__ __forceinline__ Sum of_block(bool odd) const {
        constexpr int W = THREADS / 32;
        __shared__ float2 part[2][W];
        const int lane = threadIdx.x % 32;
        const Sum warp = of_warp();
        if (lane == 0) part[odd][threadIdx.x / 32] = make_float2(warp.top, warp.sum);
        __syncthreads();
        const float2 p = part[odd][lane % W];
        return Sum{p.x, lane < W ? p.y : 0.0f}.of_warp();
    }
};

// A thread of a row's block has the units threadIdx.x, threadIdx.x + THREADS, ... of the row. Between
// the passes the first HELD stay in its registers, where the row is aligned; those after them in shared
// memory, as many as there is room for.
extern __shared__ uint4 kept_words[];
#define STEP (THREADS * E)
#ifdef MTC_F32
#define HELD 0
#else
#define HELD (THREADS == 1024 ? 5 : 0)  // such rows have more
#endif
#define ROOM (S1 * 1024 / (int)sizeof(act_t) / STEP * STEP)

// kept is where the element at is kept, behind N units in registers, if there is room.
template <int N> __device__ __forceinline__ act_t* kept(int at) { return (act_t*)kept_words + (at - N * STEP); }
template <int N> __device__ __forceinline__ bool is_kept(int at) { return ROOM > 0 && at >= N * STEP && at < N * STEP + ROOM; }

// AHEAD is how many units of a row a thread reads before it uses the first: fewer leave registers for
// more blocks.
template <bool KEEP> constexpr int AHEAD = KEEP || THREADS == 1024 ? 5 : 4;

// Row is a row of v logits as a thread sees it: whole says that it is aligned.
template <int N> struct Row {
    const act_t* x;
    int v;
    bool whole;
    Unit<act_t> held[N ? N : 1];

    // The units that are held are under way from here on.
    __device__ __forceinline__ Row(const act_t* x, int v, bool whole) : x(x), v(v), whole(whole) {
        if constexpr (N > 0) {
            if (!whole) return;
#pragma unroll
            for (int k = 0; k < N; k++) held[k].ld(x + first() + k * STEP);
        }
    }
    static __device__ __forceinline__ int first() { return threadIdx.x * E; }

    // What is less than a unit at the end belongs to the thread that would have the unit.
    __device__ __forceinline__ bool has_rest() const { return v % E && v / E % THREADS == threadIdx.x; }
    __device__ __forceinline__ int rest() const { return v / E * E; }

    // sum is the maximum and the sum of exponentials, the same in all threads. KEEP says that a second
    // pass follows.
    template <bool KEEP> __device__ __forceinline__ Sum sum(const Cap& cap) const {
        Sum s = {LOWEST, 0.0f};
        auto one = [&](int at) {
            float u[E];
            load_row(x + at, v - at, u);
            if (KEEP && is_kept<N>(at)) store<E>(kept<N>(at), u);
            cap.of(u, v - at);
            s.add(u);
        };
        if (!whole) {
            for (int at = first(); at < v; at += STEP) one(at);
        } else {
            if constexpr (N > 0) {
#pragma unroll
                for (int k = 0; k < N; k++) s.add(held[k], cap);
            }
            constexpr int A = AHEAD<KEEP>;
            for (int base = N * STEP; base < v; base += A * STEP) {  // as often in all lanes
                const int at = base + first();
                Unit<act_t> w[A];
#pragma unroll
                for (int k = 0; k < A; k++)
                    if (at + k * STEP + E <= v) w[k].ld(x + at + k * STEP);
                __syncwarp();  // the compiler must not put off reads until they are used
#pragma unroll
                for (int k = 0; k < A; k++) {
                    if (at + k * STEP + E > v) break;
                    if (KEEP && is_kept<N>(at + k * STEP)) w[k].st(kept<N>(at + k * STEP));
                    s.add(w[k], cap);
                }
            }
            if (has_rest()) one(rest());
        }
        return s.of_block(false);
    }
};

// loss_of is a row's loss, or 0 for a row without a target; work[row] keeps it for the sum.
__device__ __forceinline__ double loss_of(Sum s, float hit) { return ((double)s.top - (double)hit) + log((double)s.sum); }

// p = {logits, targets i32, partials f64[2]}, i = {rows, V, pitch: elements from one row to the next}.
extern "C" __global__ void __launch_bounds__(THREADS) crossentropy_eval(Args a) {
    const i64 at = blockIdx.x;
    const int target = ((const int*)a.p[1])[at];
    const act_t* logits = (const act_t*)a.p[0] + at * a.i[2];
    if (target >= a.i[1]) __trap();
    double* losses = (double*)a.work;
    if (target < 0) {
        if (threadIdx.x == 0) losses[at] = 0.0;
        return;
    }
    const Cap cap(a);
    const float hit = cap.of(to_f(logits[target]));
    const Sum s = Row<0>(logits, (int)a.i[1], aligned(bits_of(logits))).sum<false>(cap);
    if (threadIdx.x == 0) losses[at] = loss_of(s, hit);
}

// Gradient turns logits into their gradients: of what is given, or of what the cap made of it.
struct Gradient {
    Cap cap;
    float top, scale, inv;
    int target;
    __device__ __forceinline__ void of(int at, float (&x)[E]) const {
#pragma unroll
        for (int k = 0; k < E; k++) x[k] = cap.of(x[k]);  // what lies behind the row is not stored
        of_capped(at, x);
    }
    __device__ __forceinline__ void of_capped(int at, float (&z)[E]) const {
        float x[E];
#pragma unroll
        for (int k = 0; k < E; k++) x[k] = exp_of(z[k] - top) * scale;
        if ((u32)(target - at) < E) {
#pragma unroll
            for (int k = 0; k < E; k++)
                if (at + k == target) x[k] -= inv;
        }
#pragma unroll
        for (int k = 0; k < E; k++) z[k] = S2 ? x[k] * cap.slope(z[k]) : x[k];
    }
};

// gradient writes those of a row to d, from what is kept of it.
template <int N> __device__ __forceinline__ void gradient(const Row<N>& x, const Gradient& g, act_t* d) {
    if (!x.whole) {
        for (int at = x.first(); at < x.v; at += STEP) {
            float u[E];
            if (is_kept<N>(at)) {
                load<E>(kept<N>(at), u);
            } else {
                load_row(x.x + at, x.v - at, u);
            }
            g.of(at, u);
            store_row(d + at, x.v - at, u);
        }
    } else {
        if constexpr (N > 0) {
#pragma unroll
            for (int k = 0; k < N; k++) {
                float u[E];
                unpack<E>(x.held[k], u, act_t());
                g.of(x.first() + k * STEP, u);
                store<E>(d + x.first() + k * STEP, u);
            }
        }
        const int units = x.v / E * E, end = min(units, N * STEP + ROOM);
        int at = x.first() + N * STEP;
#pragma unroll 2
        for (; at < end; at += STEP) {
            float u[E];
            load<E>(kept<N>(at), u);
            g.of(at, u);
            store<E>(d + at, u);
        }
        // What was not kept.
        for (; at < units; at += 2 * STEP) {
            float u[E], w[E];
            const bool two = at + STEP < units;
            load<E>(x.x + at, u);
            if (two) load<E>(x.x + at + STEP, w);
            g.of(at, u);
            store<E>(d + at, u);
            if (!two) break;
            g.of(at + STEP, w);
            store<E>(d + at + STEP, w);
        }
        if (x.has_rest()) {
            float u[E];
            load_row(x.x + x.rest(), x.v - x.rest(), u);
            g.of(x.rest(), u);
            store_row(d + x.rest(), x.v - x.rest(), u);
        }
    }
}

__device__ __forceinline__ void zeros(act_t* d, int n) {
    const float zero[E] = {0, 0, 0, 0, 0, 0, 0, 0};
    for (int at = threadIdx.x * E; at < n; at += STEP) store_row(d + at, n - at, zero);
}

// p = {logits, targets i32, partials f64[2], scalars f64, dlogits}; dlogits may be logits. The
// scalar 2 is plan.ScalarInvTokens.
extern "C" __global__ void __launch_bounds__(THREADS, S1 && S1 <= 104 ? 2 : 1) crossentropy_loss(Args a) {
    const i64 row = blockIdx.x;
    const int v = (int)a.i[1];
    // All that a row waits for is asked for at once: what it is without a target is read in vain.
    const int target = ((const int*)a.p[1])[row];
    const float inv = (float)((const double*)a.p[3])[2];
    const act_t* logits = (const act_t*)a.p[0] + row * a.i[2];
    act_t* d = (act_t*)a.p[4] + row * a.i[2];
    const Row<HELD> x(logits, v, aligned(bits_of(logits) | bits_of(d)));
    for (i64 at = v + threadIdx.x; at < a.i[2]; at += THREADS) d[at] = from_f<act_t>(0.f);  // a product may run over the gap
    if (target >= v) __trap();
    double* losses = (double*)a.work;
    if (target < 0) {
        zeros(d, v);
        if (threadIdx.x == 0) losses[row] = 0.0;
        return;
    }
    const Cap cap(a);
    const float hit = cap.of(to_f(logits[target]));  // before its gradient takes the place
    const Sum s = x.sum<true>(cap);
    gradient(x, Gradient{cap, s.top, inv / s.sum, inv, target}, d);
    if (threadIdx.x == 0) losses[row] = loss_of(s, hit);
}

// ---- rows one after the other ----------------------------------------------------------------------
// The same for rows in bf16 of whole units, which a block keeps: it takes every gridDim.x-th row, and
// while it writes the gradient of one it asks for the next, unit by unit where one becomes free, so that
// reading and writing go on together. A thread has the same units of every row, and copies them itself:
// threads wait for each other but once a row.

#define SLOTS (S1 * 1024 / (THREADS * 16))          // units of a thread in shared memory
#define HOLDS (S1 == 0 || THREADS == 512 ? 0 : 5)    // units in registers, which come before

// wait_all_but waits for a thread's copies but for the last n, a constant once loops are unrolled.
__device__ __forceinline__ void wait_all_but(int n) {
    switch (n) {
#define CASE(n) case n: copies_wait<n>(); break;
#define CASES(n) CASE(n) CASE(n + 1) CASE(n + 2) CASE(n + 3)
        CASES(0) CASES(4) CASES(8) CASES(12) CASES(16) CASES(20) CASES(24)
#undef CASES
#undef CASE
    default: copies_wait<28>();
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, S1 <= 104 ? 2 : 1) crossentropy_rows(Args a) {
#ifndef MTC_F32
    constexpr int H = HOLDS, K = SLOTS;
    const i64 rows = a.i[0], pitch = a.i[2];
    const int v = (int)a.i[1], units = (v + E - 1) / E, mine = (units - (int)threadIdx.x + THREADS - 1) / THREADS;
    const act_t* logits = (const act_t*)a.p[0];
    act_t* grads = (act_t*)a.p[4];
    double* losses = (double*)a.work;
    const float inv = (float)((const double*)a.p[3])[2];
    uint4* slots = kept_words + threadIdx.x;
    Unit<act_t> held[H ? H : 1];
    const Cap cap(a);

    auto target_of = [&](i64 row) {
        const int t = row < rows ? ((const int*)a.p[1])[row] : -1;
        if (t >= v) __trap();
        return t;
    };
    auto hold = [&](const act_t* x, int k) {
        if (k < mine) held[k].ld(x + (k * THREADS + (int)threadIdx.x) * E);
    };
    auto bring = [&](const act_t* x, int k) {
        if (H + k < mine) copy16(slots + k * THREADS, x + ((H + k) * THREADS + (int)threadIdx.x) * E);
    };
    // What lies behind the row in its last unit counts nothing.
    auto end = [&](int at, float (&u)[E], float value) {
        if (at + E <= v) return;
#pragma unroll
        for (int e = 0; e < E; e++) u[e] = at + e < v ? u[e] : value;
    };

    i64 row = blockIdx.x;
    int target = target_of(row), next = target_of(row + gridDim.x);
    float hit = 0.0f;
    if (target >= 0) {
        const act_t* x = logits + row * pitch;
        hit = cap.of(to_f(x[target]));
#pragma unroll
        for (int k = 0; k < H; k++) hold(x, k);
    }
#pragma unroll
    for (int k = 0; k < K; k++) {
        if (target >= 0) bring(logits + row * pitch, k);
        copies_commit();
    }
    bool odd = false;
    for (; row < rows; row += gridDim.x) {
        const act_t* ahead = logits + (row + gridDim.x) * pitch;
        const int beyond = target_of(row + 2 * (i64)gridDim.x);
        const float next_hit = next >= 0 ? cap.of(to_f(ahead[next])) : 0.0f;
        Gradient g = {cap, 0.0f, 0.0f, 0.0f, -E};
        if (target >= 0) {
            Sum s = {LOWEST, 0.0f};
            // A unit becomes its capped logits, for the second pass.
            auto add = [&](Unit<act_t>& w, int k) {
                const int at = (k * THREADS + (int)threadIdx.x) * E;
                float u[E];
                unpack<E>(w, u, act_t());
                if (S2) {
                    cap.of(u, E);
                    pack<E>(w, u, act_t());
                }
                end(at, u, NOTHING);
                s.add(u);
            };
#pragma unroll
            for (int k = 0; k < H; k++)
                if (k < mine) add(held[k], k);
#pragma unroll
            for (int k = 0; k < K; k++) {
                wait_all_but(K - 1 - k);
                if (H + k >= mine) continue;
                Unit<act_t> w;
                w.ld(slots + k * THREADS);
                add(w, H + k);
                if (S2) w.st(slots + k * THREADS);
            }
            s = s.of_block(odd);
            odd = !odd;
            g = Gradient{cap, s.top, inv / s.sum, inv, target};
            if (threadIdx.x == 0) losses[row] = loss_of(s, hit);
        } else if (threadIdx.x == 0) {
            losses[row] = 0.0;
        }
        act_t* d = grads + row * pitch;
        auto put = [&](const Unit<act_t>& w, int k) {
            const int at = (k * THREADS + (int)threadIdx.x) * E;
            float u[E] = {0, 0, 0, 0, 0, 0, 0, 0};
            if (target >= 0) {
                unpack<E>(w, u, act_t());
                g.of_capped(at, u);
                end(at, u, 0.0f);
            }
            store<E>(d + at, u);
        };
#pragma unroll
        for (int k = 0; k < H; k++) {
            if (k < mine) put(held[k], k);
            if (next >= 0) hold(ahead, k);
        }
#pragma unroll
        for (int k = 0; k < K; k++) {
            if (H + k < mine) {
                Unit<act_t> w;
                w.ld(slots + k * THREADS);
                put(w, H + k);
            }
            if (next >= 0) bring(ahead, k);
            copies_commit();
        }
        for (i64 at = units * E + threadIdx.x; at < pitch; at += THREADS) d[at] = from_f<act_t>(0.f);  // a product may run over the gap
        target = next, next = beyond, hit = next_hit;
    }
#endif
}

#ifndef MTC_F32
// ahead_of is how many elements the vector that p lies in has in front of it.
__device__ __forceinline__ int ahead_of(const act_t* p) { return (int)(bits_of(p) / 2 % E); }

// unit_of is the unit that begins off elements into the vector low, behind which is high.
__device__ __forceinline__ uint4 unit_of(uint4 low, uint4 high, int off) {
    u32 w[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
#pragma unroll
    for (int k = 0; k < 6; k++) w[k] = off & 4 ? w[k + 2] : w[k];
#pragma unroll
    for (int k = 0; k < 5; k++) w[k] = off & 2 ? w[k + 1] : w[k];
#pragma unroll
    for (int k = 0; k < 4; k++) w[k] = (u32)(((u64)w[k + 1] << 32 | w[k]) >> (off & 1) * 16);
    return make_uint4(w[0], w[1], w[2], w[3]);
}
#endif

// The same for rows that begin anywhere. A block has a row as it lies in memory, in whole vectors; for the sum, a
// thread puts together the units that it has of every row, wherever that begins, so that the sum has the same
// bits. An element's gradient does not depend on which thread it is made by.
extern "C" __global__ void __launch_bounds__(THREADS, S1 <= 104 ? 2 : 1) crossentropy_loose(Args a) {
#if !defined(MTC_F32) && S0 == 512 && S1
    constexpr int K = SLOTS;
    const i64 rows = a.i[0], pitch = a.i[2];
    const int v = (int)a.i[1], tid = (int)threadIdx.x;
    act_t* grads = (act_t*)a.p[4];
    double* losses = (double*)a.work;
    const float inv = (float)((const double*)a.p[3])[2];
    const Cap cap(a);

    auto target_of = [&](i64 row) {
        const int t = row < rows ? ((const int*)a.p[1])[row] : -1;
        if (t >= v) __trap();
        return t;
    };
    auto logits_of = [&](i64 row) { return (const act_t*)a.p[0] + row * pitch; };
    // Vector u of the row at x.
    auto bring = [&](const act_t* x, int u) {
        const int off = ahead_of(x);
        if (u * E < off + v) copy16(kept_words + u, x - off + u * E);
    };

    i64 row = blockIdx.x;
    int target = target_of(row), next = target_of(row + gridDim.x);
    float hit = target >= 0 ? cap.of(to_f(logits_of(row)[target])) : 0.0f;
#pragma unroll
    for (int k = 0; k < K; k++)
        if (target >= 0) bring(logits_of(row), k * THREADS + tid);
    copies_commit();
    bool odd = false;
    for (; row < rows; row += gridDim.x) {
        const int off = ahead_of(logits_of(row));
        const act_t* ahead = logits_of(row + gridDim.x);
        const int beyond = target_of(row + 2 * (i64)gridDim.x);
        const float next_hit = next >= 0 ? cap.of(to_f(ahead[next])) : 0.0f;
        Gradient g = {cap, 0.0f, 0.0f, 0.0f, 2 * -E};
        if (target >= 0) {
            Sum s = {LOWEST, 0.0f};
            copies_wait<0>();
            __syncthreads();  // a unit ends in the vector that the next thread copied
#pragma unroll
            for (int k = 0; k < K; k++) {
                const int u = k * THREADS + tid, at = u * E;
                if (at >= v) continue;
                Unit<act_t> w;
                w.set(0, unit_of(kept_words[u], kept_words[u + 1], off));
                float x[E];
                unpack<E>(w, x, act_t());
                cap.of(x, E);
                if (at + E > v) {
#pragma unroll
                    for (int e = 0; e < E; e++) x[e] = at + e < v ? x[e] : NOTHING;
                }
                s.add(x);
            }
            s = s.of_block(odd);  // waits for all: vectors are their own threads' again
            odd = !odd;
            g = Gradient{cap, s.top, inv / s.sum, inv, target};
            if (tid == 0) losses[row] = loss_of(s, hit);
        } else if (tid == 0) {
            losses[row] = 0.0;
        }
        act_t* d = grads + row * pitch;
#pragma unroll
        for (int k = 0; k < K; k++) {
            const int u = k * THREADS + tid, at = u * E - off;
            if (at < v) {
                Unit<act_t> w;
                float x[E] = {0, 0, 0, 0, 0, 0, 0, 0};
                if (target >= 0) {
                    w.set(0, kept_words[u]);
                    unpack<E>(w, x, act_t());
                    g.of(at, x);
                }
                if (at >= 0 && at + E <= v) {
                    store<E>(d + at, x);
                } else {
#pragma unroll
                    for (int e = 0; e < E; e++)
                        if (at + e >= 0 && at + e < v) d[at + e] = to_bf16(x[e]);
                }
            }
            if (next >= 0) bring(ahead, u);
        }
        copies_commit();
        for (i64 at = v + tid; at < pitch; at += THREADS) d[at] = from_f<act_t>(0.f);  // a product may run over the gap
        target = next, next = beyond, hit = next_hit;
    }
#endif
}

// The second launch, one block: partials += {losses, targets}. Rows are added in groups of 32, each
// in one order, and the groups one after the other: chunks of whole groups give the same bits as
// all rows at once.
extern "C" __global__ void __launch_bounds__(1024) crossentropy_sum(Args a) {
    constexpr int TIMES = 8;
    __shared__ double some[TIMES][32], has[TIMES][32];
    const double* losses = (const double*)a.work;
    const int* targets = (const int*)a.p[1];
    double* partials = (double*)a.p[2];
    // One thread adds the losses, another the targets.
    const int adds = threadIdx.x == 0 ? 0 : threadIdx.x == 32 ? 1 : -1;
    double sum = adds >= 0 ? partials[adds] : 0.0;
    for (i64 first = 0; first < a.i[0]; first += TIMES * 1024) {
        double loss[TIMES], n[TIMES];
#pragma unroll
        for (int t = 0; t < TIMES; t++) {
            const i64 r = first + t * 1024 + threadIdx.x;
            loss[t] = r < a.i[0] ? losses[r] : 0.0, n[t] = r < a.i[0] && targets[r] >= 0 ? 1.0 : 0.0;
        }
        __syncthreads();
#pragma unroll
        for (int t = 0; t < TIMES; t++) {
            if (first + t * 1024 >= a.i[0]) break;
            const double l = warp_sum(loss[t]), m = warp_sum(n[t]);
            if (threadIdx.x % 32 == 0) some[t][threadIdx.x / 32] = l, has[t][threadIdx.x / 32] = m;
        }
        __syncthreads();
        const double(*from)[32] = adds ? has : some;
        for (int t = 0; adds >= 0 && t < TIMES && first + t * 1024 < a.i[0]; t++) {
#pragma unroll
            for (int k = 0; k < 32; k++) sum += from[t][k];
        }
    }
    if (adds >= 0) partials[adds] = sum;
}
