#include "mtc.cuh"

//mtc:spec 0
//mtc:spec 1

// The tanh form is x * logistic(2 u), u = sqrt(2/pi) (x + 0.044715 x^3), which loses nothing
// where tanh is near -1.
#define TWICE 1.5957691216057308f
#define TWICE_CUBIC (TWICE * 0.044715f)

// cdf is that of the normal distribution.
__device__ __forceinline__ float cdf(float x) { return 0.5f * erfcf(x * -0.70710678118654752f); }

// p = {x, y}, i = {rows, D}; S0: the exact form.
extern "C" __global__ void __launch_bounds__(MAP_THREADS) gelu_forward(Args a) {
    map_act(a, [](float x) {
        if (S0) return x * cdf(x);
        return x * logistic(x * (TWICE + TWICE_CUBIC * x * x));
    });
}

// p = {x, dy, add, dx}.
extern "C" __global__ void __launch_bounds__(MAP_THREADS) gelu_backward(Args a) {
    map_grad(a, [](float dy, float x) {
        if (S0) return dy * (cdf(x) + x * exp_of(-0.5f * x * x) * 0.39894228040143268f);
        const float s = logistic(x * (TWICE + TWICE_CUBIC * x * x));
        // s (1 - s) is 0 long before x^3 is not finite.
        const float bend = s * (1.0f - s);
        return dy * (s + (bend == 0.0f ? 0.0f : x * bend * (TWICE + 3.0f * TWICE_CUBIC * x * x)));
    });
}
