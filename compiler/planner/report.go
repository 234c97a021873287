package planner

import (
	"math"

	"github.com/megatrain/mtc/compiler/cost"
	"github.com/megatrain/mtc/compiler/schedule"
	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/plan"
)

// FLOPs is 6 times the parameters that a token passes and the tokens of a step: what is usually
// compared. What is frozen counts 4 times: its own gradient is not made.
func (c *Choice) FLOPs() float64 {
	n := 6 * float64(schedule.ActiveParams(c.Plan))
	if c.Plan.LoRA.On() {
		n -= 2 * float64(schedule.ActiveParams(c.Plan)-c.Plan.NumTrained())
	}
	return n * float64(c.Plan.Batch*c.Plan.Seq)
}

// Checkpoint is the bytes of a checkpoint: weights alone, and with the moments. Both are f32
// whatever the plan, so that it moves between machines. What is frozen is not in it.
func (c *Choice) Checkpoint() (weights, all int64) {
	n := c.Plan.NumTrained()
	return 4 * n, 12 * n
}

// Traffic is what a steady step moves across the link, bytes each way, and the seconds in which
// the host updates.
type Traffic struct {
	Up, Down int64
	Host     float64
}

// Traffic sums up a steady step.
func (c *Choice) Traffic() Traffic {
	var t Traffic
	r := c.Plan.Lists[plan.Steady]
	for i := r.Start; i < r.End; i++ {
		x := &c.Plan.Tasks[i]
		switch x.Lane {
		case device.H2D:
			t.Up += x.Bytes
		case device.D2H:
			t.Down += x.Bytes
		case device.Host:
			t.Host += c.Timeline.Estimate(i).Seconds
		}
	}
	return t
}

// BreakEven is the tokens of a step from which the computation is as long as what streams
// beside it: the copies across the link, and the host's updates. 0 where nothing streams. More
// tokens in a step than that hide it.
func (c *Choice) BreakEven() (link, host int64) {
	t := c.Traffic()
	var compute float64
	r := c.Plan.Lists[plan.Steady]
	for i := r.Start; i < r.End; i++ {
		if x := &c.Plan.Tasks[i]; x.Kind == plan.Compute {
			compute += c.Timeline.Estimate(i).Seconds
		}
	}
	tokens := float64(c.Plan.Batch * c.Plan.Seq)
	each := compute / tokens
	if each <= 0 || c.Plan.Placement != "stream" {
		return 0, 0
	}
	m := c.Machine
	// What grows with the tokens themselves, inputs that wait on the host, is no part of it.
	grown, _, _ := savedBytes(c)
	copies := max(float64(t.Up-grown)/m.Link.H2D.Value, float64(t.Down-grown)/m.Link.D2H.Value)
	if both := float64(t.Up+t.Down-2*grown) / (2 * m.Link.Both.Value); both > copies {
		copies = both
	}
	spared := max(0, each-float64(grown)/tokens/m.Link.Both.Value)
	if spared == 0 {
		return math.MaxInt64, int64(t.Host / each)
	}
	return int64(copies / spared), int64(t.Host / each)
}

// Shares are the bounds on the critical path, the largest first, as parts of the step.
func Shares(t *cost.Timeline) []Share {
	var out []Share
	for _, b := range cost.Bounds() {
		if x := t.Path[b]; x > 0 && t.Seconds > 0 {
			out = append(out, Share{b, x / t.Seconds})
		}
	}
	for i := range out {
		for j := i; j > 0 && out[j].Part > out[j-1].Part; j-- {
			out[j], out[j-1] = out[j-1], out[j]
		}
	}
	return out
}

// Share is a bound's part of a step.
type Share struct {
	Bound cost.Bound `json:"bound"`
	Part  float64    `json:"part"`
}
