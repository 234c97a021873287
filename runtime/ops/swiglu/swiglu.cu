#include "mtc.cuh"

// p = {gate, up, y}, i = {rows, D}.
extern "C" __global__ void __launch_bounds__(MAP_THREADS) swiglu_forward(Args a) {
    map_act2(a, [](float gate, float up) { return gate * logistic(gate) * up; });
}

// p = {gate, up, dy, add of dgate, dgate, add of dup, dup}.
extern "C" __global__ void __launch_bounds__(MAP_THREADS) swiglu_backward(Args a) {
    const act_t* const in[5] = {(const act_t*)a.p[0], (const act_t*)a.p[1], (const act_t*)a.p[2],
                                (const act_t*)a.p[3], (const act_t*)a.p[5]};
    act_t* const out[2] = {(act_t*)a.p[4], (act_t*)a.p[6]};
    const bool add_gate = a.p[3] != nullptr, add_up = a.p[5] != nullptr;
    map<2>(elements(a), in, out, [=](const float (&x)[5], float (&y)[2]) {
        const float gate = x[0], up = x[1], dy = x[2], s = logistic(gate);
        const float dgate = dy * up * (s * (1.0f + gate * (1.0f - s))), dup = dy * (gate * s);
        y[0] = add_gate ? x[3] + dgate : dgate;
        y[1] = add_up ? x[4] + dup : dup;
    });
}
