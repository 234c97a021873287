#include "mtc.cuh"

// S0: pairs are (2j, 2j + 1) (interleaved), else (j, j + hd/2); S1: turn back (backward).
//mtc:spec 0 0
//mtc:spec 1 0
//mtc:spec 0 1
//mtc:spec 1 1

// p = {x, cs [T, 2, dims/2] f32, add or null, y, starts i32 or null}, i = {rows, seq, pos, D, hd,
// interleaved, dims}; the first dims elements of each head turn.
// Row is a row's place, with the angles of its position.
struct Row {
    const act_t *x, *add;
    act_t* y;
    const float* cs;
    __device__ __forceinline__ Row(const Args& a, i64 row) {
        const i64 d = a.i[3];
        x = (const act_t*)a.p[0] + row * d;
        add = a.p[2] ? (const act_t*)a.p[2] + row * d : nullptr;
        y = (act_t*)a.p[3] + row * d;
        i64 pos = a.i[2] + (i64)((u64)row % (u64)a.i[1]);
        if (a.p[4]) pos -= ((const int*)a.p[4])[row];  // where the row's document begins
        cs = (const float*)a.p[1] + pos * a.i[6];
    }
};

// HEADS heads share the angles that a thread has read.
#define HEADS 4

// Heads of whole units, aligned. An item is 8 pairs of each of HEADS heads, the elements of which
// are two units, hd/2 apart or side by side. items = hd / 16 * ceil(heads / HEADS); a block does max(1,
// 256 / items) rows, with thread t at item t % items.
extern "C" __global__ void __launch_bounds__(256, 2) rope_heads(Args a) {
    const u32 hd = (u32)a.i[4], half = hd / 2, heads = (u32)a.i[3] / hd;
    const u32 in_head = half / 8, groups = (heads + HEADS - 1) / HEADS;
    const u32 items = in_head * groups, per_block = items < 256 ? 256 / items : 1;
    const u32 in_block = threadIdx.x / items;
    const i64 at_row = (i64)blockIdx.x * per_block + (per_block > 1 ? in_block : 0);
    if (per_block > 1 && in_block >= per_block || at_row >= a.i[0]) return;
    const Row row(a, at_row);
    const u32 first = per_block > 1 ? threadIdx.x % items : threadIdx.x;
    const u32 step = per_block > 1 ? items : blockDim.x;
    for (u32 item = first; item < items; item += step) {
        const u32 group = item / in_head, j = item % in_head * 8;
        const u32 to = S0 ? 8 : half;  // from the first unit to the second
        const act_t* x = row.x + (S0 ? 2 * j : j);
        Unit<act_t> one[HEADS], two[HEADS];
#pragma unroll
        for (u32 h = 0; h < HEADS; h++) {
            const u32 head = group + h * groups;
            if (head < heads) one[h].ld(x + head * hd), two[h].ld(x + head * hd + to);
        }
        float c[8], s[8];
        load<8>(row.cs + j, c);
        load<8>(row.cs + half + j, s);
#pragma unroll
        for (int e = 0; e < 8; e++) s[e] = S1 ? -s[e] : s[e];
#pragma unroll
        for (u32 h = 0; h < HEADS; h++) {
            const u32 head = group + h * groups;
            if (head >= heads) break;
            const u32 at = head * hd + (S0 ? 2 * j : j);
            float u[8], v[8];
            unpack<8>(one[h], u, act_t());
            unpack<8>(two[h], v, act_t());
            turn8<S0 != 0>(u, v, c, s);
            if (row.add) {
                float p[8], q[8];
                load<8>(row.add + at, p);
                load<8>(row.add + at + to, q);
#pragma unroll
                for (int e = 0; e < 8; e++) u[e] += p[e], v[e] += q[e];
            }
            store<8>(row.y + at, u);
            store<8>(row.y + at + to, v);
        }
    }
}

// Heads of any length at any address, pair by pair. A block does max(1, 256 / items) rows, items =
// ceil(D / 16).
extern "C" __global__ void __launch_bounds__(256) rope_pairs(Args a) {
    const u32 d = (u32)a.i[3], half = (u32)a.i[4] / 2;
    const u32 items = (d + 15) / 16, per_block = items < 256 ? 256 / items : 1;
    const u32 in_block = threadIdx.x / items;
    const i64 at_row = (i64)blockIdx.x * per_block + (per_block > 1 ? in_block : 0);
    if (per_block > 1 && in_block >= per_block || at_row >= a.i[0]) return;
    const Row row(a, at_row);
    const u32 first = per_block > 1 ? threadIdx.x % items : threadIdx.x;
    const u32 step = per_block > 1 ? items : blockDim.x;
    for (u32 pair = first; pair < d / 2; pair += step) {
        const u32 head = pair / half, j = pair % half;
        const u32 at = S0 ? 2 * (head * half + j) : 2 * head * half + j;
        const u32 other = S0 ? at + 1 : at + half;
        float u = to_f(row.x[at]), v = to_f(row.x[other]);
        turn(u, v, row.cs[j], S1 ? -row.cs[half + j] : row.cs[half + j]);
        const float p = plus(row.add, at, u), q = plus(row.add, other, v);
        row.y[at] = from_f<act_t>(p);
        row.y[other] = from_f<act_t>(q);
    }
}

// Heads of which only a part turns: pair by pair, then what passes, element by element. Rows and threads are
// those of rope_pairs.
extern "C" __global__ void __launch_bounds__(256) rope_part(Args a) {
    const u32 d = (u32)a.i[3], hd = (u32)a.i[4], half = (u32)a.i[6] / 2, in_head = hd - half;
    const u32 items = (d + 15) / 16, per_block = items < 256 ? 256 / items : 1;
    const u32 in_block = threadIdx.x / items;
    const i64 at_row = (i64)blockIdx.x * per_block + (per_block > 1 ? in_block : 0);
    if (per_block > 1 && in_block >= per_block || at_row >= a.i[0]) return;
    const Row row(a, at_row);
    const u32 first = per_block > 1 ? threadIdx.x % items : threadIdx.x;
    const u32 step = per_block > 1 ? items : blockDim.x;
    for (u32 item = first; item < d / hd * in_head; item += step) {
        const u32 base = item / in_head * hd, j = item % in_head;
        if (j >= half) {
            const u32 at = base + half + j;
            row.y[at] = from_f<act_t>(plus(row.add, at, to_f(row.x[at])));
            continue;
        }
        const u32 at = base + (S0 ? 2 * j : j), other = S0 ? at + 1 : at + half;
        float u = to_f(row.x[at]), v = to_f(row.x[other]);
        turn(u, v, row.cs[j], S1 ? -row.cs[half + j] : row.cs[half + j]);
        const float p = plus(row.add, at, u), q = plus(row.add, other, v);
        row.y[at] = from_f<act_t>(p);
        row.y[other] = from_f<act_t>(q);
    }
}
