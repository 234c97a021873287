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

// What follows a product where the library does not do it: gelu, p[3] = y, p[4] = the sums or
// null when they lie in y, i = {rows, in, out}.
extern "C" __global__ void __launch_bounds__(MAP_THREADS) linear_gelu(Args a) {
    const act_t* const in[1] = {(const act_t*)(a.p[4] ? a.p[4] : a.p[3])};
    act_t* const out[1] = {(act_t*)a.p[3]};
    map<2>(a.i[0] * a.i[2], in, out, [](const float (&x)[1], float (&y)[1]) { y[0] = gelu_tanh(x[0]); });
}

// Its gradient: p[2] = what gelu was taken of, p[3] = dx, which holds the product.
extern "C" __global__ void __launch_bounds__(MAP_THREADS) linear_gelu_grad(Args a) {
    const act_t* const in[2] = {(const act_t*)a.p[2], (const act_t*)a.p[3]};
    act_t* const out[1] = {(act_t*)a.p[3]};
    map<2>(a.i[0] * a.i[1], in, out, [](const float (&x)[2], float (&y)[1]) { y[0] = x[1] * gelu_tanh_slope(x[0]); });
}
