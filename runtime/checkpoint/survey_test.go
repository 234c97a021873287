package checkpoint

import (
	"encoding/binary"
	"math"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/megatrain/mtc/runtime/plan"
)

// Parameters and rows without a gradient, and values that are no numbers, are found.
func TestSurveyFindsWhatNeverMoved(t *testing.T) {
	m := newMemory(0)
	set := func(buf int, at int, v float32) {
		binary.LittleEndian.PutUint32(m.bufs[plan.BufID(buf)][4*at:], math.Float32bits(v))
	}
	for _, b := range m.bufs {
		clear(b)
	}
	set(3, 4, 1e-9)                  // wte.weight [5, 3]: row 1 has a gradient
	set(6, 0, 2)                     // layer[0].q.weight [4, 4]: row 0
	set(1, 2, float32(math.Inf(-1))) // a weight of wte
	set(5, 3, float32(math.NaN()))   // a moment of q
	dir := t.TempDir()
	path, err := Save(dir, state(2), FromSlabs(m.plan, m.view), 0)
	if err != nil {
		t.Fatal(err)
	}
	c, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	got, err := c.Survey()
	if err != nil {
		t.Fatal(err)
	}
	want := []Health{
		{Name: "wte.weight", Shape: []int64{5, 3}, Moved: true, Idle: 4, NonFinite: 1},
		{Name: "layer[0].q.weight", Shape: []int64{4, 4}, Moved: true, Idle: 3, NonFinite: 1},
		{Name: "layer[0].ln.bias", Shape: []int64{3}},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if err := SaveBest(dir, state(2), FromSlabs(m.plan, m.view)); err != nil {
		t.Fatal(err)
	}
	b, err := Open(filepath.Join(dir, BestFolder))
	if err != nil {
		t.Fatal(err)
	}
	_, err = b.Survey()
	wantFault(t, "weights alone", err, "MT0620", "optimizer")
}
