package grouped

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/ops/moe"
	"github.com/megatrain/mtc/runtime/ops/optest"
)

// normCase is a norm over the rows of experts; counts are the rows of each, of n tokens with slots rows each.
type normCase struct {
	n, slots, d, per int
	counts           []int
	center           bool
	weight, bias     bool
	eps              float32
}

func (c *normCase) used() (n int) {
	for _, x := range c.counts {
		n += x
	}
	return n
}

// routing is the words of a routing that norms read: where experts begin, and the expert of each row.
func (c *normCase) routing() []int32 {
	e := int64(len(c.counts))
	r := moe.RoutingOf(int64(c.n), e, int64(c.slots))
	w := make([]int32, r.Words)
	row := int64(0)
	for i, k := range c.counts {
		w[i] = int32(row)
		for range k {
			w[r.Expert+row] = int32(i)
			row++
		}
	}
	w[e] = int32(row)
	for ; row < int64(c.n*c.slots); row++ {
		w[r.Expert+row] = math.MinInt32 // undefined
	}
	return w
}

// normValues are a norm's operands over the rows in use; those of experts stand one after another.
type normValues struct{ X, DY, Weight, Bias, AddDX, AddDWeight, AddDBias []float64 }

func (c *normCase) draw(seed uint64) *normValues {
	rnd := rand.New(rand.NewPCG(seed, 1))
	draw := func(n int, at, by float64) []float64 {
		v := make([]float32, n)
		for i := range v {
			v[i] = float32(at + by*rnd.NormFloat64())
		}
		return wide(optest.RoundBF16(v))
	}
	rows, e := c.used()*c.d, len(c.counts)
	v := &normValues{X: draw(rows, 0.3, 1), DY: draw(rows, 0, 1), AddDX: draw(rows, 0, 1)}
	if c.weight {
		v.Weight, v.AddDWeight = draw(e*c.per, 1, 0.3), draw(e*c.per, 0, 1)
	}
	if c.bias {
		v.Bias, v.AddDBias = draw(e*c.d, 0, 0.3), draw(e*c.d, 0, 1)
	}
	return v
}

// normResult is what the launches made.
type normResult struct{ Y, DX, DWeight, DBias []float64 }

// run runs forward and backward on a device; gradients are added to where add is set. inPlace puts dx where dy is.
func (c *normCase) run(m *optest.Machine, v *normValues, add, inPlace bool) *normResult {
	rows, heads, e := c.n*c.slots, c.d/c.per, len(c.counts)
	act := func(x []float64) device.Ptr { // rows in use, and garbage behind them
		f := make([]float32, rows*c.d)
		for i := range f {
			f[i] = float32(math.NaN())
		}
		copy(f, narrow(x))
		return m.Act(f...)
	}
	given := func(x []float64) device.Ptr {
		if x == nil {
			return device.Ptr{}
		}
		return m.Act(narrow(x)...)
	}
	sum := func(x []float64, n int) (to, from device.Ptr) {
		switch {
		case x == nil:
			return
		case add:
			p := m.F32(narrow(x)...)
			return p, p
		}
		return m.Bytes(int64(4 * n)), device.Ptr{}
	}
	routing, x, dy := m.I32(c.routing()...), act(v.X), act(v.DY)
	weight, bias, y, inv := given(v.Weight), given(v.Bias), act(nil), m.Bytes(int64(4*rows*heads))
	var center device.Ptr
	if c.center {
		center = m.Bytes(int64(4 * rows * heads))
	}
	dw, addW := sum(v.AddDWeight, e*c.per)
	db, addB := sum(v.AddDBias, e*c.d)
	dx, addX := act(v.AddDX), device.Ptr{}
	switch {
	case add:
		addX = dx
	case inPlace:
		dx = dy
	}
	Norm(m.Queue, NormArgs{X: x, Weight: weight, Bias: bias, Routing: routing, Y: y, Center: center, Inv: inv, Rows: c.n, D: c.d, Per: c.per, Experts: e, Slots: c.slots, Eps: c.eps})
	if c.weight || c.bias {
		NormBackwardWeight(m.Queue, NormBackwardWeightArgs{X: x, DY: dy, Routing: routing, Center: center, Inv: inv,
			AddDWeight: addW, DWeight: dw, AddDBias: addB, DBias: db, Rows: c.n, D: c.d, Per: c.per, Experts: e, Slots: c.slots})
	}
	NormBackwardInput(m.Queue, NormBackwardInputArgs{X: x, DY: dy, Weight: weight, Routing: routing, Center: center, Inv: inv, AddDX: addX, DX: dx,
		Rows: c.n, D: c.d, Per: c.per, Experts: e, Slots: c.slots})
	m.Sync()
	used := int64(c.used() * c.d)
	out := &normResult{Y: wide(m.ReadAct(y, used)), DX: wide(m.ReadAct(dx, used))}
	if c.weight {
		out.DWeight = wide(m.ReadF32(dw, int64(e*c.per)))
	}
	if c.bias {
		out.DBias = wide(m.ReadF32(db, int64(e*c.d)))
	}
	return out
}

// forward is the norm in float64.
func (c *normCase) forward(v *normValues) []float64 {
	y := make([]float64, len(v.X))
	row := 0
	for e, k := range c.counts {
		for range k {
			for at := 0; at < c.d; at += c.per {
				x := v.X[row*c.d+at:][:c.per]
				var mean, dev float64
				for _, z := range x {
					mean += z / float64(c.per)
				}
				if !c.center {
					mean = 0
				}
				for _, z := range x {
					dev += (z - mean) * (z - mean) / float64(c.per)
				}
				inv := 1 / math.Sqrt(dev+float64(c.eps))
				for i, z := range x {
					z = (z - mean) * inv
					if v.Weight != nil {
						z *= v.Weight[e*c.per+i]
					}
					if v.Bias != nil {
						z += v.Bias[e*c.d+at+i]
					}
					y[row*c.d+at+i] = z
				}
			}
			row++
		}
	}
	return y
}

// quotients are the gradients of the sum of y * dy, as difference quotients in float64.
func (c *normCase) quotients(v *normValues) *normResult {
	loss := func() (s float64) {
		for i, y := range c.forward(v) {
			s += y * v.DY[i]
		}
		return s
	}
	grad := func(of []float64) []float64 {
		if of == nil {
			return nil
		}
		out := make([]float64, len(of))
		for i, x := range of {
			const eps = 1e-5
			of[i] = x + eps
			up := loss()
			of[i] = x - eps
			out[i] = (up - loss()) / (2 * eps)
			of[i] = x
		}
		return out
	}
	return &normResult{Y: c.forward(v), DX: grad(v.X), DWeight: grad(v.Weight), DBias: grad(v.Bias)}
}

func (r *normResult) each(f func(name string, v []float64)) {
	f("y", r.Y)
	f("d.x", r.DX)
	f("d.weight", r.DWeight)
	f("d.bias", r.DBias)
}

// near checks results against others, by the largest of each.
func (r *normResult) near(t *testing.T, want *normResult, limit float64) {
	t.Helper()
	other := map[string][]float64{}
	want.each(func(name string, v []float64) { other[name] = v })
	r.each(func(name string, v []float64) {
		if len(v) != len(other[name]) {
			t.Fatalf("%s has %d elements, not %d", name, len(v), len(other[name]))
		}
		scale := 1.0
		for _, x := range other[name] {
			scale = max(scale, math.Abs(x))
		}
		for i, x := range other[name] {
			if d := math.Abs(v[i] - x); !(d <= limit*scale) {
				t.Errorf("%s[%d] = %v, want %v", name, i, v[i], x)
				return
			}
		}
	})
}

var normCases = map[string]normCase{
	"rms":                 {n: 9, slots: 2, d: 12, per: 12, counts: []int{3, 0, 7, 1}, weight: true, eps: 1e-3},
	"rms of heads":        {n: 9, slots: 2, d: 12, per: 4, counts: []int{3, 0, 7, 1}, weight: true, eps: 1e-3},
	"rms without weight":  {n: 9, slots: 2, d: 12, per: 6, counts: []int{3, 0, 7, 1}, eps: 1e-3},
	"layer":               {n: 9, slots: 2, d: 8, per: 8, counts: []int{2, 9, 0}, center: true, weight: true, bias: true, eps: 1e-5},
	"layer without bias":  {n: 9, slots: 2, d: 8, per: 8, counts: []int{0, 18}, center: true, weight: true, eps: 1e-5},
	"layer, bias alone":   {n: 9, slots: 2, d: 7, per: 7, counts: []int{5, 5}, center: true, bias: true, eps: 1e-5},
	"layer without both":  {n: 9, slots: 2, d: 7, per: 7, counts: []int{5, 5}, center: true, eps: 1e-5},
	"no row at all":       {n: 9, slots: 2, d: 8, per: 8, counts: []int{0, 0}, center: true, weight: true, bias: true, eps: 1e-5},
	"one expert, one row": {n: 1, slots: 1, d: 8, per: 8, counts: []int{1}, weight: true, eps: 1e-5},
}

// TestNormGradientsAreDifferenceQuotients: with experts that have no row, and garbage behind the rows in use.
func TestNormGradientsAreDifferenceQuotients(t *testing.T) {
	for name, c := range normCases {
		t.Run(name, func(t *testing.T) {
			v := c.draw(3)
			got := c.run(optest.NewMachine(t, 2), v, false, false)
			got.near(t, c.quotients(v), 1e-5)
			// Added to what was there, and in place of dy.
			sum := c.run(optest.NewMachine(t, 1), v, true, false)
			sum.DX, sum.DWeight, sum.DBias = less(sum.DX, v.AddDX), less(sum.DWeight, v.AddDWeight), less(sum.DBias, v.AddDBias)
			sum.near(t, got, 1e-5)
			place := c.run(optest.NewMachine(t, 3), v, false, true)
			place.each(func(name string, v []float64) {
				got.each(func(other string, w []float64) {
					if name == other && !slices.Equal(v, w) {
						t.Errorf("%s has other bits in place, or with other threads", name)
					}
				})
			})
		})
	}
}

// TestNormRowsKeepTheirBits: whatever the number of rows, and of slots.
func TestNormRowsKeepTheirBits(t *testing.T) {
	c := normCase{n: 300, slots: 2, d: 40, per: 40, counts: []int{130, 400}, center: true, weight: true, bias: true, eps: 1e-5}
	v := c.draw(4)
	whole := c.run(optest.NewMachine(t, 2), v, false, false)
	few := c
	few.n, few.slots, few.counts = 5, 3, []int{2, 9}
	w := *v
	at := func(x []float64) []float64 { return slices.Concat(x[128*c.d:130*c.d], x[130*c.d:139*c.d]) }
	w.X, w.DY, w.AddDX = at(v.X), at(v.DY), at(v.AddDX)
	got := few.run(optest.NewMachine(t, 1), &w, false, false)
	if !slices.Equal(got.Y, at(whole.Y)) || !slices.Equal(got.DX, at(whole.DX)) {
		t.Error("a row's result depends on the others")
	}
}

// TestNormAgainstPyTorch: testdata/norm.json is made by tools/fixtures/moenorm.py.
func TestNormAgainstPyTorch(t *testing.T) {
	text, err := os.ReadFile("testdata/norm.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Name         string
		Counts       []int
		D, Per       int
		Center       bool
		Eps          float32
		X, DY        []float64
		Weight, Bias []float64
		Want         normResult
	}
	if err := json.Unmarshal(text, &cases); err != nil {
		t.Fatal(err)
	}
	if len(cases) < 3 {
		t.Fatal("the fixture is not whole")
	}
	for _, f := range cases {
		c := normCase{d: f.D, per: f.Per, counts: f.Counts, center: f.Center, weight: f.Weight != nil, bias: f.Bias != nil, eps: f.Eps}
		c.n, c.slots = c.used(), 2
		v := &normValues{X: f.X, DY: f.DY, Weight: f.Weight, Bias: f.Bias, AddDX: make([]float64, len(f.X)), AddDWeight: zeros(f.Weight), AddDBias: zeros(f.Bias)}
		t.Run(f.Name, func(t *testing.T) {
			c.run(optest.NewMachine(t, 2), v, false, false).near(t, &f.Want, 1e-5)
		})
	}
}

// TestNormOnGPU: as on a CPU, at widths that fill vectors and at others.
func TestNormOnGPU(t *testing.T) {
	cases := map[string]normCase{
		"heads of 128":   {n: 300, slots: 2, d: 512, per: 128, counts: []int{99, 0, 333, 1}, weight: true, eps: 1e-5},
		"a warp":         {n: 200, slots: 2, d: 768, per: 768, counts: []int{99, 200}, weight: true, eps: 1e-5},
		"a warp, layer":  {n: 200, slots: 2, d: 768, per: 768, counts: []int{99, 200}, center: true, weight: true, bias: true, eps: 1e-5},
		"a block":        {n: 40, slots: 2, d: 1536, per: 1536, counts: []int{9, 0, 70}, weight: true, eps: 1e-5},
		"a block, layer": {n: 40, slots: 2, d: 3072, per: 3072, counts: []int{9, 0, 70}, center: true, weight: true, bias: true, eps: 1e-5},
		"odd":            {n: 50, slots: 2, d: 1001, per: 1001, counts: []int{9, 0, 70}, center: true, weight: true, bias: true, eps: 1e-5},
	}
	for name, c := range normCases {
		cases[name] = c
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			optest.OnGPU(t, func(t *testing.T, f32 bool) {
				limit := 1e-5
				if !f32 {
					limit = 1e-2
				}
				for _, add := range []bool{false, true} {
					v := c.draw(5)
					got := c.run(optest.GPU(t, f32), v, add, false)
					got.near(t, c.run(optest.NewMachine(t, 1), v, add, false), limit)
					again := c.run(optest.GPU(t, f32), v, add, !add)
					if !slices.Equal(got.DWeight, again.DWeight) || !slices.Equal(got.DBias, again.DBias) || !slices.Equal(got.DX, again.DX) {
						t.Error("a second run has other bits")
					}
				}
			})
		})
	}
}

func wide(v []float32) []float64 {
	out := make([]float64, len(v))
	for i, x := range v {
		out[i] = float64(x)
	}
	return out
}

func narrow(v []float64) []float32 {
	out := make([]float32, len(v))
	for i, x := range v {
		out[i] = float32(x)
	}
	return out
}

func less(a, b []float64) []float64 {
	out := slices.Clone(a)
	for i := range out {
		out[i] -= b[i]
	}
	return out
}

func zeros(v []float64) []float64 {
	if v == nil {
		return nil
	}
	return make([]float64, len(v))
}
