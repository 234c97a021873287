// Attention in plain f32 arithmetic, one warp for a row, for heads of any length: the precision
// for debugging (MTC_F32), and heads that the tensor-core kernels do not take. Slow.
//
// S0: elements of a head. S1: 1 with a soft cap.
//mtc:spec 64 0
//mtc:spec 20 1
//mtc:spec 1024 1
#include "mtc.cuh"

constexpr int HD = S0 ? S0 : 64;
constexpr bool CAP = S1 != 0;
constexpr int PER = (HD + 31) / 32;  // elements of a head in a lane: lane, lane + 32, ...
#define INF __int_as_float(0x7f800000)

// Geom is the constants of a launch.
struct Geom {
    int batch, seq, pos, heads, kv, window;
    bool causal;
    float cap, scale;
    __device__ explicit Geom(const Args& a)
        : batch((int)a.i[0]), seq((int)a.i[1]), pos((int)a.i[2]), heads((int)a.i[3]), kv((int)a.i[4]),
          window((int)imin(a.i[6], 1 << 30)), causal(a.i[7] != 0), cap(a.f[0]), scale(a.f[1]) {}
    // keys gives the half-open range of the keys that the query at t sees, among n.
    __device__ void keys(int t, int n, int& lo, int& hi) const {
        lo = 0, hi = causal ? min(n, t + 1) : n;
        if (window) lo = max(0, t - window + 1), hi = min(hi, t + window);
    }
    // within leaves out the keys before the start of t's document; starts may be null.
    __device__ static void within(const void* starts, i64 row, int& lo) {
        if (starts) lo = max(lo, ((const int*)starts)[row]);
    }
    // queries gives the half-open range of the queries that see the key u, among n.
    __device__ void queries(int u, int n, int& lo, int& hi) const {
        lo = causal ? u : 0, hi = n;
        if (window) {
            hi = min(hi, u + window);
            if (!causal) lo = max(0, u - window + 1);
        }
    }
    // logit applies scale and cap to a product; slope is the cap's derivative.
    __device__ float logit(float s, float& slope) const {
        s *= scale, slope = 1.f;
        if constexpr (CAP) {
            const float th = tanhf(s / cap);
            s = cap * th, slope = 1.f - th * th;
        }
        return s;
    }
};

typedef float Row[PER];

__device__ __forceinline__ void get(Row& r, const act_t* p) {
#pragma unroll
    for (int i = 0; i < PER; i++) {
        const int e = i * 32 + threadIdx.x % 32;
        r[i] = e < HD ? to_f(p[e]) : 0.f;
    }
}

__device__ __forceinline__ float dot(const Row& x, const Row& y) {
    float s = 0.f;
#pragma unroll
    for (int i = 0; i < PER; i++) s = __fmaf_rn(x[i], y[i], s);
    return warp_sum(s);
}

// put stores factor * r, and what is added to it, at element at of to.
__device__ __forceinline__ void put(act_t* to, const act_t* add, i64 at, const Row& r, float factor) {
#pragma unroll
    for (int i = 0; i < PER; i++) {
        const int e = i * 32 + threadIdx.x % 32;
        if (e < HD) to[at + e] = from_f<act_t>(plus(add, at + e, r[i] * factor));
    }
}

// forward is one query, at position t among n keys; k and v are the head's, stride apart.
__device__ __forceinline__ void forward(const Geom& g, const act_t* q, const act_t* k, const act_t* v, i64 stride,
                                        act_t* y, float* lse, int t, int n, const void* starts, i64 row) {
    Row x, o = {}, kv;
    get(x, q);
    float m = -INF, l = 0.f, slope;
    int lo, hi;
    g.keys(t, n, lo, hi);
    g.within(starts, row, lo);
    for (int u = lo; u < hi; u++) {
        get(kv, k + u * stride);
        const float s = g.logit(dot(x, kv), slope);
        const float top = fmaxf(m, s), alpha = expf(m - top), p = expf(s - top);
        m = top;
        l = __fmaf_rn(l, alpha, p);
        get(kv, v + u * stride);
#pragma unroll
        for (int i = 0; i < PER; i++) o[i] = __fmaf_rn(p, kv[i], o[i] * alpha);
    }
    put(y, (const act_t*)nullptr, 0, o, 1.f / l);
    if (lse && threadIdx.x % 32 == 0) *lse = m + logf(l);
}

// The index of the warp is that of the row: [B][T][heads].
extern "C" __global__ void __launch_bounds__(128) attention_forward(Args a) {
    const Geom g(a);
    const i64 i = thread_id() / 32;
    if (i >= (i64)g.batch * g.seq * g.heads) return;
    const int h = (int)(i % g.heads), t = (int)(i / g.heads % g.seq);
    const i64 b = i / g.heads / g.seq, wk = (i64)g.kv * HD, ok = b * g.seq * wk + (i64)(h / (g.heads / g.kv)) * HD;
    forward(g, (const act_t*)a.p[0] + i * HD, (const act_t*)a.p[1] + ok, (const act_t*)a.p[2] + ok, wk,
            (act_t*)a.p[3] + i * HD, (float*)a.p[4] + i, t, g.seq, a.p[5], b * g.seq + t);
}

// attention_store puts the new rows of k and v into the caches.
extern "C" __global__ void attention_store(Args a) {
    const Geom g(a);
    const i64 wk = (i64)g.kv * HD, n = (i64)g.batch * g.seq * wk, at = g.pos * wk;
    for (i64 i = thread_id(); i < n; i += num_threads()) {
        ((act_t*)a.p[3])[at + i] = ((const act_t*)a.p[1])[i];
        ((act_t*)a.p[4])[at + i] = ((const act_t*)a.p[2])[i];
    }
}

extern "C" __global__ void __launch_bounds__(128) attention_cached(Args a) {
    const Geom g(a);
    const i64 i = thread_id() / 32, n = (i64)g.batch * g.seq;
    if (i >= n * g.heads) return;
    const int h = (int)(i % g.heads), t = g.pos + (int)(i / g.heads);
    const i64 wk = (i64)g.kv * HD, ok = (i64)(h / (g.heads / g.kv)) * HD;
    forward(g, (const act_t*)a.p[0] + i * HD, (const act_t*)a.p[3] + ok, (const act_t*)a.p[4] + ok, wk,
            (act_t*)a.p[5] + i * HD, nullptr, t, (int)(g.pos + n), nullptr, 0);
}

// attention_stats: delta = rowsum(dy * y), [B][T][heads] in scratch.
extern "C" __global__ void __launch_bounds__(128) attention_stats(Args a) {
    const Geom g(a);
    const i64 i = thread_id() / 32;
    if (i >= (i64)g.batch * g.seq * g.heads) return;
    Row y, dy;
    get(y, (const act_t*)a.p[3] + i * HD);
    get(dy, (const act_t*)a.p[5] + i * HD);
    const float d = dot(y, dy);
    if (threadIdx.x % 32 == 0) ((float*)a.work)[i] = d;
}

// attention_dkdv: a warp owns a key of a head of k and v.
extern "C" __global__ void __launch_bounds__(128) attention_dkdv(Args a) {
    const Geom g(a);
    const i64 i = thread_id() / 32;
    if (i >= (i64)g.batch * g.seq * g.kv) return;
    const int kvh = (int)(i % g.kv), u = (int)(i / g.kv % g.seq), group = g.heads / g.kv;
    const i64 b = i / g.kv / g.seq;
    Row k, v, q, dy, dk = {}, dv = {};
    get(k, (const act_t*)a.p[1] + i * HD);
    get(v, (const act_t*)a.p[2] + i * HD);
    int lo, hi;
    g.queries(u, g.seq, lo, hi);
    for (int h = kvh * group; h < (kvh + 1) * group; h++)
        for (int t = lo; t < hi; t++) {
            if (a.p[12] && ((const int*)a.p[12])[b * g.seq + t] > u) break;  // of a later document
            const i64 row = (b * g.seq + t) * g.heads + h;
            get(q, (const act_t*)a.p[0] + row * HD);
            get(dy, (const act_t*)a.p[5] + row * HD);
            float slope;
            const float p = expf(g.logit(dot(q, k), slope) - ((const float*)a.p[4])[row]);
            const float ds = p * (dot(dy, v) - ((const float*)a.work)[row]) * slope;
#pragma unroll
            for (int e = 0; e < PER; e++) dv[e] = __fmaf_rn(p, dy[e], dv[e]), dk[e] = __fmaf_rn(ds, q[e], dk[e]);
        }
    put((act_t*)a.p[7], (const act_t*)a.p[10], i * HD, dk, g.scale);
    put((act_t*)a.p[8], (const act_t*)a.p[11], i * HD, dv, 1.f);
}

// attention_dq: a warp owns a query of a head.
extern "C" __global__ void __launch_bounds__(128) attention_dq(Args a) {
    const Geom g(a);
    const i64 i = thread_id() / 32;
    if (i >= (i64)g.batch * g.seq * g.heads) return;
    const int h = (int)(i % g.heads), t = (int)(i / g.heads % g.seq);
    const i64 b = i / g.heads / g.seq, wk = (i64)g.kv * HD, ok = b * g.seq * wk + (i64)(h / (g.heads / g.kv)) * HD;
    Row q, dy, k, v, dq = {};
    get(q, (const act_t*)a.p[0] + i * HD);
    get(dy, (const act_t*)a.p[5] + i * HD);
    const float lse = ((const float*)a.p[4])[i], delta = ((const float*)a.work)[i];
    int lo, hi;
    g.keys(t, g.seq, lo, hi);
    g.within(a.p[12], b * g.seq + t, lo);
    for (int u = lo; u < hi; u++) {
        get(k, (const act_t*)a.p[1] + ok + u * wk);
        get(v, (const act_t*)a.p[2] + ok + u * wk);
        float slope;
        const float p = expf(g.logit(dot(q, k), slope) - lse);
        const float ds = p * (dot(dy, v) - delta) * slope;
#pragma unroll
        for (int e = 0; e < PER; e++) dq[e] = __fmaf_rn(ds, k[e], dq[e]);
    }
    put((act_t*)a.p[6], (const act_t*)a.p[9], i * HD, dq, g.scale);
}
