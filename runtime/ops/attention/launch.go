package attention

import "github.com/megatrain/mtc/runtime/device"

// ForwardArgs: Y [B, T, H*hd] = attention of Q on K and V, Lse [B, T, H] = log of each row's
// sum of exponentials. Window 0 and Cap 0 are none.
type ForwardArgs struct {
	Q, K, V, Y, Lse       device.Ptr
	Starts                device.Ptr // i32 [B, T]; nil: a row is one document
	Batch, Seq, Pos       int
	Heads, KV, HD, Window int
	Causal                bool
	Cap, Scale            float32
}

// BackwardArgs: DQ = AddDQ + dL/dq and likewise DK and DV.
type BackwardArgs struct {
	Q, K, V, Y, Lse, DY   device.Ptr
	DQ, DK, DV            device.Ptr
	AddDQ, AddDK, AddDV   device.Ptr
	Starts                device.Ptr // i32 [B, T]; nil: a row is one document
	Batch, Seq, Pos       int
	Heads, KV, HD, Window int
	Causal                bool
	Cap, Scale            float32
}

// ForwardCachedArgs: Batch*Seq new rows of one sequence, the first at position Pos. Their
// keys and values are stored in Kcache and Vcache [seq, KV*hd], whose earlier rows are
// filled; Y's rows have the bits that Forward gives on the whole sequence.
type ForwardCachedArgs struct {
	Q, K, V, Kcache, Vcache, Y device.Ptr
	Batch, Seq, Pos            int
	Heads, KV, HD, Window      int
	Causal                     bool
	Cap, Scale                 float32
}

var (
	forwardKernel  = device.Kernel{Name: "attention.Forward", CPU: forwardCPU, CUDA: forwardCUDA}
	backwardKernel = device.Kernel{Name: "attention.Backward", CPU: backwardCPU, CUDA: backwardCUDA}
	cachedKernel   = device.Kernel{Name: "attention.ForwardCached", CPU: cachedCPU, CUDA: cachedCUDA}
)

// Forward launches the forward pass over whole sequences.
func Forward(q device.Queue, a ForwardArgs) {
	args := pack(a.Batch, a.Seq, a.Pos, a.Heads, a.KV, a.HD, a.Window, a.Causal, a.Cap, a.Scale)
	args.P = [device.MaxPtrs]device.Ptr{a.Q, a.K, a.V, a.Y, a.Lse, a.Starts}
	apart(&args, a.Starts)
	q.Launch(&forwardKernel, args)
}

// Backward launches the gradients of q, k and v.
func Backward(q device.Queue, a BackwardArgs) {
	args := pack(a.Batch, a.Seq, a.Pos, a.Heads, a.KV, a.HD, a.Window, a.Causal, a.Cap, a.Scale)
	args.P = [device.MaxPtrs]device.Ptr{
		a.Q, a.K, a.V, a.Y, a.Lse, a.DY, a.DQ, a.DK, a.DV, a.AddDQ, a.AddDK, a.AddDV, a.Starts}
	apart(&args, a.Starts)
	q.Launch(&backwardKernel, args)
}

// ForwardCached launches the forward pass of new rows in generation.
func ForwardCached(q device.Queue, a ForwardCachedArgs) {
	args := pack(a.Batch, a.Seq, a.Pos, a.Heads, a.KV, a.HD, a.Window, a.Causal, a.Cap, a.Scale)
	args.P = [device.MaxPtrs]device.Ptr{a.Q, a.K, a.V, a.Kcache, a.Vcache, a.Y}
	q.Launch(&cachedKernel, args)
}

func pack(batch, seq, pos, heads, kv, hd, window int, causal bool, cap, scale float32) device.Args {
	var a device.Args
	a.I = [device.MaxInts]int64{
		int64(batch), int64(seq), int64(pos), int64(heads), int64(kv), int64(hd), int64(window)}
	if causal {
		a.I[7] = 1
	}
	a.F = [device.MaxFloats]float32{cap, scale}
	return a
}

// apart says in the constants whether documents share rows, for the choice of kernels.
func apart(a *device.Args, starts device.Ptr) {
	if !starts.Nil() {
		a.I[8] = 1
	}
}

// geom is the unpacked constants of a launch.
type geom struct {
	batch, seq, pos       int
	heads, kv, hd, window int
	causal                bool
	cap, scale            float32
}

func unpack(a *device.Args) geom {
	n := func(i int) int { return int(a.I[i]) }
	return geom{n(0), n(1), n(2), n(3), n(4), n(5), n(6), a.I[7] != 0, a.F[0], a.F[1]}
}

// visible is the half-open range of the keys that the query at position t sees among n.
func (g *geom) visible(t, n int) (lo, hi int) {
	lo, hi = 0, n
	if g.causal {
		hi = t + 1
	}
	if g.window > 0 {
		lo = max(0, t-g.window+1)
		hi = min(hi, t+g.window)
	}
	return lo, hi
}
