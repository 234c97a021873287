package plan

// In bf16 the f32 master of a weight is kept as two halves of 16 bits:
//
//	bits(master) = hi << 16 + lo        lo signed, modulo 2^32
//
// hi is the bfloat16 nearest to the master, which is what the device computes with; lo is the
// rest, which is also the lower half of the master's bits. Of two bfloat16 equally near, hi is
// the one with the larger magnitude: with ties to even, the masters half way below and half
// way above an even hi would both have lo = -32768 and could not be told apart.

// Bf16 reports whether the device computes in bf16, with split masters.
func (p *Plan) Bf16() bool { return p.Precision == "bf16" }

// WeightSize is the bytes of a weight on the device.
func (p *Plan) WeightSize() int64 {
	if p.Bf16() {
		return 2
	}
	return 4
}
