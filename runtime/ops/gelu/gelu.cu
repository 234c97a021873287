#include "mtc.cuh"

//mtc:spec 0
//mtc:spec 1

// Normal is the normal distribution at x: its function, and its density.
struct Normal {
    float cdf, density;
};

// In f32 it is exact. In bf16 the tail is Abramowitz and Stegun's 7.1.26, whose error is under
// 1e-7, and under an ulp of bf16 where the tail is above 1e-8; one exponential serves both.
__device__ __forceinline__ Normal normal(float x) {
#ifdef MTC_F32
    return {0.5f * erfcf(x * -0.70710678118654752f), expf(-0.5f * x * x) * 0.39894228040143268f};
#else
    const float e = exp2_fast(x * x * (-0.5f * LOG2_E));
    const float t = recip_fast(fmaf(0.3275911f * 0.70710678f, fabsf(x), 1.0f));
    // The coefficients are halved: the tail is half of erfc.
    const float p = fmaf(t, fmaf(t, fmaf(t, fmaf(t, 0.5307027145f, -0.7265760135f), 0.7107068705f), -0.142248368f), 0.127414796f);
    const float tail = e * t * p;
    return {x < 0.0f ? tail : 1.0f - tail, e * 0.39894228040143268f};
#endif
}

// p = {x, y}, i = {rows, D}; S0: the exact form.
extern "C" __global__ void __launch_bounds__(MAP_THREADS) gelu_forward(Args a) {
    map_act(a, [](float x) {
        if (S0) return x * normal(x).cdf;
        return gelu_tanh(x);
    });
}

// p = {x, dy, add, dx}.
extern "C" __global__ void __launch_bounds__(MAP_THREADS) gelu_backward(Args a) {
    map_grad(a, [](float dy, float x) {
        if (S0) {
            const Normal n = normal(x);
            return dy * (n.cdf + x * n.density);
        }
        return dy * gelu_tanh_slope(x);
    });
}
