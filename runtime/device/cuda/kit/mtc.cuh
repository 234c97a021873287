// mtc.cuh: what every kernel of mtc includes. It is compiled by NVRTC on the machine that
// runs the program, which need not have CUDA's headers, so neither this file nor a kernel
// includes any of them.
//
// Macros given by the compiler of the kernel:
//   MTC_F32    activations and weights are float; else they are bf16
//   S0 .. S3   the constants of device.Source.Spec, 0 when it gives none
//
// Conventions: results never depend on the order in which blocks run, so there are no atomics
// in results and every reduction has one fixed order. Offsets into tensors are 64-bit (i64).
#pragma once

typedef long long i64;
typedef unsigned long long u64;
typedef unsigned int u32;
typedef unsigned short u16;

#ifndef S0
#define S0 0
#endif
#ifndef S1
#define S1 0
#endif
#ifndef S2
#define S2 0
#endif
#ifndef S3
#define S3 0
#endif

// Args mirrors device.Args: the addresses, whole numbers and floats of a launch, and scratch
// memory that the launches of one queue share (device.Source.Work bytes at least).
struct Args {
    void* p[20];
    i64 i[16];
    float f[8];
    void* work;
};

// ---- element types -------------------------------------------------------------------------

// bf16 is the upper half of a float. Arithmetic is done in float.
struct alignas(2) bf16 {
    u16 bits;
};

#ifdef MTC_F32
typedef float act_t;  // activations, their gradients, saved activations
typedef float wgt_t;  // weights and biases
#else
typedef bf16 act_t;
typedef bf16 wgt_t;
#endif

__device__ __forceinline__ float to_f(float x) { return x; }
__device__ __forceinline__ float to_f(bf16 x) { return __uint_as_float((u32)x.bits << 16); }
__device__ __forceinline__ float bf16_lo(u32 two) { return __uint_as_float(two << 16); }
__device__ __forceinline__ float bf16_hi(u32 two) { return __uint_as_float(two & 0xffff0000u); }

// to_bf16 rounds to nearest, ties to even.
__device__ __forceinline__ bf16 to_bf16(float x) {
    bf16 r;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(r.bits) : "f"(x));
    return r;
}

// pack_bf16 rounds two floats; lo comes first in memory.
__device__ __forceinline__ u32 pack_bf16(float lo, float hi) {
    u32 r;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(hi), "f"(lo));
    return r;
}

template <class T> __device__ __forceinline__ T from_f(float x);
template <> __device__ __forceinline__ float from_f<float>(float x) { return x; }
template <> __device__ __forceinline__ bf16 from_f<bf16>(float x) { return to_bf16(x); }

// round_to gives x the value that it has once stored as T.
template <class T> __device__ __forceinline__ float round_to(float x) { return to_f(from_f<T>(x)); }

// ---- vectors -------------------------------------------------------------------------------

// vec_of<T>::n is how many elements of T are 16 bytes: 8 of bf16, 4 of float.
template <class T> struct vec_of { static constexpr int n = 16 / (int)sizeof(T); };

// Words holds BYTES bytes as they lie in memory, moved in pieces of up to 16 bytes.
template <int BYTES> struct Words;
template <> struct Words<2> {
    u16 w[1];
    __device__ __forceinline__ void ld(const void* p) { w[0] = *(const u16*)p; }
    __device__ __forceinline__ void st(void* p) const { *(u16*)p = w[0]; }
    __device__ __forceinline__ void ldcs(const void* p) { w[0] = __ldcs((const u16*)p); }
    __device__ __forceinline__ void stcs(void* p) const { __stcs((u16*)p, w[0]); }
};
template <> struct Words<4> {
    u32 w[1];
    __device__ __forceinline__ void ld(const void* p) { w[0] = *(const u32*)p; }
    __device__ __forceinline__ void st(void* p) const { *(u32*)p = w[0]; }
    __device__ __forceinline__ void ldcs(const void* p) { w[0] = __ldcs((const u32*)p); }
    __device__ __forceinline__ void stcs(void* p) const { __stcs((u32*)p, w[0]); }
};
template <> struct Words<8> {
    u32 w[2];
    __device__ __forceinline__ void set(uint2 v) { w[0] = v.x, w[1] = v.y; }
    __device__ __forceinline__ uint2 get() const { return make_uint2(w[0], w[1]); }
    __device__ __forceinline__ void ld(const void* p) { set(*(const uint2*)p); }
    __device__ __forceinline__ void st(void* p) const { *(uint2*)p = get(); }
    __device__ __forceinline__ void ldcs(const void* p) { set(__ldcs((const uint2*)p)); }
    __device__ __forceinline__ void stcs(void* p) const { __stcs((uint2*)p, get()); }
};
template <int BYTES> struct Words {
    static_assert(BYTES % 16 == 0, "a vector is 2, 4, 8 or a multiple of 16 bytes");
    u32 w[BYTES / 4];
    __device__ __forceinline__ void set(int k, uint4 v) {
        w[4 * k] = v.x, w[4 * k + 1] = v.y, w[4 * k + 2] = v.z, w[4 * k + 3] = v.w;
    }
    __device__ __forceinline__ uint4 get(int k) const {
        return make_uint4(w[4 * k], w[4 * k + 1], w[4 * k + 2], w[4 * k + 3]);
    }
    __device__ __forceinline__ void ld(const void* p) {
#pragma unroll
        for (int k = 0; k < BYTES / 16; k++) set(k, ((const uint4*)p)[k]);
    }
    __device__ __forceinline__ void st(void* p) const {
#pragma unroll
        for (int k = 0; k < BYTES / 16; k++) ((uint4*)p)[k] = get(k);
    }
    __device__ __forceinline__ void ldcs(const void* p) {
#pragma unroll
        for (int k = 0; k < BYTES / 16; k++) set(k, __ldcs((const uint4*)p + k));
    }
    __device__ __forceinline__ void stcs(void* p) const {
#pragma unroll
        for (int k = 0; k < BYTES / 16; k++) __stcs((uint4*)p + k, get(k));
    }
};

template <int N> __device__ __forceinline__ void unpack(const Words<4 * N>& w, float (&v)[N], float) {
#pragma unroll
    for (int k = 0; k < N; k++) v[k] = __uint_as_float(w.w[k]);
}
template <int N> __device__ __forceinline__ void unpack(const Words<2 * N>& w, float (&v)[N], bf16) {
    if constexpr (N == 1) {
        v[0] = __uint_as_float((u32)w.w[0] << 16);
    } else {
#pragma unroll
        for (int k = 0; k < N; k += 2) v[k] = bf16_lo(w.w[k / 2]), v[k + 1] = bf16_hi(w.w[k / 2]);
    }
}
template <int N> __device__ __forceinline__ void pack(Words<4 * N>& w, const float (&v)[N], float) {
#pragma unroll
    for (int k = 0; k < N; k++) w.w[k] = __float_as_uint(v[k]);
}
template <int N> __device__ __forceinline__ void pack(Words<2 * N>& w, const float (&v)[N], bf16) {
    if constexpr (N == 1) {
        w.w[0] = to_bf16(v[0]).bits;
    } else {
#pragma unroll
        for (int k = 0; k < N; k += 2) w.w[k / 2] = pack_bf16(v[k], v[k + 1]);
    }
}

// load reads N consecutive elements at p as floats, 16 bytes at a time; p is aligned to the
// vector (N * sizeof(T) bytes, 16 at most). load_cs does the same for data that is read once,
// which then does not push other data out of the caches.
template <int N, class T> __device__ __forceinline__ void load(const T* p, float (&v)[N]) {
    Words<N * (int)sizeof(T)> w;
    w.ld(p);
    unpack<N>(w, v, T());
}
template <int N, class T> __device__ __forceinline__ void load_cs(const T* p, float (&v)[N]) {
    Words<N * (int)sizeof(T)> w;
    w.ldcs(p);
    unpack<N>(w, v, T());
}
// store writes N floats as consecutive elements at p, rounded to nearest; store_cs for data
// that is not read again soon.
template <int N, class T> __device__ __forceinline__ void store(T* p, const float (&v)[N]) {
    Words<N * (int)sizeof(T)> w;
    pack<N>(w, v, T());
    w.st(p);
}
template <int N, class T> __device__ __forceinline__ void store_cs(T* p, const float (&v)[N]) {
    Words<N * (int)sizeof(T)> w;
    pack<N>(w, v, T());
    w.stcs(p);
}

// ---- approximations ------------------------------------------------------------------------
// One instruction of the special function unit each, within two units in the last place; what is
// denormal counts as 0, so that none is spent on its range.

__device__ __forceinline__ float exp2_fast(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
__device__ __forceinline__ float recip_fast(float x) {
    float y;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

// tanh_fast is within 2^-11 of tanh(x), a quarter of what rounding to bf16 changes.
__device__ __forceinline__ float tanh_fast(float x) {
    float y;
    asm("tanh.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

// ---- reductions ----------------------------------------------------------------------------
// All threads of the warp or block take part, and all get the same bits.

#define FULL 0xffffffffu

template <class T> __device__ __forceinline__ T warp_sum(T v) {
#pragma unroll
    for (int k = 16; k > 0; k >>= 1) v += __shfl_xor_sync(FULL, v, k);
    return v;
}
__device__ __forceinline__ float warp_max(float v) {
#pragma unroll
    for (int k = 16; k > 0; k >>= 1) v = fmaxf(v, __shfl_xor_sync(FULL, v, k));
    return v;
}

// block_sum adds one value of each thread: by warp, then over the warps in order. THREADS is
// the size of the block, a multiple of 32.
template <int THREADS, class T> __device__ __forceinline__ T block_sum(T v) {
    constexpr int W = THREADS / 32;
    v = warp_sum(v);
    if constexpr (W == 1) return v;
    __shared__ T part[W];
    __syncthreads();  // the previous call's readers are done
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = v;
    __syncthreads();
    T s = part[0];
#pragma unroll
    for (int k = 1; k < W; k++) s += part[k];
    return s;
}

// block_sum2 adds two values at the price of one.
template <int THREADS> __device__ __forceinline__ float2 block_sum2(float a, float b) {
    constexpr int W = THREADS / 32;
    a = warp_sum(a), b = warp_sum(b);
    if constexpr (W == 1) return make_float2(a, b);
    __shared__ float2 part[W];
    __syncthreads();
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = make_float2(a, b);
    __syncthreads();
    float2 s = part[0];
#pragma unroll
    for (int k = 1; k < W; k++) s.x += part[k].x, s.y += part[k].y;
    return s;
}

template <int THREADS> __device__ __forceinline__ float block_max(float v) {
    constexpr int W = THREADS / 32;
    v = warp_max(v);
    if constexpr (W == 1) return v;
    __shared__ float part[W];
    __syncthreads();
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = v;
    __syncthreads();
    float s = part[0];
#pragma unroll
    for (int k = 1; k < W; k++) s = fmaxf(s, part[k]);
    return s;
}

// ---- barriers ------------------------------------------------------------------------------

// sync_threads waits for those n threads, whole warps, that call it with the same id, from 1 to 15. Where
// kernels are tried without a GPU it waits for the block: all its warps come by equally often.
__device__ __forceinline__ void sync_threads(int id, int n) {
#ifdef __CUDA_ARCH__
    asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(n) : "memory");
#else
    __syncthreads();
#endif
}

// ---- copies to shared memory ---------------------------------------------------------------
// In the background of the thread that asks for them, in groups that copies_commit ends; copies_wait
// waits for all groups but the last N. A thread sees what it copied itself; others do behind a barrier.

#ifdef __CUDA_ARCH__
__device__ __forceinline__ void copy16(void* to, const void* from) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"((u32)__cvta_generic_to_shared(to)), "l"(from) : "memory");
}
__device__ __forceinline__ void copies_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int N> __device__ __forceinline__ void copies_wait() { asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory"); }
#else  // where kernels are tried without a GPU: at once
__device__ __forceinline__ void copy16(void* to, const void* from) { *(uint4*)to = *(const uint4*)from; }
__device__ __forceinline__ void copies_commit() {}
template <int N> __device__ __forceinline__ void copies_wait() {}
#endif

// ---- clusters ------------------------------------------------------------------------------
// Blocks of kernels with __cluster_dims__, from Hopper on, which read each other's shared memory.

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
// Of all blocks of a cluster, what was written before cluster_arrive is seen behind cluster_wait.
__device__ __forceinline__ void cluster_arrive() { asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory"); }
__device__ __forceinline__ void cluster_wait() { asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory"); }

// of_block is what the float at p, in shared memory, is in a block of the cluster.
__device__ __forceinline__ float of_block(const float* p, u32 block) {
    u32 at;
    float v;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(at) : "r"((u32)__cvta_generic_to_shared(p)), "r"(block));
    asm volatile("ld.shared::cluster.f32 %0, [%1];" : "=f"(v) : "r"(at) : "memory");
    return v;
}
#endif

// ---- small helpers -------------------------------------------------------------------------

__device__ __forceinline__ i64 ceil_div(i64 a, i64 b) { return (a + b - 1) / b; }
__device__ __forceinline__ i64 imin(i64 a, i64 b) { return a < b ? a : b; }
__device__ __forceinline__ i64 imax(i64 a, i64 b) { return a > b ? a : b; }

// thread_id and num_threads number the threads of a one-dimensional grid.
__device__ __forceinline__ i64 thread_id() { return (i64)blockIdx.x * blockDim.x + threadIdx.x; }
__device__ __forceinline__ i64 num_threads() { return (i64)gridDim.x * blockDim.x; }

// plus is x[at] + v when x is there, else v: the AddX operands.
template <class T> __device__ __forceinline__ float plus(const T* x, i64 at, float v) {
    return x ? to_f(x[at]) + v : v;
}
