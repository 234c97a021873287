package qkrope

import "github.com/megatrain/mtc/runtime/device"

// ForwardArgs are the arguments of Forward.
type ForwardArgs struct {
	Q, YQ         device.Ptr // [Rows, Heads*HD]
	K, YK         device.Ptr // [Rows, KV*HD]
	WQ, WK        device.Ptr // [HD], may be nil
	Invq, Invk    device.Ptr // f32 [Rows, Heads], [Rows, KV]; nil without a norm
	CS            device.Ptr // f32 [T, 2, HD/2], T at least Pos + Seq
	Starts        device.Ptr // i32 [Rows]: where the document of a row begins, which is position 0; nil: 0
	Rows          int
	Seq, Pos      int // row r stands at position Pos + r % Seq - Starts[r]
	Heads, KV, HD int
	Interleaved   bool
	Norm          int // None, Before or After
	Eps           float32
}

var forward = device.Kernel{Name: "qk_rope.forward", CPU: forwardCPU, CUDA: forwardCUDA}

// Forward sets YQ and YK to Q and K, turned and normalised, and Invq and Invk to the inverse root
// mean squares of their heads.
func Forward(q device.Queue, a ForwardArgs) {
	q.Launch(&forward, device.Args{
		P: [device.MaxPtrs]device.Ptr{a.Q, a.K, a.YQ, a.YK, a.WQ, a.WK, a.Invq, a.Invk, a.CS, a.Starts},
		I: ints(a.Rows, a.Seq, a.Pos, a.Heads, a.KV, a.HD, a.Interleaved, a.Norm),
		F: [device.MaxFloats]float32{a.Eps},
	})
}

// BackwardArgs are the arguments of Backward.
type BackwardArgs struct {
	Q, DYQ, AddDQ, DQ device.Ptr // [Rows, Heads*HD]; Q and K are not read without a norm
	K, DYK, AddDK, DK device.Ptr // [Rows, KV*HD]
	WQ, WK            device.Ptr // [HD], may be nil
	Invq, Invk        device.Ptr // f32 [Rows, Heads], [Rows, KV]
	AddDWQ, DWQ       device.Ptr // f32 [HD], may be nil
	AddDWK, DWK       device.Ptr
	CS                device.Ptr // f32 [T, 2, HD/2]
	Starts            device.Ptr // i32 [Rows]; nil: 0
	Rows              int
	Seq, Pos          int
	Heads, KV, HD     int
	Interleaved       bool
	Norm              int
	Eps               float32
}

var backward = device.Kernel{Name: "qk_rope.backward", CPU: backwardCPU, CUDA: backwardCUDA}

// Backward adds to AddDQ and AddDK what DYQ and DYK are as gradients of Q and K, and to AddDWQ and
// AddDWK their gradients of the weights.
func Backward(q device.Queue, a BackwardArgs) {
	q.Launch(&backward, device.Args{
		P: [device.MaxPtrs]device.Ptr{
			a.Q, a.K, a.DYQ, a.DYK, a.WQ, a.WK, a.Invq, a.Invk, a.CS, a.Starts,
			a.AddDQ, a.AddDK, a.DQ, a.DK, a.AddDWQ, a.AddDWK, a.DWQ, a.DWK,
		},
		I: ints(a.Rows, a.Seq, a.Pos, a.Heads, a.KV, a.HD, a.Interleaved, a.Norm),
	})
}

func ints(rows, seq, pos, heads, kv, hd int, interleaved bool, norm int) [device.MaxInts]int64 {
	layout := int64(0)
	if interleaved {
		layout = 1
	}
	return [device.MaxInts]int64{int64(rows), int64(seq), int64(pos), int64(heads), int64(kv), int64(hd), layout, int64(norm)}
}
