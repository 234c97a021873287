#include "mtc.cuh"

// S0: pairs are (2j, 2j + 1) (interleaved), else (j, j + hd/2); S1: turn back (backward).
//mtc:spec 0 0
//mtc:spec 1 0
//mtc:spec 0 1
//mtc:spec 1 1

// turn rotates a pair by the angle with cosine c and sine s.
__device__ __forceinline__ void turn(float& u, float& v, float c, float s) {
    if (S1) s = -s;
    const float p = u * c - v * s;
    v = v * c + u * s;
    u = p;
}

// An item is 8 pairs: their elements are two units, 8 pairs apart by hd/2 or side by side.
// p = {x, cs [T, 2, hd/2] f32, add or null, y, starts i32 or null}, i = {rows, seq, pos, D, hd, interleaved}. A block
// does max(1, 256 / items) rows, items = ceil(D / 16), with thread t at item t % items.
extern "C" __global__ void __launch_bounds__(256) rope_turn(Args a) {
    const u32 d = (u32)a.i[3], hd = (u32)a.i[4], half = hd / 2;
    const u32 items = (d + 15) / 16, per_block = items < 256 ? 256 / items : 1;
    const u32 in_block = threadIdx.x / items;
    const i64 row = (i64)blockIdx.x * per_block + (per_block > 1 ? in_block : 0);
    if (per_block > 1 && in_block >= per_block || row >= a.i[0]) return;
    const act_t* x = (const act_t*)a.p[0] + row * d;
    const act_t* add = a.p[2] ? (const act_t*)a.p[2] + row * d : nullptr;
    act_t* y = (act_t*)a.p[3] + row * d;
    i64 pos = a.i[2] + (i64)((u64)row % (u64)a.i[1]);
    if (a.p[4]) pos -= ((const int*)a.p[4])[row];  // where the row's document begins
    const float* cs = (const float*)a.p[1] + pos * hd;
    const u32 first = per_block > 1 ? threadIdx.x % items : threadIdx.x;
    const u32 step = per_block > 1 ? items : blockDim.x;
    if (hd % 16 == 0 && aligned(bits_of(a.p[0]) | bits_of(a.p[1]) | bits_of(a.p[2]) | bits_of(a.p[3]))) {
        const u32 in_head = half / 8;
        for (u32 item = first; item < items; item += step) {
            const u32 head = item / in_head, j = item % in_head * 8;
            const u32 at = S0 ? head * hd + 2 * j : head * hd + j;
            const u32 other = S0 ? at + 8 : at + half;
            float u[8], v[8], c[8], s[8], p[8], q[8];
            load<8>(x + at, u);
            load<8>(x + other, v);
            if (add) load<8>(add + at, p), load<8>(add + other, q);
            load<8>(cs + j, c);
            load<8>(cs + half + j, s);
            if (S0) {
#pragma unroll
                for (int e = 0; e < 4; e++) {
                    turn(u[2 * e], u[2 * e + 1], c[e], s[e]);
                    turn(v[2 * e], v[2 * e + 1], c[e + 4], s[e + 4]);
                }
            } else {
#pragma unroll
                for (int e = 0; e < 8; e++) turn(u[e], v[e], c[e], s[e]);
            }
            if (add) {
#pragma unroll
                for (int e = 0; e < 8; e++) u[e] += p[e], v[e] += q[e];
            }
            store<8>(y + at, u);
            store<8>(y + other, v);
        }
        return;
    }
    for (u32 pair = first; pair < d / 2; pair += step) {
        const u32 head = pair / half, j = pair % half;
        const u32 at = S0 ? head * hd + 2 * j : head * hd + j;
        const u32 other = S0 ? at + 1 : at + half;
        float u = to_f(x[at]), v = to_f(x[other]);
        turn(u, v, cs[j], cs[half + j]);
        const float p = plus(add, at, u), q = plus(add, other, v);
        y[at] = from_f<act_t>(p);
        y[other] = from_f<act_t>(q);
    }
}
