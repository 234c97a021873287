// Package squares is the room of the sum of squares of a slab's gradient, of which the norm is made:
//
//	parts[i] = sum over the elements e of block i of grad[e]^2       in float64, blocks of Block elements
//	total    = sum over i of parts[i]
//
// Parts are made where gradients are: by a template's function behind the products that complete a
// block (Parts), by the pass that rounds a gradient (Round), by the one that adds up groups
// (optim.Accumulate). Total follows when all are there. The blocks and the order of sums
// follow from the sizes alone, and are the same on a GPU and on the host: rows of 1,024 elements are added
// side by side, then four by four, in a tree within each 32 of the 256 sums left, and those in order.
package squares

import (
	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/op"
	"github.com/megatrain/mtc/runtime/plan"
)

// Def declares the parts; a pass of the compiler inserts them, no model writes them.
var Def = &op.Def{
	Name:    "squares",
	Doc:     "sums of squares of blocks of a gradient, for its norm",
	Formula: "parts[i] = sum of grad[e]^2 over block i",
	Hidden:  true,
	Params:  []op.Param{{Name: "grad", Kind: op.Tensor, Doc: "a slab's gradient, f32"}},
	Infer:   func(*op.Call) error { return nil }, // Call gives all of a call
	Forward: op.Launch{
		Func: "Parts", Reads: []string{"grad"}, Writes: []string{"parts"},
		Cost: func(c *op.Call, _ op.Sizes) op.Cost {
			n := c.Int("blocks") * Block
			return op.Cost{FLOPs: 2 * n, Bytes: 4 * n}
		},
	},
}

// Block is the elements of a part.
const Block = plan.SquaresBlock

// Call is a launch over up to two ranges [first, end) of the blocks of a slab.
func Call(elems int64, ranges ...[2]int64) *op.Call {
	var blocks int64
	c := &op.Call{Def: Def, Consts: []op.Const{op.IntConst("Elems", elems)}}
	for i, r := range ranges {
		suffix := [...]string{"", "2"}[i]
		c.Consts = append(c.Consts, op.IntConst("First"+suffix, r[0]), op.IntConst("Blocks"+suffix, r[1]-r[0]))
		blocks += r[1] - r[0]
	}
	c.Attr = map[string]op.Value{"blocks": *op.IntValue(blocks)}
	return c
}

// PartsArgs are the arguments of Parts: of the Elems f32 of Grad, the sums of squares of Blocks blocks
// from First on and of Blocks2 from First2 on go to their places in Parts [ceil(Elems / Block)], f64.
type PartsArgs struct {
	Grad, Parts     device.Ptr
	Elems           int
	First, Blocks   int
	First2, Blocks2 int
}

var partsKernel = device.Kernel{Name: "squares.Parts", CPU: partsCPU, CUDA: partsCUDA}

// Parts launches the sums of some blocks.
func Parts(q device.Queue, a PartsArgs) {
	var args device.Args
	args.P = [device.MaxPtrs]device.Ptr{a.Grad, a.Parts}
	args.I = [device.MaxInts]int64{int64(a.Elems), int64(a.First), int64(a.Blocks), int64(a.First2), int64(a.Blocks2)}
	q.Launch(&partsKernel, args)
}

// TotalArgs are the arguments of Total: Norm, one f64, is the sum of the Parts of Elems elements. Where
// Scalars is not nil (no clipping: updates do not wait for the step's reduction) a result that is not
// finite sets the skip flag there, which stays set for the rest of the step.
type TotalArgs struct {
	Parts, Norm, Scalars device.Ptr
	Elems                int64
}

var totalKernel = device.Kernel{Name: "squares.Total", CPU: totalCPU, CUDA: totalCUDA}

// Total launches the sum of the parts.
func Total(q device.Queue, a TotalArgs) {
	var args device.Args
	args.P = [device.MaxPtrs]device.Ptr{a.Parts, a.Norm, a.Scalars}
	args.I[0] = a.Elems
	q.Launch(&totalKernel, args)
}

// NormArgs are the arguments of Norm.
type NormArgs struct {
	Grad, Parts, Norm, Scalars device.Ptr
	Elems                      int64
}

// Norm is Parts of a whole gradient, and Total.
func Norm(q device.Queue, a NormArgs) {
	Parts(q, PartsArgs{Grad: a.Grad, Parts: a.Parts, Elems: int(a.Elems), Blocks: int(plan.SquaresBlocks(a.Elems))})
	Total(q, TotalArgs{Parts: a.Parts, Norm: a.Norm, Scalars: a.Scalars, Elems: a.Elems})
}

// RoundArgs are the arguments of Round: Half, Elems bf16, is Grad, Elems f32, rounded to nearest, ties to
// even. What is beyond bf16 becomes infinite and NaN stays NaN, so that the norm tells. Parts are
// of what was rounded. Elems is even.
type RoundArgs struct {
	Grad, Half, Parts device.Ptr
	Elems             int64
}

var roundKernel = device.Kernel{Name: "squares.Round", CPU: roundCPU, CUDA: roundCUDA}

// Round launches the rounding of one slab's gradient, with the sums of its squares.
func Round(q device.Queue, a RoundArgs) {
	var args device.Args
	args.P = [device.MaxPtrs]device.Ptr{a.Grad, a.Parts, a.Half}
	args.I[0] = a.Elems
	q.Launch(&roundKernel, args)
}
