/* A stand-in for libcublasLt.so with which the tests check, without a GPU, how matrix products
 * are described to it: plain loops over column-major operands, in the order of a stream.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fault.h"
#include "rest.h"

int fake_call(void *stream, void (*f)(void *), void *arg);

typedef struct { int ta, tb, epilogue, bias_type; const void *bias; } desc_t;
typedef struct { int type; uint64_t rows, cols; int64_t ld; } layout_t;
typedef struct { uint64_t algo[8]; size_t workspace; int state; float waves; int reserved[4]; } heuristic_t;
typedef struct { desc_t d; layout_t la, lb, lc, ld; float alpha, beta; const void *a, *b, *c; void *out; } job_t;

static float get(const void *p, int type, int64_t i) {
	if (type == 0) return ((const float *)p)[i];
	union { uint32_t u; float f; } x = {(uint32_t)((const uint16_t *)p)[i] << 16};
	return x.f;
}
static void put(void *p, int type, int64_t i, float v) {
	union { float f; uint32_t u; } x = {v};
	if (type == 0) ((float *)p)[i] = v;
	else ((uint16_t *)p)[i] = (x.u + 0x7fff + (x.u >> 16 & 1)) >> 16;
}

/* rows of an operand, the index of the sum running fastest. */
static float *packed(const void *p, int type, int sum_fastest, int64_t ld, int64_t rows, int64_t k) {
	float *out = malloc(sizeof(float) * rows * k + 64);
	for (int64_t r = 0; r < rows; r++)
		for (int64_t x = 0; x < k; x++) out[r * k + x] = get(p, type, sum_fastest ? x + r * ld : r + x * ld);
	return out;
}

/* dot has one order of sums for each k, whatever else there is. */
static float dot(const float *a, const float *b, int64_t k) {
	float s[16] = {0}, sum = 0;
	int64_t x = 0;
	for (; x + 16 <= k; x += 16)
		for (int i = 0; i < 16; i++) s[i] += a[x + i] * b[x + i];
	for (; x < k; x++) s[x & 15] += a[x] * b[x];
	for (int i = 0; i < 16; i++) sum += s[i];
	return sum;
}

static int does(const char *fault) {
	const char *s = getenv("MTC_FAKE_CUDA");
	return s && strstr(s, fault);
}

static void run(void *arg) {
	job_t *j = arg;
	/* "inplace": a product that works in place rounds once more before it adds. */
	int twice = j->beta && j->c == j->out && j->ld.type != 0 && does("inplace");
	int64_t k = j->d.ta ? j->la.rows : j->la.cols, rows = j->ld.rows, cols = j->ld.cols;
	uint16_t half;
	float *a = packed(j->a, j->la.type, j->d.ta, j->la.ld, rows, k);
	float *b = packed(j->b, j->lb.type, !j->d.tb, j->lb.ld, cols, k);
	for (int64_t c = 0; c < cols; c++)
		for (int64_t r = 0; r < rows; r++) {
			float s = dot(a + r * k, b + c * k, k) * j->alpha;
			if (twice) put(&half, j->ld.type, 0, s), s = get(&half, j->ld.type, 0);
			if (j->beta) s += j->beta * get(j->c, j->lc.type, r + c * j->lc.ld);
			if (j->d.epilogue == 4) s += get(j->d.bias, j->d.bias_type, r);
			put(j->out, j->ld.type, r + c * j->ld.ld, s);
		}
	free(a);
	free(b); /* j stays: a graph runs it again */
}

int cublasLtMatmulAlgoCheck(void *h, desc_t *d, layout_t *a, layout_t *b, layout_t *c, layout_t *out, const void *algo, heuristic_t *r) {
	FAULT;
	memset(r, 0, sizeof *r);
	memcpy(r->algo, algo, 64);
	r->workspace = 1 << 20;
	return r->algo[0] > 2 ? 7 : 0;
}
size_t cublasLtGetVersion(void) { return 130000; }
int cublasLtCreate(void **h) { FAULT; *h = malloc(1); return 0; }
int cublasLtDestroy(void *h) { FAULT; free(h); return 0; }
int cublasLtMatmulDescCreate(desc_t **d, int compute, int scale) { FAULT; *d = calloc(1, sizeof **d); (*d)->epilogue = 1; return scale != 0; }
int cublasLtMatmulDescSetAttribute(desc_t *d, int attr, const void *v, size_t n) {
	FAULT;
	switch (attr) {
	case 3: d->ta = *(const int *)v; return n != 4;
	case 4: d->tb = *(const int *)v; return n != 4;
	case 7: d->epilogue = *(const int *)v; return n != 4;
	case 8: d->bias = *(const void *const *)v; return n != 8;
	case 26: d->bias_type = *(const int *)v; return n != 4;
	}
	return 7;
}
int cublasLtMatmulDescDestroy(desc_t *d) { FAULT; free(d); return 0; }
int cublasLtMatrixLayoutCreate(layout_t **l, int type, uint64_t rows, uint64_t cols, int64_t ld) {
	FAULT;
	*l = malloc(sizeof **l);
	**l = (layout_t){type, rows, cols, ld};
	return 0;
}
int cublasLtMatrixLayoutDestroy(layout_t *l) { FAULT; free(l); return 0; }
int cublasLtMatmulPreferenceCreate(void **p) { FAULT; *p = malloc(1); return 0; }
int cublasLtMatmulPreferenceSetAttribute(void *p, int a, const void *v, size_t n) { FAULT; return 0; }
int cublasLtMatmulPreferenceDestroy(void *p) { FAULT; free(p); return 0; }
int cublasLtMatmulAlgoGetHeuristic(void *h, desc_t *d, layout_t *a, layout_t *b, layout_t *c, layout_t *out, void *pref, int want, heuristic_t *r, int *n) {
	FAULT;
	memset(r, 0, want * sizeof *r);
	r->workspace = 1 << 20;
	*n = d->epilogue == 1 || d->epilogue == 4; /* what run does */
	if (!*n) return 0;
	if (want >= 3 && does("tune")) { /* three algorithms, of which the second is the fastest */
		*n = 3;
		for (int i = 0; i < 3; i++) r[i].algo[0] = i, r[i].workspace = 1 << 20;
	}
	uint64_t m = d->ta ? a->cols : a->rows, k = d->ta ? a->rows : a->cols;
	uint64_t k2 = d->tb ? b->cols : b->rows, cols = d->tb ? b->rows : b->cols;
	return m == out->rows && cols == out->cols && k == k2 ? 0 : 7;
}
int cublasLtMatmul(void *h, desc_t *d, const float *alpha, const void *a, layout_t *la, const void *b, layout_t *lb,
		const float *beta, const void *c, layout_t *lc, void *out, layout_t *ld, const void *algo, void *work, size_t room, void *stream) {
	FAULT;
	job_t *j = malloc(sizeof *j);
	*j = (job_t){*d, *la, *lb, *lc, *ld, *alpha, *beta, a, b, c, out};
	if (!work || room < 1 << 20) return 7;
	if (does("tune") && ((const uint64_t *)algo)[0] != 1) rest(100000); /* longer than a busy machine delays five runs */
	return fake_call(stream, run, j) ? 13 : 0;
}
