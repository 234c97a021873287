package planner

import (
	"slices"

	"github.com/megatrain/mtc/compiler"
	"github.com/megatrain/mtc/compiler/cost"
	"github.com/megatrain/mtc/lang/diag"
	"github.com/megatrain/mtc/lang/source"
	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/plan"
)

// variant is a way to lower the model.
type variant struct {
	prep      *compiler.Prepared
	work      *cost.Work
	rows      int64
	recompute string
	logits    int64 // the device memory that chunks of logits are sized for
	every     int64 // the input of every so many layers is kept
	micros    int64

	forward, backward float64 // seconds of the compute lane, of one micro-batch
	slabs             []slab  // in forward order
	learned           int64   // elements of those that learn
	trained           int     // how many learn: they stand first
	input             int64   // bytes that wait for backward between units, of one micro-batch
	values            int     // that can wait on the host for backward; 0: not counted yet
	perMicro          int     // tasks of a micro-batch
	clip              bool
	target            string
	order             []int // the slabs of layers
	weight            int64 // bytes of a weight on the device
	grown             map[class]*growth
	remade            remade
	mixed             map[string]lowered // by the layers that recompute
}

type slab struct {
	elems  int64
	layer  bool // it streams through slots that layers share
	frozen bool // it has weights alone
}

// base reports whether a slab is the weights of a layer that streams, beside which an adapter's may be.
func (v *variant) base(x slab) bool { return x.layer && (x.frozen || v.trained == len(v.slabs)) }

// lower prepares every variant that the pins allow.
func (s *search) lower(diags *diag.List) error {
	o := s.r.Options
	first, err := compiler.Prepare(s.ctx, o, diags)
	if err != nil {
		return err
	}
	rows := []int64{first.Program().Rows}
	if s.pinned("micro-batch") {
		s.only = rows[0]
	}
	if !s.pinned("micro-batch") {
		rows = microBatches(first.Model().Batch, first.Model().Seq, s.m.Target)
	}
	micros := first.Model().Batch // of a single row each
	if s.pinned("micro-batch") {
		micros /= rows[0]
	}
	if s.pinned("groups") && o.Groups > micros {
		diags.Errorf("MT0405", source.Span{}, "%d groups of %d micro-batches: there must be at least one micro-batch in each", o.Groups, micros).
			Hint("the largest is `--groups %d`", micros)
		return diags.Err()
	}
	if s.pinned("order") && o.Order == "batch" && s.pinned("groups") && o.Groups > 0 {
		// Each micro-batch is a group then, so that the one number follows from the other.
		n := first.Model().Batch
		switch each := n / o.Groups; {
		case n%o.Groups != 0:
			diags.Errorf("MT0405", source.Span{}, "a batch of %d rows is not %d micro-batches of equal size, which `--order batch --groups %d` asks for", n, o.Groups, o.Groups).
				Hint("`--order batch` alone leaves the groups to the micro-batches")
			return diags.Err()
		case s.pinned("micro-batch") && rows[0] != each:
			diags.Errorf("MT0405", source.Span{}, "%d groups of %d micro-batches are not batch-major: each micro-batch is a group then", o.Groups, micros).
				Hint("`--order batch` alone leaves the groups to the micro-batches: %d", micros)
			return diags.Err()
		default:
			rows = []int64{each}
			s.only = each
		}
	}
	s.first = first
	if s.feasible { // only whether anything fits is asked
		return nil
	}
	words := []string{"none", "all"}
	if s.pinned("recompute") {
		words = []string{o.Recompute}
	}
	return s.add(rows, words)
}

// add prepares variants of micro-batches of so many rows.
func (s *search) add(rows []int64, words []string) error {
	for _, r := range rows {
		for _, w := range words {
			if len(s.variants) > 0 && s.effort.spent(1) {
				return nil
			}
			s.effort.doing("lowering it with %d rows to a micro-batch", r)
			v, err := s.variant(s.r.Options, r, w, s.first)
			if err != nil {
				return err
			}
			for _, k := range s.everies(w) {
				x, err := s.chained(v, s.r.Options, k, s.first)
				if err != nil {
					return err
				}
				s.variants = append(s.variants, x)
			}
		}
	}
	return nil
}

// smaller makes the variants those of fewer rows to a micro-batch than all so far, that take the least; false, and as
// they are, where there are none or the rows are asked for.
func (s *search) smaller() (bool, error) {
	least := s.first.Model().Batch + 1
	for _, v := range s.variants {
		least = min(least, v.rows)
	}
	var rows []int64
	for r := least / 2; r >= 1; r /= 2 {
		for s.first.Model().Batch%r != 0 {
			r--
		}
		if s.first.Model().Batch/r <= s.first.MostMicros() {
			rows = append(rows, r)
		}
	}
	if s.pinned("micro-batch") || s.only > 0 || len(rows) == 0 {
		return false, nil
	}
	words := []string{"all", "none"}
	if s.pinned("recompute") {
		words = []string{s.r.Options.Recompute}
	}
	s.variants = nil
	return true, s.add(rows, words)
}

// everies are how often the input of a layer is kept, to try.
func (s *search) everies(recompute string) []int64 {
	switch o := s.r.Options; {
	case s.pinned("input-every"):
		return []int64{max(1, o.InputEvery)}
	case recompute == "none" || s.m.Target == "cpu":
		return []int64{1}
	}
	return []int64{1, 2, 3}
}

// chained is a variant in which backward visits so many layers together.
func (s *search) chained(v *variant, o compiler.Options, every int64, first *compiler.Prepared) (*variant, error) {
	x := *v
	x.every, x.grown, x.mixed = every, map[class]*growth{}, map[string]lowered{}
	if every == 1 {
		return &x, nil
	}
	var err error
	o.MicroBatch, o.Recompute, o.InputEvery, o.LogitsFor = v.rows, v.recompute, every, v.logits
	if x.prep, err = first.Again(o); err != nil {
		return nil, err
	}
	s.effort.lowered(len(x.prep.Model().Units))
	x.work = cost.WorkOf(x.prep.Program())
	x.input = v.input / every
	x.perMicro += 2
	return &x, nil
}

// microBatches lists divisors of the batch that are near powers of two of tokens: what a GPU
// needs to be busy, and what a cache can hold.
func microBatches(batch, seq int64, target string) []int64 {
	wanted := []int64{8192, 16384, 4096, 32768, 2048, 65536}
	if target == "cpu" {
		wanted = []int64{8192, 16384, 1024, 2048, 4096}
	}
	var out []int64
	for _, tokens := range wanted {
		best := int64(1)
		for r := int64(1); r <= batch && r*seq <= tokens; r++ {
			if batch%r == 0 {
				best = r
			}
		}
		if !slices.Contains(out, best) {
			out = append(out, best)
		}
	}
	return out
}

// variant lowers and prices one.
func (s *search) variant(o compiler.Options, rows int64, recompute string, first *compiler.Prepared) (*variant, error) {
	o.MicroBatch, o.Recompute, o.InputEvery = rows, recompute, 1
	prep, err := first.Again(o)
	if err != nil {
		return nil, err
	}
	s.effort.lowered(len(prep.Model().Units))
	prog := prep.Program()
	v := &variant{
		prep: prep, work: cost.WorkOf(prog), rows: prog.Rows, recompute: recompute, logits: o.LogitsFor,
		micros: prep.Model().Batch / prog.Rows, clip: prep.Model().Train.Run.Clip > 0, weight: prog.DType.Size(), grown: map[class]*growth{}, mixed: map[string]lowered{}, target: s.m.Target,
	}
	for _, x := range prog.Slabs {
		v.slabs = append(v.slabs, slab{elems: x.Elems, frozen: x.Frozen})
		if !x.Frozen {
			v.learned += x.Elems
			v.trained++
		}
	}
	p, err := prep.Plan(compiler.Options{Placement: "resident", Groups: 1}, prog.Rows)
	if err != nil {
		return nil, err
	}
	all, err := cost.Estimates(p, v.work, s.m, plan.First)
	if err != nil {
		return nil, err
	}
	for i, e := range all {
		t := &p.Tasks[p.Lists[plan.First].Start+i]
		if t.Lane != device.Compute || t.Kind != plan.Compute {
			continue
		}
		v.perMicro += 3 // in first, in steady, and about one in eval
		if t.Func == plan.Forward {
			v.forward += e.Seconds
		} else {
			v.backward += e.Seconds
		}
		if t.Func == plan.Recompute {
			v.remade.seconds += e.Seconds
		}
	}
	uses := make([]int, len(v.slabs))
	for _, u := range p.Units {
		for _, x := range u.Slabs {
			uses[x]++
		}
	}
	for _, u := range p.Units {
		for _, x := range u.Slabs {
			v.slabs[x].layer = u.Layer >= 0 && uses[x] == 1
		}
	}
	for i, x := range v.slabs {
		if x.layer {
			v.order = append(v.order, i)
		}
	}
	v.remakes(p)
	for u, b := range prog.Units {
		for i := range b.Out {
			if u < len(prog.Units)-1 {
				v.input += prog.Templates[b.Template].Out[i].Bytes()
			}
		}
	}
	return v, nil
}
