package schedule

import (
	"fmt"

	"github.com/megatrain/mtc/compiler/ir"
	"github.com/megatrain/mtc/compiler/memplan"
	"github.com/megatrain/mtc/lang/source"
	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/ops/moe"
	"github.com/megatrain/mtc/runtime/plan"
)

// layoutRouters gives every router's state a place on the device, which generation needs too,
// and their reports one block on the host.
func (b *builder) layoutRouters() {
	p := b.p
	b.router = make([]plan.BufID, len(p.Units))
	at := map[*ir.Router]plan.BufID{}
	var reports int64
	for u, ub := range b.prog.Units {
		r := ub.Unit.Router
		if r == nil {
			continue
		}
		attr := func(name string) int64 { return r.Attr[name].Int }
		hist := moe.HasHist(attr("kind"), attr("balance"))
		l := moe.StateOf(r.Experts, hist)
		id, ok := at[r]
		if !ok {
			id = b.buffer(devWeights, r.Path+".router", l.Bytes, memplan.Static)
			at[r] = id
		}
		b.router[u] = id
		if ub.Unit.Part != "route" {
			continue
		}
		kind := "topk"
		if attr("kind") == moe.Cutoff {
			kind = "threshold"
			if attr("choice") < 0 {
				kind = "expert_choice"
			}
		}
		n := 8 * moe.ReportLen(r.Experts)
		p.Routers = append(p.Routers, plan.Router{
			Name: r.Path, Unit: u, Kind: kind, Experts: r.Experts, Slots: r.Slots, Mean: r.Mean, Choice: attr("choice"), Hist: hist,
			State: id, Routing: b.genValue[ub.Out[0]], Report: l.Report, At: reports, Reports: n,
			Kept: []plan.RouterPart{
				{Name: "control", Off: l.Control, Elems: moe.Controls, Bytes: 8},
				{Name: "average", Off: l.Average, Elems: r.Experts, Bytes: 8},
				{Name: "threshold", Off: l.Threshold, Elems: r.Experts, Bytes: 4},
				{Name: "bias", Off: l.Bias, Elems: r.Experts, Bytes: 4},
				{Name: "quantile", Off: l.Quantile, Elems: r.Experts, Bytes: 4},
			},
		})
		reports += n
	}
	if reports > 0 {
		p.HostRouters = b.parity(hostIO, "host.routers", reports)
	}
}

// wholeStep reports whether a router looks at all micro-batches of a step at once, so that a
// layer takes all of them before the next one.
func wholeStep(prog *ir.Program) bool {
	for _, ub := range prog.Units {
		if r := ub.Unit.Router; r != nil && looksAtStep(r) {
			return true
		}
	}
	return false
}

func looksAtStep(r *ir.Router) bool {
	return r.Attr["pool"].Int == moe.Step || r.Attr["balance"].Int == moe.AuxStep
}

// checkRouters refuses what routers cannot be scheduled with: counts of a whole step must be
// there before what depends on them, the next layer among it.
func (b *builder) checkRouters() error {
	for _, ub := range b.prog.Units {
		r := ub.Unit.Router
		if r != nil && b.groups > 1 && looksAtStep(r) {
			return &PlaceError{r.Span, fmt.Errorf("the router of %s looks at a whole step, whose micro-batches must be one group, not %d", r.Path, b.groups),
				"leave out `--groups`, or take a router that looks at a micro-batch"}
		}
	}
	return nil
}

// PlaceError is an error of Build that a line of the text is to blame for; others are about options.
type PlaceError struct {
	Span source.Span
	Err  error
	Hint string // what to do
}

func (e *PlaceError) Error() string { return e.Err.Error() }
func (e *PlaceError) Unwrap() error { return e.Err }

// bindRouted binds what functions of a router's ops read besides operands.
func (b *builder) bindRouted(t *plan.Task) {
	fn := b.template(t.Unit).Funcs[t.Func]
	if fn == nil || b.prog.Units[t.Unit].Unit.Router == nil && !b.prog.Documents {
		return
	}
	uses := map[ir.Region]bool{}
	eachPlace(fn.Body, func(p ir.Place) { uses[p.Region] = true })
	if uses[ir.RRouter] {
		t.Bind.Router = b.router[t.Unit]
		t.Reads = append(t.Reads, t.Bind.Router)
		t.Writes = append(t.Writes, t.Bind.Router) // counts, backward those of the losses
	}
	if uses[ir.RScalars] && t.Bind.Scalars == plan.NoBuf {
		t.Bind.Scalars = b.p.Scalars
		t.Reads = append(t.Reads, b.p.Scalars)
	}
	if uses[ir.RTargets] && t.Bind.Targets == plan.NoBuf {
		t.Bind.Targets = b.p.Targets + plan.BufID(t.Micro)
		t.Reads = append(t.Reads, t.Bind.Targets)
	}
}

// advance emits what moves the routers' states after a step, and brings their reports to the
// host. It returns the task that brings the last one, which comes after the step's outcome; -1 without
// routers.
func (b *builder) advance() (told int) {
	p := b.p
	told = -1
	for i := range p.Routers {
		r := &p.Routers[i]
		t := b.task(plan.Compute, device.Compute)
		t.Func, t.Unit, t.Template = plan.Advance, r.Unit, p.Units[r.Unit].Template
		if fn := b.template(r.Unit).Funcs[plan.Advance]; fn != nil {
			t.FLOPs, t.Moved = fn.FLOPs, fn.Moved
		}
		b.bindRouted(&t)
		b.emit(t)
	}
	for i := range p.Routers {
		r := &p.Routers[i]
		t := b.task(plan.Report, device.D2H)
		t.Unit = r.Unit
		told = b.copyTask(t, p.HostRouters, r.At, r.State, r.Report, r.Reports)
	}
	return told
}
