package compiler

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/megatrain/mtc/compiler/passes/front"
	"github.com/megatrain/mtc/compiler/passes/lower"
	"github.com/megatrain/mtc/compiler/schedule"
	"github.com/megatrain/mtc/lang/source"
	"github.com/megatrain/mtc/runtime/plan"
	"github.com/megatrain/mtc/runtime/tensor"
)

// ready checks what only compiling needs: a batch and a sequence length, and options that
// are words.
func ready(s *state) {
	if !s.reuses() {
		front.Ready(s.front)
	}
	word := func(flag, got string, want ...string) {
		if got != "" && !slices.Contains(want, got) {
			s.diags.Errorf("MT0403", source.Span{}, "`--%s %s` is not one of %s", flag, got, strings.Join(want, ", ")).
				Hint("%s", front.DidYouMean(got, want))
		}
	}
	gpuExperts(s)
	word("placement", s.opts.Placement, schedule.Resident, schedule.Stream, schedule.Auto)
	word("target", s.opts.Target, "cpu", "cuda")
	word("order", s.opts.Order, "auto", schedule.LayerMajor, schedule.BatchMajor)
	word("grad-precision", s.opts.GradPrecision, "f32", "bf16")
	readyPlacement(s)
	for _, o := range []struct {
		flag string
		n    int64
	}{
		{"slots", s.opts.Slots}, {"grad-slots", s.opts.GradSlots}, {"micro-batch", s.opts.MicroBatch},
		{"groups", s.opts.Groups}, {"host-slots", s.opts.HostSlots}, {"input-every", s.opts.InputEvery}, {"device-weights", s.opts.DeviceWeights}, {"prefill", s.opts.Prefill}, {"device-memory", s.opts.DeviceMemory},
	} {
		if o.n < 0 {
			s.diags.Errorf("MT0403", source.Span{}, "`--%s %d` is negative", o.flag, o.n).
				Hint("leave it out for the default")
		}
	}
}

// modelPass makes a pass of the back half that works on the model.
func modelPass(name, doc string, run func(*state)) pass {
	return pass{Name: name, Doc: doc, Run: run, Dump: func(s *state) string { return front.DumpUnits(s.front) }}.back()
}

// templatePass makes a pass that works on the templates.
func templatePass(name, doc string, run func(*lower.Lowering)) pass {
	return pass{
		Name: name, Doc: doc,
		Run:  func(s *state) { run(s.lowering) },
		Dump: func(s *state) string { return lower.Dump(s.lowering.Program) },
	}.back()
}

func lowerOptions(s *state) lower.Options {
	return lower.Options{Rows: s.opts.MicroBatch, Prefill: s.opts.Prefill, Recompute: recompute(s.opts), Again: s.opts.InputEvery > 1, DType: dtype(s), DeviceMemory: s.opts.DeviceMemory, LogitsFor: s.opts.LogitsFor, CheckNaN: s.opts.CheckNaN}
}

// dtype is what the target computes in: on a GPU what the train block's precision says; on a
// CPU, whose kernels know nothing else, f32.
func dtype(s *state) tensor.DType {
	if t := s.res.Model.Train; s.opts.Target == "cuda" && t != nil && t.Precision == "bf16" {
		return tensor.BF16
	}
	return tensor.F32
}

func startTemplates(s *state) {
	s.lowering = lower.Templates(s.res.Model, lowerOptions(s), s.diags)
}

// finishMemory places the values of the functions; the program is then whole.
func finishMemory(s *state) {
	lower.Memory(s.lowering)
	s.res.Program = s.lowering.Program
	checkBounds(s)
}

// maxVisits bounds how often a step visits units: a visit is a handful of tasks.
const maxVisits = 400_000

// buildPlan makes the schedule and its memory.
func buildPlan(s *state) {
	m := s.res.Model
	if micros, units := m.Batch/s.res.Program.Rows, int64(len(m.Units)); micros > maxVisits/units {
		s.diags.Errorf("MT0405", m.At("batch"), "a step of %d micro-batches through %d units is too long a schedule", micros, units).
			Note("a micro-batch has %d of the %d rows of a step", s.res.Program.Rows, m.Batch).
			Hint("take a larger micro-batch, `--micro-batch ROWS`, or a smaller batch, whose rows have more divisors")
		return
	}
	p, err := schedule.Build(s.res.Program, planOptions(s))
	if short, ok := asShort(err); ok {
		if !s.openFit(short) {
			tooLarge(s, short)
		}
		return
	}
	if err != nil {
		var place *schedule.PlaceError
		if errors.As(err, &place) {
			s.diags.Errorf("MT0405", place.Span, "%s", err).Hint("%s", place.Hint)
		} else { // an option is to blame
			s.diags.Errorf("MT0405", source.Span{}, "%s", err)
		}
		return
	}
	p.Values = values(m)
	p.Foreign, p.Family = s.foreign, s.family
	s.res.Plan = p
}

// planOptions are the choices that shape the schedule.
func planOptions(s *state) schedule.Options {
	o := s.opts
	keep, names, pinned := kept(s)
	inputs := savedInputs(s)
	return schedule.Options{
		Placement: o.Placement, Slots: o.Slots, GradSlots: o.GradSlots, HostSlots: o.HostSlots,
		Groups: o.Groups, Order: order(s), DeviceMemory: o.DeviceMemory,
		Keep: keep, KeepNames: names, KeepPinned: pinned, DeviceWeights: o.DeviceWeights,
		DeviceGrads: deviceGrads(s).n, HalfGrads: o.GradPrecision == "bf16",
		SaveInputs: inputs.n, SaveAuto: inputs.auto, SaveKept: savedValues(s).n, InputEvery: o.InputEvery,
		Target: o.Target, Compiler: o.Version, Hash: hash(s), ModelHash: modelHash(s),
	}
}

// verifyPlan runs the verifier on every compile. What it finds is a fault of the compiler.
func verifyPlan(s *state) {
	if s.trial == nil {
		return // a trial: only its size is asked for
	}
	if err := schedule.Verify(s.res.Plan); err != nil {
		s.diags.Errorf("MT0002", source.Span{}, "internal compiler error in pass verify: %s", err).
			Hint("this is a fault of mtc, not of the text; please report it with the .mt file")
	}
}

// hash identifies a build: the texts, the model's values, the sizes of a step, and the options,
// defaults filled in.
func hash(s *state) string {
	h := sha256.New()
	m := s.res.Model
	for _, f := range m.Files {
		fmt.Fprintf(h, "%d\n%s", len(f.Text), f.Text)
	}
	fmt.Fprintf(h, "model %s\n", m.Name)
	for _, c := range m.Consts {
		fmt.Fprintf(h, "%s = %s\n", c.Name, c.Value)
	}
	t := m.Train
	fmt.Fprintf(h, "%d %d %s %t %t\n", m.Batch, m.Seq, t.Precision, t.Run.Clip > 0, t.Run.EvalEvery > 0)
	if t.Documents {
		fmt.Fprintf(h, "documents packed\n")
	}
	o := s.opts
	fmt.Fprintf(h, "%s %s %d %d %d %s\n", or(o.Target, "cpu"), or(o.Placement, schedule.Resident),
		or(o.Slots, 1+or(o.InputEvery, 1)), or(o.GradSlots, 1+or(o.InputEvery, 1)), groups(s), or(recompute(o), "none"))
	if o.InputEvery > 1 {
		fmt.Fprintf(h, "every %d\n", o.InputEvery)
	}
	fmt.Fprintf(h, "%s %d %s %s %s %d\n", or(o.Resident, "auto"), o.DeviceWeights, or(o.GradHome, "auto"),
		or(o.GradPrecision, "f32"), or(o.SaveInputs, "auto"), or(o.HostSlots, 4))
	fmt.Fprintf(h, "%d %d %d %s\n", s.res.Program.Rows, s.res.Program.Prefill, o.DeviceMemory, o.Version)
	if o.SaveValues != "" && o.SaveValues != "auto" && o.SaveValues != "none" {
		fmt.Fprintf(h, "values %s\n", o.SaveValues)
	}
	if o.LogitsFor > 0 {
		fmt.Fprintf(h, "logits for %d\n", o.LogitsFor)
	}
	if o.CheckNaN {
		fmt.Fprintln(h, "checks of finite values")
	}
	return hex.EncodeToString(h.Sum(nil))[:16]
}

// groups are those of micro-batches, as far as they are known before the schedule: 0 where
// they follow from what fits.
func groups(s *state) int64 {
	switch o := s.opts; {
	case order(s) == schedule.BatchMajor:
		return s.res.Model.Batch / s.res.Program.Rows
	case order(s) == schedule.LayerMajor:
		return or(o.Groups, 1)
	case o.Groups != 0 || o.DeviceMemory != 0:
		return o.Groups
	case or(o.Placement, schedule.Resident) == schedule.Resident:
		return s.res.Model.Batch / s.res.Program.Rows
	case o.Placement == schedule.Stream:
		return 1
	}
	return 0
}

// or is the first value that is not zero: an option or its default.
func or[T comparable](v, def T) T {
	var zero T
	if v == zero {
		return def
	}
	return v
}

// dumpPlan prints the schedule, list by list.
func dumpPlan(s *state) string {
	var b strings.Builder
	p := s.res.Plan
	fmt.Fprintf(&b, "plan of %s: %s, %d micro-batches of %d rows, %d groups, hash %s\n", p.Model, p.Placement, p.Micros, p.Rows, p.Groups, p.Hash)
	for _, a := range p.Arenas {
		fmt.Fprintf(&b, "arena %-10s %d bytes\n", a.Name, a.Bytes)
	}
	for l := plan.First; l < plan.NumLists; l++ {
		fmt.Fprintf(&b, "%s\n", l)
		for _, t := range p.Tasks[p.Lists[l].Start:p.Lists[l].End] {
			what := ""
			if t.Unit >= 0 {
				what = p.Units[t.Unit].Name
			} else if t.Slab >= 0 {
				what = p.Slabs[t.Slab].Name
			}
			fmt.Fprintf(&b, "  %5d %-7s %-10s %-9s %-12s micro %d", t.ID, t.Lane, t.Kind, t.Func, what, t.Micro)
			for _, w := range t.Waits {
				fmt.Fprintf(&b, " wait %d", w.Event)
				if w.Back > 0 {
					fmt.Fprintf(&b, "^%d", w.Back)
				}
			}
			if t.Event >= 0 {
				fmt.Fprintf(&b, " event %d", t.Event)
			}
			b.WriteByte('\n')
		}
	}
	return b.String()
}
