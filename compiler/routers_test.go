package compiler

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/megatrain/mtc/compiler/schedule"
	"github.com/megatrain/mtc/lang/diag"
	"github.com/megatrain/mtc/runtime/plan"
)

// routed compiles a small model with routers, two of them in each block.
func routed(t *testing.T, o Options) *plan.Plan {
	t.Helper()
	o.Path = "../e2e/invariants/testdata/models/choice.mt"
	var diags diag.List
	r, err := Compile(context.Background(), o, &diags)
	if err != nil {
		t.Fatal(err)
	}
	return r.Plan
}

// TestVerifierKnowsRouters spoils tasks that have to do with routers, one at a time: each is
// found.
func TestVerifierKnowsRouters(t *testing.T) {
	for _, o := range []Options{{MicroBatch: 4}, {MicroBatch: 2, Placement: "stream", Recompute: "all", Set: []string{"train.clip=none"}}} {
		p := routed(t, o)
		if err := schedule.Verify(p); err != nil {
			t.Fatal(err)
		}
		spoilt := map[string]int{}
		for i := range p.Tasks {
			task := &p.Tasks[i]
			good := *task
			try := func(what string, spoil func()) {
				t.Helper()
				task.Reads, task.Writes = slices.Clone(good.Reads), slices.Clone(good.Writes)
				spoil()
				spoilt[what]++
				if schedule.Verify(p) == nil {
					t.Errorf("%+v: task %d, %s of unit %d: %s is not found", o, i, good.Func, good.Unit, what)
				}
				*task = good
			}
			if task.List > plan.Steady {
				continue
			}
			if task.Func == plan.Advance {
				try("another router's state", func() {
					other := p.Routers[0].State
					if other == good.Bind.Router {
						other = p.Routers[1].State
					}
					task.Bind.Router = other
					task.Reads, task.Writes = append(task.Reads, other), append(task.Writes, other)
				})
				try("scalars that are not bound", func() { task.Bind.Scalars = plan.NoBuf })
				try("a state that is not listed", func() {
					task.Writes = slices.DeleteFunc(task.Writes, func(b plan.BufID) bool { return b == good.Bind.Router })
				})
			}
			if task.Func == plan.Forward && task.Bind.Router != plan.NoBuf && task.Micro == 1 {
				try("targets of another micro-batch", func() {
					task.Bind.Targets--
					task.Reads = append(task.Reads, task.Bind.Targets)
				})
				try("a state that is none", func() {
					task.Bind.Router = p.Partials
					task.Reads, task.Writes = append(task.Reads, p.Partials), append(task.Writes, p.Partials)
				})
			}
			if task.Kind == plan.Report && task.Dst == p.HostRouters {
				try("a report to another place", func() { task.DstOff += 8 })
			}
		}
		for _, what := range []string{"another router's state", "targets of another micro-batch", "a report to another place"} {
			if spoilt[what] < 4 {
				t.Errorf("%+v: only %d tasks with %s", o, spoilt[what], what)
			}
		}
	}
}

// TestRoutersOfAWholeStep: a step's pool makes the order layer by layer, and groups are refused
// with the reason.
func TestRoutersOfAWholeStep(t *testing.T) {
	if p := routed(t, Options{MicroBatch: 2}); p.Groups != 1 {
		t.Errorf("%d groups", p.Groups)
	}
	for _, o := range []Options{{MicroBatch: 2, Groups: 2}, {MicroBatch: 2, Placement: "stream", Groups: 2}} {
		o.Path = "../e2e/invariants/testdata/models/choice.mt"
		var diags diag.List
		_, err := Compile(context.Background(), o, &diags)
		if err == nil || !strings.Contains(err.Error(), "one group") {
			t.Errorf("%+v: %v", o, err)
		}
	}
}
