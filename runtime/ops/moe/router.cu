// Routers: which token goes to which expert, by what factor, and how a router's state moves. select.go,
// gate.go and layout.go say what is computed; the functions here are those of the CPU, and what
// they count, compare and write are the same numbers. Scores are in f64.
//
// A selection marks pairs in a mask of bits, [N][words], and then lays them out: counts of each block of
// 256 tokens and each expert are summed up to places. All of it stays on the device. Counts are
// whole numbers, so adding them atomically leaves one result.
//
// i: N, T, E, C, kind, k, flags, balance, pool, choice, causal; f: rate, ema, capacity, start, u, alpha,
// zloss, scale.
#include "mtc.cuh"

constexpr int HALF = 15 * 64, BUCKETS = 2 * HALF, PLACES = 16, BLOCK = 256;
constexpr int MAX_EXPERTS = 1024, MAX_WORDS = MAX_EXPERTS / 32;
enum { CUTOFF, TOP_K };                                      // kind
enum { NO_POOL, SEQUENCE, MICRO, STEP };                     // pool
enum { NO_BALANCE, AUX_MICRO, AUX_STEP, LOSS_FREE, QUANTILE };  // balance
enum { FROZEN, TRAIN, COLLECT };                             // mode
enum { UPDATES, WEIGHT, NON_CAUSAL };                        // control
enum { TOKENS, DROPPED, FLOODED, CHOSEN };                   // counters
enum { LOSS_BALANCE, LOSS_Z };                               // losses, in whole parts of 2^-20
constexpr int SCALAR_INV_TOKENS = 2, SCALAR_SKIP = 6, SCALAR_ROUTE = 10;

struct Router {
    i64 n, seq;
    int e, slots, kind, k, balance, pool, choice, causal;
    bool sigmoid, renorm, observed;
    float rate, ema, capacity, start, u, alpha, zloss, scale;
    __device__ explicit Router(const Args& a)
        : n(a.i[0]), seq(a.i[1]), e((int)a.i[2]), slots((int)a.i[3]), kind((int)a.i[4]), k((int)a.i[5]), balance((int)a.i[7]),
          pool((int)a.i[8]), choice((int)a.i[9]), causal((int)a.i[10]), sigmoid(a.i[6] & 1), renorm(a.i[6] & 2), observed(a.i[6] & 4),
          rate(a.f[0]), ema(a.f[1]), capacity(a.f[2]), start(a.f[3]), u(a.f[4]), alpha(a.f[5]), zloss(a.f[6]), scale(a.f[7]) {}
    __device__ __forceinline__ bool hist() const { return kind == CUTOFF || balance == QUANTILE; }
    __device__ __forceinline__ bool biased() const { return balance == LOSS_FREE || balance == QUANTILE; }
    __device__ __forceinline__ int words() const { return (e + 31) / 32; }
    __device__ __forceinline__ i64 blocks() const { return ceil_div(n, BLOCK); }
    __device__ __forceinline__ i64 most() const { return n * slots; }
};

// Cut takes pieces of memory, each at a multiple of 64 bytes.
struct Cut {
    char* at;
    template <class T> __device__ __forceinline__ T* take(i64 n) {
        char* p = at;
        at += (n * (i64)sizeof(T) + 63) / 64 * 64;
        return (T*)p;
    }
};

struct State {
    double *control, *average;
    float *threshold, *bias, *quantile;
    int *counters, *count, *fan, *place, *hist;
    i64* losses;
    double* report;
    int fans;
    __device__ State(void* p, const Router& r) : fans(min(r.e, 15) + 1) {
        Cut c{(char*)p};
        control = c.take<double>(16), average = c.take<double>(r.e);
        threshold = c.take<float>(r.e), bias = c.take<float>(r.e), quantile = c.take<float>(r.e);
        counters = c.take<int>(16), losses = c.take<i64>(8), count = c.take<int>(r.e), fan = c.take<int>(fans), place = c.take<int>(2 * PLACES);
        hist = r.hist() ? c.take<int>((i64)r.e * BUCKETS) : nullptr;
        report = c.take<double>(16 + 4 * r.e + fans + 2 * PLACES);
    }
    __device__ __forceinline__ float cutoff(int e, float start) const { return control[UPDATES] > 0 ? threshold[e] : start; }
};

struct Routing {
    int *offsets, *first, *rows, *token, *expert;
    __device__ Routing(void* p, const Router& r) {
        offsets = (int*)p;
        first = offsets + ((i64)r.e + 1 + 15) / 16 * 16;
        rows = first + r.n + 1, token = rows + r.most(), expert = token + r.most();
    }
};

// Scratch is what the launches of a selection hand each other; cuda.go sizes it.
constexpr int DIGITS = 2048;
enum { TOTAL, LEAST, TIES, LAST };  // head: pairs marked; the key below which they are dropped, how many equal it, the last of them kept
struct Scratch {
    i64* head;      // [16]
    int* keys;      // [3][DIGITS]
    float* cutoff;  // [E]
    int* count;     // [blocks][E], then where a block's rows of an expert begin among its rows
    int* fans;      // [blocks], likewise of all rows by token
    u32* mask;      // [N][words]
    double* next;   // [N]: the score that a token would have taken next
    double* score;  // [N][E], of biased routers
    __device__ Scratch(const Args& a, const Router& r) {
        Cut c{(char*)a.work};
        head = c.take<i64>(16), keys = c.take<int>(3 * DIGITS), cutoff = c.take<float>(r.e);
        count = c.take<int>(r.blocks() * r.e), fans = c.take<int>(r.blocks());
        mask = c.take<u32>(r.n * r.words());
        next = c.take<double>(r.balance == QUANTILE ? r.n : 0), score = c.take<double>(r.biased() ? r.n * r.e : 0);
    }
};

// Selection is the arguments of moe_observe and moe_select. p: logits f32 [N, E], targets i32 [N] or
// null, scalars f64 or null, state, result.
struct Selection : Router {
    const float* logits;
    const int* targets;
    const double* scalars;
    State state;
    Scratch s;
    __device__ explicit Selection(const Args& a)
        : Router(a), logits((const float*)a.p[0]), targets((const int*)a.p[1]), scalars((const double*)a.p[2]), state(a.p[3], *this), s(a, *this) {}
    __device__ __forceinline__ int mode() const { return scalars ? (int)scalars[SCALAR_ROUTE] : FROZEN; }
    __device__ __forceinline__ bool counts(i64 t) const { return !targets || targets[t] >= 0; }
    // chooses tells whether experts choose in this step.
    __device__ __forceinline__ bool chooses() const {
        return kind == CUTOFF && mode() == TRAIN && pool != NO_POOL && (choice < 0 || state.control[UPDATES] < choice);
    }
    __device__ __forceinline__ float logit(i64 t, int e) const { return logits[t * this->e + e]; }
    __device__ __forceinline__ bool floods() const { return s.head[TOTAL] > most(); }
};

// ---- numbers

__device__ __forceinline__ double sigmoid_of(double x) { return 1 / (1 + exp(-x)); }

// Softmax is the highest of a token's logits and the sum of exp(logit - top).
struct Softmax {
    double top, sum;
    __device__ Softmax(const float* l, int n) : top(-(double)__int_as_float(0x7f800000)), sum(0) {
        for (int i = 0; i < n; i++) {
            const double x = l[i];
            if (x > top || x != x) top = x;
        }
        for (int i = 0; i < n; i++) sum += exp((double)l[i] - top);
    }
    __device__ __forceinline__ double of(float x) const { return exp((double)x - top) / sum; }
    __device__ __forceinline__ double lse() const { return top + log(sum); }
};

// order_key ascends with x; that of NaN is the lowest. -0 equals 0.
__device__ __forceinline__ u32 order_key(float x) {
    if (x != x) return 0;
    const u32 bits = x == 0 ? 0 : __float_as_uint(x);
    return bits >> 31 ? ~bits : bits | 1u << 31;
}

// bucket_of is hist.go's Bucket.
__device__ __forceinline__ int bucket_of(float x) {
    const u32 bits = __float_as_uint(x), a = bits & 0x7fffffffu, low = (127 - 7) << 23;
    if (a > 0x7f800000u) return -1;
    const int i = a < low ? (int)(__uint_as_float(a) * 8192.f) : min(64 + (int)((a - low) >> 17), HALF - 1);
    return bits >> 31 ? HALF - 1 - i : HALF + i;
}

// edge_of is hist.go's Edge.
__device__ __forceinline__ double edge_of(int b) {
    const bool negative = b < HALF;
    int i = negative ? HALF - b : b - HALF;
    double x;
    if (i < 64) x = i / 8192.0;
    else {
        i -= 64;
        x = (1 + i % 64 / 64.0) * __longlong_as_double((i64)(1023 + i / 64 - 7) << 52);
    }
    return negative ? -x : x;
}

// top_quantile is hist.go's TopQuantile, made by a warp; ok tells whether anything was counted.
__device__ __forceinline__ double top_quantile(const int* hist, double k, bool& ok) {
    const int lane = threadIdx.x % 32;
    i64 above = 0;
    int last = -1;
    for (int top = BUCKETS - 1; top >= 0; top -= 32) {  // lane l has bucket top - l
        const int n = hist[top - lane];
        i64 sum = n;
#pragma unroll
        for (int d = 1; d < 32; d *= 2) {
            const i64 v = __shfl_up_sync(FULL, sum, d);
            if (lane >= d) sum += v;
        }
        const u32 some = __ballot_sync(FULL, n != 0), hit = __ballot_sync(FULL, n != 0 && (double)(above + sum) >= k);
        if (hit) {
            const int at = __ffs(hit) - 1;
            const double m = __shfl_sync(FULL, n, at), before = (double)(above + __shfl_sync(FULL, sum, at)) - m;
            const double hi = edge_of(top - at + 1), lo = edge_of(top - at), part = k - before;
            ok = true;
            return hi - (hi - lo) * (part > 0 ? part : 0) / m;
        }
        if (some) last = top - (31 - __clz(some));
        above += __shfl_sync(FULL, sum, 31);
    }
    ok = last >= 0;
    return ok ? edge_of(last) : 0;
}

// block_scan gives the sum of v over the threads before this one, and all of them.
template <int THREADS> __device__ __forceinline__ int block_scan(int v, int& all) {
    __shared__ int part[THREADS / 32];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    int sum = v;
#pragma unroll
    for (int d = 1; d < 32; d *= 2) {
        const int x = __shfl_up_sync(FULL, sum, d);
        if (lane >= d) sum += x;
    }
    __syncthreads();
    if (lane == 31) part[warp] = sum;
    __syncthreads();
    int before = 0;
    all = 0;
    for (int i = 0; i < THREADS / 32; i++) {
        if (i < warp) before += part[i];
        all += part[i];
    }
    return before + sum - v;
}

// ---- select: marking

// moe_begin clears what is counted and says the cutoffs.
extern "C" __global__ void __launch_bounds__(256) moe_begin(Args a) {
    const Selection g(a);
    for (i64 i = thread_id(); i < g.n * g.words(); i += num_threads()) g.s.mask[i] = 0;
    for (i64 i = thread_id(); i < 3 * DIGITS; i += num_threads()) g.s.keys[i] = 0;
    if (thread_id() < 16) g.s.head[thread_id()] = 0;
    if (g.kind != CUTOFF) return;
    const bool step = g.pool == STEP && g.chooses();
    const double share = (double)g.rate * g.state.counters[TOKENS];
    for (i64 e = thread_id() / 32; e < g.e; e += num_threads() / 32) {
        bool ok;
        const float x = step ? (float)top_quantile(g.state.hist + e * BUCKETS, share, ok) : g.state.cutoff((int)e, g.start);
        if (threadIdx.x % 32 == 0) g.s.cutoff[e] = x;
    }
}

// best is the highest score that is not taken, the first of equal ones; NaN is lowest.
template <class F> __device__ __forceinline__ int best(int n, const u32* taken, F score) {
    int at = -1;
    double top = 0;
    for (int i = 0; i < n; i++) {
        if (taken[i / 32] >> i % 32 & 1) continue;
        const double x = score(i);
        if (at < 0 || x > top || (top != top && x == x)) at = i, top = x;
    }
    return at;
}

// moe_mark: a thread marks the experts of a token.
extern "C" __global__ void __launch_bounds__(256) moe_mark(Args a) {
    const Selection g(a);
    const i64 t = thread_id();
    if (t >= g.n) return;
    const float* l = g.logits + t * g.e;
    u32* mask = g.s.mask + t * g.words();
    if (g.kind == CUTOFF) {
        if (g.chooses() && g.pool != STEP) return;
        for (int w = 0; w < g.words(); w++) {
            u32 m = 0;
            for (int i = 0; i < 32 && w * 32 + i < g.e; i++) m |= (u32)(l[w * 32 + i] > g.s.cutoff[w * 32 + i]) << i;
            mask[w] = m;
        }
        return;
    }
    double* score = g.s.score + t * g.e;
    if (g.biased()) {
        if (g.sigmoid) {
            for (int i = 0; i < g.e; i++) score[i] = sigmoid_of(l[i]);
        } else {
            const Softmax p(l, g.e);
            for (int i = 0; i < g.e; i++) score[i] = p.of(l[i]);
        }
    }
    u32 taken[MAX_WORDS];
    for (int w = 0; w < g.words(); w++) taken[w] = 0;
    auto value = [&](int i) { return g.biased() ? score[i] + (double)g.state.bias[i] : (double)l[i]; };
    for (int i = 0; i < g.k; i++) {
        const int e = best(g.e, taken, value);
        if (e >= 0) taken[e / 32] |= 1u << e % 32;
    }
    for (int w = 0; w < g.words(); w++) mask[w] = taken[w];
    if (g.balance == QUANTILE) {
        const int e = best(g.e, taken, value);
        g.s.next[t] = e >= 0 ? value(e) : 0;
    }
}

// digit finds in counts the digit of the left-th highest, and what is left of left among its equals.
__device__ __forceinline__ int digit(const int* counts, int n, i64& left) {
    for (int d = n - 1; d > 0; d--) {
        if (left <= counts[d]) return d;
        left -= counts[d];
    }
    return 0;
}

// highest marks the k counted tokens of [lo, hi) of the highest logits of expert e, ties by earlier
// token, and with padding what padding lies above the least. One block makes it.
__device__ __forceinline__ void highest(const Selection& g, int e, i64 lo, i64 hi, i64 counted, i64 k, bool padding) {
    __shared__ int counts[256];
    __shared__ u32 prefix;
    __shared__ i64 left;
    const u32 bit = 1u << e % 32;
    auto word = [&](i64 t) { return g.s.mask + t * g.words() + e / 32; };
    if (k <= 0) return;
    u32 mask = 0;
    if (threadIdx.x == 0) prefix = 0, left = k < counted ? k : counted;
    for (int shift = 24; shift >= 0; shift -= 8) {
        __syncthreads();
        if (threadIdx.x < 256) counts[threadIdx.x] = 0;
        __syncthreads();
        for (i64 t = lo + threadIdx.x; t < hi; t += blockDim.x) {
            const u32 key = order_key(g.logit(t, e));
            if (g.counts(t) && (key & mask) == prefix) atomicAdd(&counts[key >> shift & 255], 1);
        }
        __syncthreads();
        if (threadIdx.x == 0) prefix |= (u32)digit(counts, 256, left) << shift;
        mask |= 255u << shift;
    }
    __syncthreads();
    const u32 least = prefix;
    const i64 ties = left;
    i64 before = 0;  // equals at earlier tokens
    for (i64 t0 = lo; t0 < hi; t0 += blockDim.x) {
        const i64 t = t0 + threadIdx.x;
        const u32 key = t < hi ? order_key(g.logit(t, e)) : 0;
        const bool counts_here = t < hi && g.counts(t), equal = counts_here && key == least;
        int all;
        const i64 rank = before + block_scan<1024>(equal, all);
        before += all;
        if (t < hi && ((key > least && (padding || counts_here)) || (equal && rank < ties))) atomicOr(word(t), bit);
    }
}

// counted is the number of tokens of [lo, hi) for which f holds, of one block.
template <class F> __device__ __forceinline__ i64 counted(i64 lo, i64 hi, F f) {
    int n = 0;
    for (i64 t = lo + threadIdx.x; t < hi; t += blockDim.x) n += f(t);
    return block_sum<1024>(n);
}

// moe_choose: block (e, p) lets expert e choose from pool p, and from those that many pools behind it.
extern "C" __global__ void __launch_bounds__(1024) moe_choose(Args a) {
    const Selection g(a);
    if (!g.chooses() || g.pool == STEP) return;
    const i64 pool = g.pool == SEQUENCE ? g.seq : g.n;
    for (i64 lo = blockIdx.y * pool; lo < g.n; lo += gridDim.y * pool) {
        const i64 hi = imin(g.n, lo + pool);
        const i64 n = counted(lo, hi, [&](i64 t) { return g.counts(t); });
        highest(g, blockIdx.x, lo, hi, n, (i64)((double)g.rate * (double)n * (1 + 1e-6)), true);
        __syncthreads();
    }
}

// moe_bound: block e keeps expert e within its capacity.
extern "C" __global__ void __launch_bounds__(1024) moe_bound(Args a) {
    const Selection g(a);
    if (g.mode() != TRAIN || g.chooses()) return;
    const int e = blockIdx.x;
    auto word = [&](i64 t) { return g.s.mask + t * g.words() + e / 32; };
    const i64 n = counted(0, g.n, [&](i64 t) { return g.counts(t); });
    const i64 have = counted(0, g.n, [&](i64 t) { return g.counts(t) && (*word(t) >> e % 32 & 1); });
    const double k = (double)g.rate * (double)n * (1 + 1e-6);  // as in share: the rate was rounded to f32
    const i64 least = (i64)(k * (1 - (double)g.capacity)), most = (i64)(k * (1 + (double)g.capacity));
    if (have >= least && have <= most) return;
    for (i64 t = threadIdx.x; t < g.n; t += blockDim.x) atomicAnd(word(t), ~(1u << e % 32));
    __syncthreads();
    highest(g, e, 0, g.n, n, have > most ? most : least, false);
}

// ---- select: dropping what memory does not hold

// pairs calls f(t, e, key) for the marked pairs of the thread's tokens.
template <class F> __device__ __forceinline__ void pairs(const Selection& g, i64 t, F f) {
    for (int w = 0; w < g.words(); w++)
        for (u32 m = g.s.mask[t * g.words() + w]; m; m &= m - 1) {
            const int e = w * 32 + __ffs(m) - 1;
            f(e, order_key(g.logit(t, e)));
        }
}

// Digits of a key: 11 bits, 11 bits, 10 bits.
__device__ __forceinline__ int key_digit(u32 key, int pass) { return pass == 0 ? key >> 21 : pass == 1 ? key >> 10 & 2047 : key & 1023; }

// key_prefix finds the digits before a pass of the key that is the most()-th highest, by all threads
// of a block; left is what is left of most() among those with the same digits.
__device__ __forceinline__ u32 key_prefix(const Selection& g, int pass, i64& left) {
    __shared__ int sums[BLOCK];
    __shared__ u32 prefix;
    __shared__ i64 rest;
    if (threadIdx.x == 0) prefix = 0, rest = g.most();
    for (int p = 0; p < pass; p++) {
        const int* keys = g.s.keys + p * DIGITS;
        int sum = 0;
        for (int i = 0; i < DIGITS / BLOCK; i++) sum += keys[threadIdx.x * (DIGITS / BLOCK) + i];
        __syncthreads();
        sums[threadIdx.x] = sum;
        __syncthreads();
        if (threadIdx.x == 0) {
            i64 l = rest;
            const int part = digit(sums, BLOCK, l);
            const int d = part * (DIGITS / BLOCK) + digit(keys + part * (DIGITS / BLOCK), DIGITS / BLOCK, l);
            prefix |= (u32)d << (p == 0 ? 21 : p == 1 ? 10 : 0), rest = l;
        }
    }
    __syncthreads();
    left = rest;
    return prefix;
}

__device__ __forceinline__ void count_keys(const Args& a, int pass) {
    const Selection g(a);
    if (!g.floods()) return;
    __shared__ int counts[DIGITS];
    i64 left;
    const u32 prefix = key_prefix(g, pass, left), mask = pass == 0 ? 0 : pass == 1 ? ~0u << 21 : ~0u << 10;
    for (int i = threadIdx.x; i < DIGITS; i += BLOCK) counts[i] = 0;
    __syncthreads();
    for (i64 t = thread_id(); t < g.n; t += num_threads())
        pairs(g, t, [&](int, u32 key) {
            if ((key & mask) == prefix) atomicAdd(&counts[key_digit(key, pass)], 1);
        });
    __syncthreads();
    for (int i = threadIdx.x; i < DIGITS; i += BLOCK)
        if (counts[i]) atomicAdd(&g.s.keys[pass * DIGITS + i], counts[i]);
}

extern "C" __global__ void __launch_bounds__(256) moe_keys0(Args a) { count_keys(a, 0); }
extern "C" __global__ void __launch_bounds__(256) moe_keys1(Args a) { count_keys(a, 1); }
extern "C" __global__ void __launch_bounds__(256) moe_keys2(Args a) { count_keys(a, 2); }

// moe_ties finds the last pair that is kept of those with the least key, by token, then expert. One
// block.
extern "C" __global__ void __launch_bounds__(256) moe_ties(Args a) {
    const Selection g(a);
    if (!g.floods()) return;
    __shared__ i64 last;
    i64 ties, before = 0;
    const u32 least = key_prefix(g, 3, ties);
    if (threadIdx.x == 0) last = g.n * g.e;
    for (i64 t0 = 0; t0 < g.n && before < ties; t0 += BLOCK) {
        const i64 t = t0 + threadIdx.x;
        int equal = 0, all;
        if (t < g.n) pairs(g, t, [&](int, u32 key) { equal += key == least; });
        i64 rank = before + block_scan<BLOCK>(equal, all);
        before += all;
        if (rank < ties && rank + equal >= ties)
            pairs(g, t, [&](int e, u32 key) {
                if (key == least && ++rank == ties) last = t * g.e + e;
            });
    }
    __syncthreads();
    if (threadIdx.x == 0) g.s.head[LEAST] = least, g.s.head[LAST] = last;
}

// moe_drop unmarks what is dropped.
extern "C" __global__ void __launch_bounds__(256) moe_drop(Args a) {
    const Selection g(a);
    const i64 t = thread_id();
    if (!g.floods() || t >= g.n) return;
    const u32 least = (u32)g.s.head[LEAST];
    const i64 last = g.s.head[LAST];
    for (int w = 0; w < g.words(); w++) {
        u32* at = g.s.mask + t * g.words() + w;
        u32 keep = *at;
        for (u32 m = keep; m; m &= m - 1) {
            const int e = w * 32 + __ffs(m) - 1;
            const u32 key = order_key(g.logit(t, e));
            if (key < least || (key == least && t * g.e + e > last)) keep &= ~(1u << e % 32);
        }
        *at = keep;
    }
}

// ---- select: laying out

// count_block counts the pairs of a block of tokens by expert.
__device__ __forceinline__ i64 count_block(const Selection& g) {
    __shared__ int part[BLOCK / 32][MAX_EXPERTS];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const i64 t = thread_id();
    u32 m = 0;
    for (int e = 0; e < g.e; e++) {
        if (e % 32 == 0) m = t < g.n ? g.s.mask[t * g.words() + e / 32] : 0;
        const u32 those = __ballot_sync(FULL, m >> e % 32 & 1);
        if (lane == 0) part[warp][e] = __popc(those);
    }
    __syncthreads();
    int mine = 0;
    for (int e = threadIdx.x; e < g.e; e += BLOCK) {
        int sum = 0;
        for (int w = 0; w < BLOCK / 32; w++) sum += part[w][e];
        g.s.count[blockIdx.x * (i64)g.e + e] = sum;
        mine += sum;
    }
    const int all = block_sum<BLOCK>(mine);
    if (threadIdx.x == 0) g.s.fans[blockIdx.x] = all;
    return all;
}

extern "C" __global__ void __launch_bounds__(256) moe_count(Args a) {
    const Selection g(a);
    const i64 all = count_block(g);
    if (threadIdx.x == 0) atomicAdd((u64*)&g.s.head[TOTAL], (u64)all);
}

extern "C" __global__ void __launch_bounds__(256) moe_recount(Args a) {
    const Selection g(a);
    if (g.floods()) count_block(g);
}

// warp_scan turns n numbers, a stride apart, into the sums before each, and returns the sum of all.
__device__ __forceinline__ int warp_scan(int* x, i64 n, i64 stride) {
    const int lane = threadIdx.x % 32;
    int before = 0;
    for (i64 at = 0; at < n; at += 32) {
        const int v = at + lane < n ? x[(at + lane) * stride] : 0;
        int sum = v;
#pragma unroll
        for (int d = 1; d < 32; d *= 2) {
            const int o = __shfl_up_sync(FULL, sum, d);
            if (lane >= d) sum += o;
        }
        if (at + lane < n) x[(at + lane) * stride] = before + sum - v;
        before += __shfl_sync(FULL, sum, 31);
    }
    return before;
}

// moe_scan turns counts into places. One block.
extern "C" __global__ void __launch_bounds__(1024) moe_scan(Args a) {
    const Selection g(a);
    const Routing out(a.p[4], g);
    __shared__ int total[MAX_EXPERTS + 1];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    for (int e = warp; e <= g.e; e += 32) {  // the last turn is of all rows
        const int sum = e < g.e ? warp_scan(g.s.count + e, g.blocks(), g.e) : warp_scan(g.s.fans, g.blocks(), 1);
        if (lane == 0) total[e] = e < g.e ? sum : 0;
    }
    __syncthreads();
    if (warp == 0) warp_scan(total, g.e + 1, 1);
    __syncthreads();
    for (int e = threadIdx.x; e <= g.e; e += 1024) out.offsets[e] = total[e];
    if (threadIdx.x == 0) out.first[g.n] = total[g.e];
}

// moe_layout writes the rows of a block of tokens, and adds to the counts of the step.
extern "C" __global__ void __launch_bounds__(256) moe_layout(Args a) {
    const Selection g(a);
    const Routing out(a.p[4], g);
    __shared__ int part[BLOCK / 32][MAX_EXPERTS];
    __shared__ int fans[16], places[2 * PLACES], tokens;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const i64 t = thread_id();
    const bool there = t < g.n, counts = there && g.counts(t), tally = g.mode() != FROZEN;
    if (threadIdx.x < 16) fans[threadIdx.x] = 0;
    if (threadIdx.x < 2 * PLACES) places[threadIdx.x] = 0;
    if (threadIdx.x == 0) tokens = 0;
    u32 m = 0;
    int fan = 0;
    for (int e = 0; e < g.e; e++) {
        if (e % 32 == 0) m = there ? g.s.mask[t * g.words() + e / 32] : 0, fan += __popc(m);
        const bool mine = m >> e % 32 & 1;
        const u32 those = __ballot_sync(FULL, mine), counted = __ballot_sync(FULL, mine && counts);
        if (lane == 0) {
            part[warp][e] = __popc(those);
            if (tally && counted) atomicAdd(&g.state.count[e], __popc(counted));
        }
    }
    int all;
    const int first = g.s.fans[blockIdx.x] + block_scan<BLOCK>(fan, all);
    for (int e = threadIdx.x; e < g.e; e += BLOCK) {  // where each warp's rows begin
        int at = out.offsets[e] + g.s.count[blockIdx.x * (i64)g.e + e];
        for (int w = 0; w < BLOCK / 32; w++) {
            const int n = part[w][e];
            part[w][e] = at;
            at += n;
        }
    }
    __syncthreads();
    if (there) out.first[t] = first;
    int next = first;
    for (int e = 0; e < g.e; e++) {
        if (e % 32 == 0) m = there ? g.s.mask[t * g.words() + e / 32] : 0;
        const bool mine = m >> e % 32 & 1;
        const u32 those = __ballot_sync(FULL, mine);
        if (!mine) continue;
        const int row = part[warp][e] + __popc(those & ((1u << lane) - 1));
        out.rows[next++] = row, out.token[row] = (int)t, out.expert[row] = e;
    }
    if (!tally) {
        if (thread_id() == 0 && g.floods()) g.state.report[9] += (double)(g.s.head[TOTAL] - g.most());
        return;
    }
    if (counts) {
        const int at = (int)(t % g.seq * PLACES / g.seq);
        atomicAdd(&tokens, 1);
        atomicAdd(&fans[min(fan, g.state.fans - 1)], 1);
        atomicAdd(&places[at], fan);
        atomicAdd(&places[PLACES + at], 1);
    }
    __syncthreads();
    if (threadIdx.x < g.state.fans && fans[threadIdx.x]) atomicAdd(&g.state.fan[threadIdx.x], fans[threadIdx.x]);
    if (threadIdx.x < 2 * PLACES && places[threadIdx.x]) atomicAdd(&g.state.place[threadIdx.x], places[threadIdx.x]);
    if (threadIdx.x == 0 && !g.observed) atomicAdd(&g.state.counters[TOKENS], tokens);
    if (thread_id() == 0) {
        if (g.floods()) atomicAdd(&g.state.counters[DROPPED], (int)(g.s.head[TOTAL] - g.most())), atomicAdd(&g.state.counters[FLOODED], 1);
        if (g.chooses()) atomicAdd(&g.state.counters[CHOSEN], (int)g.n);
    }
}

// ---- counts that quantiles are read from

constexpr int HIST_TOKENS = 4096;

// count_logits counts the logits of expert blockIdx.x over some tokens, or for a quantile balance
// how far a score lies above what the token would have taken next.
__device__ __forceinline__ void count_logits(const Selection& g) {
    __shared__ int counts[BUCKETS];
    const int e = blockIdx.x;
    const i64 lo = (i64)blockIdx.y * HIST_TOKENS, hi = imin(g.n, lo + HIST_TOKENS);
    for (int i = threadIdx.x; i < BUCKETS; i += blockDim.x) counts[i] = 0;
    __syncthreads();
    for (i64 t = lo + threadIdx.x; t < hi; t += blockDim.x) {
        if (!g.counts(t)) continue;
        const float x = g.kind == TOP_K ? (float)(g.s.score[t * g.e + e] - g.s.next[t]) : g.logit(t, e);
        const int b = bucket_of(x);
        if (b >= 0) atomicAdd(&counts[b], 1);
    }
    __syncthreads();
    for (int i = threadIdx.x; i < BUCKETS; i += blockDim.x)
        if (counts[i]) atomicAdd(&g.state.hist[(i64)e * BUCKETS + i], counts[i]);
}

extern "C" __global__ void __launch_bounds__(256) moe_hist(Args a) {
    const Selection g(a);
    if (g.mode() != FROZEN && !g.observed) count_logits(g);
}

// moe_observe: p[4] is y i32 [N]. grid: x experts, y parts of tokens.
extern "C" __global__ void __launch_bounds__(256) moe_observe(Args a) {
    const Selection g(a);
    const bool frozen = g.mode() == FROZEN;
    if (blockIdx.x == 0) {
        const i64 lo = (i64)blockIdx.y * HIST_TOKENS, hi = imin(g.n, lo + HIST_TOKENS);
        int n = 0;
        for (i64 t = lo + threadIdx.x; t < hi; t += blockDim.x) ((int*)a.p[4])[t] = g.counts(t), n += g.counts(t);
        n = block_sum<256>(n);
        if (threadIdx.x == 0 && !frozen) atomicAdd(&g.state.counters[TOKENS], n);
    }
    if (!frozen && g.hist()) count_logits(g);
}

// ---- gates

// Scores of a token.
struct Scores {
    const float* l;
    bool softmax;
    double top, sum;
    __device__ Scores(const Router& r, const float* l) : l(l), softmax(r.kind == TOP_K && !r.sigmoid), top(0), sum(1) {
        if (softmax) {
            const Softmax p(l, r.e);
            top = p.top, sum = p.sum;
        }
    }
    __device__ __forceinline__ double of(int e) const { return softmax ? exp((double)l[e] - top) / sum : sigmoid_of(l[e]); }
};

// factor is what makes gates of a token's scores.
__device__ __forceinline__ double factor(const Router& r, const Routing& at, const Scores& s, i64 t) {
    if (r.kind != TOP_K) return 1;
    if (!r.renorm) return r.scale;
    double sum = 0;
    for (int j = at.first[t]; j < at.first[t + 1]; j++) sum += s.of(at.expert[at.rows[j]]);
    return (double)r.scale / (sum > 1e-20 ? sum : 1e-20);
}

// p: logits, routing, y f32 [M].
extern "C" __global__ void __launch_bounds__(256) moe_gate(Args a) {
    const Router r(a);
    const Routing at(a.p[1], r);
    const i64 t = thread_id();
    if (t >= r.n || at.first[t] == at.first[t + 1]) return;
    const Scores s(r, (const float*)a.p[0] + t * r.e);
    const double f = factor(r, at, s, t);
    for (int j = at.first[t]; j < at.first[t + 1]; j++) {
        const int row = at.rows[j];
        ((float*)a.p[2])[row] = (float)(f * s.of(at.expert[row]));
    }
}

// Gradient is the arguments of moe_gate_backward. p: logits, routing, targets, scalars, state, dy f32
// [M], add f32 [N, E] or null, dlogits f32 [N, E].
struct Gradient : Router {
    Routing at;
    const int* targets;
    State state;
    int* usage;  // scratch: tokens, then pairs of each expert, of a micro-batch
    __device__ explicit Gradient(const Args& a)
        : Router(a), at(a.p[1], *this), targets((const int*)a.p[2]), state(a.p[4], *this), usage((int*)a.work) {}
    __device__ __forceinline__ bool counts(i64 t) const { return !targets || targets[t] >= 0; }
};

// moe_usage counts a micro-batch's pairs, for a balance within it. One block.
extern "C" __global__ void __launch_bounds__(1024) moe_usage(Args a) {
    const Gradient g(a);
    __shared__ int n[MAX_EXPERTS + 1];
    for (int i = threadIdx.x; i <= g.e; i += 1024) n[i] = 0;
    __syncthreads();
    for (i64 t = threadIdx.x; t < g.n; t += 1024) {
        if (!g.counts(t)) continue;
        atomicAdd(&n[0], 1);
        for (int j = g.at.first[t]; j < g.at.first[t + 1]; j++) atomicAdd(&n[1 + g.at.expert[g.at.rows[j]]], 1);
    }
    __syncthreads();
    for (int i = threadIdx.x; i <= g.e; i += 1024) g.usage[i] = n[i];
}

// parts is x in whole parts of 2^-20; 0 for what is no number or beyond all reason.
__device__ __forceinline__ i64 parts(double x) { return fabs(x) < 2147483648.0 ? (i64)rint(x * 1048576.0) : 0; }

// gate_gradient makes the gradient of a token's logits, and says what the token adds to the router's losses.
__device__ __forceinline__ void gate_gradient(const Args& a, const Gradient& g, i64 t, i64& balance, i64& squares) {
    const float *l = (const float*)a.p[0] + t * g.e, *dy = (const float*)a.p[5];
    const double inv = a.p[3] ? ((const double*)a.p[3])[SCALAR_INV_TOKENS] : 0;
    const Scores s(g, l);
    const double f = factor(g, g.at, s, t);
    const int lo = g.at.first[t], hi = g.at.first[t + 1];
    double mean = 0;  // sum over the token's experts of dgate * gate
    for (int j = lo; j < hi; j++) mean += (double)dy[g.at.rows[j]] * f * s.of(g.at.expert[g.at.rows[j]]);
    const bool by_expert = !s.softmax;  // each gate depends on its own logit, but for the sum
    if (by_expert && !g.renorm) mean = 0;

    // What the router adds to the loss.
    const bool counts = g.counts(t), aux = counts && g.alpha != 0 && (g.balance == AUX_MICRO || g.balance == AUX_STEP);
    const int* pairs = g.balance == AUX_STEP ? g.state.count : g.usage + 1;
    double per = 0, sum = 0, middle = 0, w = 0;
    if (aux) {
        const double tokens = g.balance == AUX_STEP ? g.state.counters[TOKENS] : g.usage[0];
        per = (double)g.e / ((double)g.k * (tokens > 1 ? tokens : 1));
        for (int e = 0; e < g.e; e++) {
            const double x = s.of(e);
            sum += x, middle += pairs[e] * per * x;
        }
        middle /= sum, w = (double)g.alpha * inv, balance = parts(middle);
    }
    double lse = 0, z = 0;
    Scores p = s;
    if (counts && g.zloss != 0) {
        const Softmax q(l, g.e);
        p.softmax = true, p.top = q.top, p.sum = q.sum;
        lse = q.lse(), z = 2 * (double)g.zloss * inv, squares = parts(lse * lse);
    }

    int j = lo;
    for (int e = 0; e < g.e; e++) {
        const bool chosen = j < hi && g.at.expert[g.at.rows[j]] == e;
        const double x = chosen || aux || s.softmax ? s.of(e) : 0, d = chosen ? dy[g.at.rows[j]] : 0;
        double v = 0;
        if (by_expert) {
            if (chosen) v = (d * f - (g.renorm ? mean * f / (double)g.scale : 0)) * x * (1 - x);
        } else if (g.renorm) {
            if (chosen) v = f * x * (d - mean / (double)g.scale);
        } else {
            v = -mean * x;
            if (chosen) v += d * f * x;
        }
        if (aux) v += w * (pairs[e] * per - middle) * x / sum * (g.sigmoid ? 1 - x : 1);
        if (z != 0) v += z * lse * p.of(e);
        ((float*)a.p[7])[t * g.e + e] = plus((const float*)a.p[6], t * g.e + e, (float)v);
        j += chosen;
    }
}

extern "C" __global__ void __launch_bounds__(256) moe_gate_backward(Args a) {
    const Gradient g(a);
    const i64 t = thread_id();
    const bool losses = (g.alpha != 0 || g.zloss != 0) && a.p[4];
    __shared__ u64 sums[2];
    if (threadIdx.x < 2) sums[threadIdx.x] = 0;
    __syncthreads();
    if (t < g.n) {
        i64 balance = 0, squares = 0;
        gate_gradient(a, g, t, balance, squares);
        if (losses) {  // whole numbers: their order does not matter
            if (balance) atomicAdd(&sums[LOSS_BALANCE], (u64)balance);
            if (squares) atomicAdd(&sums[LOSS_Z], (u64)squares);
        }
    }
    if (!losses) return;
    __syncthreads();
    if (threadIdx.x < 2 && sums[threadIdx.x]) atomicAdd((u64*)&g.state.losses[threadIdx.x], sums[threadIdx.x]);
}

// ---- advance

// moe_advance moves a state by the counts of a step. p: scalars, state. One block; a warp reads a
// quantile.
extern "C" __global__ void __launch_bounds__(1024) moe_advance(Args a) {
    const Router r(a);
    const State s(a.p[1], r);
    const int lane = threadIdx.x % 32;
    const bool skip = ((const double*)a.p[0])[SCALAR_SKIP] != 0;
    const double tokens = s.counters[TOKENS], updates = s.control[UPDATES];
    const bool moves = !skip && tokens > 0;
    double *rep = s.report, *lists = rep + 16;
    __shared__ double mean;
    __shared__ i64 pairs;
    const int length = 16 + 4 * r.e + s.fans + 2 * PLACES;
    for (int i = threadIdx.x; i < length; i += 1024) rep[i] = 0;
    __syncthreads();
    for (int e = threadIdx.x; e < r.e; e += 1024) {
        lists[e] = s.count[e];
        if (r.kind == CUTOFF) lists[r.e + e] = s.cutoff(e, r.start);
    }
    if (threadIdx.x == 0) {
        pairs = 0;
        for (int e = 0; e < r.e; e++) pairs += s.count[e];
    }
    __syncthreads();
    double beta = r.ema;
    if (r.causal > 0 && updates < r.causal) {
        const double wide = 1 - 1 / (1 + __dmul_rn(0.05, updates));
        if (wide < beta) beta = wide;
    }
    const double weight = __dadd_rn(__dmul_rn(beta, s.control[WEIGHT]), 1 - beta);
    if (moves) {
        for (int e = threadIdx.x / 32; e < r.e; e += 32) {
            bool ok;
            if (r.kind == CUTOFF) {
                double q = top_quantile(s.hist + (i64)e * BUCKETS, __dmul_rn((double)r.rate, tokens), ok);
                if (!ok) q = s.threshold[e];  // logits that are no numbers: the loss is none either
                if (lane == 0) {
                    s.quantile[e] = (float)q;
                    const double average = __dadd_rn(__dmul_rn(beta, s.average[e]), __dmul_rn(1 - beta, q));
                    s.average[e] = average, s.threshold[e] = (float)(average / weight);
                }
            } else if (r.balance == LOSS_FREE) {
                const i64 d = pairs - (i64)s.count[e] * r.e;
                if (lane == 0 && d != 0) s.bias[e] += d > 0 ? r.u : -r.u;
            } else if (r.balance == QUANTILE) {
                const double q = top_quantile(s.hist + (i64)e * BUCKETS, (double)r.k * tokens / (double)r.e, ok);
                if (lane == 0) s.quantile[e] = (float)q, s.average[e] = q;
            }
        }
        __syncthreads();
        if (r.kind == TOP_K && r.balance == QUANTILE) {
            if (threadIdx.x == 0) {
                double sum = 0;
                for (int e = 0; e < r.e; e++) sum -= s.average[e];
                mean = sum / (double)r.e;
            }
            __syncthreads();
            for (int e = threadIdx.x; e < r.e; e += 1024) s.bias[e] = (float)(-(double)s.quantile[e] - mean), s.average[e] = 0;
        }
        if (threadIdx.x == 0) {
            s.control[UPDATES] = updates + 1;
            s.control[NON_CAUSAL] += s.counters[CHOSEN];
            if (r.kind == CUTOFF) s.control[WEIGHT] = weight;
        }
    }
    __syncthreads();
    for (int e = threadIdx.x; e < r.e; e += 1024) lists[2 * r.e + e] = s.quantile[e], lists[3 * r.e + e] = s.bias[e];
    for (int i = threadIdx.x; i < s.fans; i += 1024) lists[4 * r.e + i] = s.fan[i];
    for (int i = threadIdx.x; i < 2 * PLACES; i += 1024) lists[4 * r.e + s.fans + i] = s.place[i];
    if (threadIdx.x == 0) {
        rep[0] = tokens, rep[1] = s.counters[DROPPED], rep[2] = s.counters[FLOODED];
        rep[3] = s.control[UPDATES], rep[4] = s.control[NON_CAUSAL], rep[5] = s.counters[CHOSEN] > 0, rep[6] = skip;
        if (tokens > 0) {
            rep[7] = (double)r.alpha * (double)s.losses[LOSS_BALANCE] * (1.0 / 1048576) / tokens;
            rep[8] = (double)r.zloss * (double)s.losses[LOSS_Z] * (1.0 / 1048576) / tokens;
        }
    }
    __syncthreads();
    for (int i = threadIdx.x; i < 16; i += 1024) s.counters[i] = 0;
    for (int i = threadIdx.x; i < 8; i += 1024) s.losses[i] = 0;
    for (int i = threadIdx.x; i < r.e; i += 1024) s.count[i] = 0;
    for (int i = threadIdx.x; i < s.fans; i += 1024) s.fan[i] = 0;
    for (int i = threadIdx.x; i < 2 * PLACES; i += 1024) s.place[i] = 0;
    if (s.hist)
        for (i64 i = threadIdx.x; i < (i64)r.e * BUCKETS; i += 1024) s.hist[i] = 0;
}
