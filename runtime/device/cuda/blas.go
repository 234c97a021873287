//go:build cuda

package cuda

// Matrix products in cuBLASLt, which is opened at run time. Only what is used of its interface
// is declared here; numbers are those of cublasLt.h, the same in CUDA 12 and 13.

/*
#cgo LDFLAGS: -ldl
#include <cuda.h>
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct { uint64_t algo[8]; size_t workspace; int state; float waves; int reserved[4]; } heuristic_t;

static size_t (*p_version)(void);
static int (*p_create)(void**);
static int (*p_destroy)(void*);
static int (*p_desc_create)(void**, int, int);
static int (*p_desc_set)(void*, int, const void*, size_t);
static int (*p_desc_destroy)(void*);
static int (*p_layout_create)(void**, int, uint64_t, uint64_t, int64_t);
static int (*p_layout_destroy)(void*);
static int (*p_pref_create)(void**);
static int (*p_pref_set)(void*, int, const void*, size_t);
static int (*p_pref_destroy)(void*);
static int (*p_heuristic)(void*, void*, void*, void*, void*, void*, void*, int, heuristic_t*, int*);
static int (*p_check)(void*, void*, void*, void*, void*, void*, const void*, heuristic_t*); // may be absent
static int (*p_matmul)(void*, void*, const void*, const void*, void*, const void*, void*, const void*,
	const void*, void*, void*, void*, const void*, void*, size_t, void*);

static const char* lt_open(const char* path) {
	void* h = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!h) return dlerror();
#define SYM(to, name) if (!(*(void**)&to = dlsym(h, name))) return dlerror()
	SYM(p_version, "cublasLtGetVersion");
	SYM(p_create, "cublasLtCreate");
	SYM(p_destroy, "cublasLtDestroy");
	SYM(p_desc_create, "cublasLtMatmulDescCreate");
	SYM(p_desc_set, "cublasLtMatmulDescSetAttribute");
	SYM(p_desc_destroy, "cublasLtMatmulDescDestroy");
	SYM(p_layout_create, "cublasLtMatrixLayoutCreate");
	SYM(p_layout_destroy, "cublasLtMatrixLayoutDestroy");
	SYM(p_pref_create, "cublasLtMatmulPreferenceCreate");
	SYM(p_pref_set, "cublasLtMatmulPreferenceSetAttribute");
	SYM(p_pref_destroy, "cublasLtMatmulPreferenceDestroy");
	SYM(p_heuristic, "cublasLtMatmulAlgoGetHeuristic");
	SYM(p_matmul, "cublasLtMatmul");
#undef SYM
	*(void**)&p_check = dlsym(h, "cublasLtMatmulAlgoCheck");
	return 0;
}

static size_t lt_version(void) { return p_version(); }
static int lt_create(void** h) { return p_create(h); }
static int lt_destroy(void* h) { return p_destroy(h); }

// MOST is how many algorithms the library is asked for.
#define MOST 8

// plan_t is a product, column-major as cuBLASLt sees it, with the algorithms that the library
// names, what it holds for the best first, and the one chosen.
typedef struct {
	void *desc, *a, *b, *d;
	heuristic_t all[MOST];
	int bias, aux, found, chosen;
} plan_t;

enum { R_32F = 0, R_16BF = 14 };
enum { DESC_TRANSA = 3, DESC_TRANSB = 4, DESC_EPILOGUE = 7, DESC_BIAS = 8, DESC_AUX = 11, DESC_AUX_LD = 12, DESC_BIAS_TYPE = 26 };
enum { PREF_WORKSPACE = 1, PREF_REDUCTION = 3, PREF_ALIGN_A = 5, PREF_ALIGN_B, PREF_ALIGN_C, PREF_ALIGN_D };
enum { EPILOGUE_BIAS = 4, EPILOGUE_GELU = 32, EPILOGUE_GELU_GRAD = 64, EPILOGUE_AUX = 128 };
// Partial sums of a split k are added in the compute type, in one order.
enum { REDUCTION_COMPUTE_TYPE = 2 };

static void lt_plan_free(plan_t* p) {
	if (p->desc) p_desc_destroy(p->desc);
	if (p->a) p_layout_destroy(p->a);
	if (p->b) p_layout_destroy(p->b);
	if (p->d) p_layout_destroy(p->d);
	free(p);
}

// lt_plan makes D = op(A) op(B), D being m x n and all of it column-major.
static int lt_plan(void* h, plan_t** out, int compute, int m, int n, int k, int ta, int tb,
		int64_t lda, int64_t ldb, int64_t ldd, int type_a, int type_b, int type_d, int bias, int bias_type, uint32_t align, uint64_t workspace,
		int gelu, int aux) {
	plan_t* p = calloc(1, sizeof *p);
	void* pref = 0;
	uint32_t reduction = REDUCTION_COMPUTE_TYPE;
	int rc;
	*out = 0;
	p->bias = bias;
	p->aux = aux;
	if ((rc = p_desc_create(&p->desc, compute, R_32F))) goto fail;
	if ((rc = p_desc_set(p->desc, DESC_TRANSA, &ta, sizeof ta))) goto fail;
	if ((rc = p_desc_set(p->desc, DESC_TRANSB, &tb, sizeof tb))) goto fail;
	int32_t epilogue = (bias ? EPILOGUE_BIAS : 0) | (gelu == 1 ? EPILOGUE_GELU : gelu == 2 ? EPILOGUE_GELU_GRAD : 0) | (aux ? EPILOGUE_AUX : 0);
	if (epilogue && (rc = p_desc_set(p->desc, DESC_EPILOGUE, &epilogue, sizeof epilogue))) goto fail;
	if (aux) {
		int64_t ld = m; // of activations, dense
		const void* some = (const void*)(uintptr_t)256; // each launch gives its own
		if ((rc = p_desc_set(p->desc, DESC_AUX_LD, &ld, sizeof ld))) goto fail;
		if ((rc = p_desc_set(p->desc, DESC_AUX, &some, sizeof some))) goto fail;
	}
	if (bias) {
		if ((rc = p_desc_set(p->desc, DESC_BIAS_TYPE, &bias_type, sizeof bias_type))) goto fail;
	}
	if ((rc = p_layout_create(&p->a, type_a, ta ? k : m, ta ? m : k, lda))) goto fail;
	if ((rc = p_layout_create(&p->b, type_b, tb ? n : k, tb ? k : n, ldb))) goto fail;
	if ((rc = p_layout_create(&p->d, type_d, m, n, ldd))) goto fail;
	if ((rc = p_pref_create(&pref))) goto fail;
	if ((rc = p_pref_set(pref, PREF_WORKSPACE, &workspace, sizeof workspace))) goto fail;
	if ((rc = p_pref_set(pref, PREF_REDUCTION, &reduction, sizeof reduction))) goto fail;
	for (int i = PREF_ALIGN_A; i <= PREF_ALIGN_D; i++)
		if ((rc = p_pref_set(pref, i, &align, sizeof align))) goto fail;
	if ((rc = p_heuristic(h, p->desc, p->a, p->b, p->d, p->d, pref, MOST, p->all, &p->found))) goto fail;
	p_pref_destroy(pref);
	if (!p->found || p->all[0].state) { lt_plan_free(p); return 15; }
	*out = p;
	return 0;
fail:
	if (pref) p_pref_destroy(pref);
	lt_plan_free(p);
	return rc;
}

static size_t lt_workspace(plan_t* p) { return p->all[p->chosen].workspace; }
static int lt_found(plan_t* p) { return p->found; }
static int lt_usable(plan_t* p, int i) { return p->all[i].state == 0; }
static void lt_choose(plan_t* p, int i) { p->chosen = i; }
static const void* lt_algo(plan_t* p, int i) { return p->all[i].algo; }

static int lt_restores(void) { return p_check != 0; }

// lt_restore makes an algorithm the chosen one that an earlier process kept.
static int lt_restore(void* h, plan_t* p, const void* algo, uint64_t most) {
	heuristic_t r;
	memset(&r, 0, sizeof r);
	if (!p_check) return 15;
	int rc = p_check(h, p->desc, p->a, p->b, p->d, p->d, algo, &r);
	if (rc) return rc;
	if (r.state) return r.state;
	if (r.workspace > most) return 7;
	memcpy(r.algo, algo, sizeof r.algo);
	p->all[0] = r;
	p->chosen = 0;
	return 0;
}

static __thread CUcontext current;

static int lt_matmul(CUcontext ctx, void* h, plan_t* p, uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t bias,
		uint64_t aux, int add, uint64_t work, size_t room, void* stream) {
	const float one = 1, beta = add ? 1 : 0;
	if (current != ctx) {
		if (cuCtxSetCurrent(ctx)) return 1;
		current = ctx;
	}
	if (p->bias) {
		const void* at = (const void*)(uintptr_t)bias;
		int rc = p_desc_set(p->desc, DESC_BIAS, &at, sizeof at);
		if (rc) return rc;
	}
	if (p->aux) {
		const void* at = (const void*)(uintptr_t)aux;
		int rc = p_desc_set(p->desc, DESC_AUX, &at, sizeof at);
		if (rc) return rc;
	}
	return p_matmul(h, p->desc, &one, (const void*)(uintptr_t)a, p->a, (const void*)(uintptr_t)b, p->b, &beta,
		(const void*)(uintptr_t)c, p->d, (void*)(uintptr_t)d, p->d, p->all[p->chosen].algo, (void*)(uintptr_t)work, room, stream);
}

#cgo nocallback lt_matmul
*/
import "C"

import (
	"errors"
	"fmt"
	"math/bits"
	"runtime"
	"sync"
	"time"
	"unsafe"

	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/device/cuda/libs"
)

// blas is cuBLASLt on one device.
type blas struct {
	handle unsafe.Pointer
	plans  []*product
	spent  time.Duration // on timing algorithms
}

// product is a matrix product that has been seen.
type product struct {
	key  productKey
	plan *C.plan_t // nil: the library does not do its epilogue
	room int64     // workspace
	// settled: an algorithm was chosen by time, or not to be chosen so.
	settled bool
}

// productKey is all that the choice of an algorithm depends on.
type productKey struct {
	m, n, k        int64
	lda, ldd       int64
	transA, transB bool
	da, db, dd     device.Dtype
	bias           bool
	epilogue       device.Epilogue
	aux            bool
	align          uint32
}

// blasWorkspace is the most that a product may use, as NVIDIA recommends for Hopper.
const blasWorkspace = 32 << 20

const (
	compute32F         = 68
	compute32FPedantic = 69
	notSupported       = 15
	blasNoMemory       = 3
)

var openBlas = sync.OnceValue(func() error {
	var why []string
	for _, path := range libs.CublasLt.Candidates() {
		c := C.CString(path)
		msg := C.lt_open(c)
		C.free(unsafe.Pointer(c))
		if msg == nil {
			return nil
		}
		why = append(why, C.GoString(msg))
	}
	return missing(libs.CublasLt, errors.New(libs.CublasLt.Why(why)))
})

// blas opens the library for this device when it is first needed.
func (d *Device) blas() (*blas, error) {
	if d.lt != nil {
		return d.lt, nil
	}
	if err := openBlas(); err != nil {
		return nil, err
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := d.bind(); err != nil {
		return nil, err
	}
	b := &blas{}
	if rc := C.lt_create(&b.handle); rc != 0 {
		return nil, d.told("the start of cuBLASLt", blasError(rc))
	}
	d.lt = b
	return b, nil
}

func (b *blas) close() {
	if b == nil {
		return
	}
	for _, p := range b.plans {
		if p.plan != nil {
			C.lt_plan_free(p.plan)
		}
	}
	C.lt_destroy(b.handle)
}

// blasError is a status of cuBLAS.
type blasError int

func (e blasError) Error() string {
	name := map[blasError]string{1: "not initialised", 3: "allocation failed", 7: "invalid value", 8: "architecture mismatch",
		11: "mapping error", 13: "execution failed", 14: "internal error", 15: "not supported"}[e]
	if name == "" {
		name = "unknown"
	}
	return fmt.Sprintf("cuBLASLt status %d (%s)", int(e), name)
}

// matmul runs D = op(A) op(B) + C + bias. It is whole unless the epilogue is left to do.
func (s *stream) matmul(k *device.Kernel, a *device.Args) (whole bool, err error) {
	m := k.Matmul(a)
	if m.M == 0 || m.N == 0 {
		return true, nil
	}
	b, err := s.dev.blas()
	if err != nil {
		return false, err
	}
	list, n := s.dev.parts(&m)
	for i := range list[:n] {
		m := &list[i]
		p, all, err := b.find(s.dev, m)
		if err != nil {
			return false, fmt.Errorf("[%d, %d] x [%d, %d]: %w", m.M, m.K, m.K, m.N, err)
		}
		if err := s.reserve(p.room); err != nil {
			return false, err
		}
		if err := s.multiply(b, p, m); err != nil {
			return false, err
		}
		whole = all
	}
	return whole, nil
}

// multiply enqueues a product with its algorithm; there is scratch memory for it.
func (s *stream) multiply(b *blas, p *product, m *device.Matmul) error {
	d := s.dev
	c := m.D
	if !m.C.Nil() {
		c = m.C
	}
	// Row-major D is column-major D^T = op(B)^T op(A)^T: the operands change places.
	rc := C.lt_matmul(d.ctx, b.handle, p.plan, C.uint64_t(d.resolve(m.B)), C.uint64_t(d.resolve(m.A)),
		C.uint64_t(d.resolve(c)), C.uint64_t(d.resolve(m.D)), C.uint64_t(d.resolve(m.Bias)),
		C.uint64_t(d.resolve(m.Aux)), flag(!m.C.Nil()), C.uint64_t(s.scratch), C.size_t(s.room), unsafe.Pointer(s.handle))
	if rc != 0 {
		return s.whyNot(blasError(rc))
	}
	return nil
}

// find returns the product with its algorithm. Where the library does not do the epilogue, m
// becomes the product without, and the rest is left to the caller.
func (b *blas) find(d *Device, m *device.Matmul) (p *product, whole bool, err error) {
	if p, err = b.look(d, m); err != nil || p.plan != nil {
		return p, true, err
	}
	*m = m.Plain()
	p, err = b.look(d, m)
	return p, false, err
}

// look finds or makes the product as it is described.
func (b *blas) look(d *Device, m *device.Matmul) (*product, error) {
	key := productKey{m: m.M, n: m.N, k: m.K, lda: m.LDA, ldd: m.LDD, transA: m.TransA, transB: m.TransB,
		da: m.DA, db: m.DB, dd: m.DD, bias: !m.Bias.Nil(), epilogue: m.Epilogue, aux: !m.Aux.Nil()}
	// More than 16 bytes are not told apart: the same product must have the same bits wherever its
	// operands lie, in a forward pass and where it is made again.
	all := d.resolve(m.Aux) | d.resolve(m.A) | d.resolve(m.B) | d.resolve(m.C) | d.resolve(m.D) | d.resolve(m.Bias) | 16
	key.align = 1 << bits.TrailingZeros64(all)
	for _, p := range b.plans {
		if p.key == key {
			return p, nil
		}
	}
	return b.choose(d, key)
}

// choose asks the library for the best algorithm.
func (b *blas) choose(d *Device, key productKey) (*product, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := d.bind(); err != nil {
		return nil, err
	}
	compute := C.int(compute32F)
	if d.opt.F32 {
		compute = compute32FPedantic
	}
	biasType := d.dtype(device.WeightDtype)
	if key.dd == device.GradDtype {
		biasType = d.dtype(device.GradDtype)
	}
	lda, ldb, ldd := key.k, key.n, key.n
	if key.transA {
		lda = key.m
	}
	if key.transB {
		ldb = key.k
	}
	if key.lda > 0 {
		lda = key.lda
	}
	if key.ldd > 0 {
		ldd = key.ldd
	}
	var plan *C.plan_t
	try := func() C.int {
		return C.lt_plan(b.handle, &plan, compute, C.int(key.n), C.int(key.m), C.int(key.k), flag(key.transB), flag(key.transA),
			C.int64_t(ldb), C.int64_t(lda), C.int64_t(ldd), d.dtype(key.db), d.dtype(key.da), d.dtype(key.dd), flag(key.bias), biasType, C.uint32_t(key.align), blasWorkspace,
			C.int(key.epilogue), flag(key.aux))
	}
	if key.epilogue != device.NoEpilogue && (d.opt.F32 || d.noEpilogues || key.n%8 != 0 || key.align < 16) {
		return b.add(product{key: key}), nil
	}
	rc := try()
	if rc != 0 && key.epilogue != device.NoEpilogue {
		return b.add(product{key: key}), nil
	}
	if rc == notSupported && compute != compute32F {
		compute = compute32F
		rc = try()
	}
	if rc != 0 {
		return nil, blasError(rc)
	}
	return b.add(product{key: key, plan: plan, room: int64(C.lt_workspace(plan))}), nil
}

func (b *blas) add(p product) *product {
	b.plans = append(b.plans, &p)
	return &p
}

// algorithms is how many the library names.
func (p *product) algorithms() int { return int(C.lt_found(p.plan)) }

func (p *product) usable(i int) bool { return C.lt_usable(p.plan, C.int(i)) != 0 }

// choose makes one of them the product's.
func (p *product) choose(i int) {
	C.lt_choose(p.plan, C.int(i))
	p.room = int64(C.lt_workspace(p.plan))
}

// algo is how the library describes one.
func (p *product) algo(i int) (out [64]byte) {
	copy(out[:], unsafe.Slice((*byte)(C.lt_algo(p.plan, C.int(i))), len(out)))
	return out
}

// restores tells whether the library takes algorithms that were kept.
func restores() bool { return C.lt_restores() != 0 }

// restore makes an algorithm the product's that an earlier process kept; false: it does not fit.
func (p *product) restore(b *blas, algo [64]byte) bool {
	if C.lt_restore(b.handle, p.plan, unsafe.Pointer(&algo), blasWorkspace) != 0 {
		return false
	}
	p.choose(0)
	return true
}

// drop leaves the epilogue to a kernel.
func (p *product) drop() {
	C.lt_plan_free(p.plan)
	p.plan = nil
}

// dtype is cuBLAS's name of an operand's element type.
func (d *Device) dtype(t device.Dtype) C.int {
	if d.opt.F32 || t == device.GradDtype {
		return C.R_32F
	}
	return C.R_16BF
}

func flag(b bool) C.int {
	if b {
		return 1
	}
	return 0
}

// BlasVersion is the version of cuBLASLt, such as 130000; it opens the library.
func BlasVersion() (int, error) {
	if err := openBlas(); err != nil {
		return 0, err
	}
	return int(C.lt_version()), nil
}

// whyNot is the driver's error where it has one: a GPU that failed before makes the library say no
// more than that it could not.
func (s *stream) whyNot(err error) error {
	if lost := s.dev.syncStream(s.handle); sticky(codeOf(lost)) {
		return lost
	}
	return err
}
