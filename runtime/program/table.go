package program

import (
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"time"

	"github.com/megatrain/mtc/runtime/checkpoint"
	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/fault"
	"github.com/megatrain/mtc/runtime/hostmem"
	"github.com/megatrain/mtc/runtime/plan"
	"github.com/megatrain/mtc/runtime/telemetry"
)

// table is the settings of a run, shown before the first step.
func (s *session) table() []telemetry.Setting {
	p, t := s.plan, &s.train
	rows := modelRows(p)
	add := func(name, format string, args ...any) {
		rows = append(rows, telemetry.Setting{Name: name, Value: fmt.Sprintf(format, args...)})
	}
	add("", "")
	add("data", "%s: %s", strings.Join(t.Data, ", "), s.feed.Summary)
	switch {
	case s.eval == nil:
		add("evaluation", "none (--eval-data FILES or --holdout SHARE)")
	default:
		from := strings.Join(t.EvalData, ", ")
		if t.Holdout > 0 {
			from = fmt.Sprintf("held out (%g of all)", t.Holdout)
		}
		if n := s.feed.Documents; n > 0 {
			from += fmt.Sprintf(": %s", map[bool]string{true: "1 document", false: telemetry.Group(n) + " documents"}[n == 1])
		}
		when := "at the end"
		if t.EvalEvery > 0 {
			when = fmt.Sprintf("every %d steps", t.EvalEvery)
		}
		add("evaluation", "%s, %s tokens, %s", from, telemetry.Group(s.eval.Targets()), when)
	}
	add("steps", "%d, from %d (%.2f epochs)", t.Steps, s.engine.State().Step, s.loader.Epoch(t.Steps))
	add("learning rate", "%s", scheduleText(t.LR))
	add("optimizer", "%s", optimizerText(t.Optimizer))
	if t.Clip > 0 {
		add("clip", "global norm %g", t.Clip)
	} else {
		add("clip", "none")
	}
	add("seed", "%d", t.Seed)
	add("", "")
	add("device", "%s", s.engine.Device().Name())
	add("memory", "%s", memoryText(p, s.engine.Device()))
	if s.startup.phases != nil {
		add("start-up", "%s", s.startup.text())
	}
	add("run folder", "%s", s.out)
	if s.from != nil {
		add("resumed from", "%s", s.from.Path)
	}
	if s.foreign != nil {
		add("weights from", "%s", s.foreign.folder.Path)
	}
	return rows
}

// modelRows describe what was compiled.
func modelRows(p *plan.Plan) []telemetry.Setting {
	rows := []telemetry.Setting{{Name: "model", Value: fmt.Sprintf("%s (%s), %s parameters", p.Model, p.Source, telemetry.Group(p.NumParams))}}
	if p.LoRA.On() {
		rows = append(rows, telemetry.Setting{Name: "adapters", Value: AdaptersText(p)})
	}
	return append(rows, []telemetry.Setting{
		{Name: "step", Value: StepText(p)},
		{Name: "placement", Value: PlacementText(p)},
	}...)
}

// AdaptersText says what learns where the rest is frozen.
func AdaptersText(p *plan.Plan) string {
	n := p.NumTrained()
	return fmt.Sprintf("rank %d, alpha %g on %d linears; %s parameters learn (%.2g %%)",
		p.LoRA.Rank, p.LoRA.Alpha, len(p.LoRA.Adapters), telemetry.Group(n), 100*float64(n)/float64(p.NumParams))
}

// PlacementText says where the state of training lives.
func PlacementText(p *plan.Plan) string {
	if p.Placement != "stream" {
		return "resident: weights, gradients and moments stay on the device" + savedText(p)
	}
	s := fmt.Sprintf("stream: %s for weights, %s for gradients", slots(p.Slots), slots(p.GradSlots))
	kept := 0
	for i := range p.Slabs {
		if p.Slabs[i].Resident {
			kept++
		}
	}
	if kept > 0 {
		s += fmt.Sprintf("; %d of %d slabs stay on the device", kept, len(p.Slabs))
	}
	if n := p.DeviceGrads(); n > 0 {
		s += fmt.Sprintf("; %d gradients wait there", n)
	}
	if p.HalfGrads() {
		s += "; gradients in bf16"
	}
	return s + savedText(p)
}

// savedText says how many inputs of layers, of which one with experts has several, and of how many layers what backward
// reads besides, wait on the host.
func savedText(p *plan.Plan) string {
	text := ""
	switch p.SavedInputs {
	case 0:
	case 1:
		text = "; one input of a layer is saved on the host"
	default:
		text = fmt.Sprintf("; %d inputs of layers are saved on the host", p.SavedInputs)
	}
	if p.SavedLayers > 0 {
		text += fmt.Sprintf("; saved activations on the host: of %d layers", p.SavedLayers)
	}
	return text
}

func slots(n int64) string {
	if n == 1 {
		return "one slot"
	}
	return fmt.Sprintf("%d slots", n)
}

// StepText says what one step works on.
func StepText(p *plan.Plan) string {
	s := fmt.Sprintf("%s rows of %s tokens in one micro-batch", telemetry.Group(p.Batch), telemetry.Group(p.Seq))
	if p.Micros > 1 {
		s = fmt.Sprintf("%s rows of %s tokens in %d micro-batches", telemetry.Group(p.Batch), telemetry.Group(p.Seq), p.Micros)
	}
	if p.Groups > 1 {
		s += fmt.Sprintf(", %d groups", p.Groups)
	}
	return s
}

func memoryText(p *plan.Plan, d device.Device) string {
	dev, host := memory(p, false)
	s := fmt.Sprintf("%s (%s device, %s host)", telemetry.Bytes(dev+host), telemetry.Bytes(dev), telemetry.Bytes(host))
	if gpu, ok := d.(graphics); ok {
		free, total := gpu.Free()
		s += fmt.Sprintf("; %s of the GPU's %s are left", telemetry.Bytes(free), telemetry.Bytes(total))
		if n := gpu.Unpinned(); n > 0 {
			s += fmt.Sprintf("; %s could not be locked, so copies are slower", telemetry.Bytes(n))
		}
		return s
	}
	if free, ok := hostmem.Available(); ok {
		s += fmt.Sprintf(" of %s free", telemetry.Bytes(free.Bytes))
	}
	return s
}

// report says what came of the run, which files there are and what to do next.
func (s *session) report() {
	st := s.engine.State()
	fmt.Fprintf(s.outw, "\n%s: %d of %d steps in %s", s.plan.Model, st.Step, s.train.Steps, telemetry.Duration(time.Since(s.began)))
	if s.evaluated >= 0 {
		fmt.Fprintf(s.outw, ", evaluation loss %.4f after step %d", s.evalLoss, s.evaluated)
	}
	if st.Skipped > 0 {
		fmt.Fprintf(s.outw, ", %d steps skipped", st.Skipped)
	}
	fmt.Fprintf(s.outw, "\n\n%s\n", s.out)
	file := func(name, what string) { fmt.Fprintf(s.outw, "  %-16s %s\n", name, what) }
	what := "weights.safetensors, optimizer.safetensors"
	if s.base != nil {
		what = "the adapters with their optimizer; the frozen weights stay in " + s.base.Path
	}
	if s.saved != "" {
		file(filepath.Base(s.saved)+"/", what)
	}
	if !math.IsInf(s.best, 1) {
		file(checkpoint.BestFolder+"/", fmt.Sprintf("the weights with the lowest evaluation loss, %.4f", s.best))
	}
	if dir := filepath.Dir(s.settings.metrics); filepath.Clean(dir) == filepath.Clean(s.out) {
		file(filepath.Base(s.settings.metrics), "a line of JSON for every step")
	}
	if s.routing != nil {
		file(RoutingFile, "what the routers did, for `mtc inspect --moe`")
	}
	file(FileName(), "trains on and generates, also without mtc")
	file(filepath.Base(s.plan.Source), "the model")
	if s.saved == "" {
		fmt.Fprintf(s.outw, "\nnothing was saved (--no-save), so nothing can generate or go on from here\n")
		return
	}
	program := fault.Shell(programIn(s.out))
	fmt.Fprintf(s.outw, "\nnext:\n  %s generate --prompt \"TEXT\"\n", program)
	more := "" // an interrupted run goes on to where it was to end
	if st.Step >= s.train.Steps {
		if more = fmt.Sprintf(" --steps %d", 2*s.train.Steps); s.train.Epochs > 0 {
			more = fmt.Sprintf(" --epochs %d", 2*s.train.Epochs)
		}
	}
	fmt.Fprintf(s.outw, "  %s --resume --out %s%s\n", program, fault.Shell(s.out), more)
}
