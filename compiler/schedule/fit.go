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
		if err != nil || o.DeviceMemory <= 0 || need(b) <= o.DeviceMemory {
			return b, err
		}
		o.Placement = Stream
	}
	if o.Placement == Resident || o.Placement == "" {
		b, err := resident(prog, o)
		if err == nil && o.DeviceMemory > 0 && need(b) > o.DeviceMemory {
			err = &ShortError{b.p.Placement, need(b), o.DeviceMemory, b.p}
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
	if n := need(b); n > o.DeviceMemory {
		return nil, &ShortError{b.p.Placement, n, o.DeviceMemory, b.p}
	}
	if b.groups > 1 || pinned {
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
		if need(c) <= o.DeviceMemory {
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
	if err != nil || o.Groups != 0 || o.DeviceMemory <= 0 || need(b) <= o.DeviceMemory {
		return b, err
	}
	o.Groups = 1
	c, err := assemble(prog, o)
	if err != nil || need(c) >= need(b) {
		return b, err
	}
	return c, nil
}

// need is the device memory of a plan, with what the device itself keeps for its libraries.
func need(b *builder) int64 {
	n, _ := memplan.Peak(b.p)
	return n + memplan.Reserve(b.p.Target)
}
