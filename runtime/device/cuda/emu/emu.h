// emu.h: enough of CUDA C++ for a host compiler to run a kernel, one block after the other,
// each thread of a block a fiber. It stands in front of mtc.cuh.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/mman.h>

#define __device__
#define __global__
#define __shared__ static
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __restrict__

struct dim3 { unsigned x, y, z; };
struct alignas(8) uint2 { unsigned x, y; };
struct alignas(16) uint4 { unsigned x, y, z, w; };
struct alignas(8) float2 { float x, y; };
struct alignas(16) float4 { float x, y, z, w; };
static inline uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
static inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }
static inline float2 make_float2(float x, float y) { return {x, y}; }
static inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }

static dim3 threadIdx, blockIdx, blockDim, gridDim;

template <class To, class From> static inline To emu_cast(From x) {
    static_assert(sizeof(To) == sizeof(From), "a cast of bits");
    To y;
    memcpy(&y, &x, sizeof y);
    return y;
}
static inline float __uint_as_float(unsigned x) { return emu_cast<float>(x); }
static inline unsigned __float_as_uint(float x) { return emu_cast<unsigned>(x); }
static inline float __int_as_float(int x) { return emu_cast<float>(x); }
static inline int __float_as_int(float x) { return emu_cast<int>(x); }
static inline double __longlong_as_double(long long x) { return emu_cast<double>(x); }
#define __expf expf  // libm has the name
static inline float __fdividef(float x, float y) { return std::isinf(y) ? x * 0.0f : x / y; }
static inline int __popc(unsigned x) { return __builtin_popcount(x); }
static inline int __ffs(unsigned x) { return __builtin_ffs((int)x); }
static inline int __clz(unsigned x) { return x ? __builtin_clz(x) : 32; }
static inline float __fmaf_rn(float x, float y, float z) { return fmaf(x, y, z); }
static inline double __dmul_rn(double x, double y) { return x * y; }
static inline double __dadd_rn(double x, double y) { return x + y; }
static inline float __fmul_rn(float x, float y) { return x * y; }
static inline float __fadd_rn(float x, float y) { return x + y; }
static inline float __frcp_rn(float x) { return 1.0f / x; }
static inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }
#define __logf logf
template <class T> static inline T min(T a, T b) { return b < a ? b : a; }
template <class T> static inline T max(T a, T b) { return a < b ? b : a; }
using std::isinf;
using std::isnan;

static void emu_fail(const char* why);
template <class T> static inline T __ldcs(const T* p) { return *p; }
template <class T> static inline void __stcs(T* p, T v) { *p = v; }
static inline void __threadfence() {}
template <class T> static inline T atomicAdd(T* p, T v) { T old = *p; *p += v; return old; }
template <class T> static inline T atomicOr(T* p, T v) { T old = *p; *p |= v; return old; }
template <class T> static inline T atomicAnd(T* p, T v) { T old = *p; *p &= v; return old; }

// The two conversions that mtc.cuh writes in PTX.
static inline unsigned short emu_bf16(float x) {
    unsigned b = __float_as_uint(x);
    if (x != x) return 0x7fff;
    return (unsigned short)((b + 0x7fff + (b >> 16 & 1)) >> 16);
}

// ---- fibers ---------------------------------------------------------------------------------

enum { EMU_READY, EMU_WARP, EMU_BLOCK, EMU_DONE };
enum { EMU_MAX = 1024, EMU_STACK = 64 << 10 };
struct emu_fiber {
    void* sp;
    int state;
};
#ifndef EMU_SHARED  // most of a block's dynamic shared memory, as Hopper has it
#define EMU_SHARED (227 << 10)
#endif
alignas(128) static char emu_shared[EMU_SHARED];
static emu_fiber emu_fibers[EMU_MAX];
static int emu_count, emu_now;
static void* emu_main_sp;
static const char* emu_error;
static char* emu_stacks;
static void (*emu_body)();

extern "C" __attribute__((visibility("hidden"))) void emu_switch(void** save, void* to);
asm(R"(
.text
.hidden emu_switch
.type emu_switch, @function
emu_switch:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
)");

static void emu_yield(int state) {
    emu_fibers[emu_now].state = state;
    emu_switch(&emu_fibers[emu_now].sp, emu_main_sp);
}
static void emu_entry() {
    emu_body();
    emu_yield(EMU_DONE);
    abort();
}
static void emu_fail(const char* why) {
    if (!emu_error) emu_error = why;
    emu_yield(EMU_DONE);
    abort();
}
static inline void __trap() { emu_fail("a kernel stopped itself (__trap)"); }
static inline void __syncthreads() { emu_yield(EMU_BLOCK); }
static inline void __syncwarp(unsigned = ~0u) { emu_yield(EMU_WARP); }

// Values that the lanes of a warp exchange. Two sets take turns: a lane that is already at the
// next exchange leaves what others still read.
static char emu_slots[2][EMU_MAX][16];
static unsigned char emu_turn[EMU_MAX];
template <class T> static inline char (*emu_exchange(T v))[16] {
    const int turn = emu_turn[emu_now] ^= 1;
    memcpy(emu_slots[turn][emu_now], &v, sizeof v);
    emu_yield(EMU_WARP);
    return &emu_slots[turn][emu_now / 32 * 32];
}
template <class T> static inline T emu_from(char (*set)[16], int lane) {
    T v;
    memcpy(&v, set[lane & 31], sizeof v);
    return v;
}
template <class T> static inline T __shfl_xor_sync(unsigned, T v, int k) { return emu_from<T>(emu_exchange(v), (threadIdx.x % 32) ^ k); }
template <class T> static inline T __shfl_sync(unsigned, T v, int k) { return emu_from<T>(emu_exchange(v), k); }
template <class T> static inline T __shfl_down_sync(unsigned, T v, int k) {
    const int at = threadIdx.x % 32 + k;
    T w = emu_from<T>(emu_exchange(v), at);
    return at < 32 ? w : v;
}
template <class T> static inline T __shfl_up_sync(unsigned, T v, int k) {
    const int at = (int)(threadIdx.x % 32) - k;
    T w = emu_from<T>(emu_exchange(v), at);
    return at >= 0 ? w : v;
}
static inline unsigned __ballot_sync(unsigned, int p) {
    auto set = emu_exchange(p);
    unsigned m = 0;
    for (int k = 0; k < 32; k++) m |= (unsigned)(emu_from<int>(set, k) != 0) << k;
    return m;
}
static inline unsigned __match_any_sync(unsigned, unsigned v) {
    auto set = emu_exchange(v);
    unsigned m = 0;
    for (int k = 0; k < 32; k++) m |= (unsigned)(emu_from<unsigned>(set, k) == v) << k;
    return m;
}

// emu_step runs the ready fibers once, forwards or backwards, and opens the barriers that all
// have reached. It returns false when all are done.
static bool emu_step(bool back) {
    bool any = false;
    for (int k = 0; k < emu_count; k++) {
        const int t = back ? emu_count - 1 - k : k;
        if (emu_fibers[t].state != EMU_READY) continue;
        any = true;
        emu_now = t;
        threadIdx.x = (unsigned)t;
        emu_switch(&emu_main_sp, emu_fibers[t].sp);
    }
    int at_block = 0, done = 0;
    for (int w = 0; w < emu_count; w += 32) {
        const int end = w + 32 < emu_count ? w + 32 : emu_count;
        int at_warp = 0, gone = 0;
        for (int t = w; t < end; t++) {
            at_warp += emu_fibers[t].state == EMU_WARP;
            gone += emu_fibers[t].state == EMU_DONE;
            at_block += emu_fibers[t].state == EMU_BLOCK;
        }
        done += gone;
        if (at_warp && at_warp == end - w) {
            for (int t = w; t < end; t++) emu_fibers[t].state = EMU_READY;
            any = true;
        } else if (at_warp && gone && !emu_error) {
            emu_error = "a warp exchanges values after some of its lanes have returned";
        }
    }
    if (at_block && at_block + done == emu_count) {
        for (int t = 0; t < emu_count; t++)
            if (emu_fibers[t].state == EMU_BLOCK) emu_fibers[t].state = EMU_READY;
        any = true;
    }
    if (emu_error) return false;
    if (!any && done < emu_count) {
        emu_error = "threads wait for each other";
        return false;
    }
    return done < emu_count;
}

// emu_launch runs all blocks; body is one thread. It returns what went wrong, or null.
static const char* emu_launch(dim3 grid, int threads, bool back, void (*body)()) {
    if (threads < 1 || threads > EMU_MAX) return "a block of a wrong size";
    if (!emu_stacks) {
        emu_stacks = (char*)mmap(nullptr, (size_t)EMU_MAX * EMU_STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (emu_stacks == MAP_FAILED) return "no memory for stacks";
    }
    emu_error = nullptr;
    emu_body = body;
    gridDim = grid;
    blockDim = {(unsigned)threads, 1, 1};
    const unsigned long long blocks = (unsigned long long)grid.x * grid.y * grid.z;
    for (unsigned long long k = 0; k < blocks && !emu_error; k++) {
        const unsigned long long b = back ? blocks - 1 - k : k;
        blockIdx = {(unsigned)(b % grid.x), (unsigned)(b / grid.x % grid.y), (unsigned)(b / grid.x / grid.y)};
        emu_count = threads;
        memset(emu_shared, 0xff, sizeof emu_shared);
        for (int t = 0; t < threads; t++) {
            void** sp = (void**)(emu_stacks + (size_t)(t + 1) * EMU_STACK);
            *--sp = nullptr;            // where a return address of emu_entry would be, for alignment
            *--sp = (void*)emu_entry;
            for (int r = 0; r < 6; r++) *--sp = nullptr;
            emu_fibers[t] = {sp, EMU_READY};
        }
        while (emu_step(back)) {
        }
    }
    return emu_error;
}
