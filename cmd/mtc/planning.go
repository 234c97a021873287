package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"runtime/debug"
	"slices"

	"github.com/spf13/pflag"

	"github.com/megatrain/mtc/compiler"
	"github.com/megatrain/mtc/compiler/cost"
	"github.com/megatrain/mtc/compiler/planner"
	"github.com/megatrain/mtc/compiler/schedule"
	"github.com/megatrain/mtc/lang/diag"
	"github.com/megatrain/mtc/lang/source"
	"github.com/megatrain/mtc/runtime/hostmem"
	"github.com/megatrain/mtc/runtime/telemetry"
)

// plannedFlags are the flags that the planner chooses where they are not given.
var plannedFlags = []string{
	"placement", "micro-batch", "groups", "order", "recompute", "resident", "device-weights", "grad-home",
	"grad-precision", "save-inputs", "save-values", "input-every", "slots", "grad-slots", "host-slots",
}

// bindMachine adds the flags that say what a plan is for.
func (o *compileOptions) bindMachine(fs *pflag.FlagSet) {
	fs.StringVar(&o.Machine, "machine", "", "`NAME` or file of a machine's profile to plan for: h200, rtx4090, ..., or this, as mtc bench measured it")
	fs.Var((*byteSize)(&o.HostMemory), "host-memory", "`SIZE` that the plan may take of host memory, such as 64GiB (default: the machine's)")
}

// choose marks that the planner is to choose what was not given, if the flags ask for it: they
// name a machine or host memory, leave the placement open in words, or cap the device and do
// not say what to do about it.
func (o *compileOptions) choose(given func(flag string) bool) {
	if o.Machine == "" && o.HostMemory == 0 && o.Placement != "auto" && (o.Memory == 0 || given("placement")) {
		return
	}
	o.Planned = true
	if o.Machine != "" && !given("target") {
		// A machine's own target; what is wrong with its name is said where it is looked up.
		for _, target := range []string{"cuda", "cpu"} {
			if m, err := cost.Find(o.Machine, target); err == nil {
				o.Target = m.Target
				break
			}
		}
	}
	for _, f := range plannedFlags {
		if given(f) && !(f == "placement" && o.Placement == "auto") && !slices.Contains(o.Pinned, f) {
			o.Pinned = append(o.Pinned, f)
		}
	}
	slices.Sort(o.Pinned)
}

// request is what the planner is asked.
func (o *compileOptions) request(path string) (planner.Request, error) {
	r := planner.Request{Options: o.compiler(path), Pinned: map[string]bool{}, Device: o.Memory, Host: o.HostMemory}
	for _, f := range o.Pinned {
		r.Pinned[f] = true
	}
	m, err := o.machine()
	if err != nil {
		return r, err
	}
	r.Machine, r.Options.Target = m, m.Target
	return r, nil
}

// machine is what is planned for: the machine named, else this one as far as it is known.
func (o *compileOptions) machine() (*cost.Machine, error) {
	if o.Machine != "" {
		return machineFor(o.Machine, o.Target)
	}
	m, err := machineFor("", o.Target)
	if err != nil {
		return nil, err
	}
	x := *m
	if free, ok := hostmem.Available(); ok && x.Name != "h200" {
		x.HostMemory = cost.Figure{Value: float64(free.Bytes), Source: free.Limit}
		if x.Target == "cpu" {
			x.DeviceMemory = x.HostMemory
		}
	}
	return &x, nil
}

// plannedFor is what schedule.json says of the machine that the planner chose for; nil where none was named.
func (o *compileOptions) plannedFor() *schedule.Planned {
	if !o.Planned || o.Machine == "" {
		return nil
	}
	name := o.Machine
	if path, err := filepath.Abs(name); err == nil && exists(path) && cost.Shipped(name) == nil {
		name = path // a run folder is looked at from anywhere
	}
	return &schedule.Planned{Machine: name, DeviceMemory: o.Memory, HostMemory: o.HostMemory}
}

// plan has the planner choose, and returns the options with everything pinned.
func (o *compileOptions) plan(ctx context.Context, path string, l *diag.List) (*planner.Choice, error) {
	r, err := o.request(path)
	if err != nil {
		return nil, err
	}
	c, err := choose(ctx, r, l, o.tell)
	var short *planner.ShortError
	if errors.As(err, &short) {
		return nil, shortList(short)
	}
	return c, err
}

// choose has the planner choose, and tells how far it is where that takes long.
func choose(ctx context.Context, r planner.Request, l *diag.List, tell io.Writer) (*planner.Choice, error) {
	// Plans are large and short-lived: collecting less often takes a fifth off a search.
	defer debug.SetGCPercent(debug.SetGCPercent(400))
	m := newMeter(tell, "planning")
	defer m.end()
	r.Progress = m.say
	return planner.Choose(ctx, r, l)
}

// shortList words that nothing fits as a finding.
func shortList(short *planner.ShortError) error {
	var l diag.List
	if short.Impossible != "" { // of no machine
		d := l.Errorf("MT0405", source.Span{}, "%s", short.Impossible)
		if short.Change != "" {
			d.Hint("with %s it fits", short.Change)
		}
		return l.Err()
	}
	d := l.Errorf("MT0415", source.Span{}, "no plan fits %s", short.Machine.Name)
	for _, line := range short.Lines() {
		d.Note("%s", line)
	}
	if short.More() != "" {
		d.Note("with %s it fits as it is", short.More())
	}
	switch {
	case short.Cut:
		d.Hint("not every change was tried: schedules of so many layers take long to make")
	case short.Change == "" && short.More() != "":
		d.Hint("no other setting makes it fit: take that much memory, or a smaller model")
	case short.Change == "":
		d.Hint("nothing makes it fit: take a smaller model, or more memory")
	case short.Does == "":
		d.Hint("with %s it fits", short.Change)
	default:
		d.Hint("with %s it fits: %s", short.Change, short.Does)
	}
	return l.Err()
}

// pin lays the options of a choice over the ones of the command line.
func pin(o compiler.Options, c *planner.Choice, deviceMemory int64) compiler.Options {
	x := c.Options
	x.DumpAfter, x.Version, x.DeviceMemory = o.DumpAfter, o.Version, deviceMemory
	return x
}

// fitHere looks whether a plan of the defaults fits this machine. Where it does not, the planner
// chooses what was not given.
func (b *builder) fitHere(ctx context.Context, e *env, path string, o compileOptions, res *compiler.Result) (*compiler.Result, error) {
	m, err := o.machine()
	if err != nil || m.Target == "cuda" && m.Name != cost.This {
		return res, nil // the GPU was never measured: the program finds out
	}
	deviceNeed, hostNeed := planner.Need(res.Plan, m)
	if deviceNeed <= int64(m.DeviceMemory.Value) && hostNeed <= int64(m.HostMemory.Value) {
		return res, nil
	}
	o.Planned = true
	for _, f := range plannedFlags {
		if b.given(f) {
			o.Pinned = append(o.Pinned, f)
		}
	}
	var l diag.List
	c, err := o.plan(ctx, path, &l)
	if err != nil {
		return res, err
	}
	need, free := hostNeed, int64(m.HostMemory.Value)
	if deviceNeed > int64(m.DeviceMemory.Value) {
		need, free = deviceNeed, int64(m.DeviceMemory.Value)
	}
	fmt.Fprintf(e.err, "note: the default plan takes %s, and %s are free: %s\n", telemetry.Bytes(need), telemetry.Bytes(free), planFlags(c.Options))
	return compiler.Compile(ctx, pin(o.compiler(path), c, o.Memory), &l)
}
