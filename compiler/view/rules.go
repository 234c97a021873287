package view

import (
	"fmt"
	"strings"

	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/plan"
)

// rule says by which rule of the schedule a task stands where it does.
func rule(p *plan.Plan, t *plan.Task) string {
	resident := t.Slab >= 0 && t.Slab < len(p.Slabs) && p.Slabs[t.Slab].Resident
	micros := "its only micro-batch"
	if p.Micros > 1 {
		micros = fmt.Sprintf("all micro-batches of a group (%d)", p.Micros/max(1, p.Groups))
	}
	switch t.Kind {
	case plan.Feed:
		return "tokens, targets and scalars of a step come first; two copies of them let the host write those of the next step meanwhile"
	case plan.Prefetch:
		own := t.Dst == plan.NoBuf || !strings.HasSuffix(p.Buffers[t.Dst].Name, "]")
		s := fmt.Sprintf("the layers' weights rotate through %d slots: a slot is filled again as soon as the layer that held it has been computed", p.Slots)
		if own {
			s = "what is no layer has a slot of its own on the device, filled before its first use in the step"
		}
		if p.Clip && t.List == plan.Steady {
			s += "; with clipping, behind the update that the step before left"
		}
		return s
	case plan.Norm:
		return "the sums of a gradient's squares are made where the gradient is, with the last launch that adds to it; its norm adds them up"
	case plan.Offload:
		return fmt.Sprintf("a gradient leaves as soon as it is complete; its slot, one of %d, is free when it has left", p.GradSlots)
	case plan.Accumulate:
		return "with several groups of micro-batches, gradients add up on the host in the order in which they arrive"
	case plan.Round:
		return "a gradient that crosses the link in bf16 is rounded on the device first, so that norm and update see the same values; the same pass makes the sums of its squares"
	case plan.Reduce:
		return "the step's loss and norm need all partial losses and all norms"
	case plan.Report:
		return "the results go to the host as soon as they are known: the next step is submitted then"
	case plan.Save:
		return "what backward needs and the device has no room for leaves as soon as it is made"
	case plan.Restore:
		return "what was saved comes back before the backward pass that reads it"
	case plan.Update:
		switch {
		case resident || t.Lane == device.Compute:
			return "the state is on the device, so the compute lane updates it, where its weights are next needed or its gradient is complete"
		case p.Clip:
			return "with clipping no update may run before the norm of all gradients is known, so updates run under the next step's forward, in forward order, each before the prefetch of its slab"
		}
		return "without clipping an update follows its gradient: of those that have arrived the host takes the latest, which the next forward needs soonest"
	}
	switch t.Func {
	case plan.Forward:
		return "layer-major order: a layer takes " + micros + " before the next one, so that weights cross the link once a pass"
	case plan.Recompute:
		return "its values were not kept: they are made again from its input right before the backward pass that reads them"
	case plan.Again:
		return "inputs of layers are not kept for every layer: this one's output is made again for the next, with what its own backward reads"
	case plan.Backward:
		return "backward visits the layers in reverse, beginning with those that forward left in the slots; a layer takes " + micros + " before the next one"
	case plan.Loss:
		return "the head: forward, loss and backward in one task, over chunks of rows, so that the logits of a whole batch never exist"
	case plan.Advance:
		return "the state of a router moves on once a step, when all that the step routed is known"
	case plan.EvalLoss:
		return "the head of an evaluation: logits and loss over chunks of rows"
	}
	return "generation runs the units in the order of the model"
}
