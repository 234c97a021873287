// Package engine executes a plan: it submits each list's tasks to the lanes of a device in
// order, with the waits the plan names, and knows no op. Progress, metrics, checkpoints and
// traces attach to it as hooks.
package engine

import (
	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/plan"
)

// Binding gives a template function its memory for one task. Generated code only computes
// addresses from it. It is prepared once at start-up for each task and step parity.
type Binding struct {
	In, Out, DIn, DOut [plan.MaxIO]device.Ptr
	Saved, Work        device.Ptr
	Weights, Grads     [plan.MaxSlabs]device.Ptr
	Add                [plan.MaxSlabs]bool
	Squares            [plan.MaxSlabs]device.Ptr // sums of squares of the gradients that are complete with this task; else nil
	State              device.Ptr
	Router             device.Ptr
	Tables             []device.Ptr
	Targets, Scalars   device.Ptr
	Partials           device.Ptr

	// Generation: rows to run and the position of the first one. In training and
	// evaluation the sizes are the plan's constants.
	Rows, Pos int
}

// Grad is the address of a gradient in slab s.
func (b *Binding) Grad(s int, off int64) device.Ptr { return b.Grads[s].At(off) }

// GradAdd is what a gradient adds to: itself, or nil for the first contribution of a step.
func (b *Binding) GradAdd(s int, off int64) device.Ptr {
	if b.Add[s] {
		return b.Grads[s].At(off)
	}
	return device.Ptr{}
}

// TemplateFunc is one generated function.
type TemplateFunc func(q device.Queue, b *Binding)

// Template holds the generated functions of one template, indexed by plan.Func.
type Template struct {
	Name  string
	Funcs [plan.NumFuncs]TemplateFunc
}

// TableFunc fills one constant table.
type TableFunc func(dst []float32)
