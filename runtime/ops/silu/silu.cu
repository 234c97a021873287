#include "mtc.cuh"

// p = {x, y}, i = {rows, D}.
extern "C" __global__ void __launch_bounds__(MAP_THREADS) silu_forward(Args a) {
    map_act(a, [](float x) { return x * logistic(x); });
}

// p = {x, dy, add, dx}.
extern "C" __global__ void __launch_bounds__(MAP_THREADS) silu_backward(Args a) {
    map_grad(a, [](float dy, float x) {
        const float s = logistic(x);
        return dy * (s * (1.0f + x * (1.0f - s)));
    });
}
