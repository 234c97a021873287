package schedule

import (
	"fmt"

	"github.com/megatrain/mtc/compiler/ir"
	"github.com/megatrain/mtc/compiler/memplan"
	"github.com/megatrain/mtc/runtime/plan"
)

// ShortError says that a plan does not fit the device memory it may take.
type ShortError struct {
	Placement  string
	Need, Have int64      // bytes
	Plan       *plan.Plan // the smallest of the placement
}

func (e *ShortError) Error() string {
	return fmt.Sprintf("placement %s needs %d bytes of device memory, %d may be used", e.Placement, e.Need, e.Have)
}

// choose assembles the plan that the options ask for: resident where it fits when they leave
// the placement open, else a stream, whose state stays on the device as far as the memory
// given reaches. State goes there in forward order: embedding, layers, head. With clipping
// those are needed first; without it they are updated last.
func choose(prog *ir.Program, o Options) (*builder, error) {
	if o.Placement == Auto {
		o.Placement = Resident
		b, err := resident(prog, o)
		if err != nil || !o.tooLarge(b) {
			return b, err
		}
		o.Placement = Stream
	}
	if o.Placement == Resident || o.Placement == "" {
		b, err := resident(prog, o)
		if err == nil && o.tooLarge(b) {
			b, err = saved(prog, &o, b)
		}
		return b, err
	}
	pinned := o.KeepPinned || len(o.KeepNames) > 0
	limit := o.Keep
	if o.DeviceMemory > 0 && !pinned {
		o.Keep = 0
	}
	b, err := assemble(prog, o)
	if err != nil || o.DeviceMemory <= 0 {
		return b, err
	}
	if o.tooLarge(b) {
		if b, err = saved(prog, &o, b); err != nil {
			return nil, err
		}
	}
	if pinned {
		return b, nil
	}
	most := int64(len(prog.Slabs))
	if limit > 0 {
		most = min(most, limit)
	}
	// The largest number that fits: more slabs there never take less, until the last ones
	// leave no slots to stream through.
	for lo, hi := int64(1), most; lo <= hi; {
		o.Keep = (lo + hi + 1) / 2
		if lo == 1 && hi == most {
			o.Keep = most // all of them, first
		}
		c, err := assemble(prog, o)
		if err != nil {
			return nil, err
		}
		if !o.tooLarge(c) {
			b, lo = c, o.Keep+1
		} else {
			hi = o.Keep - 1
		}
	}
	return b, nil
}

// resident assembles a plan with everything on the device. A group for each micro-batch keeps
// the activations of one alive, and without clipping all gradients at once; where that is too
// much and the options leave it open, one group may be less.
func resident(prog *ir.Program, o Options) (*builder, error) {
	b, err := assemble(prog, o)
	if err != nil || o.Groups != 0 || o.Order != "" || !o.tooLarge(b) {
		return b, err
	}
	o.Groups = 1
	c, err := assemble(prog, o)
	if err != nil || need(c) >= need(b) {
		return b, err
	}
	return c, nil
}

// saved saves inputs of layers on the host, as few as it takes for a plan that is too large to
// fit, where the options leave that open; o then says how many. What does not fit is a
// ShortError.
func saved(prog *ir.Program, o *Options, b *builder) (*builder, error) {
	if values, _ := b.savable(); o.SaveAuto && len(values) > 0 {
		best := int64(len(values))
		for lo, hi := int64(1), best; lo <= hi; {
			o.SaveInputs = (lo + hi) / 2
			if hi == best && lo == 1 {
				o.SaveInputs = best // all of them, first
			}
			c, err := assemble(prog, *o)
			if err != nil {
				return nil, err
			}
			if o.tooLarge(c) && o.SaveInputs == best {
				if need(c) < need(b) {
					b = c
				}
				break
			}
			if o.tooLarge(c) {
				lo = o.SaveInputs + 1
			} else {
				b, hi = c, o.SaveInputs-1
			}
		}
		o.SaveInputs = b.p.SavedInputs
	}
	if o.tooLarge(b) {
		return nil, &ShortError{b.p.Placement, need(b), o.DeviceMemory, b.p}
	}
	return b, nil
}

// tooLarge reports whether a plan takes more than the device memory given.
func (o *Options) tooLarge(b *builder) bool { return o.DeviceMemory > 0 && need(b) > o.DeviceMemory }

// need is the device memory of a plan, with what the device itself keeps for its libraries.
func need(b *builder) int64 {
	n, _ := memplan.Peak(b.p)
	return n + memplan.Reserve(b.p)
}
