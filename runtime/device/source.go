package device

// Source is a kernel's CUDA C++ and how to launch it. The text defines
//
//	extern "C" __global__ void Func(Args a)
//
// where Args, in mtc.cuh, holds the resolved addresses p[MaxPtrs], the numbers i[MaxInts] and
// f[MaxFloats], and work, scratch memory of at least Work bytes shared by the launches of one
// queue. Nothing in a result may depend on the order in which blocks run.
type Source struct {
	Text string
	Func string
	Grid func(a *Args) Grid
	// Spec gives constants that are compiled in, as the macros S0 to S3 (a head dim, a flag);
	// nil: none. Each combination that occurs is a kernel of its own.
	Spec func(a *Args) [4]int64
	Work func(a *Args) int64 // nil: no scratch
	Next *Source             // runs after it with the same Args and the same scratch: the second phase of a reduction
}

// Grid is the shape of a launch: blocks, threads of a block (one-dimensional), and dynamic
// shared memory in bytes.
type Grid struct {
	X, Y, Z int32
	Threads int32
	Shared  int32
}

// Dtype tells what a pointer of a Matmul holds. The element type follows from the precision
// of the program: activations and weights bf16 or f32, weight gradients f32.
type Dtype uint8

// The kinds of operands.
const (
	ActDtype Dtype = iota
	WeightDtype
	GradDtype // a weight gradient
)

// Matmul is D = op(A) op(B) + C + bias, row-major: op(A) is [M, K], op(B) [K, N], D and C
// [M, N]. With TransA, A is stored [K, M]; with TransB, B is stored [N, K]. Rows are dense.
// C may be nil, equal to D, or another buffer; Bias [N] may be nil.
type Matmul struct {
	M, N, K          int64
	A, B, C, D, Bias Ptr
	TransA, TransB   bool
	DA, DB, DD       Dtype // C is as D, Bias as B
}
