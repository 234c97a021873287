#include "mtc.cuh"

// p = {a, b, y}, i = {rows, D}.
extern "C" __global__ void __launch_bounds__(MAP_THREADS) sub_forward(Args a) {
    map_act2(a, [](float x, float y) { return x - y; });
}

// p = {-, dy, add, da}.
extern "C" __global__ void __launch_bounds__(MAP_THREADS) sub_backward_a(Args a) {
    map_scaled(a, 1.0f);
}

// p = {-, dy, add, db}.
extern "C" __global__ void __launch_bounds__(MAP_THREADS) sub_backward_b(Args a) {
    map_scaled(a, -1.0f);
}
