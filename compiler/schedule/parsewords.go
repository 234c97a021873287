package schedule

import (
	"fmt"
	"math"
	"slices"

	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/jsontext"
)

// checkWords refuses words that no schedule has in a place.
func (f *File) checkWords() error {
	for _, x := range []struct {
		field, word string
		words       []string
	}{
		{"placement", f.Placement, []string{"resident", "stream"}},
		{"target", f.Target, []string{"cpu", "cuda"}},
		{"precision", f.Precision, []string{"f32", "bf16"}},
		{"grad_precision", f.GradPrecision, []string{"", "bf16"}},
	} {
		if !slices.Contains(x.words, x.word) {
			return jsontext.In(x.field, fmt.Errorf("%s is %q, and can be %s", x.field, x.word, or(x.words)))
		}
	}
	for i := range f.Routers {
		r, kinds := &f.Routers[i], []string{"threshold", "expert_choice", "topk"}
		in := fmt.Sprintf("routers[%d]", i)
		switch {
		case !slices.Contains(kinds, r.Kind):
			return jsontext.In(in+".kind", fmt.Errorf("%s.kind is %q, and can be %s", in, r.Kind, or(kinds)))
		case r.Experts < 1 || !amount(r.Experts):
			return jsontext.In(in+".experts", fmt.Errorf("%s.experts is %d, and a router has at least one", in, r.Experts))
		case !(r.Mean > 0 && r.Mean <= float64(r.Experts)):
			return jsontext.In(in+".mean", fmt.Errorf("%s.mean is %g, and a token has above 0 experts of %d", in, r.Mean, r.Experts))
		case r.Slots < 1 || !amount(r.Slots) || !amount(r.Params) || !amount(r.Width):
			return jsontext.In(in, fmt.Errorf("%s has %d slots, %d parameters and a width of %d", in, r.Slots, r.Params, r.Width))
		case !(r.Granularity >= 0) || math.IsInf(r.Granularity, 0) || !(r.Expansion >= 0) || math.IsInf(r.Expansion, 0):
			return jsontext.In(in, fmt.Errorf("%s has a granularity of %g and an expansion of %g", in, r.Granularity, r.Expansion))
		}
	}
	return f.checkPlaces()
}

// checkPlaces refuses slabs and buffers that no memory has.
func (f *File) checkPlaces() error {
	arenas, names := map[string]int64{}, map[string]bool{}
	memories := []string{device.DeviceMemory.String(), device.HostMemory.String()}
	for i, a := range f.Memory.Arenas {
		if _, twice := arenas[a.Name]; twice || !slices.Contains(memories, a.Memory) {
			return at("memory.arenas", i, "arena %q is there twice, or its memory %q is not %s", a.Name, a.Memory, or(memories))
		}
		arenas[a.Name] = a.Bytes
	}
	for i := range f.Slabs {
		if s := &f.Slabs[i]; !amount(s.Elems) || s.Params < 0 || s.Decayed < 0 || s.Decayed > s.Elems || s.Spare < 0 || s.Spare > s.Elems {
			return at("slabs", i, "slab %q has %d elements in %d parameters, of which %d decay", s.Name, s.Elems, s.Params, s.Decayed)
		}
	}
	for i := range f.Buffers {
		b := &f.Buffers[i]
		size, ok := arenas[b.Arena]
		switch {
		case !ok:
			return at("buffers", i, "buffer %q lies in the arena %q, which does not exist", b.Name, b.Arena)
		case !amount(b.Off) || !amount(b.Bytes) || b.Bytes < 1 || b.Copies < 1 || b.Copies > 2:
			return at("buffers", i, "buffer %q has %d bytes at %d, in %d copies", b.Name, b.Bytes, b.Off, b.Copies)
		case b.Off+b.Bytes*int64(b.Copies) > size:
			return at("buffers", i, "buffer %q ends at byte %d of the arena %q, which has %d", b.Name, b.Off+b.Bytes*int64(b.Copies), b.Arena, size)
		case names[b.Name]:
			return at("buffers", i, "buffer %q is there twice", b.Name)
		}
		names[b.Name] = true
	}
	for i := range f.Tasks {
		t := &f.Tasks[i]
		for _, list := range [][]string{t.Reads, t.Writes, {t.Src, t.Dst}} {
			for _, name := range list {
				if name != "" && !names[name] {
					return at("tasks", i, "its task %d touches the buffer %q, which does not exist", i, name)
				}
			}
		}
	}
	return nil
}

// or is a list of words: "a, b or c".
func or(words []string) string {
	s := ""
	for i, w := range words {
		switch {
		case i == 0:
		case i == len(words)-1:
			s += " or "
		default:
			s += ", "
		}
		s += fmt.Sprintf("%q", w)
	}
	return s
}
