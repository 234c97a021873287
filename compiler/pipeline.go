package compiler

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/megatrain/mtc/compiler/ir"
	"github.com/megatrain/mtc/compiler/passes/front"
	"github.com/megatrain/mtc/compiler/passes/lower"
	"github.com/megatrain/mtc/lang/diag"
	"github.com/megatrain/mtc/lang/source"
	"github.com/megatrain/mtc/runtime/plan"
)

// state is what passes hand on.
type state struct {
	ctx   context.Context
	opts  Options
	diags *diag.List
	res   *Result
	front *front.State
	until string // name of the first pass that is left out; "": none
	known bool   // the text was compiled before: what no program depends on is left out
	keep  bool   // model is to be kept, for other options
	// model is as it is before options shape it; of a known text it stands for all passes before.
	model *ir.Model

	identity  string // what a checkpoint depends on
	modelHash string // of the identity, where it is known
	foreign   []plan.Foreign
	family    plan.Family
	lowering  *lower.Lowering

	// check runs the front half on other text, nil when that has errors.
	check func(Options) *ir.Model
	// trial compiles with other options to see whether that gives a plan, and leaves out what
	// a plan does not depend on; nil without one, and the field is nil while doing so.
	trial func(Options) *state
}

// pass is one step of the compiler.
type pass struct {
	Name string
	Doc  string // one line
	Run  func(*state)
	// Dump prints what the pass made, for --dump-after.
	Dump func(*state) string
	// Soft: after errors in this pass the next one still runs, so that a file's findings of
	// several kinds come in one go.
	Soft bool
	// Back marks the passes that Check leaves out.
	Back bool
}

func (p pass) soft() pass { p.Soft = true; return p }
func (p pass) back() pass { p.Back = true; return p }

// pipeline is the compiler, in order.
var pipeline = []pass{
	frontPass("load", "read the file and what it uses, parse them", front.Load, front.DumpFiles),
	frontPass("target", "choose the model, its preset and the values given", front.Target, front.DumpTarget).soft(),
	frontPass("names", "resolve every name, check every call's arguments", front.Names, front.DumpNames).soft(),
	frontPass("train", "check the train block", front.Train, front.DumpTrain).soft(),
	frontPass("constants", "evaluate the model's parameters", front.Constants, front.DumpConstants),
	frontPass("elaborate", "run forward: inline blocks, take conditions, unroll repeats", front.Elaborate, front.DumpUnits).soft(),
	frontPass("shapes", "apply each op's shape rule", front.Shapes, front.DumpUnits).soft(),
	frontPass("params", "name every weight, resolve ties and inits", front.Params, front.DumpParams),
	frontPass("units", "check embedding, blocks and head", front.Units, front.DumpUnits),
	frontPass("weights", "prove the weights maps total and free of overlap", front.Weights, front.DumpMaps),
	frontPass("targets", "find the linears that get adapters", front.Targets, front.DumpTargets),
	pass{Name: "ready", Doc: "check that a train block gives the sizes of a step", Run: ready}.back(),
	modelPass("prune", "drop what no output needs", func(s *state) { lower.Prune(s.res.Model, s.diags) }),
	pass{Name: "identity", Doc: "note what a checkpoint depends on", Run: identify, Dump: func(s *state) string { return s.identity }}.back(),
	pass{Name: "family", Doc: "see as which known model other programs can have it", Run: family, Dump: dumpFamily}.back(),
	modelPass("adapters", "lay adapters beside the linears that the train block names, and freeze all else", func(s *state) { lower.Adapters(s.res.Model) }),
	modelPass("fuse", "rewrite patterns of ops to fused ones", func(s *state) { lower.Fuse(s.res.Model) }),
	modelPass("recompute", "note which units make again in backward what it reads", func(s *state) { lower.Recompute(s.res.Model, lowerOptions(s), s.diags) }),
	modelPass("microbatch", "give B and T the sizes of one micro-batch", func(s *state) { lower.Microbatch(s.res.Model, lowerOptions(s), s.diags); gpuLimits(s) }),
	modelPass("dtypes", "give every value its element type by its role", func(s *state) { lower.Dtypes(s.res.Model, lowerOptions(s)) }),
	pass{Name: "templates", Doc: "let equal units share one template, give parameters their slabs", Run: startTemplates,
		Dump: func(s *state) string { return lower.Dump(s.lowering.Program) }}.back(),
	templatePass("gradients", "differentiate each template", lower.Gradients),
	templatePass("head", "fuse the last linear with the loss, in chunks of rows", lower.Head),
	templatePass("infer", "make the functions for generation", lower.Infer),
	templatePass("checknan", "where it is asked for, put a check behind every launch", lower.CheckNaN),
	templatePass("inuse", "leave out the rows of experts that are not in use", lower.InUse),
	pass{Name: "memory", Doc: "give every value of every function a place", Run: finishMemory,
		Dump: func(s *state) string { return lower.Dump(s.res.Program) }}.back(),
	pass{Name: "schedule", Doc: "make the task lists, their buffers and waits", Run: buildPlan, Dump: dumpPlan}.back(),
	pass{Name: "verify", Doc: "prove the schedule safe", Run: verifyPlan, Dump: dumpPlan}.back(),
}

// PassInfo names a pass.
type PassInfo struct {
	Name, Doc string
	Back      bool // Check leaves it out
}

// Passes lists the passes in order.
func Passes() []PassInfo {
	out := make([]PassInfo, len(pipeline))
	for i, p := range pipeline {
		out[i] = PassInfo{p.Name, p.Doc, p.Back}
	}
	return out
}

// run is the driver: it runs the passes in order and stops after one that reports errors.
func run(ctx context.Context, o Options, diags *diag.List, back bool) (*Result, error) {
	s := &state{ctx: ctx, opts: o, diags: diags, res: &Result{}}
	s.trial = func(o Options) *state {
		o.DumpAfter = ""
		t := &state{ctx: ctx, opts: o, diags: &diag.List{}, res: &Result{}, check: s.check}
		if _, err := t.run(back); err != nil {
			return nil
		}
		return t
	}
	s.check = func(o Options) *ir.Model {
		res, err := (&state{ctx: ctx, opts: o, diags: &diag.List{}, res: &Result{}}).run(false)
		if err != nil {
			return nil
		}
		return res.Model
	}
	return s.run(back)
}

func (s *state) run(back bool) (*Result, error) {
	ctx, o, diags := s.ctx, s.opts, s.diags
	s.front = newFront(s)
	if o.DumpAfter != "" && !slices.ContainsFunc(pipeline, func(p pass) bool { return p.Name == o.DumpAfter }) {
		var names []string
		for _, p := range pipeline {
			names = append(names, p.Name)
		}
		diags.Errorf("MT0403", source.Span{}, "there is no pass `%s`", o.DumpAfter).
			Hint("%s", front.DidYouMean(o.DumpAfter, names))
		return s.res, diags.Err()
	}
	shaping := slices.IndexFunc(pipeline, func(p pass) bool { return p.Name == "recompute" }) // the first pass that options shape
	if s.reuses() {
		s.res.Model = s.model.Copy()
	}
	for i := range pipeline {
		p := &pipeline[i]
		if p.Back && !back || s.until == p.Name {
			break
		}
		if s.known && (p.Name == "weights" || p.Name == "identity") || i < shaping && s.reuses() && p.Name != "ready" {
			continue
		}
		if i == shaping && s.keep {
			s.model = s.res.Model.Copy()
		}
		if err := ctx.Err(); err != nil {
			return s.res, err
		}
		whole := guard(p, s)
		if diags.HasErrors() && !(p.Soft && whole) {
			break
		}
		if o.DumpAfter == p.Name && p.Dump != nil && !diags.HasErrors() {
			s.res.Dump = p.Dump(s)
		}
	}
	return s.res, diags.Err()
}

// reuses reports whether the passes before options shape the model were run for it already.
func (s *state) reuses() bool { return s.known && s.model != nil }

// guard runs one pass and turns a panic into a diagnostic: a bug of the compiler must not
// look like one of the text, nor end the process without saying where it happened. It is
// false after a panic.
func guard(p *pass, s *state) (whole bool) {
	defer func() {
		if r := recover(); r != nil {
			d := s.diags.Errorf("MT0001", source.Span{}, "internal compiler error in pass %s: %v", p.Name, r)
			for _, line := range ownFrames(debug.Stack()) {
				d.Note("%s", line)
			}
			d.Hint("this is a fault of mtc, not of the text; please report it with the .mt file")
		}
	}()
	p.Run(s)
	return true
}

// ownFrames keeps the few stack lines below the panic that say where it came from.
func ownFrames(stack []byte) []string {
	var out []string
	lines := strings.Split(string(stack), "\n")
	past := false
	for _, l := range lines {
		if strings.HasPrefix(l, "panic(") {
			past = true
			continue
		}
		if past && !strings.HasPrefix(l, "\t") && strings.Contains(l, "mtc/") {
			name, _, _ := strings.Cut(l, "(0x")
			out = append(out, fmt.Sprintf("in %s", name[strings.LastIndexByte(name, '/')+1:]))
			if len(out) == 3 {
				break
			}
		}
	}
	return out
}
