package program

import (
	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/engine"
	"github.com/megatrain/mtc/runtime/ops/squares"
	"github.com/megatrain/mtc/runtime/optim"
)

// steps are AdamW's launchers in the terms of the engine.
var steps = engine.Steps{
	Norm: func(q device.Queue, a *engine.NormArgs) {
		squares.Total(q, squares.TotalArgs{Parts: a.Squares, Norm: a.Norm, Scalars: a.Scalars, Elems: a.Elems})
	},
	Round: func(q device.Queue, a *engine.RoundArgs) {
		squares.Round(q, squares.RoundArgs{Half: a.Half, Grad: a.Grad, Parts: a.Squares, Elems: a.Elems})
	},
	Accumulate: func(q device.Queue, a *engine.AccumulateArgs) {
		optim.Accumulate(q, optim.AccumulateArgs{Dst: a.Sum, Src: a.Grad, Squares: a.Squares, Elems: a.Elems})
	},
	Reduce: func(q device.Queue, a *engine.ReduceArgs) {
		r := optim.ReduceArgs{Scalars: a.Scalars, Norms: a.Norms, Partials: a.Partials}
		if !a.Norms.Nil() {
			r.NumNorms = a.Slabs
		}
		if !a.Partials.Nil() {
			r.NumPartials = a.Micros
		}
		optim.Reduce(q, r)
	},
	Update: func(q device.Queue, a *engine.UpdateArgs) {
		if !a.Lo.Nil() {
			optim.AdamWSplit(q, optim.AdamWSplitArgs{
				Hi: a.Weight, Lo: a.Lo, Grad: a.Grad, M: a.M, V: a.V, Scalars: a.Scalars,
				Elems: a.Elems, Decay: a.Decay, Half: a.Half,
				Beta1: a.AdamW.Beta1, Beta2: a.AdamW.Beta2, Eps: a.AdamW.Eps, WeightDecay: a.AdamW.Decay,
			})
			return
		}
		optim.AdamW(q, optim.AdamWArgs{
			Weight: a.Weight, Grad: a.Grad, M: a.M, V: a.V, Scalars: a.Scalars,
			Elems: a.Elems, Decay: a.Decay, Half: a.Half,
			Beta1: a.AdamW.Beta1, Beta2: a.AdamW.Beta2, Eps: a.AdamW.Eps, WeightDecay: a.AdamW.Decay,
		})
	},
}
