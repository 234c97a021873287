package optest

import (
	"math"
	"slices"
	"sync"
	"testing"

	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/op"
	"github.com/megatrain/mtc/runtime/tensor"
)

// square is an op of this test: y = x^2.
var square = &op.Def{
	Name: "square", Doc: "x^2", Formula: "y = x^2", Example: "x = square(x)",
	Params: []op.Param{{Name: "x", Kind: op.Tensor, Doc: "[B, T, D]"}},
	Infer:  op.Elementwise, RowWise: true,
	Forward: op.WithCost(op.Launch{Func: "Forward", Reads: []string{"x"}, Writes: []string{"y"},
		InPlace: [][2]string{{"x", "y"}}}, op.PerElement(1)),
	Backward: []op.Launch{op.WithCost(op.Launch{Func: "Backward", Reads: []string{"x", "d.y"}, Writes: []string{"d.x"},
		Adds: []string{"d.x"}, InPlace: [][2]string{{"d.y", "d.x"}}}, op.PerElement(2))},
}

type ForwardArgs struct {
	X, Y    device.Ptr
	Rows, D int
}

type BackwardArgs struct {
	X, DY, AddDX, DX device.Ptr
	Rows, D          int
}

// kernels makes square's launchers. Each fault is a mistake that a kernel may have.
func kernels(fault string) map[string]any {
	forward := &device.Kernel{Name: "square.forward", CPU: func(c device.CPU, a *device.Args) {
		n := a.I[0] * a.I[1]
		x, y := c.F32(a.P[0], n), c.F32(a.P[1], n)
		c.Parallel(n, 64, func(lo, hi int64) {
			var kept float32 // x[i-1] as it was before y[i-1] was written
			for i := lo; i < hi; i++ {
				now := x[i]
				y[i] = x[i] * x[i]
				switch {
				case fault == "wrong value" && i == 3:
					y[i] *= 1.00001
				case fault == "depends on the cut" && i == hi-1:
					y[i] *= 1 + 1e-7
				case fault == "depends on the number of rows" && n == 60:
					y[i] *= 1 + 1e-7
				case fault == "reads x after writing y" && i > lo:
					y[i] += x[i-1] - kept
				case fault == "gives NaN" && i == n-1:
					y[i] = float32(math.NaN())
				}
				kept = now
			}
		})
		if fault == "writes too far" {
			c.F32(a.P[1], n+1)[n] = 0
		}
	}}
	backward := &device.Kernel{Name: "square.backward", CPU: func(c device.CPU, a *device.Args) {
		n := a.I[0] * a.I[1]
		x, dy, add, dx := c.F32(a.P[0], n), c.F32(a.P[1], n), c.F32(a.P[2], n), c.F32(a.P[3], n)
		for i := range dx {
			g := 2 * x[i] * dy[i]
			switch {
			case fault == "wrong gradient":
				g = x[i] * dy[i]
			case fault == "adds to what is there":
				g += dx[i]
			case fault == "changes its add operand" && add != nil:
				add[i]++
			}
			if add != nil && fault != "forgets to add" {
				g += add[i]
			}
			dx[i] = g
		}
	}}
	return map[string]any{
		"Forward": func(q device.Queue, a ForwardArgs) {
			q.Launch(forward, device.Args{P: [device.MaxPtrs]device.Ptr{a.X, a.Y}, I: [device.MaxInts]int64{int64(a.Rows), int64(a.D)}})
		},
		"Backward": func(q device.Queue, a BackwardArgs) {
			q.Launch(backward, device.Args{P: [device.MaxPtrs]device.Ptr{a.X, a.DY, a.AddDX, a.DX}, I: [device.MaxInts]int64{int64(a.Rows), int64(a.D)}})
		},
	}
}

// recorder is a test that may fail without failing the test that looks on.
type recorder struct {
	testing.TB
	mu     sync.Mutex
	failed bool
	clean  []func()
}

func (r *recorder) Helper()             {}
func (r *recorder) Logf(string, ...any) {}
func (r *recorder) Cleanup(f func())    { r.clean = append(r.clean, f) }
func (r *recorder) fail()               { r.mu.Lock(); r.failed = true; r.mu.Unlock() }
func (r *recorder) Error(...any)        { r.fail() }
func (r *recorder) Errorf(string, ...any) {
	r.fail()
}
func (r *recorder) Fatal(...any)          { r.fail(); panic(r) }
func (r *recorder) Fatalf(string, ...any) { r.fail(); panic(r) }

// failing returns the names of the checks that fail.
func failing(t *testing.T, c Case) (names []string) {
	s := newSetup(t, c, c.Good[0])
	torch := map[string]torchCase{"square": {
		In:  map[string][]float32{"x": slices.Repeat([]float32{3}, 60), "d.y": slices.Repeat([]float32{1}, 60)},
		Out: map[string][]float64{"y": slices.Repeat([]float64{9}, 60), "d.x": slices.Repeat([]float64{6}, 60)},
	}}
	for _, check := range s.checks(torch) {
		r := &recorder{TB: t}
		func() {
			defer func() {
				if p := recover(); p != nil && p != any(r) {
					panic(p)
				}
			}()
			check.run(r)
		}()
		for _, f := range r.clean {
			f()
		}
		if r.failed {
			names = append(names, check.name)
		}
	}
	return names
}

func squareCase(fault string) Case {
	return Case{Def: square, Funcs: kernels(fault), Good: []Good{{
		Name: "square", In: []tensor.Type{F32(10)}, Out: "[B, T, D = 10]", Batch: 2, Seq: 3,
		Cost: map[string]op.Cost{"Forward": {FLOPs: 60, Bytes: 480}, "Backward": {FLOPs: 120, Bytes: 720}},
		Ref: func(v Values) []float64 {
			y := make([]float64, len(v.F["x"]))
			for i, x := range v.F["x"] {
				y[i] = x * x
			}
			return y
		},
	}}}
}

// TestFaultsAreFound: every mistake is caught by the check that is there for it, and a
// kernel without one passes.
func TestFaultsAreFound(t *testing.T) {
	if names := failing(t, squareCase("")); len(names) > 0 {
		t.Fatalf("a good op fails %v", names)
	}
	for fault, check := range map[string]string{
		"wrong value":                   "reference",
		"gives NaN":                     "reference",
		"writes too far":                "reference",
		"wrong gradient":                "torch",
		"adds to what is there":         "reference",
		"forgets to add":                "add operands",
		"changes its add operand":       "add operands",
		"reads x after writing y":       "in place",
		"depends on the cut":            "threads",
		"depends on the number of rows": "chunks",
	} {
		if names := failing(t, squareCase(fault)); !slices.Contains(names, check) {
			t.Errorf("%s: %q was to fail, but %q do", fault, check, names)
		}
	}
}

// TestDeclarationFaults: slips in a Def.
func TestDeclarationFaults(t *testing.T) {
	for name, slip := range map[string]func(d *op.Def){
		"no formula":         func(d *op.Def) { d.Formula = "" },
		"a foreign example":  func(d *op.Def) { d.Example = "x = cube(x)" },
		"no documentation":   func(d *op.Def) { d.Params = []op.Param{{Name: "x", Kind: op.Tensor}} },
		"a word of no list":  func(d *op.Def) { d.Params = append(d.Params, op.Param{Name: "form", Kind: op.Word, Doc: "a form"}) },
		"a pair out of thin": func(d *op.Def) { d.Forward.InPlace = [][2]string{{"z", "y"}} },
		"no cost":            func(d *op.Def) { d.Forward.Cost = nil },
		"the same name":      func(d *op.Def) { d.Backward = append(d.Backward, d.Forward) },
		"adds to its input":  func(d *op.Def) { d.Forward.Adds = []string{"x"} },
		"pass and launch":    func(d *op.Def) { d.PassThrough = true },
	} {
		d := *square
		d.Params, d.Backward = slices.Clone(d.Params), slices.Clone(d.Backward)
		slip(&d)
		r := &recorder{TB: t}
		CheckDef(r, &d)
		if !r.failed {
			t.Errorf("%s was not found", name)
		}
	}
}

// TestFieldFaults: an argument struct that is not what the compiler fills in.
func TestFieldFaults(t *testing.T) {
	c := squareCase("")
	type ForwardArgs struct {
		X, Y device.Ptr
		Rows int64
	}
	c.Funcs["Forward"] = func(device.Queue, ForwardArgs) {}
	r := &recorder{TB: t}
	newSetup(t, c, c.Good[0]).fields(r)
	if !r.failed {
		t.Error("a launcher without D, and with an int64, was not found")
	}
}
