// Package vec is float32 arithmetic over slices: the inner loops of the ops' CPU kernels.
// Every function has an AVX-512, an AVX2 and a plain Go implementation; the first two need
// GOEXPERIMENT=simd on amd64, and the machine decides at start-up which one runs.
//
// All slices of a call have the length of its first argument or more; a destination may be
// the same slice as a source (in place), but not overlap it otherwise. A nil add means that
// nothing is added: functions with an add operand write dst = add + value.
//
// Element i of an elementwise result depends on element i of the sources only, with the same
// rounding wherever it stands in the slice, so a range may be cut anywhere among threads.
// Reductions run over the whole slice in an order fixed by its length.
//
// Vector functions end by clearing the upper halves of the registers: the compiler does not, and
// scalar float code after them would otherwise run many times slower.
//
// The three implementations round alike where they use the same operations and may differ in
// the last bit elsewhere; each is deterministic.
package vec

//go:generate go run gen_avx2.go

// Level is an implementation.
type Level int

// The implementations.
const (
	Plain Level = iota
	AVX2
	AVX512
)

func (l Level) String() string { return [...]string{"plain", "avx2", "avx512"}[l] }

// Active is the implementation in use.
func Active() Level { return level }

var (
	level = Plain
	fn    = plain
	// machine is the implementations that this machine has.
	machine = map[Level]*table{Plain: &plain}
)

func use(l Level) { level, fn = l, *machine[l] }

// table holds the functions of one implementation.
type table struct {
	add, mul, sub   func(dst, a, b []float32)
	fma             func(dst, a, b, c []float32)
	scale           func(dst, a []float32, s float32)
	axpy            func(dst, a []float32, s float32, b []float32)
	mulScale        func(dst, a, b []float32, s float32)
	dot, dot3       func(a, b, c []float32) float64
	sum             func(a []float32) float64
	sumSq           func(a []float32) float64
	sumSqDev        func(a []float32, mean float32) float64
	addSquares      func(acc []float64, a []float32)
	max             func(a []float32) float32
	exp             func(dst, a []float32)
	expSub          func(dst, a []float32, m float32) float32
	sumExp          func(a []float32, m float32) float64
	unary           [numUnary]func(dst, a []float32)
	backward        [numUnary]func(dst, add, dy, a []float32)
	swiglu          func(dst, gate, up []float32)
	swigluBackward  func(dgate, dup, addGate, addUp, dy, gate, up []float32)
	softcap         func(dst, a []float32, cap float32)
	softcapBackward func(dst, add, dy, a []float32, cap float32)
	normApply       func(dst, a []float32, mean, inv float32, w, b []float32)
	normBackward    func(dst, add, dy, a, w []float32, mean, inv, c1, c2 float32)
	normWeight      func(dw, db, dy, a []float32, mean, inv float32)
	rotateHalf      func(dst, add, a, cos, sin []float32)
	rotatePairs     func(dst, add, a, cos, sin []float32)
	softmaxColumns  func(s []float32, ld, rows int, m, l, alpha []float32, scale float32)
	softmaxGrad     func(p, ds []float32, scale, lse, delta, cap float32)
	adamw           func(p, g, m, v []float32, k *AdamW)
	adamwSplit      func(hi, lo []uint16, g, m, v []float32, k *AdamW)
}

// The unary functions with a derivative.
const (
	uSigmoid = iota
	uSilu
	uTanh
	uGeluTanh
	uGeluErf
	uRelu
	uRelu2
	numUnary
)

// Add is dst = a + b.
func Add(dst, a, b []float32) { fn.add(dst, a, b) }

// Sub is dst = a - b.
func Sub(dst, a, b []float32) { fn.sub(dst, a, b) }

// Mul is dst = a * b.
func Mul(dst, a, b []float32) { fn.mul(dst, a, b) }

// MulAdd is dst = a * b + c, rounded once.
func MulAdd(dst, a, b, c []float32) { fn.fma(dst, a, b, c) }

// MulScale is dst = (a * s) * b.
func MulScale(dst, a, b []float32, s float32) { fn.mulScale(dst, a, b, s) }

// Scale is dst = a * s.
func Scale(dst, a []float32, s float32) { fn.scale(dst, a, s) }

// AddScaled is dst = a + s * b, rounded once; with dst = a it is the BLAS axpy.
func AddScaled(dst, a []float32, s float32, b []float32) { fn.axpy(dst, a, s, b) }

// Axpy is dst += s * b, rounded once.
func Axpy(dst []float32, s float32, b []float32) { fn.axpy(dst, dst, s, b) }

// AddTo is dst = add + value, or dst = value when add is nil.
func AddTo(dst, add, value []float32) {
	if add == nil {
		copy(dst, value[:len(dst)])
		return
	}
	fn.add(dst, add, value)
}

// Fill sets every element to x.
func Fill(dst []float32, x float32) {
	for i := range dst {
		dst[i] = x
	}
}

// Dot is the sum of a * b, accumulated in float64.
func Dot(a, b []float32) float64 { return fn.dot(a, b, nil) }

// Dot3 is the sum of a * b * c, the product of the first two rounded to float32, accumulated
// in float64.
func Dot3(a, b, c []float32) float64 { return fn.dot3(a, b, c) }

// Sum is the sum of a, accumulated in float64.
func Sum(a []float32) float64 { return fn.sum(a) }

// SumSq is the sum of squares of a, accumulated in float64.
func SumSq(a []float32) float64 { return fn.sumSq(a) }

// AddSquares is acc[i] += a[i]^2, in float64, where a square of a float32 is exact: the result is
// the same everywhere. acc is as long as a rounded up to a multiple of 16, or longer.
func AddSquares(acc []float64, a []float32) { fn.addSquares(acc, a) }

// SumSqDev is the sum of (a - mean)^2, the difference rounded to float32, accumulated in
// float64.
func SumSqDev(a []float32, mean float32) float64 { return fn.sumSqDev(a, mean) }

// Max is the largest element, -Inf for an empty slice. A NaN may or may not be returned.
func Max(a []float32) float32 { return fn.max(a) }

// Exp is dst = e^a within 1 ulp; results below the smallest normal number are 0.
func Exp(dst, a []float32) { fn.exp(dst, a) }

// ExpSub is dst = e^(a - m); it returns the sum of dst, accumulated in float32 in up to 16
// lanes, added as a tree at the end.
func ExpSub(dst, a []float32, m float32) float32 { return fn.expSub(dst, a, m) }

// SumExp is the sum of e^(a - m), accumulated in float64.
func SumExp(a []float32, m float32) float64 { return fn.sumExp(a, m) }

// Sigmoid is dst = 1 / (1 + e^-a).
func Sigmoid(dst, a []float32) { fn.unary[uSigmoid](dst, a) }

// SigmoidBackward is dst = add + dy * sigmoid'(a).
func SigmoidBackward(dst, add, dy, a []float32) { fn.backward[uSigmoid](dst, add, dy, a) }

// Silu is dst = a * sigmoid(a).
func Silu(dst, a []float32) { fn.unary[uSilu](dst, a) }

// SiluBackward is dst = add + dy * silu'(a).
func SiluBackward(dst, add, dy, a []float32) { fn.backward[uSilu](dst, add, dy, a) }

// Tanh is dst = tanh(a) within 2 ulp.
func Tanh(dst, a []float32) { fn.unary[uTanh](dst, a) }

// TanhBackward is dst = add + dy * tanh'(a).
func TanhBackward(dst, add, dy, a []float32) { fn.backward[uTanh](dst, add, dy, a) }

// GeluTanh is dst = a/2 * (1 + tanh(sqrt(2/pi) * (a + 0.044715 a^3))), the tanh form of GELU
// (Hendrycks and Gimpel, arXiv 1606.08415).
func GeluTanh(dst, a []float32) { fn.unary[uGeluTanh](dst, a) }

// GeluTanhBackward is dst = add + dy * gelu'(a) for the tanh form.
func GeluTanhBackward(dst, add, dy, a []float32) { fn.backward[uGeluTanh](dst, add, dy, a) }

// GeluErf is dst = a/2 * (1 + erf(a / sqrt 2)), the exact GELU.
func GeluErf(dst, a []float32) { fn.unary[uGeluErf](dst, a) }

// GeluErfBackward is dst = add + dy * gelu'(a) for the exact form.
func GeluErfBackward(dst, add, dy, a []float32) { fn.backward[uGeluErf](dst, add, dy, a) }

// Relu is dst = max(a, 0).
func Relu(dst, a []float32) { fn.unary[uRelu](dst, a) }

// ReluBackward is dst = add + (dy where a > 0, else 0).
func ReluBackward(dst, add, dy, a []float32) { fn.backward[uRelu](dst, add, dy, a) }

// Relu2 is dst = max(a, 0)^2.
func Relu2(dst, a []float32) { fn.unary[uRelu2](dst, a) }

// Relu2Backward is dst = add + dy * 2 max(a, 0).
func Relu2Backward(dst, add, dy, a []float32) { fn.backward[uRelu2](dst, add, dy, a) }

// SwiGLU is dst = silu(gate) * up.
func SwiGLU(dst, gate, up []float32) { fn.swiglu(dst, gate, up) }

// SwiGLUBackward is dgate = addGate + dy * up * silu'(gate), dup = addUp + dy * silu(gate).
// dgate and dup may be gate, up or dy in place.
func SwiGLUBackward(dgate, dup, addGate, addUp, dy, gate, up []float32) {
	fn.swigluBackward(dgate, dup, addGate, addUp, dy, gate, up)
}

// Softcap is dst = cap * tanh(a / cap).
func Softcap(dst, a []float32, cap float32) { fn.softcap(dst, a, cap) }

// SoftcapBackward is dst = add + dy * (1 - tanh(a / cap)^2), a the uncapped input.
func SoftcapBackward(dst, add, dy, a []float32, cap float32) {
	fn.softcapBackward(dst, add, dy, a, cap)
}

// NormApply is dst = (a - mean) * inv * w + b, for one row of a layer norm (mean 0 and b nil
// for RMSNorm). A nil w stands for ones.
func NormApply(dst, a []float32, mean, inv float32, w, b []float32) {
	fn.normApply(dst, a, mean, inv, w, b)
}

// NormBackward is dst = add + inv * (dy * w - c1 - xhat * c2) with xhat = (a - mean) * inv:
// the input gradient of one row, c1 the row's mean of dy * w (0 for RMSNorm) and c2 its mean
// of dy * w * xhat. A nil w stands for ones.
func NormBackward(dst, add, dy, a, w []float32, mean, inv, c1, c2 float32) {
	fn.normBackward(dst, add, dy, a, w, mean, inv, c1, c2)
}

// NormWeight adds one row's share of the weight gradients: dw += dy * (a - mean) * inv and,
// when db is not nil, db += dy.
func NormWeight(dw, db, dy, a []float32, mean, inv float32) { fn.normWeight(dw, db, dy, a, mean, inv) }

// RotateHalf rotates the pairs (a[i], a[i+n]), n = len(cos), of one head of 2n elements:
// dst[i] = add[i] + a[i] cos[i] - a[i+n] sin[i], dst[i+n] = add[i+n] + a[i+n] cos[i] + a[i] sin[i].
// dst may be a. Negate sin for the inverse rotation.
func RotateHalf(dst, add, a, cos, sin []float32) { fn.rotateHalf(dst, add, a, cos, sin) }

// RotatePairs rotates the pairs (a[2i], a[2i+1]) likewise (interleaved layout).
func RotatePairs(dst, add, a, cos, sin []float32) { fn.rotatePairs(dst, add, a, cos, sin) }

// SoftmaxColumns takes one block of a running softmax over the columns of s: rows of len(m)
// floats, ld apart, len(m) a multiple of 16. Column q's running maximum m[q] (of scaled
// values) and sum l[q] are brought up to date, s becomes e^(scale*s - m), and alpha[q] is the
// factor that everything accumulated under the old maximum takes. -Inf stands for values that
// are not visible; a column that has seen nothing has m = -Inf and l = 0. Rows are added in
// order.
func SoftmaxColumns(s []float32, ld, rows int, m, l, alpha []float32, scale float32) {
	fn.softmaxColumns(s, ld, rows, m, l, alpha, scale)
}

// SoftmaxGrad takes one row of attention's backward, len(p) a multiple of 16. On entry p is
// the products s = q.k and ds the gradients of the probabilities; on return p is the
// probabilities e^(scale*s - lse) and ds is p (ds - delta) scale, the gradient of s. With a
// cap above 0, scale*s is capped first: cap * tanh(scale*s / cap).
func SoftmaxGrad(p, ds []float32, scale, lse, delta, cap float32) {
	fn.softmaxGrad(p, ds, scale, lse, delta, cap)
}

// AdamW are the constants of one AdamW step (Loshchilov and Hutter, arXiv 1711.05101), as
// float32 after their products were formed in float64.
type AdamW struct {
	Clip         float32 // factor on every gradient
	Beta1        float32
	OneMinus1    float32 // 1 - beta1
	Beta2        float32
	OneMinus2    float32 // 1 - beta2
	Decay        float32 // 1 - lr * weight decay, 1 where there is no decay
	Step         float32 // lr / (1 - beta1^t)
	InvSqrtBias2 float32 // 1 / sqrt(1 - beta2^t)
	Eps          float32
}

// AdamWStep updates p, m and v in one pass: g' = g*Clip, m = Beta1 m + OneMinus1 g',
// v = Beta2 v + OneMinus2 g'^2, p = Decay p - Step m / (sqrt(v) InvSqrtBias2 + Eps).
func AdamWStep(p, g, m, v []float32, k *AdamW) { fn.adamw(p, g, m, v, k) }
