// The router's logits on tensor cores: y[t, e] = sum over i of x[t, i] w[e, i], y in f32. D is a multiple
// of 16. logits.cu has the arguments, and the way without tensor cores.
//
// A warp makes the logits of 16 tokens, 32 experts at a time. Operands come straight from memory:
// the pieces of a row that a lane loads are those that mma wants of it.
#define MTC_MMA
#include "mtc.cuh"
#ifndef MTC_F32

struct Geom {
    i64 n, d;
    int e;
    __device__ explicit Geom(const Args& a) : n(a.i[0]), d(a.i[1]), e((int)a.i[2]) {}
};

extern "C" __global__ void __launch_bounds__(256) moe_logits_mma(Args a) {
    const Geom g(a);
    const int lane = threadIdx.x % 32, c = lane % 4 * 2;
    const i64 tile = thread_id() / 32 * 16;
    if (tile >= g.n) return;
    const i64 t0 = tile + lane / 4, t1 = t0 + 8;
    const bf16 *x0 = (const bf16*)a.p[0] + imin(t0, g.n - 1) * g.d, *x1 = (const bf16*)a.p[0] + imin(t1, g.n - 1) * g.d;
    for (int e0 = 0; e0 < g.e; e0 += 32) {
        float acc[4][4];
        const bf16* w[4];
#pragma unroll
        for (int j = 0; j < 4; j++) {
            const int e = e0 + 8 * j + lane / 4;
            w[j] = (const bf16*)a.p[1] + (e < g.e ? e : g.e - 1) * g.d;
#pragma unroll
            for (int i = 0; i < 4; i++) acc[j][i] = 0.f;
        }
        const int blocks = min(4, (g.e - e0 + 7) / 8);
        // A sum does not mind which term stands where: of 32 terms a lane reads 8 side by side, of x as of w,
        // and takes them for those that mma wants of two times 16.
        i64 k = 0;
        if (aligned(bits_of(a.p[0]) | bits_of(a.p[1])) && g.d % 8 == 0) {
#pragma unroll 2
            for (; k + 32 <= g.d; k += 32) {
                const uint4 u = *(const uint4*)(x0 + k + 4 * c), v = *(const uint4*)(x1 + k + 4 * c);
                const u32 first[4] = {u.x, v.x, u.y, v.y}, second[4] = {u.z, v.z, u.w, v.w};
#pragma unroll
                for (int j = 0; j < 4; j++) {
                    if (j >= blocks) break;
                    const uint4 b = *(const uint4*)(w[j] + k + 4 * c);
                    mma(acc[j], first, b.x, b.y);
                    mma(acc[j], second, b.z, b.w);
                }
            }
        }
#pragma unroll 4
        for (; k < g.d; k += 16) {
            const u32 x[4] = {*(const u32*)(x0 + k + c), *(const u32*)(x1 + k + c), *(const u32*)(x0 + k + c + 8), *(const u32*)(x1 + k + c + 8)};
#pragma unroll
            for (int j = 0; j < 4; j++)
                if (j < blocks) mma(acc[j], x, *(const u32*)(w[j] + k + c), *(const u32*)(w[j] + k + c + 8));
        }
        float* y = (float*)a.p[2];
#pragma unroll
        for (int j = 0; j < 4; j++)
#pragma unroll
            for (int i = 0; i < 4; i++) {
                const i64 t = i < 2 ? t0 : t1;
                const int e = e0 + 8 * j + c + i % 2;
                if (t < g.n && e < g.e) y[t * g.e + e] = acc[j][i];
            }
    }
}
#endif
