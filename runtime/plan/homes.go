package plan

import "github.com/megatrain/mtc/runtime/device"

// DeviceGrads counts the slabs that stream and whose whole gradient waits on the device for its
// update.
func (p *Plan) DeviceGrads() int {
	n := 0
	for i := range p.Slabs {
		if s := &p.Slabs[i]; !s.Resident && s.Grad != NoBuf && p.Arenas[p.Buffers[s.Grad].Arena].Memory == device.DeviceMemory {
			n++
		}
	}
	return n
}

// HalfGrads reports whether gradients of slabs that stream are rounded to bf16.
func (p *Plan) HalfGrads() bool {
	for i := range p.Slabs {
		if p.Slabs[i].HalfGrad {
			return true
		}
	}
	return false
}

// Staged is the host memory through which what slabs have on a GPU is made, saved and read: that of the
// largest buffer of state, or of the two halves of its weights.
func (p *Plan) Staged() (most int64) {
	for i := range p.Slabs {
		s := &p.Slabs[i]
		if !s.Resident {
			continue
		}
		for _, b := range []BufID{s.Weight, s.M, s.V} {
			most = max(most, p.Buffers[b].Bytes+p.Halves(b))
		}
	}
	return most
}

// Halves is the size of the lower halves that belong to a buffer of weights, else 0.
func (p *Plan) Halves(of BufID) int64 {
	for i := range p.Slabs {
		if s := &p.Slabs[i]; s.Weight == of && of != NoBuf {
			return p.Buffers[s.Lo].Bytes
		}
	}
	return 0
}
