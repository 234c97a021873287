package program

import (
	"slices"
	"unsafe"

	"github.com/megatrain/mtc/runtime/checkpoint/safetensors"
	"github.com/megatrain/mtc/runtime/engine"
	"github.com/megatrain/mtc/runtime/fault"
	"github.com/megatrain/mtc/runtime/ops/moe"
	"github.com/megatrain/mtc/runtime/plan"
)

// What debug-step takes and gives of routers besides. In the fixture, both optional:
//
//	cutoff.<router>   F32 [E]: cutoffs to start with, as if an average had come to them
//	targets           I32 [steps, rows, seq] in place of the next tokens; -1: not counted
//
// In the dump:
//
//	hidden            what the head reads of the first batch, routed as in training by the
//	                  cutoffs of the start; of plans with evaluation and one micro-batch
//	count.<router>    F64 [steps, E] pairs of each expert
//	pairs.<router>    F64 [steps, moe.Places] pairs by place in the sequence
//	dropped.<router>  F64 [steps] pairs beyond the plan's rows
//	added             F64 [steps] what routers add to the loss
//	threshold.<router>, bias.<router>  F32 [E] after all steps

// cutoffs sets those of the fixture.
func (d *debugRun) cutoffs() error {
	state := slabs{e: d.engine}
	for i := range d.prog.Plan.Routers {
		r := &d.prog.Plan.Routers[i]
		name := "cutoff." + r.Name
		t := d.in.Lookup(name)
		if t == nil {
			continue
		}
		v, err := d.in.F32(name)
		if err != nil {
			return err
		}
		if int64(len(v)) != r.Experts || r.Kind == "topk" {
			return fault.New("MT0625", d.in.Path, "%s has %d values, and the router %d experts and is of kind %s", name, len(v), r.Experts, r.Kind)
		}
		wide := make([]float64, len(v))
		for e, x := range v {
			wide[e] = float64(x)
		}
		moe.SetCutoffs(state.view(r.State), r.Experts, r.Hist, wide)
	}
	return state.flush()
}

// targets are those of the fixture, nil when it has none.
func (d *debugRun) targets(steps int64) ([]int32, error) {
	if d.in.Lookup("targets") == nil {
		return nil, nil
	}
	p := d.prog.Plan
	v, err := d.in.I32("targets")
	if err != nil {
		return nil, err
	}
	if int64(len(v)) != steps*p.Batch*p.Seq || slices.ContainsFunc(v, func(x int32) bool { return int64(x) >= p.Vocab }) {
		return nil, fault.New("MT0625", d.in.Path, "targets are %d, %d steps of %d rows of %d are wanted, each below %d", len(v), steps, p.Batch, p.Seq, p.Vocab)
	}
	return v, nil
}

// hidden runs the first batch forward, routed as in training, and dumps what the head reads: it
// lies where it was made until the list runs again.
func (d *debugRun) hidden(batch func(step int64, tokens, targets []int32) error) error {
	p := d.prog.Plan
	l := p.Lists[plan.Eval]
	if len(p.Routers) == 0 || l.End == l.Start || p.Micros != 1 {
		return nil
	}
	if _, err := d.engine.Evaluate(&engine.Evaluation{Batches: 1, Batch: batch, Route: moe.RouteTrain}); err != nil {
		return err
	}
	state := slabs{e: d.engine}
	for i := range p.Routers {
		r := &p.Routers[i]
		moe.ClearCounts(state.view(r.State), r.Experts, r.Hist)
	}
	if err := state.flush(); err != nil {
		return err
	}
	for i := l.Start; i < l.End; i++ {
		if t := &p.Tasks[i]; t.Kind == plan.Compute && t.Func == plan.EvalLoss {
			dtype, size := "F32", int64(4)
			if p.Bf16() {
				dtype, size = "BF16", 2
			}
			b := make([]byte, p.Buffers[t.Bind.In[0]].Bytes)
			if err := d.engine.Device().Read(b, d.engine.Ptr(t.Bind.In[0], 0)); err != nil {
				return err
			}
			d.out = append(d.out, safetensors.Entry{Name: "hidden", DType: dtype, Shape: []int64{p.Rows, p.Seq, int64(len(b)) / (size * p.Rows * p.Seq)}, Data: b})
		}
	}
	return nil
}

// routerDump gathers what the routers of a run report.
type routerDump struct {
	plan                  *plan.Plan
	steps                 int64
	count, pairs, dropped [][]float64 // by router
	added                 []float64
}

func newRouterDump(p *plan.Plan) *routerDump {
	n := len(p.Routers)
	return &routerDump{plan: p, count: make([][]float64, n), pairs: make([][]float64, n), dropped: make([][]float64, n)}
}

func (r *routerDump) step(m *engine.Metrics) {
	r.steps++
	r.added = append(r.added, routerLoss(r.plan, m))
	for i := range r.plan.Routers {
		q := &r.plan.Routers[i]
		rep := moe.ReportOf(m.Routers[q.At/8:], q.Experts)
		r.count[i], r.pairs[i], r.dropped[i] = append(r.count[i], rep.Count...), append(r.pairs[i], rep.Pairs...), append(r.dropped[i], rep.Dropped)
	}
}

func (r *routerDump) entries(e *engine.Engine) (out []safetensors.Entry) {
	state := slabs{e: e, readOnly: true}
	raw := func(v []float64) []byte { return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(v))), 8*len(v)) }
	if len(r.plan.Routers) > 0 {
		out = append(out, safetensors.Entry{Name: "added", DType: "F64", Shape: []int64{r.steps}, Data: raw(r.added)})
	}
	for i := range r.plan.Routers {
		q := &r.plan.Routers[i]
		out = append(out,
			safetensors.Entry{Name: "count." + q.Name, DType: "F64", Shape: []int64{r.steps, q.Experts}, Data: raw(r.count[i])},
			safetensors.Entry{Name: "pairs." + q.Name, DType: "F64", Shape: []int64{r.steps, moe.Places}, Data: raw(r.pairs[i])},
			safetensors.Entry{Name: "dropped." + q.Name, DType: "F64", Shape: []int64{r.steps}, Data: raw(r.dropped[i])})
		for _, k := range q.Kept {
			if k.Name == "threshold" || k.Name == "bias" {
				b := slices.Clone(state.view(q.State)[k.Off : k.Off+k.Elems*k.Bytes])
				out = append(out, safetensors.Entry{Name: k.Name + "." + q.Name, DType: "F32", Shape: []int64{k.Elems}, Data: b})
			}
		}
	}
	return out
}
