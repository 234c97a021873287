#include "mtc.cuh"

// p = {a, b, y}, i = {rows, D}.
extern "C" __global__ void __launch_bounds__(MAP_THREADS) add_forward(Args a) {
    map_act2(a, [](float x, float y) { return x + y; });
}
