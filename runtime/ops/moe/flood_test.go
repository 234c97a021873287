package moe_test

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/megatrain/mtc/runtime/ops/moe"
	"github.com/megatrain/mtc/runtime/plan"
)

// TestRowsAreCapped: with cutoffs far below all logits a micro-batch has the rows that memory is made for
// and keeps the pairs of the highest logits, in training, in evaluation and where counts are
// collected; what was dropped is counted in each.
func TestRowsAreCapped(t *testing.T) {
	const n, experts, slots = 64, 4, 2
	for mode, name := range map[float64]string{moe.RouteTrain: "training", moe.RouteFrozen: "evaluation", moe.RouteCollect: "collecting"} {
		r := routerOf("threshold")
		r.Start, r.Slots = -50, slots
		l := newLayer(t, r, 1, n, 4, 4)
		k := l.tokens(n)
		l.fill(2, k)
		g := rand.New(rand.NewPCG(1, 1))
		logits := l.f32(k.logits, n*experts)
		for i := range logits {
			logits[i] = float32(g.NormFloat64())
		}
		l.scalar(plan.ScalarRoute, mode)
		before := slices.Clone(l.d.View(l.state, l.parts().Report))
		l.route(k)
		l.sync()
		at := moe.RoutingOf(n, experts, slots)
		w := view[int32](l, k.routing, int(at.Words))
		if used := w[experts]; used != n*slots {
			t.Fatalf("%s: %d rows of %d", name, used, n*slots)
		}
		kept := map[int]bool{}
		least := float32(100)
		for i := range int64(n * slots) {
			pair := int(w[at.Token+i])*experts + int(w[at.Expert+i])
			kept[pair] = true
			least = min(least, logits[pair])
		}
		for i, x := range logits {
			if !kept[i] && x > least {
				t.Fatalf("%s: a logit of %v was dropped, and one of %v kept", name, x, least)
			}
		}
		const dropped = n * (experts - slots)
		parts := l.parts()
		counter := view[int32](l, l.state.At(parts.Counters), moe.NumCounters)
		frozen := view[float64](l, l.state.At(parts.Report), int(moe.ReportLen(experts)))[moe.ReportFrozen]
		switch name {
		case "evaluation":
			if frozen != dropped || !bytes.Equal(before, l.d.View(l.state, parts.Report)) {
				t.Errorf("evaluation counts %v dropped pairs of %d, and changes more than that", frozen, dropped)
			}
		default:
			if counter[moe.CountDropped] != dropped || counter[moe.CountFlooded] != 1 || frozen != 0 {
				t.Errorf("%s counts %d dropped pairs of %d in %d micro-batches", name, counter[moe.CountDropped], dropped, counter[moe.CountFlooded])
			}
		}
	}
}

// TestCapacityOfARoundedRate: 0.7 is below itself in f32, and of 10 tokens still 7.
func TestCapacityOfARoundedRate(t *testing.T) {
	l := newLayer(t, moe.SelectArgs{Experts: 2, Slots: 2, Rate: 0.7, EMA: 0.9, Capacity: 0, Start: -9}, 1, 10, 4, 4)
	k := l.tokens(10)
	l.fill(3, k)
	l.scalar(plan.ScalarRoute, moe.RouteTrain)
	l.logitsOf(k)
	l.route(k)
	l.sync()
	if w := view[int32](l, k.routing, 3); w[1] != 7 || w[2] != 14 {
		t.Errorf("experts have %d and %d tokens, each should have 7", w[1], w[2]-w[1])
	}
}
