package compiler

import (
	"bytes"
	"context"
	"errors"
	"reflect"
	"slices"

	"github.com/megatrain/mtc/compiler/ir"
	"github.com/megatrain/mtc/compiler/schedule"
	"github.com/megatrain/mtc/lang/diag"
	"github.com/megatrain/mtc/runtime/plan"
)

// Prepared is a model lowered to a program, from which plans of several schedules can be made:
// the planner tries many. MicroBatch, Recompute, Prefill, and what names and sizes the model
// are settled; the other options are each plan's.
type Prepared struct {
	s   *state
	all *prepared
}

// prepared is what all ways share to prepare a model.
type prepared struct {
	ways        []*Prepared
	plan, draft schedule.Memory // of plans that are made to be looked at
}

// Prepare runs the passes before the schedule. What it leaves out, because no plan's shape
// depends on it, is the identity of families and the verifier: a plan that is kept is compiled.
func Prepare(ctx context.Context, o Options, diags *diag.List) (*Prepared, error) {
	o.DumpAfter = ""
	s := &state{ctx: ctx, opts: o, diags: diags, res: &Result{}, until: "schedule", keep: true}
	if _, err := s.run(true); err != nil {
		return nil, err
	}
	s.modelHash = modelHash(s)
	return &Prepared{s, &prepared{}}, nil
}

// Again prepares the same model with another MicroBatch or Recompute. What was found out about
// the text is not found out again, and nothing is where the options come to the same.
func (p *Prepared) Again(o Options) (*Prepared, error) {
	o.DumpAfter = ""
	for _, q := range p.all.ways {
		if sameProgram(o, q.s.opts) {
			return q, nil
		}
	}
	s := &state{ctx: p.s.ctx, opts: o, diags: &diag.List{}, res: &Result{}, until: "schedule", known: true}
	if sameText(o, p.s.opts) {
		s.model = p.s.model
	}
	if _, err := s.run(true); err != nil {
		return nil, err
	}
	s.identity, s.modelHash, s.model = p.s.identity, p.s.modelHash, p.s.model
	q := &Prepared{s, p.all}
	p.all.ways = append(p.all.ways, q)
	return q, nil
}

// sameProgram reports whether options come to the same program: how many layers backward visits together is the
// schedule's, once it is more than one.
func sameProgram(a, b Options) bool {
	if min(a.InputEvery, b.InputEvery) >= 2 && max(a.InputEvery, b.InputEvery) <= 3 { // more may be too many
		a.InputEvery = b.InputEvery
	}
	return reflect.DeepEqual(a, b)
}

// sameText reports whether options choose the same model of the same text, for the same target.
func sameText(a, b Options) bool {
	return a.ReadFile == nil && b.ReadFile == nil && a.Path == b.Path && bytes.Equal(a.Text, b.Text) && a.Model == b.Model && a.Preset == b.Preset && slices.Equal(a.Set, b.Set) && a.Target == b.Target
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
	return p.make(o, rows, schedule.Build, &p.all.plan)
}

// Draft is Plan without the waits of tasks: it says what a plan takes of memory, and costs half as much. Its tasks are there
// until the next draft.
func (p *Prepared) Draft(o Options, rows int64) (*plan.Plan, error) {
	return p.make(o, rows, schedule.Draft, &p.all.draft)
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
