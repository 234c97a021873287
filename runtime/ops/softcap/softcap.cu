#include "mtc.cuh"

// p = {x, y}, i = {rows, D}, f = {cap}.
extern "C" __global__ void __launch_bounds__(MAP_THREADS) softcap_forward(Args a) {
    const float cap = a.f[0], inv = 1.0f / cap;
    map_act(a, [=](float x) { return cap * tanhf(x * inv); });
}

// p = {y, dy, add, dx}.
extern "C" __global__ void __launch_bounds__(MAP_THREADS) softcap_backward(Args a) {
    const float inv = 1.0f / a.f[0];
    map_grad(a, [=](float dy, float y) {
        const float t = y * inv;
        return dy * (1.0f - t) * (1.0f + t);
    });
}
