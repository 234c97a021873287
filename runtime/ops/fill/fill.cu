#include "mtc.cuh"

// p = {y}, i = {N}, f = {value}; y is f32 in either precision.
extern "C" __global__ void __launch_bounds__(MAP_THREADS) fill_forward(Args a) {
    const float value = a.f[0];
    const float* const in[1] = {nullptr};
    float* const out[1] = {(float*)a.p[0]};
    map<2>(a.i[0], in, out, [=](const float (&)[1], float (&y)[1]) { y[0] = value; });
}
