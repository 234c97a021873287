// The launches of attention: what runtime/ops/attention/cuda.go says, for the emulation.
#pragma once
inline int up(i64 a, i64 b) { return (int)((a + b - 1) / b); }

#if defined(KIND_PLAIN)
inline i64 work_bytes(const Args& a) { return a.i[0] * a.i[1] * a.i[3] * 4; }
inline void run_forward(const Args& a) { emu::launch(attention_forward, a, {up(a.i[0] * a.i[1] * a.i[3], 4)}, 128, 0); }
inline void run_cached(const Args& a) {
    emu::launch(attention_store, a, {up(a.i[0] * a.i[1] * a.i[4] * HD, 256)}, 256, 0);
    emu::launch(attention_cached, a, {up(a.i[0] * a.i[1] * a.i[3], 4)}, 128, 0);
}
inline void run_backward(const Args& a) {
    emu::launch(attention_stats, a, {up(a.i[0] * a.i[1] * a.i[3], 4)}, 128, 0);
    emu::launch(attention_dkdv, a, {up(a.i[0] * a.i[1] * a.i[4], 4)}, 128, 0);
    emu::launch(attention_dq, a, {up(a.i[0] * a.i[1] * a.i[3], 4)}, 128, 0);
}
#elif defined(KIND_MMA)
inline int shared_bytes() { return (HD <= 128 ? 256 : 192) * (HD + 8) * 2; }
inline i64 work_bytes(const Args& a) { return a.i[0] * a.i[3] * up(a.i[1], 128) * 128 * 8; }
inline void run_forward(const Args& a) {
    int fm = HD <= 128 ? 128 : 64;
    emu::launch(attention_forward, a, {(int)(a.i[0] * a.i[3]), up(a.i[1], fm)}, fm * 2, shared_bytes());
}
inline void run_cached(const Args& a) {
    int fm = HD <= 128 ? 128 : 64;
    emu::launch(attention_store, a, {up(a.i[0] * a.i[1] * a.i[4] * HD, 8 * 256)}, 256, 0);
    emu::launch(attention_cached, a, {(int)a.i[3], up(a.i[0] * a.i[1], fm)}, fm * 2, shared_bytes());
}
inline void run_backward(const Args& a) {
    int units = HD / 8, lanes = units <= 2 ? 2 : units <= 4 ? 4 : units <= 8 ? 8 : units <= 16 ? 16 : 32;
    emu::launch(attention_stats, a, {up(a.i[0] * a.i[3] * up(a.i[1], 128) * 128 * lanes, 256)}, 256, 0);
    emu::launch(attention_dkdv, a, {(int)(a.i[0] * a.i[4]), up(a.i[1], 64), HD <= 128 ? 1 : 2}, 128, shared_bytes());
    emu::launch(attention_dq, a, {(int)(a.i[0] * a.i[3]), up(a.i[1], 64)}, 128, shared_bytes());
}
#endif
#if defined(KIND_WGMMA)
inline i64 work_bytes(const Args& a) { return 1024 + a.i[0] * a.i[3] * up(a.i[1], 128) * 128 * 8; }
inline int forward_shared() { return 1024 + HD * 2 * (64 * (HD == 64 ? 3 : 2) + 128 * 6); }
inline int backward_shared() { return 5120 + HD * 2 * 256 + (HD == 64 ? 4 * 2 * 128 : 2 * 2 * 128) * HD * 2; }
inline int forward_threads() { return HD == 64 ? 512 : 384; }
inline void run_forward(const Args& a) {
    emu::launch(attention_maps, a, {1}, 32, 1024);
    emu::launch(attention_forward, a, {3}, forward_threads(), forward_shared());
}
inline void run_cached(const Args& a) {
    emu::launch(attention_store, a, {up(a.i[0] * a.i[1] * a.i[4] * HD, 8 * 256)}, 256, 1024);
    emu::launch(attention_cached, a, {3}, forward_threads(), forward_shared());
}
inline void run_backward(const Args& a) {
    emu::launch(attention_stats, a, {up(a.i[0] * a.i[3] * up(a.i[1], 128) * 128 * (HD / 8), 256)}, 256, 1024);
    emu::launch(attention_dkdv, a, {3}, 384, backward_shared());
    emu::launch(attention_dq, a, {3}, 384, backward_shared());
}
#endif
