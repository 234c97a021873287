// Runs the grouped products on this processor (mtc.cuh here) and compares with sums in double.
//   g++ -std=c++20 -O2 -I runtime/device/cuda/emu/tensor -DKERNELS="\"$PWD/runtime/ops/grouped/wgmma.cu\"" -DKIND_WGMMA runtime/device/cuda/emu/tensor/grouped.cc
#include "mtc.cuh"
#include KERNELS

#include <random>

static int up(i64 a, i64 b) { return (int)((a + b - 1) / b); }

#if defined(KIND_WGMMA)
static void run(int kind, const Args& a) {
    const int blocks = 3, threads = 384, shared = SLOTS_AT + SLOTS * SLOT;
    if (kind == 0) emu::launch(grouped_forward_prepare, a, {1}, 256, 1024), emu::launch(grouped_forward, a, {blocks}, threads, shared);
    if (kind == 1) emu::launch(grouped_input_prepare, a, {1}, 256, 1024), emu::launch(grouped_input, a, {blocks}, threads, shared);
    if (kind == 2) emu::launch(grouped_weight_prepare, a, {1}, 256, 1024), emu::launch(grouped_weight, a, {blocks}, threads, shared);
}
typedef bf16 elem;
#else
#ifdef KIND_MMA
constexpr int TM = 128, TN = 128, SHARED = STAGES * STAGE;
typedef bf16 elem;
#else
constexpr int TM = 64, TN = 64, SHARED = 0;
typedef act_t elem;
#endif
static void run(int kind, const Args& a) {
    const i64 rows = a.i[0] * a.i[4], n = a.i[2], k = a.i[1], e = a.i[3];
    const int tiles = (int)(rows / TM + e);
    if (kind == 0) emu::launch(grouped_forward, a, {up(n, TN), tiles}, 256, SHARED);
    if (kind == 1) emu::launch(grouped_input, a, {up(k, TN), tiles}, 256, SHARED);
    if (kind == 2) emu::launch(grouped_weight, a, {up(k, TN), up(n, TM), (int)e}, 256, SHARED);
}
#endif

template <class T> static std::vector<T> stored(const std::vector<float>& x) {
    std::vector<T> y;
    for (float f : x) y.push_back(from_f<T>(f));
    return y;
}

static int failures;

static void test(std::vector<int> counts, int spare, int n, int k, bool add, unsigned seed) {
    std::mt19937 r(seed);
    std::normal_distribution<float> d;
    const int e = (int)counts.size();
    std::vector<int> first{0};
    for (int c : counts) first.push_back(first.back() + c);
    const int used = first.back(), rows = used + spare;
    auto random = [&](size_t size) {
        std::vector<float> x(size);
        for (auto& v : x) v = to_f(to_bf16(d(r)));
        return x;
    };
    auto x = random((size_t)rows * k), dy = random((size_t)rows * n), w = random((size_t)e * n * k);
    for (int kind = 0; kind < 3; kind++) {
        const size_t size = kind == 0 ? (size_t)rows * n : kind == 1 ? (size_t)rows * k : (size_t)e * n * k;
        auto plus = random(kind == 0 ? (size_t)e * n : size);  // forward: a bias for each expert
        if (spare) {  // what is behind the last row must not be read into anything
            for (size_t i = (size_t)used * k; i < x.size(); i++) x[i] = NAN;
            for (size_t i = (size_t)used * n; i < dy.size(); i++) dy[i] = NAN;
        }
        std::vector<double> want(size, -77);
        for (int g = 0; g < e; g++) {
            if (kind == 0)
                for (int i = first[g]; i < first[g + 1]; i++)
                    for (int j = 0; j < n; j++) {
                        double s = add ? plus[(size_t)g * n + j] : 0;
                        for (int l = 0; l < k; l++) s += (double)x[(size_t)i * k + l] * w[((size_t)g * n + j) * k + l];
                        want[(size_t)i * n + j] = s;
                    }
            if (kind == 1)
                for (int i = first[g]; i < first[g + 1]; i++)
                    for (int l = 0; l < k; l++) {
                        double s = add ? plus[(size_t)i * k + l] : 0;
                        for (int j = 0; j < n; j++) s += (double)dy[(size_t)i * n + j] * w[((size_t)g * n + j) * k + l];
                        want[(size_t)i * k + l] = s;
                    }
            if (kind == 2)
                for (int j = 0; j < n; j++)
                    for (int l = 0; l < k; l++) {
                        const size_t at = ((size_t)g * n + j) * k + l;
                        double s = add ? plus[at] : 0;
                        for (int i = first[g]; i < first[g + 1]; i++) s += (double)dy[(size_t)i * n + j] * x[(size_t)i * k + l];
                        want[at] = s;
                    }
        }
        auto xs = stored<elem>(x), dys = stored<elem>(dy), ws = stored<elem>(w), pa = stored<elem>(plus), out = stored<elem>(std::vector<float>(size, -77));
        std::vector<float> outf(size, -77);
        std::vector<char> work(1 << 20, (char)0xff);
        Args a{};
        if (kind == 0) a.p[0] = xs.data(), a.p[1] = ws.data(), a.p[2] = first.data(), a.p[3] = out.data(), a.p[4] = add ? pa.data() : nullptr;
        if (kind == 1) a.p[0] = ws.data(), a.p[1] = first.data(), a.p[2] = dys.data(), a.p[3] = add ? pa.data() : nullptr, a.p[4] = out.data();
        if (kind == 2) a.p[0] = xs.data(), a.p[1] = first.data(), a.p[2] = dys.data(), a.p[3] = add ? plus.data() : nullptr, a.p[4] = outf.data();
        a.i[0] = rows, a.i[1] = k, a.i[2] = n, a.i[3] = e, a.i[4] = 1;
        a.work = (void*)(((uintptr_t)work.data() + 255) / 256 * 256);
        run(kind, a);
        double diff = 0, norm = 0;
        int stray = 0;
        for (size_t i = 0; i < size; i++) {
            const double got = kind == 2 ? outf[i] : to_f(out[i]);
            if (want[i] == -77) {
                stray += got != -77;
                continue;
            }
            diff += (got - want[i]) * (got - want[i]), norm += want[i] * want[i];
        }
        const double rel = norm > 0 ? std::sqrt(diff / norm) : std::sqrt(diff);
        const bool ok = rel <= (kind == 2 || sizeof(elem) == 4 ? 1e-5 : 4e-3) && stray == 0;
        if (!ok) failures++;
        printf("%s %d experts, %d of %d rows, N %d K %d%s: %.2e%s%s\n", kind == 0 ? "forward" : kind == 1 ? "input  " : "weight ", e, used, rows, n, k,
               add ? ", added" : "", rel, stray ? " STRAY" : "", ok ? "" : " FAIL");
    }
}

int main() {
    test({130, 0, 7, 64}, 0, 96, 64, false, 1);
    test({1, 0, 0, 300}, 40, 264, 72, true, 2);
    test({0, 0}, 64, 128, 128, true, 3);
    test({129, 257, 63, 65, 1, 2, 3, 128}, 100, 64, 320, false, 4);
    printf(failures ? "%d FAIL\n" : "ok\n", failures);
    return failures != 0;
}
