package op

import (
	"testing"

	"github.com/megatrain/mtc/runtime/tensor"
)

func TestField(t *testing.T) {
	for operand, want := range map[string]string{
		"x": "X", "q": "Q", "cs": "CS", "up": "UP", "ids": "Ids", "inv": "Inv", "weight": "Weight", "kcache": "Kcache",
		"d.x": "DX", "d.up": "DUP", "d.gate": "DGate", "d.weight": "DWeight",
	} {
		if got := Field(operand); got != want {
			t.Errorf("Field(%q) = %q, want %q", operand, got, want)
		}
	}
}

// sample is a call with an operand of every kind, B and T known for a step of 8 sequences.
func sample() *Call {
	rows := tensor.Shape{{Name: "B", N: 8}, {Name: "T", N: 16}}
	return &Call{
		Inputs:  []string{"x"},
		In:      []tensor.Type{{Shape: append(rows[:2:2], tensor.Dim{N: 4})}},
		Out:     tensor.Type{DType: tensor.BF16, Shape: append(rows[:2:2], tensor.Dim{N: 6})},
		Saved:   []Operand{{Name: "inv", Type: tensor.Type{Shape: rows}}},
		Weights: []Weight{{Name: "weight", Shape: tensor.Shape{{N: 6}, {N: 4}}}},
		Tables:  []Table{{Operand: "cs", Type: tensor.Type{Shape: tensor.Shape{rows[1], {N: 2}}}}},
		State:   []Operand{{Name: "kcache", Type: tensor.Type{Shape: tensor.Shape{rows[1], {N: 4}}}}},
	}
}

// TestMoved: a launch over 2 sequences counts those, not the step's 8.
func TestMoved(t *testing.T) {
	c, s := sample(), Sizes{Batch: 2, Seq: 16}
	for operand, want := range map[string]int64{
		"x": 2 * 16 * 4 * 4, "y": 2 * 16 * 6 * 2, "d.y": 2 * 16 * 6 * 2, "inv": 2 * 16 * 4,
		"weight": 6 * 4 * 4, "d.weight": 6 * 4 * 4, "cs": 16 * 2 * 4, "kcache": 16 * 4 * 4, "bias": 0, "d.bias": 0,
	} {
		if got := c.Moved(s, operand); got != want {
			t.Errorf("%s moves %d bytes, want %d", operand, got, want)
		}
	}
	if got, want := c.Moved(s, "x", "x", "weight"), int64(512+96); got != want {
		t.Errorf("an operand named twice: %d bytes, want %d", got, want)
	}
	l := WithCost(Launch{Reads: []string{"x", "weight", "bias"}, Writes: []string{"inv"}}, PerElement(3))
	if got, want := l.Cost(c, s), (Cost{FLOPs: 3 * 128, Bytes: 512 + 96 + 128}); got != want {
		t.Errorf("cost %+v, want %+v", got, want)
	}
}

func TestByName(t *testing.T) {
	d := &Def{Forward: Launch{Func: "Forward"}, Backward: []Launch{{Func: "BackwardInput"}}}
	for _, fn := range []string{"Forward", "BackwardInput"} {
		if l := d.ByName(fn); l == nil || l.Func != fn {
			t.Errorf("ByName(%q) = %v", fn, l)
		}
	}
	if d.ByName("ForwardCached") != nil {
		t.Error("found a launcher that is not there")
	}
	d.Cached = &Launch{Func: "ForwardCached"}
	if d.ByName("ForwardCached") != d.Cached {
		t.Error("the cached launcher was not found")
	}
}

func TestFits(t *testing.T) {
	for _, c := range []struct {
		rows, cols int64
		fits       bool
	}{
		{1 << 30, 1<<30 - 1, true}, {1 << 30, 1 << 30, false}, {1 << 62, 4, false}, {1<<63 - 1, 1<<63 - 1, false},
	} {
		if err := Fits("out", c.rows, c.cols); (err == nil) != c.fits {
			t.Errorf("%d x %d: %v", c.rows, c.cols, err)
		}
	}
}
