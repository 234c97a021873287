// Package optest tests an op's room with one call: Run takes the Def, the launchers and a
// table of calls, and checks
//
//   - the declaration: what it names exists, every input and weight has its gradient, and
//     the launchers' argument structs have exactly the fields that the compiler will fill;
//   - the shape rule, on good calls and on bad ones, and FLOPs and bytes by hand;
//   - the CPU kernels against a float64 reference, and their gradients against central
//     differences of that reference;
//   - the same against PyTorch (testdata/torch.json, made by tools/fixtures/ops.py);
//   - that AddX may be nil, another buffer or the result itself; that pairs declared InPlace
//     may share a buffer; that a row-wise op gives the same bits in chunks of rows, and any
//     op the same bits at any number of threads and when decoding row by row;
//   - in builds with the tag cuda, that the CUDA kernels agree with the CPU's in both
//     precisions, on a GPU or (MTC_CUDA_EMU=1) in its emulation.
//
// Every operand lies between guard bands of NaN, so a kernel that writes beside its operand,
// or adds to what it should set, is found. The largest difference and its share of the
// allowance are logged even when all is well.
package optest

import (
	"strings"
	"testing"

	"github.com/megatrain/mtc/runtime/op"
	"github.com/megatrain/mtc/runtime/tensor"
)

// Case is everything one room is tested with.
type Case struct {
	Def *op.Def
	// Funcs are the room's launchers and table functions by name.
	Funcs map[string]any
	Good  []Good
	Bad   []Bad
	// Wide are good calls that only the CUDA kernels are tested with, against the CPU's: sizes
	// that fill vectors, and sizes that do not. Out, Cost and Ref are not needed.
	Wide []Good
	// F32 are operands that are float32 on a GPU in either precision, besides the gradients of
	// weights, saved values and tables.
	F32 []string
}

// Good is a call that fits.
type Good struct {
	Name string        // also the key of the PyTorch fixture
	In   []tensor.Type // types of the tensor inputs, in parameter order; see F32 and Ids
	Attr map[string]op.Value
	Out  string // the wanted output shape, as printed
	// Batch and Seq are the sizes of the numeric checks and of Cost.
	Batch, Seq int64
	// Cost is worked out by hand for each launcher.
	Cost map[string]op.Cost
	// Ref computes y in float64. Its gradients are taken by central differences.
	Ref func(v Values) []float64
	// Tol is the allowed difference relative to the largest element; 0: DefaultTol.
	Tol float64
	// BF16 is the same for CUDA kernels in bf16 against the CPU, beyond the rounding of the result;
	// 0: that of a kernel that computes in float32.
	BF16 float64
	// Scale is how large results count at least where a kernel on a GPU is held against the CPU: where terms
	// cancel, one of the two may have fused a product with the sum, and what is left is the rounding of a term.
	Scale float64
	// Range is the half width of the uniform random inputs; 0: 2.
	Range float64
}

// DefaultTol is the allowance for a float32 kernel, relative to a tensor's largest element.
const DefaultTol = 2e-6

// Bad is a call that the shape rule refuses.
type Bad struct {
	Name string
	In   []tensor.Type
	Attr map[string]op.Value
	Arg  string // the argument that the error names
	Want string // a part of the error's text
}

// Values are the inputs and weights of a call in float64, by operand name, and its sizes.
type Values struct {
	F          map[string][]float64
	I          map[string][]int32
	Batch, Seq int
}

// F32 is the type of an activation [B, T, last]; the last dim is named D.
func F32(last int64) tensor.Type {
	return tensor.Type{DType: tensor.F32, Shape: tensor.Shape{{Name: "B"}, {Name: "T"}, {Name: "D", N: last}}}
}

// Ids is the type of tokens or positions, i32 [B, T].
func Ids() tensor.Type {
	return tensor.Type{DType: tensor.I32, Shape: tensor.Shape{{Name: "B"}, {Name: "T"}}}
}

// Run tests a room.
func Run(t *testing.T, c Case) {
	t.Run("declaration", func(t *testing.T) { CheckDef(t, c.Def) })
	for _, b := range c.Bad {
		t.Run("refuses "+b.Name, func(t *testing.T) { refuse(t, c.Def, b) })
	}
	torch := readTorch(t)
	for _, g := range c.Good {
		t.Run(g.Name, func(t *testing.T) {
			s := newSetup(t, c, g)
			for _, check := range s.checks(torch) {
				t.Run(check.name, func(t *testing.T) { check.run(t) })
			}
			OnGPU(t, s.onGPU)
		})
	}
	for _, g := range c.Wide {
		t.Run(g.Name, func(t *testing.T) { OnGPU(t, newSetup(t, c, g).onGPU) })
	}
}

// check is one property of a good call.
type check struct {
	name string
	run  func(t testing.TB)
}

func (s *setup) checks(torch map[string]torchCase) []check {
	return []check{
		{"shape", s.shape},
		{"fields", s.fields},
		{"cost", s.cost},
		{"reference", s.reference},
		{"torch", func(t testing.TB) { s.torch(t, torch) }},
		{"add operands", s.addOperands},
		{"in place", s.inPlace},
		{"chunks", s.chunks},
		{"threads", s.threads},
		{"decode", s.decode},
	}
}

func refuse(t *testing.T, d *op.Def, b Bad) {
	_, err := Bind(d, b.In, b.Attr)
	arg, ok := err.(*op.ArgError)
	if !ok {
		t.Fatalf("wanted an *op.ArgError, got %v", err)
	}
	if arg.Arg != b.Arg || !strings.Contains(arg.Error(), b.Want) {
		t.Errorf("wanted an error about `%s` with %q, got: %v", b.Arg, b.Want, arg)
	}
}

// Bind makes an inferred call: in are the tensor inputs in parameter order, defaults fill
// what attr leaves out.
func Bind(d *op.Def, in []tensor.Type, attr map[string]op.Value) (*op.Call, error) {
	c := &op.Call{Def: d, Attr: map[string]op.Value{}}
	for _, p := range d.Params {
		if p.Kind == op.Tensor {
			if len(c.In) < len(in) {
				c.Inputs, c.In = append(c.Inputs, p.Name), append(c.In, in[len(c.In)])
			}
			continue
		}
		if v, ok := attr[p.Name]; ok {
			c.Attr[p.Name] = v
		} else if p.Default != nil {
			c.Attr[p.Name] = *p.Default
		}
	}
	return c, d.Infer(c)
}
