package plan

import "fmt"

// Sums says what the order of a step's sums follows from, and the rounding of what is added: two plans of a model and a
// batch that say the same train bit for bit alike. Placement, recompute, slots and threads have no part in it.
func (p *Plan) Sums() string {
	s := fmt.Sprintf("%s on %s, micro-batches of %d rows", p.Precision, p.Target, p.Rows)
	if p.HalfGrads() {
		s += ", gradients in bf16"
	}
	if p.Placement == "stream" && p.Groups > 1 {
		s += fmt.Sprintf(", %d groups", p.Groups)
	}
	return s
}
