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
