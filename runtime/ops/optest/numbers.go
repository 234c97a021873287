package optest

import (
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"math"
	"os"
	"slices"
	"testing"

	"github.com/megatrain/mtc/runtime/op"
)

// Compare checks got against want within tol of want's largest element, and logs the largest
// difference and its share of that allowance.
func Compare(t testing.TB, name string, got []float32, want []float64, tol float64) {
	t.Helper()
	compare(t, name, got, want, tol, 0)
}

// compare is Compare where the largest element counts as scale at least.
func compare(t testing.TB, name string, got []float32, want []float64, tol, scale float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%s: %d elements, want %d", name, len(got), len(want))
		return
	}
	var top, worst float64
	at := 0
	for i, w := range want {
		top = math.Max(top, math.Abs(w))
		d := math.Abs(float64(got[i]) - w)
		if math.IsNaN(d) && !(math.IsNaN(w) && got[i] != got[i]) {
			d = math.Inf(1)
		}
		if d > worst {
			worst, at = d, i
		}
	}
	allowed := tol * max(top, scale, 1e-30)
	t.Logf("%-10s largest difference %.2g, %.0f%% of the allowance", name, worst, 100*worst/allowed)
	if worst > allowed {
		t.Errorf("%s[%d] = %v, want %v: difference %.3g, allowed %.3g", name, at, got[at], want[at], worst, allowed)
	}
}

// same checks equality to the bit.
func same(t testing.TB, name string, got, want []float32) {
	t.Helper()
	for i := range want {
		if math.Float32bits(got[i]) != math.Float32bits(want[i]) {
			t.Errorf("%s[%d] = %v, want %v to the bit", name, i, got[i], want[i])
			return
		}
	}
}

func wide(v []float32) []float64 {
	w := make([]float64, len(v))
	for i, x := range v {
		w[i] = float64(x)
	}
	return w
}

func (s *setup) tol() float64 {
	if s.good.Tol != 0 {
		return s.good.Tol
	}
	return DefaultTol
}

func (s *setup) values() Values {
	v := Values{F: map[string][]float64{}, I: map[string][]int32{}, Batch: int(s.sizes.Batch), Seq: int(s.sizes.Seq)}
	for name, x := range s.data {
		switch x := x.(type) {
		case []float32:
			v.F[name] = wide(x)
		case []int32:
			v.I[name] = x
		}
	}
	return v
}

// reference compares y with the float64 reference, and every gradient of sum(y * dy) with
// the reference's central differences.
func (s *setup) reference(t testing.TB) {
	got := s.run(t, 2)
	v := s.values()
	Compare(t, "y", got["y"], s.good.Ref(v), s.tol())
	loss := func() (sum float64) {
		for i, y := range s.good.Ref(v) {
			sum += y * v.F["d.y"][i]
		}
		return sum
	}
	for _, name := range s.differentiable() {
		x := v.F[name]
		want := make([]float64, len(x))
		for i := range x {
			const h = 1e-5
			at := x[i]
			x[i] = at + h
			up := loss()
			x[i] = at - h
			want[i] = (up - loss()) / (2 * h)
			x[i] = at
		}
		Compare(t, op.Grad(name), got[op.Grad(name)], want, s.tol())
	}
}

// torchCase is one call as PyTorch computed it (in float64, from float32 inputs).
type torchCase struct {
	Ints map[string][]int32   `json:"ints"`
	In   map[string][]float32 `json:"in"` // inputs, weights and "d.y"
	Out  map[string][]float64 `json:"out"`
}

func readTorch(t *testing.T) map[string]torchCase {
	t.Helper()
	text, err := os.ReadFile("testdata/torch.json")
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]torchCase{}
	if err := json.Unmarshal(text, &cases); err != nil {
		t.Fatal(err)
	}
	return cases
}

// torch compares y and every gradient with PyTorch's.
func (s *setup) torch(t testing.TB, cases map[string]torchCase) {
	f, ok := cases[s.good.Name]
	if !ok {
		t.Fatalf("testdata/torch.json has no %q; tools/fixtures/ops.py makes it", s.good.Name)
	}
	r := *s
	r.data = maps.Clone(s.data)
	for name, v := range f.In {
		if want := s.data[name].([]float32); len(v) != len(want) {
			t.Fatalf("the fixture's %s has %d elements, the call's %d", name, len(v), len(want))
		}
		r.data[name] = v
	}
	for name, v := range f.Ints {
		r.data[name] = v
	}
	got := r.run(t, 2)
	for _, name := range slices.Sorted(maps.Keys(f.Out)) {
		Compare(t, name, got[name], f.Out[name], s.tol())
	}
	for _, name := range s.differentiable() {
		if _, ok := f.Out[op.Grad(name)]; !ok {
			t.Errorf("the fixture lacks the gradient of %s", name)
		}
	}
}
