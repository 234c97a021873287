package cost

import (
	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/plan"
)

// Bound is what keeps a task from being faster.
type Bound string

// The bounds.
const (
	ByProducts  Bound = "products"  // matrix products
	ByAttention Bound = "attention" // attention over positions
	ByMemory    Bound = "memory"    // device memory, for kernels that move more than they compute
	ByLaunches  Bound = "launches"  // what starting a kernel costs
	ByLink      Bound = "link"      // copies between host and device
	ByHost      Bound = "host"      // the optimizer on the host
	ByNothing   Bound = ""          // no time
)

// Estimate is one task, alone on the machine.
type Estimate struct {
	FLOPs    int64   `json:"flops"`
	Bytes    int64   `json:"bytes"` // read and written by kernels; of a copy, those that cross
	Launches int64   `json:"launches"`
	Seconds  float64 `json:"seconds"`
	Bound    Bound   `json:"bound"`
	// Parts are the seconds by bound, of a task with several launches.
	Parts map[Bound]float64 `json:"parts,omitempty"`
}

// Run is one task in a timeline. Times are seconds from the start of the timeline's period:
// negative, or beyond its end, for work that reaches over from another step.
type Run struct {
	Task  int         `json:"task"` // plan.Task.ID
	Step  int         `json:"step"` // 0: the step that the period shows, -1: the one before
	Lane  device.Lane `json:"-"`
	Start float64     `json:"start"`
	End   float64     `json:"end"`
	Alone float64     `json:"alone"` // seconds without contention
	// After is the index in Runs of the run whose end let this one start: the one before on its
	// lane, or one it waited for; -1 where that lies before the timeline.
	After int `json:"after"`
	// Ready is when all that it waits for was done, its lane aside.
	Ready float64 `json:"ready"`
}

// LaneUse is a lane over the period. Hidden is the part of Busy in which the compute lane is
// busy too, Exposed the rest; of the compute lane itself all is exposed.
type LaneUse struct {
	Lane    string  `json:"lane"`
	Busy    float64 `json:"busy"`
	Hidden  float64 `json:"hidden"`
	Exposed float64 `json:"exposed"`
	Tasks   int     `json:"tasks"`
}

// Timeline is a list of a plan on a machine. Of steady it is one step of the long run: the
// period between the results of one step and those of the next, with what reaches into it
// from other steps.
type Timeline struct {
	List    plan.List `json:"-"`
	Machine string    `json:"machine"`
	Seconds float64   `json:"seconds"` // of the period: a step
	Tokens  int64     `json:"tokens"`  // of a step
	Rate    float64   `json:"tokens_per_second"`
	// Settled says that the period repeats; else it is the last of those simulated.
	Settled bool      `json:"settled"`
	Runs    []Run     `json:"runs"` // in order of their start
	Lanes   []LaneUse `json:"lanes"`
	// Bound is what most of the period waits for, on its critical path.
	Bound Bound `json:"bound"`
	// Path are the seconds of the period's critical path by bound; what is missing to Seconds
	// is waiting for the submitting thread.
	Path map[Bound]float64 `json:"path"`
	// Tasks are the estimates of the list's tasks, by Task.ID minus the list's first.
	Tasks []Estimate `json:"tasks"`
	First int        `json:"first"` // ID of the list's first task
}

// Estimate is that of a task of the list.
func (t *Timeline) Estimate(task int) *Estimate {
	if i := task - t.First; i >= 0 && i < len(t.Tasks) {
		return &t.Tasks[i]
	}
	return nil
}
