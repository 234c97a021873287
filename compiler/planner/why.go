package planner

import (
	"fmt"
	"strconv"

	"github.com/megatrain/mtc/compiler/schedule"
	"github.com/megatrain/mtc/runtime/plan"
)

// Reason is a choice and why it was made.
type Reason struct {
	Flag   string `json:"flag"`
	Value  string `json:"value"`
	Pinned bool   `json:"pinned"`
	Why    string `json:"why"`
}

// explain says why each choice was made.
func (c *Choice) explain(s *search) {
	o, p := c.Options, c.Plan
	add := func(flag, value, why string) {
		pinned := s.pinned(flag)
		if pinned {
			why = "as asked"
		}
		c.Why = append(c.Why, Reason{flag, value, pinned, why})
	}
	resident := 0
	for _, x := range p.Slabs {
		if x.Resident {
			resident++
		}
	}
	switch {
	case o.Placement == "resident":
		add("placement", "resident", "all state fits, nothing has to cross the link")
	case 16*p.NumParams < c.DeviceLimit && s.m.Target == "cuda":
		add("placement", "stream", "beside all state there would be less room for activations, which costs more")
		if s.pinned("resident") {
			add("resident", o.Resident, "")
		}
	default:
		add("placement", "stream", "the state of all layers is larger than the device")
		add("resident", o.Resident, fmt.Sprintf("%d of %d slabs keep state on the device: as many as fit and help", resident, len(p.Slabs)))
	}
	add("micro-batch", fmt.Sprint(o.MicroBatch), fmt.Sprintf("%d tokens a micro-batch", o.MicroBatch*p.Seq))
	switch {
	case p.Micros == 1 && !s.pinned("groups"):
	case p.Groups == 1:
		add("groups", "1", "each layer takes all micro-batches: weights cross once a pass")
	case p.Groups == p.Micros:
		add("groups", fmt.Sprint(p.Groups), "each micro-batch runs through: the activations of one are alive")
	default:
		add("groups", fmt.Sprint(p.Groups), "the inputs of layers of more micro-batches have no room")
	}
	if s.pinned("order") {
		add("order", s.r.Options.Order, "")
	}
	switch n, of := remaking(p); {
	case o.Recompute == "all":
		add("recompute", "all", "what backward reads has no room, or leaves more for state")
	case n == 0:
		add("recompute", o.Recompute, "what backward reads is kept, nothing is computed twice")
	default:
		add("recompute", o.Recompute, fmt.Sprintf("%d of %d layers: there is room for what backward reads of the others", n, of))
	}
	if o.InputEvery > 1 || s.pinned("input-every") {
		add("input-every", fmt.Sprint(o.InputEvery), fmt.Sprintf("backward visits %d layers together: their inputs take less room", o.InputEvery))
	}
	if o.Placement == "stream" {
		for _, x := range []struct {
			flag string
			n    int64
		}{{"slots", o.Slots}, {"grad-slots", o.GradSlots}, {"host-slots", o.HostSlots}} {
			if x.n > 0 && (c.Tight || s.pinned(x.flag)) {
				add(x.flag, fmt.Sprint(x.n), "there is no room for more")
			}
		}
		if o.DeviceWeights > 0 || s.pinned("device-weights") {
			add("device-weights", fmt.Sprint(o.DeviceWeights), "these layers' weights cross once a step")
		}
		if o.GradHome != "host" || s.pinned("grad-home") {
			add("grad-home", o.GradHome, "the host has no room for all gradients")
		}
		if o.GradPrecision == "bf16" || s.pinned("grad-precision") {
			add("grad-precision", o.GradPrecision, "f32 gradients have no room: they are rounded once a step")
		}
		_, inputs, values := savedBytes(c)
		if o.SaveInputs != "none" || s.pinned("save-inputs") {
			add("save-inputs", o.SaveInputs, fmt.Sprintf("%s of layer inputs wait on the host", schedule.Bytes(inputs)))
		}
		if p.SavedLayers > 0 || s.pinned("save-values") {
			add("save-values", o.SaveValues, "the link has time for it")
			if o.SaveValues != "none" {
				c.Why[len(c.Why)-1].Why += ": " + savedLayers(o.SaveValues, p.SavedLayers, values)
			}
		}
	}
}

// savedLayers says of how many layers values wait on the host where so many were asked for: the last one that
// keeps them never sends them away, because backward begins with it.
func savedLayers(asked string, n, bytes int64) string {
	if n == 0 {
		return "no layer has values that can wait on the host"
	}
	of := "a layer that does not recompute"
	if n > 1 {
		of = fmt.Sprintf("%d layers that do not recompute", n)
	}
	text := fmt.Sprintf("what backward reads of %s waits on the host, %s", of, schedule.Bytes(bytes))
	if k, err := strconv.ParseInt(asked, 10, 64); asked == "all" || err == nil && k > n {
		text += "; that of the last one stays on the device, since backward begins with it"
	}
	return text
}

// remaking is how many layers of a plan recompute, of how many.
func remaking(p *plan.Plan) (n, of int) {
	again := map[int]bool{}
	r := p.Lists[plan.Steady]
	for i := r.Start; i < r.End; i++ {
		if t := &p.Tasks[i]; t.Func == plan.Recompute || t.Func == plan.Again {
			again[p.Units[t.Unit].Layer] = true
		}
	}
	for _, u := range p.Units {
		of = max(of, u.Layer+1)
	}
	delete(again, -1)
	return len(again), of
}

// savedBytes are the bytes that a step saves to the host, and those that wait there at once, groups of
// micro-batches taking turns: inputs of layers, and what backward reads besides.
func savedBytes(c *Choice) (step, inputs, values int64) {
	r := c.Plan.Lists[plan.Steady]
	seen, kept := map[plan.BufID]bool{}, map[plan.BufID]bool{}
	for i := r.Start; i < r.End; i++ {
		if t := &c.Plan.Tasks[i]; t.Func == plan.Backward {
			kept[t.Bind.Saved] = true
		}
	}
	for i := r.Start; i < r.End; i++ {
		t := &c.Plan.Tasks[i]
		if t.Kind != plan.Save {
			continue
		}
		if step += t.Bytes; seen[t.Dst] {
			continue
		}
		if seen[t.Dst] = true; kept[t.Src] {
			values += t.Bytes
		} else {
			inputs += t.Bytes
		}
	}
	return step, inputs, values
}
