// Runs the attention kernels on this processor (mtc.cuh here) and compares with sums in double.
//   g++ -std=c++20 -O2 -I runtime/device/cuda/emu/tensor -DKERNELS='"runtime/ops/attention/mma.cu"' -DKIND_MMA -DS0=64 runtime/device/cuda/emu/tensor/attention.cc
// With -DS2=1 (mma.cu) documents share rows.
#include "mtc.cuh"
#include KERNELS
#include "launch.h"

#include <random>

struct Case {
    int batch, seq, heads, kv, window;
    bool causal;
    float cap;
};

static std::vector<int> starts;  // [B][T], with S2: where each position's document begins

static void cut(const Case& c, std::mt19937& r) {
    starts.clear();
    for (int b = 0; b < c.batch && S2; b++)
        for (int at = 0; at < c.seq;) {
            const int n = std::min(c.seq - at, r() % 3 ? 1 + (int)(r() % 40) : 1 + (int)(r() % 200));
            starts.insert(starts.end(), n, at);
            at += n;
        }
}

static std::vector<double> ref_y, ref_lse, ref_dq, ref_dk, ref_dv;

static void reference(const Case& c, float scale, const std::vector<float>& q, const std::vector<float>& k,
                      const std::vector<float>& v, const std::vector<float>& dy) {
    int H = c.heads, G = H / c.kv, T = c.seq;
    ref_y.assign(q.size(), 0), ref_dq.assign(q.size(), 0), ref_dk.assign(k.size(), 0), ref_dv.assign(k.size(), 0);
    ref_lse.assign((size_t)c.batch * T * H, 0);
    std::vector<double> s(T), slope(T);
    for (int b = 0; b < c.batch; b++)
        for (int h = 0; h < H; h++)
            for (int t = 0; t < T; t++) {
                auto row = [&](int u) { return ((size_t)(b * T + u) * c.kv + h / G) * HD; };
                size_t qa = ((size_t)(b * T + t) * H + h) * HD;
                auto sees = [&](int u) { return !(c.causal && u > t) && (!c.window || (t - u < c.window && u - t < c.window)) && (starts.empty() || u >= starts[b * T + t]); };
                double m = -1e300, l = 0, delta = 0;
                for (int u = 0; u < T; u++) {
                    if (!sees(u)) continue;
                    double x = 0;
                    for (int e = 0; e < HD; e++) x += (double)q[qa + e] * k[row(u) + e];
                    x *= scale, slope[u] = 1;
                    if (c.cap > 0) { double th = std::tanh(x / c.cap); x = c.cap * th, slope[u] = 1 - th * th; }
                    s[u] = x, m = std::max(m, x);
                }
                for (int u = 0; u < T; u++) if (sees(u)) l += s[u] = std::exp(s[u] - m);
                ref_lse[(size_t)(b * T + t) * H + h] = m + std::log(l);
                for (int u = 0; u < T; u++) if (sees(u)) {
                    s[u] /= l;
                    for (int e = 0; e < HD; e++) ref_y[qa + e] += s[u] * v[row(u) + e];
                }
                for (int e = 0; e < HD; e++) delta += ref_y[qa + e] * dy[qa + e];
                for (int u = 0; u < T; u++) if (sees(u)) {
                    double dp = 0;
                    for (int e = 0; e < HD; e++) dp += (double)dy[qa + e] * v[row(u) + e];
                    double ds = s[u] * (dp - delta) * slope[u] * scale;
                    for (int e = 0; e < HD; e++) {
                        ref_dv[row(u) + e] += s[u] * dy[qa + e];
                        ref_dk[row(u) + e] += ds * q[qa + e];
                        ref_dq[qa + e] += ds * k[row(u) + e];
                    }
                }
            }
}

template <class T> static std::vector<T> stored(const std::vector<float>& x) {
    std::vector<T> y;
    for (float f : x) y.push_back(from_f<T>(f));
    return y;
}

static int failures;
template <class T> static void compare(const char* name, const std::vector<T>& got, const std::vector<double>& want, double limit, size_t from = 0) {
    double diff = 0, norm = 0;
    for (size_t i = 0; i < got.size(); i++) {
        double d = to_f(got[i]) - want[from + i];
        diff += d * d, norm += want[from + i] * want[from + i];
    }
    double rel = std::sqrt(diff / norm);
    bool ok = rel <= limit || (norm < 1e-12 && diff < 1e-12);
    if (!ok) failures++;
    printf("  %-6s %.2e%s", name, rel, ok ? "" : " FAIL");
}

static void run(const Case& c, unsigned seed, int chunk) {
    std::mt19937 r(seed);
    std::normal_distribution<float> d;
    size_t rows = (size_t)c.batch * c.seq, nq = rows * c.heads * HD, nk = rows * c.kv * HD;
    auto make = [&](size_t n) {
        std::vector<float> x(n);
        for (auto& e : x) e = to_f(from_f<act_t>(d(r)));
        return x;
    };
    cut(c, r);
    auto q = make(nq), k = make(nk), v = make(nk), dy = make(nq), aq = make(nq), ak = make(nk);
    float scale = 1 / std::sqrt((float)HD);
    reference(c, scale, q, k, v, dy);
    auto Q = stored<act_t>(q), K = stored<act_t>(k), V = stored<act_t>(v), DY = stored<act_t>(dy), AQ = stored<act_t>(aq), AK = stored<act_t>(ak);
    std::vector<act_t> Y(nq), DQ(nq), DK(nk), DV(nk);
    std::vector<float> lse(rows * c.heads);
    memset(Y.data(), 0xff, nq * sizeof(act_t)), memset(DQ.data(), 0xff, nq * sizeof(act_t));
    Args a = {};
    a.i[0] = c.batch, a.i[1] = c.seq, a.i[3] = c.heads, a.i[4] = c.kv, a.i[5] = HD, a.i[6] = c.window, a.i[7] = c.causal, a.i[8] = S2;
    a.f[0] = c.cap, a.f[1] = scale;
    std::vector<char> work(work_bytes(a) + 1024, (char)0xff);
    a.work = (void*)(((uintptr_t)work.data() + 1023) / 1024 * 1024);
    Args f = a;
    void* fp[] = {Q.data(), K.data(), V.data(), Y.data(), lse.data()};
    memcpy(f.p, fp, sizeof fp);
    if (S2) f.p[5] = starts.data();
    run_forward(f);
    printf("hd %d  B %d T %d H %d/%d window %d %s cap %g:", HD, c.batch, c.seq, c.heads, c.kv, c.window, c.causal ? "causal" : "full", c.cap);
    const double tol = sizeof(act_t) == 4 ? 2e-6 : 6e-3;
    compare("y", Y, ref_y, tol);
    compare("lse", lse, ref_lse, 1e-5);
    Args g = a;
    void* gp[] = {Q.data(), K.data(), V.data(), Y.data(), lse.data(), DY.data(), DQ.data(), DK.data(), DV.data(), seed % 2 ? AQ.data() : nullptr, seed % 2 ? nullptr : DK.data(), nullptr};
    memcpy(g.p, gp, sizeof gp);
    if (S2) g.p[12] = starts.data();
    DK = AK;  // in place
    run_backward(g);
    for (size_t i = 0; i < nq; i++) ref_dq[i] += seed % 2 ? aq[i] : 0;
    for (size_t i = 0; i < nk; i++) ref_dk[i] += seed % 2 ? 0 : ak[i];
    compare("dq", DQ, ref_dq, 2 * tol), compare("dk", DK, ref_dk, 2 * tol), compare("dv", DV, ref_dv, 2 * tol);
    if (c.causal && c.batch == 1 && chunk && !S2) {
        std::vector<act_t> KC(nk), VC(nk), Z(nq);
        memset(KC.data(), 0xff, nk * sizeof(act_t)), memset(VC.data(), 0xff, nk * sizeof(act_t));
        for (int pos = 0; pos < c.seq; pos += chunk) {
            Args h = a;
            h.i[1] = std::min(chunk, c.seq - pos), h.i[2] = pos;
            void* hp[] = {Q.data() + (size_t)pos * c.heads * HD, K.data() + (size_t)pos * c.kv * HD, V.data() + (size_t)pos * c.kv * HD,
                          KC.data(), VC.data(), Z.data() + (size_t)pos * c.heads * HD};
            memcpy(h.p, hp, sizeof hp);
            run_cached(h);
        }
        bool same = memcmp(Z.data(), Y.data(), nq * sizeof(act_t)) == 0;
        if (!same) failures++;
        printf("  cached by %d %s", chunk, same ? "equal" : "DIFFERENT FAIL");
    }
    printf("\n");
    fflush(stdout);
}

int main(int argc, char** argv) {
    const float cap = S1 ? 2.f : 0.f;
    int n = 0;
    for (Case c : {
             Case{1, 1, 1, 1, 0, true, cap},
             Case{2, 17, 2, 1, 0, true, cap},
             Case{1, 64, 4, 2, 0, true, cap},
             Case{1, 127, 2, 1, 0, true, cap},
             Case{1, 300, 2, 1, 0, true, cap},
             Case{1, 290, 1, 1, 100, true, cap},
             Case{1, 200, 2, 2, 0, false, cap},
             Case{1, 270, 1, 1, 33, false, cap},
             Case{2, 400, 2, 2, 7, true, cap},
         }) {
        if (S2 && !c.causal) { n++; continue; }
        if (argc > 1 && atoi(argv[1]) != n) { n++; continue; }
        run(c, n + 1, n % 2 ? 37 : 1 + c.seq / 3);
        n++;
    }
    return failures ? 1 : 0;
}
