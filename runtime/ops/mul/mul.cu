#include "mtc.cuh"

// p = {a, b, y}, i = {rows, D}.
extern "C" __global__ void __launch_bounds__(MAP_THREADS) mul_forward(Args a) {
    map_act2(a, [](float x, float y) { return x * y; });
}

// The gradient of either factor: p = {other factor, dy, add, gradient}.
extern "C" __global__ void __launch_bounds__(MAP_THREADS) mul_backward(Args a) {
    map_grad(a, [](float dy, float other) { return dy * other; });
}
