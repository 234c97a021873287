package schedule

import (
	"errors"
	"fmt"

	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/jsontext"
	"github.com/megatrain/mtc/runtime/plan"
)

// recount refuses a file whose sums are not those of its parts: parameters of the slabs, peaks of the arenas, what an
// arena holds of the buffers, and the work of tasks of what their functions launch.
func (f *File) recount() error {
	var all, learn, frozen int64
	for i := range f.Slabs {
		s := &f.Slabs[i]
		if n := s.Elems - s.Spare; s.Frozen {
			all, frozen = all+n, frozen+1
		} else {
			all, learn = all+n, learn+n
		}
	}
	if frozen == 0 {
		learn = 0 // all do, which is left out
	}
	peaks := map[string]int64{device.HostMemory.String(): f.Memory.Runtime}
	for _, a := range f.Memory.Arenas {
		peaks[a.Memory] += a.Bytes
	}
	for _, x := range []struct {
		field     string
		said, are int64
		of        string
	}{
		{"params", f.Params, all, "its slabs have"}, {"trained", f.Trained, learn, "of its slabs learn"},
		{"memory.device_peak", f.Memory.DevicePeak, peaks[device.DeviceMemory.String()], "bytes are in its arenas"},
		{"memory.host_peak", f.Memory.HostPeak, peaks[device.HostMemory.String()], "bytes are in its arenas and its runtime"},
	} {
		if x.said != x.are {
			return jsontext.In(x.field, fmt.Errorf("%s is %d, and %d %s", x.field, x.said, x.are, x.of))
		}
	}
	for _, part := range []func() error{f.recountHolds, f.recountWork, f.recountStep} {
		if err := part(); err != nil {
			return err
		}
	}
	return nil
}

func (f *File) recountHolds() error {
	type key struct{ arena, purpose string }
	held := map[key]FileHold{}
	for i := range f.Buffers {
		b := &f.Buffers[i]
		k := key{b.Arena, b.Purpose}
		h := held[k]
		held[k] = FileHold{b.Purpose, h.Buffers + 1, h.Bytes + b.Bytes*int64(b.Copies)}
	}
	for i, a := range f.Memory.Arenas {
		for _, h := range a.Holds {
			k := key{a.Name, h.Purpose}
			if held[k] != h {
				return at("memory.arenas", i, "arena %q holds %d bytes in %d buffers for %q, and its buffers are %d with %d bytes",
					a.Name, h.Bytes, h.Buffers, h.Purpose, held[k].Buffers, held[k].Bytes)
			}
			delete(held, k)
		}
	}
	for i := range f.Buffers {
		b := &f.Buffers[i]
		if _, ok := held[key{b.Arena, b.Purpose}]; ok {
			return at("buffers", i, "buffer %q is for %q, of which the arena %q says nothing", b.Name, b.Purpose, b.Arena)
		}
	}
	return nil
}

// recountWork holds tasks against the launches that they are predicted by. Part of a task's work is the engine's own,
// so that it has at least that of its launches; inference runs them for fewer positions.
func (f *File) recountWork() error {
	if f.Work == nil {
		return jsontext.In("work", errors.New("it has no work, by which tasks are predicted"))
	}
	if n := len(f.Work.Funcs); n != len(f.Templates) {
		return jsontext.In("work.funcs", fmt.Errorf("its work is of %d templates, and there are %d", n, len(f.Templates)))
	}
	flops := make([][plan.NumFuncs]int64, len(f.Templates))
	for i, funcs := range f.Work.Funcs {
		for k, launches := range funcs {
			for _, l := range launches {
				if flops[i][k] += l.FLOPs * l.Times; l.Times > 0 && (l.FLOPs > maxSum/l.Times || flops[i][k] > maxSum) {
					return at("work.funcs", i, "a launch of %q has %d FLOPs %d times", l.Kernel, l.FLOPs, l.Times)
				}
			}
		}
	}
	templates := map[string]int{}
	for i, name := range f.Templates {
		templates[name] = i
	}
	for i := range f.Tasks {
		t := &f.Tasks[i]
		k := number(t.Func, plan.NumFuncs)
		if t.Kind != plan.Compute.String() || k <= 0 {
			continue
		}
		of, ok := templates[t.Template]
		switch {
		case !ok:
			return at("tasks", i, "its task %d runs the template %q, which does not exist", i, t.Template)
		case len(f.Work.Funcs[of]) <= k || len(f.Work.Funcs[of][k]) == 0:
			return at("tasks", i, "its task %d runs %s of the template %q, of which `work` says nothing", i, t.Func, t.Template)
		case plan.Func(k) != plan.Infer && t.FLOPs < flops[of][k]:
			return at("tasks", i, "its task %d has %d FLOPs, and what it launches has %d", i, t.FLOPs, flops[of][k])
		}
	}
	return nil
}

// maxSum is what a task's launches add up to at most.
const maxSum = 1 << 62
