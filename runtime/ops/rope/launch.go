package rope

import "github.com/megatrain/mtc/runtime/device"

// ForwardArgs are the arguments of Forward.
type ForwardArgs struct {
	X, Y        device.Ptr // [Rows, D]
	CS          device.Ptr // [T, 2, Dims/2], T at least Pos + Seq
	Starts      device.Ptr // i32 [Rows]: where the document of a row begins, which is position 0; nil: 0
	Rows        int
	Seq, Pos    int // row r stands at position Pos + r % Seq - Starts[r]
	D, HD, Dims int // of each head the first Dims elements turn, 0: all
	Interleaved bool
}

var forward = device.Kernel{Name: "rope.forward", CPU: forwardCPU, CUDA: forwardCUDA}

// Forward sets Y to X with the pairs of every head turned by its angle.
func Forward(q device.Queue, a ForwardArgs) {
	q.Launch(&forward, device.Args{
		P: [device.MaxPtrs]device.Ptr{a.X, a.CS, {}, a.Y, a.Starts},
		I: ints(a.Rows, a.Seq, a.Pos, a.D, a.HD, a.Dims, a.Interleaved),
	})
}

// BackwardArgs are the arguments of Backward.
type BackwardArgs struct {
	CS          device.Ptr // [T, 2, Dims/2]
	DY          device.Ptr // [Rows, D]
	AddDX, DX   device.Ptr // [Rows, D]
	Starts      device.Ptr // i32 [Rows]; nil: 0
	Rows        int
	Seq, Pos    int
	D, HD, Dims int // of each head the first Dims elements turn, 0: all
	Interleaved bool
}

var backward = device.Kernel{Name: "rope.backward", CPU: backwardCPU, CUDA: backwardCUDA}

// Backward sets DX = AddDX + DY with the pairs of every head turned back.
func Backward(q device.Queue, a BackwardArgs) {
	q.Launch(&backward, device.Args{
		P: [device.MaxPtrs]device.Ptr{a.DY, a.CS, a.AddDX, a.DX, a.Starts},
		I: ints(a.Rows, a.Seq, a.Pos, a.D, a.HD, a.Dims, a.Interleaved),
	})
}

func ints(rows, seq, pos, d, hd, dims int, interleaved bool) [device.MaxInts]int64 {
	if dims == 0 {
		dims = hd
	}
	layout := int64(0)
	if interleaved {
		layout = 1
	}
	return [device.MaxInts]int64{int64(rows), int64(seq), int64(pos), int64(d), int64(hd), layout, int64(dims)}
}
