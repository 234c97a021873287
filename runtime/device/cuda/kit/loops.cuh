// loops.cuh: the loops that the ops' kernels share. It stands behind mtc.cuh, in the same
// header. Each comes in two forms: one that moves 8 elements at once, and one that moves them
// one by one, for sizes and addresses that do not allow the other. A row has the same bits in
// either form wherever an element depends on its own inputs alone.

// ---- functions of a scalar -----------------------------------------------------------------
// In bf16 the hardware's exponential is far more exact than the result; in f32 it is not.

#define LOG2_E 1.4426950408889634f

__device__ __forceinline__ float exp_of(float x) {
#ifdef MTC_F32
    return expf(x);
#else
    return exp2_fast(x * LOG2_E);
#endif
}

// logistic is 1 / (1 + exp(-x)).
__device__ __forceinline__ float logistic(float x) {
#ifdef MTC_F32
    return 1.0f / (1.0f + expf(-x));
#else
    return recip_fast(1.0f + exp2_fast(x * -LOG2_E));
#endif
}

// inv_root is 1 / sqrt(x).
__device__ __forceinline__ float inv_root(float x) {
#ifdef MTC_F32
    return 1.0f / sqrtf(x);
#else
    return rsqrtf(x);
#endif
}

// gelu_tanh is GELU in its tanh form: x * logistic(2 u), u = sqrt(2/pi) (x + 0.044715 x^3), which
// loses nothing where tanh is near -1; gelu_tanh_slope is its derivative.
#define GELU_TWICE 1.5957691216057308f
#define GELU_TWICE_CUBIC (GELU_TWICE * 0.044715f)

// gelu_gate is logistic(2 u).
__device__ __forceinline__ float gelu_gate(float x) {
#ifdef MTC_F32
    return logistic(x * (GELU_TWICE + GELU_TWICE_CUBIC * x * x));
#else
    return recip_fast(1.0f + exp2_fast(x * fmaf(x * x, -LOG2_E * GELU_TWICE_CUBIC, -LOG2_E * GELU_TWICE)));
#endif
}
__device__ __forceinline__ float gelu_tanh(float x) { return x * gelu_gate(x); }
__device__ __forceinline__ float gelu_tanh_slope(float x) {
    const float s = gelu_gate(x);
    // s (1 - s) is 0 long before x^3 is not finite.
    const float bend = s * (1.0f - s);
    return s + (bend == 0.0f ? 0.0f : x * bend * (GELU_TWICE + 3.0f * GELU_TWICE_CUBIC * x * x));
}

// turn rotates a pair by the angle with cosine c and sine s. Which product is rounded is written out, so that
// all kernels give the same bits.
__device__ __forceinline__ void turn(float& u, float& v, float c, float s) {
    const float p = fmaf(u, c, -(v * s));
    v = fmaf(v, c, u * s);
    u = p;
}
// turn8 rotates eight pairs of two units: those side by side (SIDE), of u before those of v, or those of
// an element of u and the same of v.
template <bool SIDE> __device__ __forceinline__ void turn8(float (&u)[8], float (&v)[8], const float (&c)[8], const float (&s)[8]) {
#pragma unroll
    for (int e = 0; e < 8; e++) {
        if (SIDE) {
            float(&w)[8] = e < 4 ? u : v;
            turn(w[2 * e % 8], w[2 * e % 8 + 1], c[e], s[e]);
        } else {
            turn(u[e], v[e], c[e], s[e]);
        }
    }
}

// ---- elements ------------------------------------------------------------------------------

#define MAP_THREADS 256
#define MAP_TILE (MAP_THREADS * 8)

// aligned reports whether addresses, put together with |, are multiples of 16 bytes.
__device__ __forceinline__ u64 bits_of(const void* p) { return (u64)p; }
__device__ __forceinline__ bool aligned(u64 all) { return (all & 15) == 0; }

// Unit is 8 elements as they lie in memory.
template <class T> using Unit = Words<8 * (int)sizeof(T)>;

// elements is how many elements a launch has: i[0] rows of i[1], or of rows of experts those in use,
// p[19] of i[1] / i[14] each (runtime/ops/internal/inuse).
__device__ __forceinline__ i64 elements(const Args& a) {
    const i64 n = a.i[0] * a.i[1];
    return a.p[19] ? imin(n, *(const int*)a.p[19] * (a.i[1] / a.i[14])) : n;
}

// map runs f(x, y) for each of n elements: x[k] is the element of in[k], and y[m] becomes that of
// out[m]. A block does U tiles; all loads of a thread come before its stores, so an output may be
// an input. The grid has ceil(n / (U * MAP_TILE)) blocks, or more. There is no operand that may be
// missing: a load behind a test of its address waits for the loads before it.
template <int U, class T, int K, int M, class F>
__device__ __forceinline__ void map(i64 n, const T* const (&in)[K], T* const (&out)[M], F f) {
    const i64 base = (i64)blockIdx.x * (U * MAP_TILE), end = imin(n, base + U * MAP_TILE);
    if (base >= n) return;
    u64 all = 0;
#pragma unroll
    for (int k = 0; k < K; k++) all |= bits_of(in[k]);
#pragma unroll
    for (int m = 0; m < M; m++) all |= bits_of(out[m]);
    i64 rest = base;  // where elements begin that are in no unit
    if (aligned(all)) {
        rest = end / 8 * 8;
        const i64 at = base + (i64)threadIdx.x * 8;
        Unit<T> w[U][K];
#pragma unroll
        for (int u = 0; u < U; u++)
#pragma unroll
            for (int k = 0; k < K; k++)
                if (at + u * MAP_TILE < rest) w[u][k].ld(in[k] + at + u * MAP_TILE);
        __syncwarp();  // the compiler must not put off reads until they are used
#pragma unroll
        for (int u = 0; u < U; u++) {
            if (at + u * MAP_TILE >= rest) break;
            float v[K][8], r[M][8];
#pragma unroll
            for (int k = 0; k < K; k++) unpack<8>(w[u][k], v[k], T());
#pragma unroll
            for (int e = 0; e < 8; e++) {
                float x[K], y[M];
#pragma unroll
                for (int k = 0; k < K; k++) x[k] = v[k][e];
                f(x, y);
#pragma unroll
                for (int m = 0; m < M; m++) r[m][e] = y[m];
            }
#pragma unroll
            for (int m = 0; m < M; m++) store<8>(out[m] + at + u * MAP_TILE, r[m]);
        }
    }
    for (i64 i = rest + threadIdx.x; i < end; i += MAP_THREADS) {
        float x[K], y[M];
#pragma unroll
        for (int k = 0; k < K; k++) x[k] = to_f(in[k][i]);
        f(x, y);
#pragma unroll
        for (int m = 0; m < M; m++) out[m][i] = from_f<T>(y[m]);
    }
}

// fill_floats sets the block's elements of y, under the grid of map<2>. Threads store 16 bytes side by
// side: units of 8 floats would leave every store instruction with half of each sector.
__device__ __forceinline__ void fill_floats(float* y, i64 n, float value) {
    constexpr int STEP = MAP_THREADS * 4;
    const i64 base = (i64)blockIdx.x * (2 * MAP_TILE), end = imin(n, base + 2 * MAP_TILE);
    if (!aligned(bits_of(y))) {
        for (i64 i = base + threadIdx.x; i < end; i += MAP_THREADS) y[i] = value;
        return;
    }
    const float v[4] = {value, value, value, value};
#pragma unroll
    for (int u = 0; u < 2 * MAP_TILE / STEP; u++) {
        const i64 at = base + u * STEP + threadIdx.x * 4;
        if (at + 4 <= end) {
            store<4>(y + at, v);
        } else {
            for (i64 i = at; i < end; i++) y[i] = value;
        }
    }
}

// map_act is y = f(x) of activations: p[0] = x, p[1] = y, i[0] * i[1] elements.
template <class F> __device__ __forceinline__ void map_act(const Args& a, F f) {
    const act_t* const in[1] = {(const act_t*)a.p[0]};
    act_t* const out[1] = {(act_t*)a.p[1]};
    map<2>(elements(a), in, out, [=](const float (&x)[1], float (&y)[1]) { y[0] = f(x[0]); });
}

// map_act2 is y = f(a, b): p = {a, b, y}.
template <class F> __device__ __forceinline__ void map_act2(const Args& a, F f) {
    const act_t* const in[2] = {(const act_t*)a.p[0], (const act_t*)a.p[1]};
    act_t* const out[1] = {(act_t*)a.p[2]};
    map<2>(elements(a), in, out, [=](const float (&x)[2], float (&y)[1]) { y[0] = f(x[0], x[1]); });
}

// map_grad is dx = add + f(dy, x): p = {x, dy, add or null, dx}.
template <class F> __device__ __forceinline__ void map_grad(const Args& a, F f) {
    const act_t *x = (const act_t*)a.p[0], *dy = (const act_t*)a.p[1], *add = (const act_t*)a.p[2];
    act_t* const out[1] = {(act_t*)a.p[3]};
    if (add) {
        const act_t* const in[3] = {x, dy, add};
        map<2>(elements(a), in, out, [=](const float (&v)[3], float (&y)[1]) { y[0] = v[2] + f(v[1], v[0]); });
    } else {
        const act_t* const in[2] = {x, dy};
        map<2>(elements(a), in, out, [=](const float (&v)[2], float (&y)[1]) { y[0] = f(v[1], v[0]); });
    }
}

// map_scaled is dx = add + by * dy: p = {-, dy, add or null, dx}.
__device__ __forceinline__ void map_scaled(const Args& a, float by) {
    const act_t *dy = (const act_t*)a.p[1], *add = (const act_t*)a.p[2];
    act_t* const out[1] = {(act_t*)a.p[3]};
    if (add) {
        const act_t* const in[2] = {dy, add};
        map<2>(elements(a), in, out, [=](const float (&v)[2], float (&y)[1]) { y[0] = v[1] + by * v[0]; });
    } else {
        const act_t* const in[1] = {dy};
        map<2>(elements(a), in, out, [=](const float (&v)[1], float (&y)[1]) { y[0] = by * v[0]; });
    }
}

// ---- rows ----------------------------------------------------------------------------------
// A team of LANES threads holds a row (or a group of a row): a power of two up to 32, several
// teams to a block of TEAM_THREADS, or one team of a multiple of 32, which is the block. A lane
// holds UNITS units of 8 elements; UNITS = 0 (only the slow form) fits any length.

#define TEAM_THREADS 256

template <int LANES> struct Team {
    i64 row;   // the row of this thread's team
    int lane;
    bool live; // the team has a row; if not it goes through the last one, and stores nothing

    __device__ __forceinline__ Team(i64 rows, i64 block = blockIdx.x) {
        if constexpr (LANES <= 32) {
            row = block * (TEAM_THREADS / LANES) + threadIdx.x / LANES;
            lane = threadIdx.x % LANES;
        } else {
            row = block;
            lane = threadIdx.x;
        }
        live = row < rows;
        if (!live) row = rows - 1;
    }

    __device__ __forceinline__ float sum(float v) const {
        if constexpr (LANES <= 32) {
#pragma unroll
            for (int k = LANES / 2; k > 0; k >>= 1) v += __shfl_xor_sync(FULL, v, k);
            return v;
        } else {
            return block_sum<LANES>(v);
        }
    }

    __device__ __forceinline__ float2 sum2(float v, float w) const {
        if constexpr (LANES <= 32) {
#pragma unroll
            for (int k = LANES / 2; k > 0; k >>= 1) {
                v += __shfl_xor_sync(FULL, v, k);
                w += __shfl_xor_sync(FULL, w, k);
            }
            return make_float2(v, w);
        } else {
            return block_sum2<LANES>(v, w);
        }
    }

    // sum2 where a block makes one for each of many rows: odd tells whether it is an odd one of them.
    // They take turns over two places, so that threads wait but once.
    __device__ __forceinline__ float2 sum2(float v, float w, bool odd) const {
        if constexpr (LANES <= 32) {
            return sum2(v, w);
        } else {
            constexpr int W = LANES / 32;
            __shared__ float2 part[2][W];
            v = warp_sum(v), w = warp_sum(w);
            if (threadIdx.x % 32 == 0) part[odd][threadIdx.x / 32] = make_float2(v, w);
            __syncthreads();
            float2 s = part[odd][0];
#pragma unroll
            for (int k = 1; k < W; k++) s.x += part[odd][k].x, s.y += part[odd][k].y;
            return s;
        }
    }
};

// Kept is a lane's part of a row of n elements: read once into registers (FAST), or read
// again from memory each time. E is how many elements get gives at once.
template <class T, int LANES, int UNITS, bool FAST> struct Kept;
template <class T, int LANES, int UNITS> struct Kept<T, LANES, UNITS, true> {
    Unit<T> w[UNITS];
    __device__ __forceinline__ Kept(const T* row, int n, int lane) {
        if (row) {
#pragma unroll
            for (int k = 0; k < UNITS; k++) {
                const int i = (k * LANES + lane) * 8;
                if (i < n) w[k].ld(row + i);
            }
        }
    }
    __device__ __forceinline__ void get(int k, int, float (&v)[8]) const { unpack<8>(w[k], v, T()); }
};
template <class T, int LANES, int UNITS> struct Kept<T, LANES, UNITS, false> {
    const T* row;
    __device__ __forceinline__ Kept(const T* r, int, int) : row(r) {}
    __device__ __forceinline__ void get(int, int i, float (&v)[1]) const { v[0] = to_f(row[i]); }
};

// Weights are what a lane has of a vector of weights, ones where there is none: in registers (HELD), or
// read each time.
template <int LANES, int UNITS, bool HELD> struct Weights;
template <int LANES, int UNITS> struct Weights<LANES, UNITS, true> {
    Kept<wgt_t, LANES, UNITS, true> kept;
    __device__ __forceinline__ Weights(const wgt_t* w, int n, int lane) : kept(w, n, lane) {
        if (w) return;
#pragma unroll
        for (int k = 0; k < UNITS; k++)
#pragma unroll
            for (int j = 0; j < 2 * (int)sizeof(wgt_t); j++) kept.w[k].w[j] = sizeof(wgt_t) == 4 ? 0x3f800000 : 0x3f803f80;
    }
    __device__ __forceinline__ void get(int k, int i, float (&v)[8]) const { kept.get(k, i, v); }
};
template <int LANES, int UNITS> struct Weights<LANES, UNITS, false> {
    const wgt_t* w;
    __device__ __forceinline__ Weights(const wgt_t* from, int, int) : w(from) {}
    __device__ __forceinline__ void get(int, int i, float (&v)[8]) const {
        if (w) return load<8>(w + i, v);
#pragma unroll
        for (int e = 0; e < 8; e++) v[e] = 1.0f;
    }
};

// each_unit runs f(k, i) for the units of a lane: unit k starts at element i of the row.
template <int LANES, int UNITS, bool FAST, class F>
__device__ __forceinline__ void each_unit(int n, int lane, F f) {
    if constexpr (FAST) {
#pragma unroll
        for (int k = 0; k < UNITS; k++) {
            const int i = (k * LANES + lane) * 8;
            if (i < n) f(k, i);
        }
    } else {
        for (int i = lane; i < n; i += LANES) f(0, i);
    }
}

// ---- sweeps --------------------------------------------------------------------------------
// Teams that go over many rows each and keep sums over them in registers: a gradient of rows and
// those of the columns in one pass. The number of blocks follows from the sizes alone. Package
// grid mirrors these numbers.

// sweeps tells whether a row's units leave registers for the sums.
template <int LANES, int UNITS> constexpr bool sweeps = UNITS > 0 && UNITS <= 4 && LANES <= 512;

// sweep_share is how many blocks share a multiprocessor, by the registers that they need for SUMS
// sums of a column. Blocks of one sum are many: while some wait for the sums of a row, others read.
template <int LANES, int UNITS, int SUMS> constexpr int sweep_share =
    LANES <= 32 ? (UNITS == 1 ? 3 : UNITS <= 3 ? 2 : 1) : LANES <= 256 && UNITS <= 2 ? (SUMS == 1 ? 4 : 2) : UNITS == 1 ? 2 : 1;

// sweep_blocks is the number of blocks over n rows: those that a GPU with 132 multiprocessors
// holds at once.
template <int LANES, int UNITS, int SUMS> __device__ __forceinline__ i64 sweep_blocks(i64 n) {
    return imin(LANES <= 32 ? ceil_div(n, TEAM_THREADS / LANES) : n, 132 * sweep_share<LANES, UNITS, SUMS>);
}

// sweep_sums adds what the teams of a block have for the n columns of a row to out.
template <int LANES, int UNITS> __device__ __forceinline__ void sweep_sums(const float (&acc)[UNITS][8], int n, float* out) {
    if constexpr (LANES > 32) {
        each_unit<LANES, UNITS, true>(n, threadIdx.x, [&](int k, int i) { store<8>(out + i, acc[k]); });
    } else {
        constexpr int TEAMS = TEAM_THREADS / LANES, WIDTH = LANES * UNITS * 8;
        __shared__ uint4 words[TEAMS * WIDTH / 4];
        float* sums = (float*)words;
        __syncthreads();
        each_unit<LANES, UNITS, true>(n, threadIdx.x % LANES, [&](int k, int i) { store<8>(sums + threadIdx.x / LANES * WIDTH + i, acc[k]); });
        __syncthreads();
        for (int c = threadIdx.x; c < n; c += TEAM_THREADS) {
            float s = sums[c];
#pragma unroll
            for (int t = 1; t < TEAMS; t++) s += sums[t * WIDTH + c];
            out[c] = s;
        }
    }
}

// ---- column sums ---------------------------------------------------------------------------
// The sum over rows of what each row adds to a column, in two launches: chunks of rows give
// partial sums, which the second adds in order. The number of chunks follows from the sizes
// alone. Package grid mirrors these numbers.

#define COLUMN_TILE 256
#define COLUMN_THREADS 256
#define COLUMN_PARTS (COLUMN_THREADS / 32)  // warps of a block, which take its rows in turn
#define COLUMN_SHARE (1536 / COLUMN_THREADS)  // blocks that share a multiprocessor

// The blocks are at most those that a GPU with 132 multiprocessors holds at once: a second round would
// leave most of it idle.
__device__ __forceinline__ i64 column_chunks(i64 rows, i64 d) {
    const i64 tiles = ceil_div(d, COLUMN_TILE);
    return imax(1, imin(132 * COLUMN_SHARE / tiles, ceil_div(rows, 4 * COLUMN_PARTS)));
}

// column_terms is the first launch: blocks (tiles of 256 columns, chunks) of COLUMN_THREADS. f(r,
// c, v) sets v to what row r adds to the columns from c on, v being 8 or 1 floats. fast says
// that it may be 8. work gets [chunks, d].
template <class F>
__device__ __forceinline__ void column_terms(i64 rows, i64 d, bool fast, float* work, F f) {
    __shared__ float sums[COLUMN_PARTS][COLUMN_TILE];
    const i64 chunk = ceil_div(rows, gridDim.y);
    const i64 first = (i64)blockIdx.y * chunk, end = imin(rows, first + chunk);
    const i64 base = (i64)blockIdx.x * COLUMN_TILE;
    const int unit = threadIdx.x % 32, part = threadIdx.x / 32;
    float acc[8] = {0, 0, 0, 0, 0, 0, 0, 0};
    if (fast) {
        const i64 c = base + unit * 8;
        if (c < d) {
#pragma unroll 4
            for (i64 r = first + part; r < end; r += COLUMN_PARTS) {
                float v[8];
                f(r, c, v);
#pragma unroll
                for (int e = 0; e < 8; e++) acc[e] += v[e];
            }
        }
#pragma unroll
        for (int e = 0; e < 8; e++) sums[part][unit * 8 + e] = acc[e];
    } else {
#pragma unroll
        for (int e = 0; e < 8; e++) {
            const i64 c = base + e * 32 + unit;
            if (c < d) {
                for (i64 r = first + part; r < end; r += COLUMN_PARTS) {
                    float v[1];
                    f(r, c, v);
                    acc[e] += v[0];
                }
            }
            sums[part][e * 32 + unit] = acc[e];
        }
    }
    __syncthreads();
    const i64 c = base + threadIdx.x;
    if (threadIdx.x < COLUMN_TILE && c < d) {
        float s = sums[0][threadIdx.x];
#pragma unroll
        for (int k = 1; k < COLUMN_PARTS; k++) s += sums[k][threadIdx.x];
        work[(i64)blockIdx.y * d + c] = s;
    }
}

// ColumnValues are the terms of a plain sum: x [rows, d], whose rows lie pitch apart.
struct ColumnValues {
    const act_t* x;
    i64 pitch;
    template <int E> __device__ __forceinline__ void operator()(i64 r, i64 c, float (&v)[E]) const {
        load<E>(x + r * pitch + c, v);
    }
};

// column_values is column_terms of a plain sum.
__device__ __forceinline__ void column_values(const act_t* x, i64 rows, i64 d, i64 pitch, float* work) {
    column_terms(rows, d, d % 8 == 0 && pitch % 8 == 0 && aligned(bits_of(x)), work, ColumnValues{x, pitch});
}

// fold_terms is the sum of column j over a number of terms, width apart, for 32 columns a block
// of 1024 threads. Threads below 32 get it.
__device__ __forceinline__ float fold_terms(const float* work, i64 terms, i64 width, i64 j, bool live) {
    __shared__ float sums[32][33];
    const int x = threadIdx.x % 32, part = threadIdx.x / 32;
    constexpr int AHEAD = 9;  // read before the first is used: all, of 132 blocks' or of two times as many
    float s = 0;
    for (i64 k = part; live && k < terms; k += 32 * AHEAD) {
        float v[AHEAD];
#pragma unroll
        for (int u = 0; u < AHEAD; u++) v[u] = k + 32 * u < terms ? work[(k + 32 * u) * width + j] : 0.0f;
#pragma unroll
        for (int u = 0; u < AHEAD; u++) s += v[u];
    }
    sums[part][x] = s;
    __syncthreads();
    s = sums[0][x];
#pragma unroll
    for (int k = 1; k < 32; k++) s += sums[k][x];
    return s;
}

// column_finish is the second launch: blocks of 32 columns, 1024 threads. out[j] = add[j] + the
// sum over chunks and over the d / per groups of a row; add may be null, or out.
__device__ __forceinline__ void column_finish(i64 rows, i64 d, i64 per, const float* work, const float* add, float* out) {
    const i64 j = (i64)blockIdx.x * 32 + threadIdx.x % 32;
    // Terms of column j stand per apart, since d is a multiple of per.
    const float s = fold_terms(work, column_chunks(rows, d) * (d / per), per, j, j < per);
    if (threadIdx.x < 32 && j < per) out[j] = plus(add, j, s);
}
