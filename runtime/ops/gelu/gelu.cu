#include "mtc.cuh"

//mtc:spec 0
//mtc:spec 1

// cdf is that of the normal distribution.
__device__ __forceinline__ float cdf(float x) { return 0.5f * erfcf(x * -0.70710678118654752f); }

// p = {x, y}, i = {rows, D}; S0: the exact form.
extern "C" __global__ void __launch_bounds__(MAP_THREADS) gelu_forward(Args a) {
    map_act(a, [](float x) {
        if (S0) return x * cdf(x);
        return gelu_tanh(x);
    });
}

// p = {x, dy, add, dx}.
extern "C" __global__ void __launch_bounds__(MAP_THREADS) gelu_backward(Args a) {
    map_grad(a, [](float dy, float x) {
        if (S0) return dy * (cdf(x) + x * exp_of(-0.5f * x * x) * 0.39894228040143268f);
        return dy * gelu_tanh_slope(x);
    });
}
