// The gradient of the experts' biases: DB[e][n] = add + sum over e's rows r of DY[r, n], in f32.
//
// p = {routing, dy [M, N], add or null, db [E, N] f32}, i as in wgmma.cu. The rows of an expert are cut
// into 16 parts by their number alone, which are summed in order, and then added in order.
#include "mtc.cuh"

constexpr int PARTS = 16;

// grid: x columns by 256, y experts, z parts.
extern "C" __global__ void __launch_bounds__(256) grouped_bias_parts(Args a) {
    const i64 width = a.i[2], n = (i64)blockIdx.x * 256 + threadIdx.x, e = blockIdx.y, part = blockIdx.z;
    if (n >= width) return;
    const int* first = (const int*)a.p[0];
    const i64 at = first[e], rows = first[e + 1] - at, hi = at + rows * (part + 1) / PARTS;
    const act_t* dy = (const act_t*)a.p[1];
    float sum = 0.f;
#pragma unroll 4
    for (i64 r = at + rows * part / PARTS; r < hi; r++) sum += to_f(dy[r * width + n]);
    ((float*)a.work)[(part * a.i[3] + e) * width + n] = sum;
}

// grid: x results by 256.
extern "C" __global__ void __launch_bounds__(256) grouped_bias(Args a) {
    const i64 size = a.i[2] * a.i[3], i = thread_id();
    if (i >= size) return;
    float sum = a.p[2] ? ((const float*)a.p[2])[i] : 0.f;
    for (int part = 0; part < PARTS; part++) sum += ((const float*)a.work)[part * size + i];
    ((float*)a.p[3])[i] = sum;
}
