#include "mtc.cuh"

// p = {x, y}, i = {rows, D}.
extern "C" __global__ void __launch_bounds__(MAP_THREADS) sigmoid_forward(Args a) {
    map_act(a, [](float x) { return logistic(x); });
}

// p = {y, dy, add, dx}.
extern "C" __global__ void __launch_bounds__(MAP_THREADS) sigmoid_backward(Args a) {
    map_grad(a, [](float dy, float y) { return dy * (y * (1.0f - y)); });
}
