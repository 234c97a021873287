package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/megatrain/mtc/compiler"
	"github.com/megatrain/mtc/compiler/cost"
	"github.com/megatrain/mtc/compiler/planner"
	"github.com/megatrain/mtc/compiler/schedule"
	"github.com/megatrain/mtc/compiler/view"
	"github.com/megatrain/mtc/lang/diag"
	"github.com/megatrain/mtc/runtime/plan"
)

// inspectWhy explains a task, and holds other schedules of the model against the one there is.
func inspectWhy(ctx context.Context, e *env, s *loaded, o inspectOptions, out *bytes.Buffer) error {
	task, err := s.task(o.why)
	if err != nil {
		return err
	}
	t, err := s.predict(o.machine, s.Plan.Tasks[task].List)
	if err != nil {
		return err
	}
	var choices []view.Choice
	var chosen []view.Chosen
	if t.Line.List == plan.Steady {
		var note string
		if choices, chosen, note = s.choices(ctx, e, t); note != "" {
			fmt.Fprintf(e.err, "note: %s\n", note)
		}
	}
	w, err := t.Why(task, choices)
	if err != nil {
		return inputErrorf("%v", err)
	}
	w.Chosen = chosen
	if o.json {
		enc := json.NewEncoder(out)
		enc.SetIndent("", "  ")
		return enc.Encode(w)
	}
	w.Write(out)
	return nil
}

// task finds a task by its number, or the first one of a steady step by how its name begins:
// "prefetch layer[2]".
func (s *loaded) task(text string) (int, error) {
	if n, err := strconv.Atoi(text); err == nil {
		if n < 0 || n >= len(s.Plan.Tasks) {
			return 0, usageErrorf("there is no task %d: tasks go from 0 to %d", n, len(s.Plan.Tasks)-1).
				hint("`mtc inspect --list steady` lists those of a training step")
		}
		return n, nil
	}
	r := s.Plan.Lists[plan.Steady]
	for i := r.Start; i < r.End; i++ {
		if name := view.Title(s.Plan, &s.Plan.Tasks[i]); text != "" && strings.HasPrefix(name, text) {
			return i, nil
		}
	}
	return 0, usageErrorf("no task of a steady step is called `%s`", text).
		hint("write its number, or the beginning of its name, such as `%s`; `mtc inspect --list steady` lists them",
			view.Title(s.Plan, &s.Plan.Tasks[r.End-1]))
}

// choices compiles the model again with other choices than the build's, where its text is
// still at hand; the note says why there are none.
func (s *loaded) choices(ctx context.Context, e *env, t *view.Step) (out []view.Choice, chosen []view.Chosen, note string) {
	record, err := readRecord(s.dir)
	if err != nil {
		return nil, nil, "other choices are not shown: there is no record of how this was compiled"
	}
	path := record.resolve(s.dir, record.Source)
	o := record.Options
	o.tell = e.err
	base, choice, err := compiledAs(ctx, path, o)
	if err != nil {
		return nil, nil, fmt.Sprintf("other choices are not shown: %s cannot be compiled as it was", path)
	}
	if base.Plan.Hash != s.Plan.Hash || len(base.Plan.Tasks) != len(s.Plan.Tasks) {
		return nil, nil, fmt.Sprintf("other choices are not shown: %s makes another schedule now", path)
	}
	if choice != nil {
		o.Placement, o.MicroBatch, o.Recompute = choice.Options.Placement, choice.Options.MicroBatch, choice.Options.Recompute
		o.SaveValues, o.InputEvery = choice.Options.SaveValues, choice.Options.InputEvery
		for _, r := range choice.Why {
			chosen = append(chosen, view.Chosen{Flag: "--" + r.Flag, Value: r.Value, Why: r.Why})
		}
	}
	o.tell = nil
	all := s.alternatives(o, choice)
	m := newMeter(e.err, "comparing")
	defer m.end()
	out = make([]view.Choice, len(all))
	var next atomic.Int64
	var workers sync.WaitGroup
	var fault atomic.Pointer[any]             // a panic, which goes on in this goroutine
	for range min(runtime.GOMAXPROCS(0), 4) { // each holds the tasks of a schedule or two
		workers.Go(func() {
			defer func() {
				if r := recover(); r != nil {
					fault.Store(&r)
				}
			}()
			for i := int(next.Add(1)) - 1; i < len(all); i = int(next.Add(1)) - 1 {
				m.say(fmt.Sprintf("%s, %d of %d", all[i].flags, i+1, len(all)))
				out[i] = all[i].compare(ctx, path, choice, t)
			}
		})
	}
	workers.Wait()
	if r := fault.Load(); r != nil {
		panic(*r)
	}
	return out, chosen, ""
}

// compare is what comes of an alternative on the machine of a step.
func (a alternative) compare(ctx context.Context, path string, choice *planner.Choice, t *view.Step) view.Choice {
	x := view.Choice{What: a.flags}
	sched, err := a.schedule(ctx, path)
	if err == nil {
		x.Step, err = sched.Predict(t.Machine, plan.Steady)
	}
	if alone := a.alone(ctx, path, choice, t); alone != nil && (err != nil || alone.Line.Seconds < x.Step.Line.Seconds) {
		x.Step, err = alone, nil
	}
	if err != nil {
		x.Step, x.Err = nil, firstFinding(err)
	}
	return x
}

// compiledAs is the schedule of a .mt, and the planner's choice where it chooses.
func compiledAs(ctx context.Context, path string, o compileOptions) (*view.Schedule, *planner.Choice, error) {
	var l diag.List
	if err := o.check(); err != nil {
		return nil, nil, err
	}
	c := o.compiler(path)
	var choice *planner.Choice
	if o.Planned {
		var err error
		if choice, err = o.plan(ctx, path, &l); err != nil {
			return nil, nil, err
		}
		c = pin(c, choice, o.Memory)
	}
	res, err := compiler.Compile(ctx, c, &l)
	if err != nil {
		return nil, nil, err
	}
	return made(res.Plan, cost.WorkOf(res.Program)), choice, nil
}

// made is the schedule of a plan that has just been made, as far as predictions and sums of memory look at it.
func made(p *plan.Plan, w *cost.Work) *view.Schedule {
	return &view.Schedule{File: &schedule.File{Work: w}, Plan: p}
}

// schedule is that of an alternative. Where the planner chooses, it keeps what takes the most time to choose as
// it was and fits the rest into memory anew; where nothing fits so, it chooses all anew.
func (a alternative) schedule(ctx context.Context, path string) (*view.Schedule, error) {
	if !a.options.Planned {
		s, _, err := compiledAs(ctx, path, a.options)
		return s, err
	}
	var choice *planner.Choice
	var err error
	for _, held := range [][]string{a.held, nil} {
		o := a.options
		o.Pinned = slices.Concat(o.Pinned, held)
		r, bad := o.request(path)
		if bad != nil {
			return nil, bad
		}
		r.Quick = true
		var l diag.List
		if choice, err = planner.Choose(ctx, r, &l); err == nil {
			return made(choice.Plan, choice.Work), nil
		}
	}
	return nil, err
}

// alone is the step where nothing else changes than the alternative itself; nil where that cannot be, or does not
// fit. The rest chosen anew is another search than the build's, and may end with less.
func (a alternative) alone(ctx context.Context, path string, choice *planner.Choice, t *view.Step) *view.Step {
	if choice == nil {
		return nil
	}
	sched, _, err := compiledAs(ctx, path, a.single)
	if err != nil {
		return nil
	}
	if device, host := planner.Need(sched.Plan, choice.Machine); device > choice.DeviceLimit || host > choice.HostLimit {
		return nil
	}
	step, err := sched.Predict(t.Machine, plan.Steady)
	if err != nil {
		return nil
	}
	return step
}

// firstFinding is the first line of an error.
func firstFinding(err error) string {
	var l *diag.List
	if errors.As(err, &l) && l.Len() > 0 {
		return l.Sorted()[0].Message
	}
	return err.Error()
}

type alternative struct {
	flags   string
	options compileOptions
	single  compileOptions // where the planner chose: all that it chose, and this one change
	held    []string       // flags of options that stay as the planner chose them, as far as that fits
}

// heldWhole are the options that a planner keeps beside an alternative: each other one of these is another way
// to lower the model.
var heldWhole = []string{"placement", "micro-batch", "recompute", "input-every", "save-values"}

// alternatives are the choices next to those of a build, one change each. choice is the planner's, if it made it.
func (s *loaded) alternatives(o compileOptions, choice *planner.Choice) []alternative {
	var out []alternative
	whole := o
	if choice != nil {
		whole = o.settled(&choice.Options)
	}
	add := func(flags string, change func(o *compileOptions)) {
		x := o
		x.Set, x.Pinned = slices.Clone(o.Set), slices.Clone(o.Pinned)
		change(&x)
		// Where the planner chose, it chooses the rest anew.
		flag, _, _ := strings.Cut(strings.TrimPrefix(flags, "--"), " ")
		if x.Planned && slices.Contains(plannedFlags, flag) && !slices.Contains(x.Pinned, flag) {
			x.Pinned = append(x.Pinned, flag)
			slices.Sort(x.Pinned)
		}
		a := alternative{flags: flags, options: x, single: whole}
		a.single.Set = slices.Clone(whole.Set)
		change(&a.single)
		for _, f := range heldWhole {
			values := f == "recompute" || f == "save-values" // of layers: one follows from the other
			if f != flag && !slices.Contains(x.Pinned, f) && !(values && (flag == "recompute" || flag == "save-values" || flag == "placement")) {
				a.held = append(a.held, f)
			}
		}
		out = append(out, a)
	}
	streams := false
	for _, slab := range s.Plan.Slabs {
		streams = streams || !slab.Resident
	}
	if streams {
		slots, grads := s.Plan.Slots, s.Plan.GradSlots
		add("--placement resident", func(o *compileOptions) { o.Placement, o.Memory = "resident", 0 })
		add(fmt.Sprintf("--slots %d", slots+1), func(o *compileOptions) { o.Slots = slots + 1 })
		add(fmt.Sprintf("--grad-slots %d", grads+1), func(o *compileOptions) { o.GradSlots = grads + 1 })
	} else {
		add("--placement stream", func(o *compileOptions) { o.Placement = "stream" })
	}
	again := slices.ContainsFunc(s.Plan.Tasks, func(t plan.Task) bool { return t.Func == plan.Recompute || t.Func == plan.Again })
	if o.Recompute != "all" {
		add("--recompute all", func(o *compileOptions) { o.Recompute, o.SaveValues = "all", "none" })
	}
	if again {
		add("--recompute none", func(o *compileOptions) { o.Recompute = "none" })
	}
	if s.Plan.SavedInputs > 0 {
		add("--save-inputs none", func(o *compileOptions) { o.SaveInputs = "none" })
	}
	if s.Plan.SavedLayers > 0 {
		add("--save-values none", func(o *compileOptions) { o.SaveValues = "none" })
	}
	rows := s.Plan.Rows
	if rows > 1 && rows%2 == 0 {
		add(fmt.Sprintf("--micro-batch %d", rows/2), func(o *compileOptions) { o.MicroBatch = rows / 2 })
	}
	if s.Plan.Micros > 1 && s.Plan.Batch%(2*rows) == 0 {
		add(fmt.Sprintf("--micro-batch %d", 2*rows), func(o *compileOptions) { o.MicroBatch = 2 * rows })
	}
	if s.Plan.Clip {
		add("--set train.clip=none", func(o *compileOptions) { o.Set = append(o.Set, "train.clip=none") })
	} else {
		add("--set train.clip=1.0", func(o *compileOptions) { o.Set = append(o.Set, "train.clip=1.0") })
	}
	return out
}
