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
    const float e = __expf(-0.5f * x * x);
    const float t = __fdividef(1.0f, fmaf(0.3275911f * 0.70710678f, fabsf(x), 1.0f));
    const float tail = 0.5f * e * t * fmaf(t, fmaf(t, fmaf(t, fmaf(t, 1.061405429f, -1.453152027f), 1.421413741f), -0.284496736f), 0.254829592f);
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
