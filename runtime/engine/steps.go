package engine

import (
	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/plan"
)

// Steps are the launchers of what tasks do to whole slabs (plan.Bind says which buffers they
// get). The program passes those of the optimizer that the plan was made for; the engine
// knows none.
type Steps struct {
	Norm       func(q device.Queue, a *NormArgs)
	Accumulate func(q device.Queue, a *AccumulateArgs)
	Reduce     func(q device.Queue, a *ReduceArgs)
	Update     func(q device.Queue, a *UpdateArgs)
	Round      func(q device.Queue, a *RoundArgs)
}

// NormArgs: Norm = the sum of Squares, those of a gradient of Elems elements. With Scalars,
// ScalarSkip is set when that is not finite.
type NormArgs struct {
	Squares device.Ptr // [plan.SquaresBlocks(Elems)] f64
	Norm    device.Ptr // f64
	Scalars device.Ptr // [plan.NumScalars] f64, or nil
	Elems   int64
}

// RoundArgs: Half = Grad, rounded to the nearest bf16; Squares of Half.
type RoundArgs struct {
	Half    device.Ptr // [Elems] bf16
	Grad    device.Ptr // [Elems] f32
	Squares device.Ptr // [plan.SquaresBlocks(Elems)] f64
	Elems   int64
}

// AccumulateArgs: Sum += Grad; Squares, when not nil, of what Sum is then.
type AccumulateArgs struct {
	Sum, Grad device.Ptr // [Elems] f32
	Squares   device.Ptr // [plan.SquaresBlocks(Elems)] f64
	Elems     int64
}

// ReduceArgs: completes a step's scalars, in place, from its partial losses and its norms, in
// micro-batch and slab order. ScalarSkip is set when one of them is not finite, never cleared.
type ReduceArgs struct {
	Norms    device.Ptr // [Slabs] f64, or nil
	Partials device.Ptr // [Micros] pairs of f64: sum of losses, targets; or nil
	Scalars  device.Ptr // [plan.NumScalars] f64
	Slabs    int64
	Micros   int64
}

// UpdateArgs: one optimizer step on one slab, decay on the first Decay elements. It changes
// nothing when ScalarSkip is set. With Lo the master is split: Weight and Lo are its halves,
// [Elems] of 16 bits each (plan/split.go).
type UpdateArgs struct {
	Weight, Lo   device.Ptr
	M, V, Grad   device.Ptr // [Elems] f32, as Weight without Lo
	Scalars      device.Ptr
	Elems, Decay int64
	Half         bool // Grad is bf16
	AdamW        plan.AdamW
}
