// Stands for mtc.cuh when a kernel is compiled for this processor: the part of CUDA C++ that
// the kernels use, with the threads of a block as fibers that take turns. Collective
// operations of a warp meet at a point that all lanes reach. Copies and products that run in
// the background on a GPU are done as late as the kernel's own waits allow, so that a missing
// wait shows. Shared memory starts as NaN. It cannot find races between threads that a GPU
// runs at once, or wrong fences.
#pragma once
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <vector>

#define MTC_EMU 1
#define __global__
#define __device__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __shared__ static
#define __align__(n) alignas(1024)
#define __grid_constant__

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

struct Args {
    void* p[20];
    i64 i[16];
    float f[8];
    void* work;
};

namespace emu {
struct dim {
    int x = 1, y = 1, z = 1;
};
constexpr int MAX_THREADS = 1024, STACK = 256 << 10, SMEM = 232448;

struct Fiber {
    void* sp;
    char* stack;
    bool done;
    int id;
    std::deque<std::vector<std::function<void()>>> groups;  // background work, by group
    std::vector<std::function<void()>> open;
};

inline Fiber fibers[MAX_THREADS];
inline Fiber* self;
inline void* scheduler;
inline int nthreads;
inline dim block, grid, bdim;
inline i64 idle;  // turns since something moved

extern "C" void emu_switch(void** save, void* to);
asm(R"(
.text
.globl emu_switch
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

inline void yield() { emu_switch(&self->sp, scheduler); }
template <class F> inline void wait(F ready) {
    while (!ready()) {
        if (++idle > 4000000) fprintf(stderr, "deadlock: thread %d of block %d,%d,%d\n", self->id, block.x, block.y, block.z), abort();
        yield();
    }
    idle = 0;
}

// Meet is a point that a number of threads reach together.
struct Meet {
    int count = 0;
    i64 round = 0;
    template <class F> void at(int n, F last) {
        i64 mine = round;
        if (++count == n) {
            count = 0;
            last();
            round++;
            idle = 0;
            return;
        }
        wait([&] { return round != mine; });
    }
};
inline Meet all, named[16], warps[MAX_THREADS / 32];
inline u32 lanes[MAX_THREADS / 32][32][8];  // what lanes hand each other
inline float got[MAX_THREADS / 32][32][8];

inline std::function<void()> body;
inline void entry() {
    body();
    self->done = true;
    yield();
    abort();
}

template <class K> void launch(K kernel, const Args& a, dim g, int threads, int shared);
}  // namespace emu

alignas(1024) inline unsigned char smem[emu::SMEM];

namespace emu {
template <class K> void launch(K kernel, const Args& a, dim g, int threads, int shared) {
    grid = g, nthreads = threads, bdim = {threads, 1, 1};
    body = [&] { kernel(a); };
    if (shared > SMEM) fprintf(stderr, "%d bytes of shared memory\n", shared), abort();
    for (block.z = 0; block.z < g.z; block.z++)
        for (block.y = 0; block.y < g.y; block.y++)
            for (block.x = 0; block.x < g.x; block.x++) {
                memset(smem, 0xff, SMEM);
                all = Meet();
                for (auto& m : named) m = Meet();
                for (auto& m : warps) m = Meet();
                for (int t = 0; t < threads; t++) {
                    Fiber& f = fibers[t];
                    if (!f.stack) f.stack = (char*)aligned_alloc(64, STACK);
                    f.id = t, f.done = false;
                    f.groups.clear(), f.open.clear();
                    void** sp = (void**)(f.stack + STACK);
                    *--sp = nullptr;
                    *--sp = (void*)entry;
                    for (int i = 0; i < 6; i++) *--sp = nullptr;
                    f.sp = sp;
                }
                for (int left = threads; left;) {
                    left = 0;
                    for (int t = 0; t < threads; t++)
                        if (!fibers[t].done) left++, self = &fibers[t], emu_switch(&scheduler, self->sp);
                }
                for (int i = shared; i < SMEM; i++)
                    if (smem[i] != 0xff) fprintf(stderr, "a block wrote past its shared memory, at %d of %d\n", i, shared), abort();
            }
}

struct tid {
    int x, y = 0, z = 0;
};
}  // namespace emu
#define threadIdx (emu::tid{emu::self->id})
#define blockIdx (emu::block)
#define gridDim (emu::grid)
#define blockDim (emu::bdim)

struct alignas(16) uint4 {
    u32 x, y, z, w;
};
struct alignas(8) float2 {
    float x, y;
};
struct alignas(16) float4 {
    float x, y, z, w;
};

inline float __int_as_float(int x) { float f; memcpy(&f, &x, 4); return f; }
inline float __uint_as_float(u32 x) { float f; memcpy(&f, &x, 4); return f; }
inline u32 __float_as_uint(float x) { u32 f; memcpy(&f, &x, 4); return f; }
inline float __fmaf_rn(float a, float b, float c) { return fmaf(a, b, c); }
inline float __fdividef(float a, float b) { return a / b; }
inline float exp2_fast(float x) { return exp2f(x); }
template <class A, class B> inline auto min(A a, B b) { return a < b ? a : b; }
template <class A, class B> inline auto max(A a, B b) { return a > b ? a : b; }

struct alignas(2) bf16 {
    u16 bits;
};
#ifdef MTC_F32
typedef float act_t;
typedef float wgt_t;
#else
typedef bf16 act_t;
typedef bf16 wgt_t;
#endif
inline float to_f(float x) { return x; }
inline float to_f(bf16 x) { return __uint_as_float((u32)x.bits << 16); }
inline float bf16_lo(u32 w) { return __uint_as_float(w << 16); }
inline float bf16_hi(u32 w) { return __uint_as_float(w & 0xffff0000u); }
inline bf16 to_bf16(float x) {
    u32 u = __float_as_uint(x);
    if ((u & 0x7fffffff) > 0x7f800000) return {0x7fff};
    return {(u16)((u + 0x7fff + (u >> 16 & 1)) >> 16)};
}
inline u32 pack_bf16(float lo, float hi) { return to_bf16(lo).bits | (u32)to_bf16(hi).bits << 16; }
template <class T> inline T from_f(float x);
template <> inline float from_f<float>(float x) { return x; }
template <> inline bf16 from_f<bf16>(float x) { return to_bf16(x); }
template <int N, class T> inline void load(const T* p, float (&v)[N]) {
    for (int i = 0; i < N; i++) v[i] = to_f(p[i]);
}
template <int N, class T> inline void store(T* p, const float (&v)[N]) {
    for (int i = 0; i < N; i++) p[i] = from_f<T>(v[i]);
}
template <class T> inline float plus(const T* x, i64 at, float v) { return x ? to_f(x[at]) + v : v; }
inline i64 ceil_div(i64 a, i64 b) { return (a + b - 1) / b; }
inline i64 imin(i64 a, i64 b) { return a < b ? a : b; }
inline i64 imax(i64 a, i64 b) { return a > b ? a : b; }
inline i64 thread_id() { return (i64)blockIdx.x * blockDim.x + threadIdx.x; }
inline i64 num_threads() { return (i64)gridDim.x * blockDim.x; }

#define FULL 0xffffffffu
inline void __syncthreads() {
    int n = emu::nthreads;
    emu::all.at(n, [] {});
}
inline void __syncwarp() { emu::warps[emu::self->id / 32].at(32, [] {}); }
template <class T> inline T __shfl_xor_sync(u32, T v, int k) {
    int w = emu::self->id / 32, l = emu::self->id % 32;
    memcpy(emu::lanes[w][l], &v, sizeof v);
    __syncwarp();
    memcpy(&v, emu::lanes[w][l ^ k], sizeof v);
    __syncwarp();
    return v;
}
template <class T> inline T __shfl_sync(u32, T v, int k) {
    int w = emu::self->id / 32, l = emu::self->id % 32;
    memcpy(emu::lanes[w][l], &v, sizeof v);
    __syncwarp();
    memcpy(&v, emu::lanes[w][k], sizeof v);
    __syncwarp();
    return v;
}
inline float warp_sum(float v) {
    for (int k = 16; k > 0; k >>= 1) v += __shfl_xor_sync(FULL, v, k);
    return v;
}

// ---- the instructions that mma.cu names ----------------------------------------------------

inline u32 smem_at(const void* p) { return (u32)((const unsigned char*)p - smem); }

// ldmatrix: lane l names row l % 8 of matrix l / 8, and gets of matrix i, in r[i], the elements
// (l / 4, 2 (l % 4)) and the next; of the transposed matrix with trans.
inline void ldmatrix_any(u32 (&r)[4], u32 at, bool trans) {
    int w = emu::self->id / 32, l = emu::self->id % 32;
    if (at % 16) fprintf(stderr, "ldmatrix at %u\n", at), abort();
    emu::lanes[w][l][0] = at;
    __syncwarp();
    for (int i = 0; i < 4; i++) {
        u16 e[2];
        for (int j = 0; j < 2; j++) {
            int row = l / 4, col = 2 * (l % 4) + j;
            if (trans) std::swap(row, col);
            memcpy(&e[j], smem + emu::lanes[w][8 * i + row][0] + 2 * col, 2);
        }
        r[i] = e[0] | (u32)e[1] << 16;
    }
    __syncwarp();
}
inline void ldmatrix(u32 (&r)[4], u32 at) { ldmatrix_any(r, at, false); }
inline void ldmatrix_t(u32 (&r)[4], u32 at) { ldmatrix_any(r, at, true); }

// mma m16n8k16: with g = l / 4 and c = 2 (l % 4), a holds A's elements (g, c), (g + 8, c),
// (g, c + 8), (g + 8, c + 8) and the next column of each; b0, b1 hold B's (c, g), (c + 8, g)
// and the next row; d holds D's (g, c), (g, c + 1), (g + 8, c), (g + 8, c + 1).
inline void mma(float (&d)[4], const u32 (&a)[4], u32 b0, u32 b1) {
    int w = emu::self->id / 32, l = emu::self->id % 32;
    auto& x = emu::lanes[w];
    for (int i = 0; i < 4; i++) x[l][i] = a[i];
    x[l][4] = b0, x[l][5] = b1;
    __syncwarp();
    auto half = [](u32 v, int i) { return i ? bf16_hi(v) : bf16_lo(v); };
    for (int e = 0; e < 4; e++) {
        int row = l / 4 + e / 2 * 8, col = 2 * (l % 4) + e % 2;
        float sum = 0;
        for (int k = 0; k < 16; k++)
            sum += half(x[row % 8 * 4 + k % 8 / 2][row / 8 + k / 8 * 2], k % 2) * half(x[col * 4 + k % 8 / 2][4 + k / 8], k % 2);
        d[e] += sum;
    }
    __syncwarp();
}

inline void copy16(u32 to, const void* from, bool there) {
    if (to % 16 || (uintptr_t)from % 16) fprintf(stderr, "cp.async of 16 bytes at %u from %p\n", to, from), abort();
    emu::self->open.push_back([=] {
        if (there) memcpy(smem + to, from, 16);
        else memset(smem + to, 0, 16);
    });
}
inline void copies_commit() {
    emu::self->groups.push_back(std::move(emu::self->open));
    emu::self->open.clear();
}
template <int N> inline void copies_wait() {
    auto& g = emu::self->groups;
    for (; g.size() > N; g.pop_front())
        for (auto& f : g.front()) f();
}

// ---- the instructions that wgmma.cu names --------------------------------------------------

namespace emu {
struct Barrier {
    int count = 0, pending = 0;
    i64 bytes = 0;
    u32 phase = 0;
    void settle() {
        if (pending == 0 && bytes == 0) pending = count, phase ^= 1, idle = 0;
    }
};
inline std::vector<Barrier> barriers(SMEM / 8);
inline Barrier& barrier(u32 at) {
    if (at % 8) fprintf(stderr, "barrier at %u\n", at), abort();
    return barriers[at / 8];
}
inline std::vector<std::function<void()>> flying;  // copies under way
inline u32 dice = 1;
inline u32 roll() { return dice = dice * 1664525u + 1013904223u, dice >> 16; }
inline void land() {
    if (flying.empty()) return;
    size_t i = roll() % flying.size();
    auto f = std::move(flying[i]);
    flying.erase(flying.begin() + i);
    f();
}
inline u32 swizzled(u32 at) { return at ^ (at >> 7 & 7) << 4; }
}  // namespace emu

inline void bar_init(u32 bar, int count) { emu::barrier(bar) = {count, count, 0, 0}; }
inline void bar_fence() {}
inline void bar_arrive(u32 bar) {
    auto& b = emu::barrier(bar);
    if (b.pending-- <= 0) fprintf(stderr, "one arrival too many at %u\n", bar), abort();
    b.settle();
}
inline void bar_expect(u32 bar, u32 bytes) {
    emu::barrier(bar).bytes += bytes;
    bar_arrive(bar);
}
inline void bar_wait(u32 bar, u32 phase) {
    emu::wait([&] {
        if (emu::barrier(bar).phase != phase) return true;
        if (emu::roll() % 16 == 0) emu::land();
        return emu::barrier(bar).phase != phase;
    });
}
inline void named_sync(int id, int n) { emu::named[id].at(n, [] {}); }
inline void named_arrive(int id, int n) {
    auto& m = emu::named[id];
    if (++m.count == n) m.count = 0, m.round++;
}
inline float2 shared2(u32 at) {
    float2 v;
    memcpy(&v, smem + at, 8);
    return v;
}
template <int N> inline void fewer_registers() {}
template <int N> inline void more_registers() {}

struct alignas(128) Map {
    const bf16* p;
    i64 hd, heads, t, b;
};
inline void make_map(Map* to, u32, const bf16* p, i64 hd, i64 heads, i64 t, i64 b) {
    if (threadIdx.x == 0) *to = {p, hd, heads, t, b};
}
inline void acquire_map(const Map*) {}
inline void copy_box(u32 to, const Map* m, int col, int head, int row, int b, u32 bar) {
    if (to % 1024) fprintf(stderr, "a box at %u\n", to), abort();
    emu::flying.push_back([=] {
        for (int r = 0; r < 64; r++)
            for (int c = 0; c < 64; c++) {
                u16 x = 0;
                if (row + r < m->t && col + c < m->hd && head < m->heads && b < m->b)
                    x = m->p[((b * m->t + row + r) * m->heads + head) * m->hd + col + c].bits;
                memcpy(smem + emu::swizzled(to + r * 128 + c * 2), &x, 2);
            }
        emu::barrier(bar).bytes -= 8192;
        emu::barrier(bar).settle();
        emu::idle = 0;
    });
}
inline void copy_bulk(u32 to, const void* from, u32 bytes, u32 bar) {
    if (to % 16 || (uintptr_t)from % 16 || bytes % 16) fprintf(stderr, "a copy of %u bytes from %p to %u\n", bytes, from, to), abort();
    emu::flying.push_back([=] {
        memcpy(smem + to, from, bytes);
        emu::barrier(bar).bytes -= bytes;
        emu::barrier(bar).settle();
        emu::idle = 0;
    });
}
inline int next_number(int* counter) { return (*counter)++; }
inline void fence_async() {}

inline void wgmma_fence() {}
inline void wgmma_commit() { copies_commit(); }
template <int N> inline void wgmma_wait() { copies_wait<N>(); }
template <int N> inline void keep(float (&)[N]) {}
template <int N> inline void keep(u32 (&)[N][4]) {}

namespace emu {
// element of a swizzled operand: row is along M or N, k along the sum.
inline float element(u64 desc, int row, int k, bool mn_major) {
    u32 start = (desc & 0x3fff) << 4, lead = (desc >> 16 & 0x3fff) << 4, stride = (desc >> 32 & 0x3fff) << 4;
    if (desc >> 62 != 1) abort();
    u32 at = mn_major ? start + row % 64 * 2 + row / 64 * lead + k % 8 * 128 + k / 8 * stride
                      : start + row % 8 * 128 + row / 8 * stride + k * 2;
    bf16 x;
    memcpy(&x, smem + swizzled(at), 2);
    return to_f(x);
}
inline void product(float* d, int n, int lane, const std::vector<float>& rows, u64 b, int tb, int add) {
    for (int i = 0; i < n / 2; i++) {
        int col = i / 4 * 8 + lane % 4 * 2 + i % 2;
        float sum = 0;
        for (int k = 0; k < 16; k++) sum += rows[i / 2 % 2 * 16 + k] * element(b, col, k, tb);
        d[i] = (add ? d[i] : 0.f) + sum;
    }
}
}  // namespace emu
template <int TB, int TA = 0, int N> inline void wgmma(float (&d)[N], u64 a, u64 b, int add) {
    int lane = emu::self->id % 32, warp = emu::self->id / 32 % 4;
    float* to = d;
    emu::self->open.push_back([=] {
        std::vector<float> rows(32);
        for (int i = 0; i < 32; i++) rows[i] = emu::element(a, warp * 16 + lane / 4 + i / 16 * 8, i % 16, TA);
        emu::product(to, 2 * N, lane, rows, b, TB, add);
    });
}
template <int TB, int N> inline void wgmma(float (&d)[N], const u32 (&a)[4], u64 b, int add) {
    int w = emu::self->id / 32, lane = emu::self->id % 32;
    for (int i = 0; i < 4; i++) emu::lanes[w][lane][i] = a[i];
    __syncwarp();
    std::vector<float> rows(32);
    for (int i = 0; i < 32; i++) {
        int k = i % 16;
        u32 x = emu::lanes[w][lane / 4 * 4 + k % 8 / 2][i / 16 + k / 8 * 2];
        rows[i] = k % 2 ? bf16_hi(x) : bf16_lo(x);
    }
    __syncwarp();
    float* to = d;
    emu::self->open.push_back([=] { emu::product(to, 2 * N, lane, rows, b, TB, add); });
}
#define MTC_HOPPER
#include "../../kit/hopper.cuh"
