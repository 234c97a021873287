package schedule

import (
	"slices"
	"testing"

	"github.com/megatrain/mtc/runtime/plan"
)

// hostUpdates lists the slabs that the steady step updates, and how many of them before the
// step's results are complete.
func hostUpdates(p *plan.Plan) (order []string, before int) {
	r := p.Lists[plan.Steady]
	for i := r.Start; i < r.End; i++ {
		t := &p.Tasks[i]
		if t.Event == p.ResultsEvent {
			before = len(order)
		}
		if t.Kind == plan.Update {
			order = append(order, p.Slabs[t.Slab].Name)
		}
	}
	return order, before
}

// TestUpdatesTakeTheLatestGradient: a host that is slower than backward takes what the next
// forward needs soonest, ends with what it needs last, and keeps no results waiting. With few
// slots for gradients it has to take those that hold one.
func TestUpdatesTakeTheLatestGradient(t *testing.T) {
	y := toy{layers: 6, micros: 1, noClip: true}
	p := mustBuild(t, y, Options{Placement: Stream, HostSlots: 8})
	order, before := hostUpdates(p)
	if len(order) != len(p.Slabs) {
		t.Fatalf("updates of %v", order)
	}
	rest := order[before:]
	if len(rest) < 4 {
		t.Errorf("updates %v, of which only %v may run under the next forward", order, rest)
	}
	// What is left comes in the order in which the next forward needs it.
	var want []string
	for _, s := range p.Slabs {
		if slices.Contains(rest, s.Name) {
			want = append(want, s.Name)
		}
	}
	if !slices.Equal(rest, want) {
		t.Errorf("after backward %v are updated, want %v", rest, want)
	}

	order, before = hostUpdates(mustBuild(t, y, Options{Placement: Stream, HostSlots: 1}))
	if len(order)-before > 3 {
		t.Errorf("one slot for layers: updates %v, of which %v run under the next forward", order, order[before:])
	}

	// What stays on the device is updated there, at once.
	order, before = hostUpdates(mustBuild(t, y, Options{Placement: Stream, HostSlots: 8, Keep: 7}))
	if want := []string{"layer[5]", "layer[4]", "layer[3]", "layer[2]", "layer[1]", "layer[0]", "wte"}; !slices.Equal(order[:before], want) || !slices.Equal(order[before:], []string{"head"}) {
		t.Errorf("updates %v, before the results %v; want %v", order, order[:before], want)
	}
}

// TestHostGradientsAreBounded: without clipping only those in flight have host memory.
func TestHostGradientsAreBounded(t *testing.T) {
	p := mustBuild(t, toy{layers: 40, micros: 1, noClip: true}, Options{Placement: Stream, HostSlots: 3})
	var state, host int64
	for _, s := range p.Slabs {
		state += 12 * s.Elems
	}
	for i, b := range p.Buffers {
		if i > 0 && p.Arenas[b.Arena].Name == hostTrain || i > 0 && p.Arenas[b.Arena].Name == hostWeights {
			host += b.Bytes
		}
	}
	if want := state + 3*4*1024 + 4*4096; host != want {
		t.Errorf("state of %d bytes and its gradients take %d on the host, want %d", state, host, want)
	}
}
