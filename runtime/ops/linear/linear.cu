#include "mtc.cuh"

// The gradient of the bias; the products run in the device's library.
// p = {dy [rows, out], add, dbias [out] f32}, i = {rows, in, out, pitch of dy}.

extern "C" __global__ void __launch_bounds__(256) linear_bias_terms(Args a) {
    column_values((const act_t*)a.p[0], a.i[0], a.i[2], a.i[3], (float*)a.work);
}

extern "C" __global__ void __launch_bounds__(1024) linear_bias_sums(Args a) {
    const i64 out = a.i[2];
    column_finish(a.i[0], out, out, (const float*)a.work, (const float*)a.p[1], (float*)a.p[2]);
}
