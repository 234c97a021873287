// Whether a value is finite, and a sum of its bits. S0: 1 for bf16, else f32.
// p = {x}, i = {rows, d, place, pitch, half}. Mirrored in cuda.go and finite_cpu.go.
//
//mtc:spec 0
//mtc:spec 1
#include "mtc.cuh"

#define CHECK_THREADS 256
#define CHECK_BLOCKS 1024
#if S0
typedef u16 word;
#define EXPONENT 0x7f80u
#else
typedef u32 word;
#define EXPONENT 0x7f800000u
#endif

// Found: the sum, the first element that is not finite (or how many there are), and its bits.
struct Found {
    u64 hash;
    i64 first;
    u64 bits;
};

__device__ __forceinline__ u64 mix(u64 bits, u64 i) {
    const u64 z = (bits ^ (i + 1) * 0x9e3779b97f4a7c15ull) * 0xbf58476d1ce4e5b9ull;
    return z ^ z >> 31;
}

// fold puts the block's results together, in thread 0.
__device__ __forceinline__ void fold(u64& hash, i64& first) {
    __shared__ u64 hashes[CHECK_THREADS];
    __shared__ i64 firsts[CHECK_THREADS];
    hashes[threadIdx.x] = hash, firsts[threadIdx.x] = first;
    __syncthreads();
    for (u32 k = CHECK_THREADS / 2; k > 0; k /= 2) {
        if (threadIdx.x < k) {
            hashes[threadIdx.x] += hashes[threadIdx.x + k];
            firsts[threadIdx.x] = imin(firsts[threadIdx.x], firsts[threadIdx.x + k]);
        }
        __syncthreads();
    }
    hash = hashes[0], first = firsts[0];
}

extern "C" __global__ void __launch_bounds__(CHECK_THREADS) finite_blocks(Args a) {
    const i64 d = a.i[1], pitch = a.i[3], n = a.i[0] * d;
    const word* x = (const word*)a.p[0];
    const bool dense = pitch == d;
    u64 hash = 0;
    i64 first = n;
#pragma unroll 4
    for (i64 i = thread_id(); i < n; i += num_threads()) {
        const word bits = x[dense ? i : i / d * pitch + i % d];
        hash += mix(bits, (u64)i);
        if ((bits & EXPONENT) == EXPONENT) first = imin(first, i);
    }
    fold(hash, first);
    if (threadIdx.x == 0) ((Found*)a.work)[1 + blockIdx.x] = Found{hash, first, 0};
}

extern "C" __global__ void __launch_bounds__(CHECK_THREADS) finite_fold(Args a) {
    const i64 d = a.i[1], pitch = a.i[3], n = a.i[0] * d;
    const i64 blocks = imin(CHECK_BLOCKS, ceil_div(n, CHECK_THREADS * 8));
    const Found* of = (const Found*)a.work + 1;
    u64 hash = 0;
    i64 first = n;
    for (i64 b = threadIdx.x; b < blocks; b += CHECK_THREADS) hash += of[b].hash, first = imin(first, of[b].first);
    fold(hash, first);
    if (threadIdx.x > 0) return;
    u64 bits = 0;
    if (first < n) bits = ((const word*)a.p[0])[first / d * pitch + first % d];
    *(Found*)a.work = Found{hash, first, bits};
}
