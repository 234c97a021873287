#include "mtc.cuh"

// p = {gate, up, y}, i = {rows, D}.
extern "C" __global__ void __launch_bounds__(MAP_THREADS) swiglu_forward(Args a) {
    map_act2(a, [](float gate, float up) { return gate * logistic(gate) * up; });
}

// slopes are the gradients of gate and up.
__device__ __forceinline__ void slopes(float gate, float up, float dy, float& dgate, float& dup) {
    const float s = logistic(gate);
    dgate = dy * up * (s * (1.0f + gate * (1.0f - s))), dup = dy * (gate * s);
}

// p = {gate, up, dy, add of dgate or null, dgate, add of dup or null, dup}.
extern "C" __global__ void __launch_bounds__(MAP_THREADS) swiglu_backward(Args a) {
    const act_t *gate = (const act_t*)a.p[0], *up = (const act_t*)a.p[1], *dy = (const act_t*)a.p[2];
    const act_t *add_gate = (const act_t*)a.p[3], *add_up = (const act_t*)a.p[5];
    act_t* const out[2] = {(act_t*)a.p[4], (act_t*)a.p[6]};
    if (!add_gate && !add_up) {
        const act_t* const in[3] = {gate, up, dy};
        return map<2>(elements(a), in, out, [](const float (&x)[3], float (&y)[2]) { slopes(x[0], x[1], x[2], y[0], y[1]); });
    }
    // Where one of them is missing, dy is read in its place and not added.
    const bool is_gate = add_gate, is_up = add_up;
    const act_t* const in[5] = {gate, up, dy, is_gate ? add_gate : dy, is_up ? add_up : dy};
    map<2>(elements(a), in, out, [=](const float (&x)[5], float (&y)[2]) {
        slopes(x[0], x[1], x[2], y[0], y[1]);
        if (is_gate) y[0] += x[3];
        if (is_up) y[1] += x[4];
    });
}
