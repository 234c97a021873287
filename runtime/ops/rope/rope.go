// Package rope is the room of rotary position embedding. Each head of hd elements is
// hd/2 pairs (u, v); pair j of a row at position p is turned by the angle p * freq[j]:
//
//	u' = u * cos - v * sin         x, y [B, T, H*hd], cs [T, 2, hd/2] = cos, sin
//	v' = v * cos + u * sin         p = Pos + t
//
// half:        u = x[j],  v = x[j + hd/2]   (Llama, Mistral, Qwen as Hugging Face keeps them)
// interleaved: u = x[2j], v = x[2j + 1]     (the paper; Llama as Meta keeps it)
//
// With dims only the first dims elements of each head turn, as if they were a head of their own, with a
// table [T, 2, dims/2]; the others pass (GPT-NeoX, GPT-J, Phi, StableLM).
//
// Backward turns dy by the negative angle and reads no activation. The table cs is made
// once at start-up (angles.go), which also holds the scalings for long contexts.
// Source: Su et al., arXiv 2104.09864.
package rope

import (
	"fmt"

	"github.com/megatrain/mtc/runtime/op"
	"github.com/megatrain/mtc/runtime/tensor"
)

// Def declares rope.
var Def = &op.Def{
	Name:    "rope",
	Doc:     "turns pairs of each head by an angle that grows with the position",
	Formula: "(u, v)[b,t,h,j] -> (u cos a - v sin a, v cos a + u sin a), a = (Pos + t) / theta^(2j/hd)",
	Example: "x = rope(x, 64, 10000.0)",
	Params: []op.Param{
		{Name: "x", Kind: op.Tensor, Doc: "[B, T, H * hd]"},
		{Name: "hd", Kind: op.Int, Doc: "elements of one head, even"},
		{Name: "theta", Kind: op.Float, Default: op.FloatValue(10000), Doc: "base of the wavelengths"},
		{Name: "scaling", Kind: op.Word, Default: op.None(), Words: []string{"none", "linear", "llama3", "yarn"}, Ctors: scalings,
			Doc: "none, linear(factor), llama3(factor, low, high, original) or yarn(factor, original, fast, slow, amplitude)"},
		{Name: "layout", Kind: op.Word, Default: op.WordValue("half"), Words: []string{"half", "interleaved"},
			Doc: "which elements form a pair: j and j + hd/2, or 2j and 2j + 1"},
		{Name: "dims", Kind: op.Int, Default: op.None(), Doc: "the first elements of each head, even, that turn as a head of that size would; none: all"},
	},
	Documents: true,
	Infer:     infer,
	Forward: op.WithCost(op.Launch{
		Func: "Forward", Reads: []string{"x", "cs"}, Writes: []string{"y"},
		InPlace: [][2]string{{"x", "y"}},
	}, op.PerElement(3)),
	Backward: []op.Launch{op.WithCost(op.Launch{
		Func: "Backward", Reads: []string{"cs", "d.y"}, Writes: []string{"d.x"}, Adds: []string{"d.x"},
		InPlace: [][2]string{{"d.y", "d.x"}},
	}, op.PerElement(4))},
}

// scalings are the constructors that `scaling` takes; their names are also in its Words.
var scalings = []op.Ctor{
	{Name: "linear", Params: []op.Param{
		{Name: "factor", Kind: op.Float, Doc: "positions are divided by it"},
	}},
	{Name: "llama3", Params: []op.Param{
		{Name: "factor", Kind: op.Float, Doc: "long wavelengths are stretched by it"},
		{Name: "low", Kind: op.Float, Doc: "wavelengths above original / low are stretched"},
		{Name: "high", Kind: op.Float, Doc: "wavelengths below original / high stay"},
		{Name: "original", Kind: op.Float, Doc: "context length before stretching"},
	}},
	{Name: "yarn", Params: []op.Param{
		{Name: "factor", Kind: op.Float, Doc: "long wavelengths are stretched by it"},
		{Name: "original", Kind: op.Float, Doc: "context length before stretching"},
		{Name: "fast", Kind: op.Float, Default: op.FloatValue(32), Doc: "pairs that turn more often than this over the original context stay"},
		{Name: "slow", Kind: op.Float, Default: op.FloatValue(1), Doc: "pairs that turn less often than this are stretched"},
		{Name: "amplitude", Kind: op.Float, Default: op.None(), Doc: "factor on cosine and sine; none: 0.1 ln(factor) + 1"},
	}},
}

func infer(c *op.Call) error {
	x, err := c.Activation("x")
	if err != nil {
		return err
	}
	if err := c.Positive("hd"); err != nil {
		return err
	}
	hd, last := c.DimOf("hd"), x.Shape.Last()
	if hd.N%2 != 0 {
		return &op.ArgError{Arg: "hd", Want: "an even head size", Got: hd.String()}
	}
	if last.N%hd.N != 0 {
		return &op.ArgError{Arg: "x", Want: fmt.Sprintf("a last dim that is a multiple of hd = %d", hd.N), Got: x.String()}
	}
	dims, err := dimsOf(c, hd.N)
	if err != nil {
		return err
	}
	if err := c.PositiveFloat("theta"); err != nil {
		return err
	}
	scaling, err := scalingConsts(c)
	if err != nil {
		return err
	}
	layout := c.Word("layout")
	if layout != "half" && layout != "interleaved" {
		return &op.ArgError{Arg: "layout", Want: "half or interleaved", Got: c.Attr["layout"].String()}
	}
	c.Out = x
	c.Tables = []op.Table{{
		Operand: "cs",
		Type:    tensor.Type{DType: tensor.F32, Shape: tensor.Shape{x.Shape[1], {N: 2}, {N: dims / 2}}},
		Func:    "Angles",
		Consts:  append([]op.Const{op.IntConst("HD", dims), op.FloatConst("Theta", c.Float("theta"))}, scaling...),
	}}
	c.Consts = []op.Const{
		op.RowsConst(), {Field: "Seq", Kind: op.CSeq}, {Field: "Pos", Kind: op.CPos},
		op.IntConst("D", last.N), op.IntConst("HD", hd.N), op.IntConst("Dims", dims), op.BoolConst("Interleaved", layout == "interleaved"),
	}
	return nil
}

// Whole tells whether all elements of the heads turn.
func Whole(c *op.Call) bool { return !c.Has("dims") }

// dimsOf is how many elements of each head turn; where these are all, the call is the one without dims.
func dimsOf(c *op.Call, hd int64) (int64, error) {
	if Whole(c) {
		return hd, nil
	}
	dims := c.Int("dims")
	if dims < 2 || dims%2 != 0 || dims > hd {
		return 0, &op.ArgError{Arg: "dims", Want: fmt.Sprintf("an even number of a head's elements, from 2 to hd = %d", hd), Got: c.Attr["dims"].String()}
	}
	if dims == hd {
		c.Attr["dims"] = *op.None()
	}
	return dims, nil
}

// scalingConsts checks `scaling` and returns its fields of AnglesArgs.
func scalingConsts(c *op.Call) ([]op.Const, error) {
	v := c.Attr["scaling"]
	if v.IsNone() {
		return nil, nil
	}
	for _, ctor := range scalings {
		if ctor.Name != v.Str {
			continue
		}
		consts := []op.Const{op.IntConst("Scaling", int64(scalingNumber[ctor.Name]))}
		for i, p := range ctor.Params {
			x := p.Default
			if i < len(v.Args) {
				x = &v.Args[i]
			}
			if x == nil || len(v.Args) > len(ctor.Params) {
				return nil, &op.ArgError{Arg: "scaling", Want: signature(ctor), Got: v.String()}
			}
			if x.IsNone() && p.Default != nil && p.Default.IsNone() {
				continue
			}
			if !(x.Num() > 0) {
				return nil, &op.ArgError{Arg: "scaling", Want: "numbers above 0", Got: v.String()}
			}
			consts = append(consts, op.FloatConst(op.Field(p.Name), x.Num()))
		}
		if ctor.Name == "llama3" && v.Args[1].Num() >= v.Args[2].Num() {
			return nil, &op.ArgError{Arg: "scaling", Want: "low below high", Got: v.String()}
		}
		return consts, nil
	}
	return nil, &op.ArgError{Arg: "scaling", Want: "none, linear(factor), llama3(factor, low, high, original) or yarn(factor, original)", Got: v.String()}
}

func signature(c op.Ctor) string {
	s := c.Name + "("
	for i, p := range c.Params {
		if i > 0 {
			s += ", "
		}
		s += p.Name
		if p.Default != nil {
			s += " = " + p.Default.String()
		}
	}
	return s + ")"
}
