#include "mtc.cuh"

// Scalars of the step (plan/scalars.go), f64.
enum { STEP, LR, INV_TOKENS, MAX_NORM, GRAD_NORM, CLIP, SKIP, LOSS, TOKENS };

__device__ __forceinline__ bool is_finite(double x) { return !isnan(x) && !isinf(x); }

// ---- reduce: p = {scalars, norms f64, partials f64}, i = {norms, partials, bytes apart} ----------

extern "C" __global__ void optim_reduce(Args a) {
    double* s = (double*)a.p[0];
    const double* norms = (const double*)a.p[1];
    double squares = 0.0, loss = 0.0, tokens = 0.0;
    for (i64 i = 0; i < a.i[0]; i++) squares += norms[i];
    for (i64 i = 0; i < a.i[1]; i++) {
        const double* pair = (const double*)((const char*)a.p[2] + i * a.i[2]);
        loss += pair[0];
        tokens += pair[1];
    }
    const double norm = sqrt(squares), mean = loss / tokens;
    double clip = 1.0;
    if (s[MAX_NORM] > 0.0) clip = fmin(1.0, s[MAX_NORM] / (norm + 1e-6));
    if (!is_finite(norm) || !is_finite(mean)) {
        // The factor stays finite, so that no reader can spread a NaN.
        s[SKIP] = 1.0;
        clip = 0.0;
    }
    s[GRAD_NORM] = norm;
    s[CLIP] = clip;
    s[LOSS] = mean;
    s[TOKENS] = tokens;
}

// ---- accumulate: p = {dst f32, src f32}, i = {elems, first} ---------------------------------------

extern "C" __global__ void __launch_bounds__(MAP_THREADS) optim_accumulate(Args a) {
    float* const out[1] = {(float*)a.p[0]};
    if (a.i[1]) {  // the first: dst holds nothing yet
        const float* const in[1] = {(const float*)a.p[1]};
        map<2>(a.i[0], in, out, [](const float (&x)[1], float (&y)[1]) { y[0] = x[0]; });
    } else {
        const float* const in[2] = {(const float*)a.p[0], (const float*)a.p[1]};
        map<2>(a.i[0], in, out, [](const float (&x)[2], float (&y)[1]) { y[0] = x[0] + x[1]; });
    }
}

// ---- AdamW ----------------------------------------------------------------------------------------
// p = {weight f32 (or hi), grad f32, m f32, v f32, scalars f64, lo}, i = {elems, decayed elems, and
// the f64 bits of beta1, beta2, eps, weight decay}.

struct Coefs {
    float clip, beta1, one1, beta2, one2, decay, step, root, eps;
};

// power is b^t, by the multiplications that the host does too.
__device__ __forceinline__ double power(double b, double t) {
    double r = 1.0;
    for (u64 n = (u64)t; n > 0; n >>= 1) {
        if (n & 1) r = __dmul_rn(r, b);
        b = __dmul_rn(b, b);
    }
    return r;
}

// coefs are the step's numbers, worked out by one thread in f64; false: the step is skipped.
__device__ __forceinline__ bool coefs(const Args& a, Coefs& c) {
    __shared__ Coefs shared;
    const double* s = (const double*)a.p[4];
    if (s[SKIP] != 0.0) return false;
    if (threadIdx.x == 0) {
        const double beta1 = __longlong_as_double(a.i[2]), beta2 = __longlong_as_double(a.i[3]);
        shared.clip = s[MAX_NORM] > 0.0 ? (float)s[CLIP] : 1.0f;
        shared.beta1 = (float)beta1, shared.one1 = (float)(1.0 - beta1);
        shared.beta2 = (float)beta2, shared.one2 = (float)(1.0 - beta2);
        shared.decay = (float)(1.0 - __dmul_rn(s[LR], __longlong_as_double(a.i[5])));
        shared.step = (float)(s[LR] / (1.0 - power(beta1, s[STEP])));
        shared.root = (float)(1.0 / sqrt(1.0 - power(beta2, s[STEP])));
        shared.eps = (float)__longlong_as_double(a.i[4]);
    }
    __syncthreads();
    c = shared;
    return true;
}

__device__ __forceinline__ float adamw(float p, float g, float& m, float& v, const Coefs& c, float decay) {
    g *= c.clip;
    m = fmaf(c.one1, g, c.beta1 * m);
    v = fmaf(c.one2 * g, g, c.beta2 * v);
    return fmaf(-c.step, m / fmaf(sqrtf(v), c.root, c.eps), decay * p);
}

// A block does ADAM_TILES tiles of 1024 elements, 4 a thread.
#define ADAM_TILES 4

extern "C" __global__ void __launch_bounds__(256) optim_adamw(Args a) {
    Coefs c;
    if (!coefs(a, c)) return;
    float *w = (float*)a.p[0], *m = (float*)a.p[2], *v = (float*)a.p[3];
    const float* g = (const float*)a.p[1];
    const i64 n = a.i[0], decayed = a.i[1];
    const bool fast = aligned(bits_of(w) | bits_of(g) | bits_of(m) | bits_of(v));
#pragma unroll 2
    for (int t = 0; t < ADAM_TILES; t++) {
        const i64 i = ((i64)blockIdx.x * ADAM_TILES + t) * 1024 + threadIdx.x * 4;
        if (fast && i + 4 <= n) {
            float wv[4], gv[4], mv[4], vv[4];
            load_cs<4>(w + i, wv);
            load_cs<4>(g + i, gv);
            load_cs<4>(m + i, mv);
            load_cs<4>(v + i, vv);
#pragma unroll
            for (int e = 0; e < 4; e++) wv[e] = adamw(wv[e], gv[e], mv[e], vv[e], c, i + e < decayed ? c.decay : 1.0f);
            store<4>(w + i, wv);
            store_cs<4>(m + i, mv);
            store_cs<4>(v + i, vv);
        } else {
            for (i64 k = i; k < imin(n, i + 4); k++) w[k] = adamw(w[k], g[k], m[k], v[k], c, k < decayed ? c.decay : 1.0f);
        }
    }
}

// The split master: bits(master) = (hi << 16) + signed lo, hi the master rounded to nearest (ties
// away from 0, so that lo fits).
__device__ __forceinline__ float master(u32 hi, u32 lo) { return __uint_as_float((hi << 16) + (u32)(int)(short)lo); }
__device__ __forceinline__ u32 upper(u32 bits) { return (bits + 0x8000u) >> 16; }

extern "C" __global__ void __launch_bounds__(256) optim_adamw_split(Args a) {
    Coefs c;
    if (!coefs(a, c)) return;
    u16 *hi = (u16*)a.p[0], *lo = (u16*)a.p[5];
    float *m = (float*)a.p[2], *v = (float*)a.p[3];
    const float* g = (const float*)a.p[1];
    const i64 n = a.i[0], decayed = a.i[1];
    const bool fast = aligned(bits_of(hi) | bits_of(lo) | bits_of(g) | bits_of(m) | bits_of(v));
#pragma unroll 1
    for (int t = 0; t < ADAM_TILES / 2; t++) {
        const i64 i = ((i64)blockIdx.x * (ADAM_TILES / 2) + t) * 2048 + threadIdx.x * 8;
        if (fast && i + 8 <= n) {
            Words<16> h, l;
            float gv[8], mv[8], vv[8];
            h.ldcs(hi + i);
            l.ldcs(lo + i);
            load_cs<8>(g + i, gv);
            load_cs<8>(m + i, mv);
            load_cs<8>(v + i, vv);
#pragma unroll
            for (int e = 0; e < 8; e += 2) {
                const u32 hw = h.w[e / 2], lw = l.w[e / 2];
                const u32 x = __float_as_uint(adamw(master(hw & 0xffffu, lw & 0xffffu), gv[e], mv[e], vv[e], c, i + e < decayed ? c.decay : 1.0f));
                const u32 y = __float_as_uint(adamw(master(hw >> 16, lw >> 16), gv[e + 1], mv[e + 1], vv[e + 1], c, i + e + 1 < decayed ? c.decay : 1.0f));
                h.w[e / 2] = upper(x) | upper(y) << 16;
                l.w[e / 2] = (x & 0xffffu) | y << 16;
            }
            h.st(hi + i);
            l.stcs(lo + i);
            store_cs<8>(m + i, mv);
            store_cs<8>(v + i, vv);
        } else {
            for (i64 k = i; k < imin(n, i + 8); k++) {
                const u32 x = __float_as_uint(adamw(master(hi[k], lo[k]), g[k], m[k], v[k], c, k < decayed ? c.decay : 1.0f));
                hi[k] = (u16)upper(x);
                lo[k] = (u16)x;
            }
        }
    }
}
