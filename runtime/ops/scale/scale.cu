#include "mtc.cuh"

// p = {x, y}, i = {rows, D}, f = {by}.
extern "C" __global__ void __launch_bounds__(MAP_THREADS) scale_forward(Args a) {
    const float by = a.f[0];
    map_act(a, [=](float x) { return by * x; });
}

// p = {-, dy, add, dx}.
extern "C" __global__ void __launch_bounds__(MAP_THREADS) scale_backward(Args a) {
    map_scaled(a, a.f[0]);
}
