package optim

import (
	"math"

	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/plan"
	"github.com/megatrain/mtc/runtime/vec"
)

// AdamWSplitArgs are AdamWArgs with the weights as a split master: Hi holds Elems bf16, which
// the GPU computes with, and Lo Elems int16, such that
//
//	bits(master) = (Hi << 16) + Lo
//
// Hi is the master rounded to nearest, ties away from 0 (a Lo of +2^15 would not fit). Elems
// is even.
type AdamWSplitArgs struct {
	Hi, Lo, Grad, M, V, Scalars device.Ptr
	Elems, Decay                int64
	Beta1, Beta2, Eps           float64
	WeightDecay                 float64
}

// AdamWSplit launches AdamW on the exact f32 master.
func AdamWSplit(q device.Queue, a AdamWSplitArgs) {
	var args device.Args
	args.P = [device.MaxPtrs]device.Ptr{a.Hi, a.Grad, a.M, a.V, a.Scalars, a.Lo}
	args.I = [device.MaxInts]int64{a.Elems, a.Decay,
		bits(a.Beta1), bits(a.Beta2), bits(a.Eps), bits(a.WeightDecay)}
	q.Launch(&splitKernel, args)
}

var splitKernel = device.Kernel{Name: "optim.AdamWSplit", CPU: splitCPU, CUDA: splitCUDA}

// SplitMaster returns the parts of a master.
func SplitMaster(x float32) (hi uint16, lo int16) {
	b := math.Float32bits(x)
	return uint16((b + 1<<15) >> 16), int16(b)
}

// JoinMaster is the master of its parts.
func JoinMaster(hi uint16, lo int16) float32 {
	return math.Float32frombits(uint32(hi)<<16 + uint32(int32(lo)))
}

// splitBlock is the elements that are joined at once: they stay in the first-level cache.
const splitBlock = 1024

func splitCPU(c device.CPU, a *device.Args) {
	s := c.F64(a.P[4], plan.NumScalars)
	if s[plan.ScalarSkip] != 0 {
		return
	}
	n, decay := a.I[0], a.I[1]
	k, decayed := adamwCoefs(s, a)
	hi, lo := c.I32(a.P[0], n/2), c.I32(a.P[5], n/2)
	g, m, v := c.F32(a.P[1], n), c.F32(a.P[2], n), c.F32(a.P[3], n)
	c.Parallel(n/2, adamwGrain/2, func(from, to int64) {
		var w [splitBlock]float32
		for at := 2 * from; at < 2*to; at += splitBlock {
			end := min(at+splitBlock, 2*to)
			for i := at; i < end; i += 2 {
				h, l := uint32(hi[i/2]), uint32(lo[i/2])
				w[i-at] = JoinMaster(uint16(h), int16(l))
				w[i-at+1] = JoinMaster(uint16(h>>16), int16(l>>16))
			}
			mid := max(at, min(end, decay))
			if at < mid {
				vec.AdamWStep(w[:mid-at], g[at:mid], m[at:mid], v[at:mid], &decayed)
			}
			if mid < end {
				vec.AdamWStep(w[mid-at:end-at], g[mid:end], m[mid:end], v[mid:end], &k)
			}
			for i := at; i < end; i += 2 {
				h0, l0 := SplitMaster(w[i-at])
				h1, l1 := SplitMaster(w[i-at+1])
				hi[i/2] = int32(uint32(h0) | uint32(h1)<<16)
				lo[i/2] = int32(uint32(uint16(l0)) | uint32(uint16(l1))<<16)
			}
		}
	})
}
