package compiler

import (
	"context"
	"errors"

	"github.com/megatrain/mtc/compiler/ir"
	"github.com/megatrain/mtc/compiler/schedule"
	"github.com/megatrain/mtc/lang/diag"
	"github.com/megatrain/mtc/runtime/plan"
)

// Prepared is a model lowered to a program, from which plans of several schedules can be made:
// the planner tries many. MicroBatch, Recompute, Prefill, and what names and sizes the model
// are settled; the other options are each plan's.
type Prepared struct {
	s     *state
	short *shortPlans
}

// shortPlans is the memory of plans that are made to be looked at, of a model and all ways to prepare it.
type shortPlans struct{ plan, draft schedule.Memory }

// Prepare runs the passes before the schedule. What it leaves out, because no plan's shape
// depends on it, is the identity of families and the verifier: a plan that is kept is compiled.
func Prepare(ctx context.Context, o Options, diags *diag.List) (*Prepared, error) {
	o.DumpAfter = ""
	s := &state{ctx: ctx, opts: o, diags: diags, res: &Result{}, until: "schedule"}
	if _, err := s.run(true); err != nil {
		return nil, err
	}
	return &Prepared{s, new(shortPlans)}, nil
}

// Again prepares the same model with another MicroBatch or Recompute. What was found out about
// the text is not found out again.
func (p *Prepared) Again(o Options) (*Prepared, error) {
	o.DumpAfter = ""
	s := &state{ctx: p.s.ctx, opts: o, diags: &diag.List{}, res: &Result{}, until: "schedule", known: true}
	if _, err := s.run(true); err != nil {
		return nil, err
	}
	s.identity = p.s.identity
	return &Prepared{s, p.short}, nil
}

// Program is the lowered model.
func (p *Prepared) Program() *ir.Program { return p.s.res.Program }

// Model is the checked model.
func (p *Prepared) Model() *ir.Model { return p.s.res.Model }

// Plan makes the plan of a schedule, unverified. rows is the batch in rows, 0 for the model's
// own: what a step needs of memory grows evenly with its micro-batches, so two short steps
// tell what a long one takes. The error is a *schedule.ShortError where the device memory of o
// is too small.
func (p *Prepared) Plan(o Options, rows int64) (*plan.Plan, error) {
	return p.make(o, rows, schedule.Build, nil)
}

// Short is Plan for one that is looked at and dropped: the tasks of a plan are there until the next one is made so, of the same
// model however it is prepared.
func (p *Prepared) Short(o Options, rows int64) (*plan.Plan, error) {
	return p.make(o, rows, schedule.Build, &p.short.plan)
}

// Draft is Plan without the waits of tasks: it says what a plan takes of memory, and costs half as much. Its tasks are there
// until the next draft.
func (p *Prepared) Draft(o Options, rows int64) (*plan.Plan, error) {
	return p.make(o, rows, schedule.Draft, &p.short.draft)
}

func (p *Prepared) make(o Options, rows int64, build func(*ir.Program, schedule.Options) (*plan.Plan, error), memory *schedule.Memory) (*plan.Plan, error) {
	s := *p.s
	o.MicroBatch, o.Recompute, o.Prefill = s.opts.MicroBatch, s.opts.Recompute, s.opts.Prefill
	o.Target = s.opts.Target
	s.opts, s.diags = o, &diag.List{}
	prog, model := *s.res.Program, *s.res.Model
	if rows > 0 {
		model.Batch = rows
	}
	prog.Model = &model
	s.res = &Result{Model: &model, Program: &prog}
	if model.Batch/prog.Rows > p.MostMicros() {
		return nil, ErrTooLong
	}
	options := planOptions(&s)
	options.Memory = memory
	return build(&prog, options)
}

// MostMicros is how many micro-batches a step may have.
func (p *Prepared) MostMicros() int64 { return maxVisits / int64(len(p.s.res.Model.Units)) }

// ErrTooLong says that a step has more micro-batches than a schedule may list.
var ErrTooLong = errors.New("the schedule of a step is too long")
