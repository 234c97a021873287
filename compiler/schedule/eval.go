package schedule

import (
	"slices"

	"github.com/megatrain/mtc/compiler/ir"
	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/op"
	"github.com/megatrain/mtc/runtime/plan"
)

const gradAdd = ir.GradAdd

// eval makes the list that evaluates one batch of the training step's size: forward and loss,
// without gradients. It runs between drained steps, so its slots start empty.
func (b *builder) eval() {
	b.begin(plan.Eval)
	b.feedStep()
	var visits []visit
	for g := range b.groups {
		visits = append(visits, b.forwardVisits(g)...)
		visits = append(visits, visit{b.head, g, plan.EvalLoss})
	}
	b.walk(visits)
	b.reduce(device.Compute, false)
	b.results[plan.Eval] = b.report()
}

// generate makes the list of one prefill chunk or one decoded token of a single sequence.
func (b *builder) generate(list plan.List) {
	b.begin(list)
	p := b.p
	n := int64(4)
	if list == plan.Prefill {
		n *= p.Prefill
	}
	b.copyTask(b.task(plan.Feed, device.H2D), p.GenTokens, 0, p.HostGenTokens, 0, n)
	if b.position >= 0 {
		b.copyTask(b.task(plan.Feed, device.H2D), p.GenPositions, 0, p.HostGenPositions, 0, n)
	}
	visits := make([]visit, len(p.Units))
	for u := range visits {
		visits[u] = visit{unit: u, fn: plan.Infer}
	}
	b.walk(visits)
	b.copyTask(b.task(plan.Report, device.D2H), p.HostGenLogits, 0, p.GenLogits, 0, p.Buffers[p.GenLogits].Bytes)
}

// walk emits visits with their prefetches.
func (b *builder) walk(visits []visit) {
	fetches := b.fetches(visits)
	for i, v := range visits {
		fetches = b.prefetch(fetches, i, false)
		b.visit(v)
	}
}

// tablesOf lists the tables that a function reads, ascending.
func (b *builder) tablesOf(f *ir.Function) []int {
	if t, ok := b.tableUse[f]; ok {
		return t
	}
	var out []int
	eachPlace(f.Body, func(p ir.Place) {
		if p.Region == ir.RTable && !slices.Contains(out, p.Index) {
			out = append(out, p.Index)
		}
	})
	slices.Sort(out)
	b.tableUse[f] = out
	return out
}

// eachPlace calls f with every operand's place.
func eachPlace(body []ir.Stmt, f func(ir.Place)) {
	for _, s := range body {
		switch s := s.(type) {
		case *ir.Call:
			for _, a := range s.Args {
				f(a.Place)
			}
		case *ir.Loop:
			eachPlace(s.Body, f)
		case *ir.IfFirst:
			eachPlace(s.Body, f)
		}
	}
}

// oneToken is the cost of a generation function for a single token; its own figures are those
// of a whole prefill chunk.
func oneToken(f *ir.Function) (flops, moved int64) {
	flops, moved = f.FLOPs, f.Moved
	if len(f.Body) == 0 {
		return flops, moved
	}
	flops, moved = 0, 0
	var walk func([]ir.Stmt)
	walk = func(body []ir.Stmt) {
		for _, s := range body {
			switch s := s.(type) {
			case *ir.Call:
				if s.Launch.Cost != nil {
					c := s.Launch.Cost(s.Op, op.Sizes{Batch: 1, Seq: 1})
					flops += c.FLOPs
					moved += c.Bytes
				}
			case *ir.Loop:
				walk(s.Body)
			case *ir.IfFirst:
				walk(s.Body)
			}
		}
	}
	walk(f.Body)
	return flops, moved
}
