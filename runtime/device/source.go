package device

import "sync/atomic"

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

	// Pick, when not nil, stands for this whole source: it returns the one that runs. It is a
	// pure function and allocates nothing.
	Pick func(t Target, a *Args) *Source

	id atomic.Int32
}

// Target is what a source may be picked by: the GPU's compute capability, the shared memory
// that a block may have, and the precision of the program.
type Target struct {
	Major, Minor int
	Shared       int32 // bytes
	F32          bool
}

// For returns the source that runs on t with these arguments.
func (s *Source) For(t Target, a *Args) *Source {
	for s != nil && s.Pick != nil {
		s = s.Pick(t, a)
	}
	return s
}

var sources atomic.Int32

// ID numbers the sources of a process, from 1, in the order in which they are first used: an
// index for what a device keeps about each. A Source is used by its address.
func (s *Source) ID() int32 {
	id := s.id.Load()
	if id == 0 {
		s.id.CompareAndSwap(0, sources.Add(1))
		id = s.id.Load()
	}
	return id
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

// Epilogue is what becomes of a product's sums before they are stored as D.
type Epilogue uint8

// The epilogues. GELU is the tanh form.
const (
	NoEpilogue Epilogue = iota
	Gelu                // D = gelu(sum); Aux, when not nil, gets the sum
	GeluGrad            // D = sum * gelu'(Aux)
)

// Plain is the product without its epilogue: into Aux where that is to hold the sums.
func (m Matmul) Plain() Matmul {
	if m.Epilogue == Gelu && !m.Aux.Nil() {
		m.D = m.Aux
	}
	m.Epilogue, m.Aux = NoEpilogue, Ptr{}
	return m
}

// Matmul is D = op(A) op(B) + C + bias, row-major: op(A) is [M, K], op(B) [K, N], D and C
// [M, N]. With TransA, A is stored [K, M]; with TransB, B is stored [N, K]. The rows of A and of
// D may lie LDA and LDD elements apart, as they are stored; those of B and C are dense.
// C may be nil, equal to D, or another buffer; Bias [N] may be nil.
type Matmul struct {
	M, N, K          int64
	A, B, C, D, Bias Ptr
	LDA, LDD         int64 // 0: dense
	Epilogue         Epilogue
	Aux              Ptr // [M, N] activations, dense: what the epilogue writes or reads besides
	TransA, TransB   bool
	DA, DB, DD       Dtype // C is as D, Bias as B
}
