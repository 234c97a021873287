#include "mtc.cuh"

// p = {x, y}, i = {rows, D}.
extern "C" __global__ void __launch_bounds__(MAP_THREADS) copy_forward(Args a) {
    map_act(a, [](float x) { return x; });
}
