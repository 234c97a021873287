package grouped

import (
	"fmt"

	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/op"
	"github.com/megatrain/mtc/runtime/ops/moe"
	"github.com/megatrain/mtc/runtime/tensor"
)

// NormDef declares a norm of the experts' rows, with a weight for each expert:
//
//	center[r,g]  = mean over the group of x, with `center`; else 0
//	inv[r,g]     = 1 / sqrt(mean over the group of (x - center)^2 + eps)
//	y[r,i]       = xhat * weight[e,i'] + bias[e,i],  xhat = (x - center) * inv      x, y [B, T, C*D], weight [E, P], bias [E, D]
//	dx[r,i]      = inv * (g - mean(g) - xhat * mean(g * xhat)),  g = dy * weight; mean(g) with `center` alone
//	dweight[e,j] = sum over the rows r of e (and groups) of dy * xhat
//	dbias[e,i]   = sum over the rows r of e of dy
//
// A group is the whole row of D elements, or P of them with `per = P`. It is layernorm with `center`
// and rmsnorm without (packages of those names have the sources). center and inv are saved.
// Rows behind the last one in use are neither read nor written; an expert without rows has
// gradients of zero; a row's result does not depend on how many rows there are.
var NormDef = &op.Def{
	Name:    "grouped_norm",
	Room:    "grouped",
	Doc:     "normalises the experts' rows, with a weight for each expert",
	Formula: "y[r,i] = (x[r,i] - center[r]) * inv[r] * weight[expert[r],i] + bias[expert[r],i]",
	Hidden:  true,
	Params: []op.Param{
		{Name: "x", Kind: op.Tensor, Doc: "[B, T, C*D]"},
		{Name: "routing", Kind: op.Tensor, Doc: "what the router made"},
		{Name: "eps", Kind: op.Float, Default: op.FloatValue(1e-6), Doc: "added to the mean square"},
		{Name: "per", Kind: op.Int, Default: op.None(), Doc: "normalise groups of this many elements; none: the row"},
		{Name: "center", Kind: op.Bool, Default: op.BoolValue(false), Doc: "takes the mean off first"},
		{Name: "weight", Kind: op.Bool, Default: op.BoolValue(true), Doc: "owns a weight for each expert, which starts at 1"},
		{Name: "bias", Kind: op.Bool, Default: op.BoolValue(false), Doc: "owns a bias for each expert, which starts at 0"},
		{Name: "experts", Kind: op.Int, Doc: "E"},
		{Name: "slots", Kind: op.Int, Doc: "C: rows a token that memory is made for"},
		{Name: "most", Kind: op.Int, Doc: "C in generation"},
		{Name: "mean", Kind: op.Float, Doc: "rows a token that there are on average, for the cost"},
	},
	Infer: inferNorm,
	Forward: op.Launch{
		Func: "Norm", Reads: []string{"x", "weight", "bias", "routing"}, Writes: []string{"y", "center", "inv"},
		InPlace: [][2]string{{"x", "y"}}, Cost: normCost(8, 2),
	},
	Backward: []op.Launch{
		{
			Func: "NormBackwardWeight", Reads: []string{"x", "routing", "center", "inv", "d.y"},
			Writes: []string{"d.weight", "d.bias"}, Adds: []string{"d.weight", "d.bias"}, Cost: normCost(5, 2),
			Scratch: func(c *op.Call, _ op.Sizes) int64 {
				return normWork(&device.Args{I: [device.MaxInts]int64{0, c.In[0].Shape.Last().N / c.Int("slots"), c.Int("experts")}})
			},
		},
		{
			Func: "NormBackwardInput", Reads: []string{"x", "weight", "routing", "center", "inv", "d.y"}, Writes: []string{"d.x"}, Adds: []string{"d.x"},
			InPlace: [][2]string{{"x", "d.x"}, {"d.y", "d.x"}}, Cost: normCost(12, 3),
		},
	},
}

// inferNorm is the shape rule.
func inferNorm(c *op.Call) error {
	x, err := c.Activation("x")
	if err != nil {
		return err
	}
	if err := c.PositiveFloat("eps"); err != nil {
		return err
	}
	slots, e := c.Int("slots"), c.DimOf("experts")
	if r, ok := c.Input("routing"); !ok || r.DType != tensor.I32 || r.Shape.Last().N != moe.RoutingWords(e.N, slots) {
		return &op.ArgError{Arg: "routing", Want: "a routing", Got: r.String()}
	}
	row := tensor.Dim{N: x.Shape.Last().N / slots}
	group := row
	if c.Has("per") {
		if err := c.Positive("per"); err != nil {
			return err
		}
		if group = c.DimOf("per"); row.N%group.N != 0 {
			return &op.ArgError{Arg: "per", Want: fmt.Sprintf("a divisor of the %d elements of a row", row.N), Got: group.String()}
		}
	}
	c.Out = x
	stat := tensor.Type{DType: tensor.F32, Shape: x.Shape.WithLast(tensor.Dim{N: slots * (row.N / group.N)})}
	c.Saved = []op.Operand{{Name: "inv", Type: stat}}
	if c.Bool("center") {
		c.Saved = append(c.Saved, op.Operand{Name: "center", Type: stat})
	}
	if c.Bool("weight") {
		c.Weights = append(c.Weights, op.Weight{Name: "weight", Shape: tensor.Shape{e, group}, Role: op.Norm, Experts: e.N})
	}
	if c.Bool("bias") {
		c.Weights = append(c.Weights, op.Weight{Name: "bias", Shape: tensor.Shape{e, row}, Role: op.Bias, Experts: e.N})
	}
	c.Consts = []op.Const{
		op.RowsConst(), op.IntConst("D", row.N), op.IntConst("Per", group.N), op.IntConst("Experts", e.N), op.IntConst("Slots", slots),
		op.FloatConst("Eps", c.Float("eps")),
	}
	return nil
}

// normCost counts operations an element, and passes over the rows that there are on average.
func normCost(flops, passes int64) func(c *op.Call, s op.Sizes) op.Cost {
	return func(c *op.Call, s op.Sizes) op.Cost {
		n := int64(float64(s.Rows())*c.Float("mean")) * (c.In[0].Shape.Last().N / c.Int("slots"))
		return op.Cost{FLOPs: flops * n, Bytes: passes * n * c.Out.DType.Size()}
	}
}
