// The gradient of the bias in one launch, from Hopper on: a cluster of CLUSTER blocks has a tile of
// columns, each block a part of the rows, and the first adds up what the others have in their shared
// memory. S0 is the lanes of 8 columns that a tile has, S1 the threads of a block. All is aligned.
// p = {dy [rows, out], add, dbias [out] f32}, i = {rows, in, out, pitch of dy}.
#include "mtc.cuh"

//mtc:spec 8 512
//mtc:spec 8 256
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
#define CLUSTER 8
#ifdef MTC_F32
#define AHEAD 4
#else
#define AHEAD 8
#endif

extern "C" __global__ void __cluster_dims__(CLUSTER, 1, 1) __launch_bounds__(S1, 1024 / S1) linear_bias_cluster(Args a) {
    constexpr int LANES = S0, PARTS = S1 / LANES, WARPS = S1 / 32;
    __shared__ float sums[WARPS][LANES * 8], sum[LANES * 8];
    const i64 rows = a.i[0], out = a.i[2], pitch = a.i[3], chunk = ceil_div(rows, CLUSTER);
    const u32 rank = blockIdx.x % CLUSTER;
    const i64 first = rank * chunk, end = imin(rows, first + chunk), base = (i64)(blockIdx.x / CLUSTER) * (LANES * 8);
    const int lane = threadIdx.x % LANES, part = threadIdx.x / LANES;
    const i64 c = base + lane * 8;
    float acc[8] = {0, 0, 0, 0, 0, 0, 0, 0};
    if (c < out) {
        const act_t* dy = (const act_t*)a.p[0] + c;
        for (i64 r = first + part; r < end; r += AHEAD * PARTS) {
            Unit<act_t> w[AHEAD];
#pragma unroll
            for (int k = 0; k < AHEAD; k++)
                if (r + k * PARTS < end) w[k].ld(dy + (r + k * PARTS) * pitch);
#pragma unroll
            for (int k = 0; k < AHEAD; k++) {
                if (r + k * PARTS >= end) break;
                float v[8];
                unpack<8>(w[k], v, act_t());
#pragma unroll
                for (int e = 0; e < 8; e++) acc[e] += v[e];
            }
        }
    }
#pragma unroll
    for (int e = 0; e < 8; e++) {
#pragma unroll
        for (int k = 16; k >= LANES; k >>= 1) acc[e] += __shfl_xor_sync(FULL, acc[e], k);
    }
    if (threadIdx.x % 32 < LANES) {
#pragma unroll
        for (int e = 0; e < 8; e++) sums[threadIdx.x / 32][lane * 8 + e] = acc[e];
    }
    __syncthreads();
    if (threadIdx.x < LANES * 8) {
        float s = sums[0][threadIdx.x];
#pragma unroll
        for (int w = 1; w < WARPS; w++) s += sums[w][threadIdx.x];
        sum[threadIdx.x] = s;
    }
    cluster_arrive();
    cluster_wait();
    const i64 j = base + threadIdx.x;
    if (rank == 0 && threadIdx.x < LANES * 8 && j < out) {
        float s = sum[threadIdx.x];
#pragma unroll
        for (u32 b = 1; b < CLUSTER; b++) s += of_block(sum + threadIdx.x, b);
        ((float*)a.p[2])[j] = plus((const float*)a.p[1], j, s);
    }
    cluster_arrive();
    cluster_wait();  // a block's shared memory lasts until it was read
}
#endif
