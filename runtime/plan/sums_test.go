package plan

import "testing"

// TestSums: what decides the order of sums is told, and what does not is not.
func TestSums(t *testing.T) {
	base := Plan{Precision: "f32", Target: "cpu", Placement: "resident", Rows: 4, Micros: 2, Groups: 2}
	for _, c := range []struct {
		name string
		edit func(p *Plan)
		same bool
	}{
		{"nothing", func(*Plan) {}, true},
		{"groups of a resident plan", func(p *Plan) { p.Groups = 1 }, true},
		{"a stream of one group", func(p *Plan) { p.Placement, p.Groups = "stream", 1 }, true},
		{"slots", func(p *Plan) { p.Slots = 3 }, true},
		{"groups of a stream", func(p *Plan) { p.Placement = "stream" }, false},
		{"micro-batches", func(p *Plan) { p.Rows = 2 }, false},
		{"precision", func(p *Plan) { p.Precision = "bf16" }, false},
		{"target", func(p *Plan) { p.Target = "cuda" }, false},
		{"rounded gradients", func(p *Plan) { p.Slabs = []Slab{{HalfGrad: true}} }, false},
	} {
		p := base
		c.edit(&p)
		if same := p.Sums() == base.Sums(); same != c.same {
			t.Errorf("%s: %s beside %s", c.name, p.Sums(), base.Sums())
		}
	}
}
