package schedule

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"unicode"

	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/jsontext"
	"github.com/megatrain/mtc/runtime/plan"
)

// What a schedule.json may say at most: everything that is printed or added up stays within
// 63 bits, however often.
const maxAmount = 1 << 50

// Parse reads a schedule.json. All that is shown of it is checked: a file that was cut, or
// that another program wrote, is an error and no picture.
func Parse(text []byte) (*File, error) {
	// Room for its tasks, which are large, so that they are not moved as they become more; one is no shorter than this.
	const shortest = 128
	f := &File{Tasks: make([]FileTask, 0, min(bytes.Count(text, []byte(`"lane":`)), len(text)/shortest))}
	err := jsontext.Read(text, f, jsontext.Whole)
	if err == nil && controls(text) {
		err = errors.New("it holds characters that a terminal acts on")
	}
	if err == nil {
		err = jsontext.Explain(text, f.check())
	}
	if err == nil {
		err = jsontext.Explain(text, f.checkWords())
	}
	if err == nil {
		err = jsontext.Explain(text, f.recount())
	}
	if err != nil {
		return nil, fmt.Errorf("this is not a schedule: %w", err)
	}
	return f, nil
}

// controls reports whether a string of a JSON text has a control character, which has to be escaped there.
func controls(text []byte) bool {
	escape := []byte(`\u00`)
	for i := bytes.Index(text, escape); i >= 0; i = bytes.Index(text, escape) {
		text = text[i+len(escape):]
		if n, err := strconv.ParseUint(string(text[:min(2, len(text))]), 16, 8); err == nil && unicode.IsControl(rune(n)) {
			return true
		}
	}
	return false
}

func (f *File) check() error {
	lanes, lists := map[string]bool{}, map[string]bool{}
	for l := range device.NumLanes {
		lanes[l.String()] = true
	}
	for l := range plan.NumLists {
		lists[l.String()] = true
	}
	for i, l := range f.Lanes {
		if !lanes[l] {
			return at("lanes", i, "there is no lane %q", l)
		}
	}
	switch {
	case f.Model == "":
		return jsontext.In("model", errors.New("it names no model"))
	case len(f.Tasks) == 0:
		return jsontext.In("tasks", errors.New("it has no tasks"))
	}
	for _, x := range []struct {
		field string
		n     int64
	}{{"params", f.Params}, {"trained", f.Trained}, {"active_params", f.Active}, {"batch", f.Batch}, {"seq", f.Seq}, {"rows", f.Rows}, {"micros", f.Micros},
		{"groups", f.Groups}, {"slots", f.Slots}, {"grad_slots", f.GradSlots}, {"saved_inputs", f.SavedInputs}, {"saved_layers", f.SavedLayers},
		{"device_grads", f.DeviceGrads}, {"prefill", f.Prefill},
		{"memory.device_peak", f.Memory.DevicePeak}, {"memory.host_peak", f.Memory.HostPeak}, {"memory.runtime", f.Memory.Runtime}, {"memory.scratch", f.Memory.Scratch}} {
		if !amount(x.n) {
			return jsontext.In(x.field, fmt.Errorf("%s is %d, which is no amount of anything", x.field, x.n))
		}
	}
	for i, a := range f.Memory.Arenas {
		if !amount(a.Bytes) || !amount(a.Generation) {
			return at("memory.arenas", i, "arena %q has %d bytes, %d for generation", a.Name, a.Bytes, a.Generation)
		}
		for _, h := range a.Holds {
			if !amount(h.Bytes) || h.Buffers < 0 {
				return at("memory.arenas", i, "arena %q holds %d bytes in %d buffers", a.Name, h.Bytes, h.Buffers)
			}
		}
	}
	if w := f.Work; w != nil {
		for i, funcs := range w.Funcs {
			if len(funcs) > int(plan.NumFuncs) {
				return at("work.funcs", i, "a template has launches of %d functions", len(funcs))
			}
			for len(w.Funcs[i]) < int(plan.NumFuncs) {
				w.Funcs[i] = append(w.Funcs[i], nil) // of an older mtc
			}
			for _, launches := range funcs {
				for _, l := range launches {
					if !amount(l.FLOPs) || !amount(l.Bytes) || !amount(l.Times) {
						return at("work.funcs", i, "a launch of %q has %d FLOPs and %d bytes %d times", l.Kernel, l.FLOPs, l.Bytes, l.Times)
					}
				}
			}
		}
	}
	have := map[string]bool{}
	for i := range f.Tasks {
		t := &f.Tasks[i]
		switch {
		case t.ID != i:
			return at("tasks", i, "its task %d is out of place", i)
		case !lists[t.List]:
			return at("tasks", i, "its task %d is in the list %q, which does not exist", i, t.List)
		case !lanes[t.Lane] || !slices.Contains(f.Lanes, t.Lane):
			return at("tasks", i, "its task %d is on the lane %q, which does not exist", i, t.Lane)
		case number(t.Kind, plan.NumKinds) < 0 || t.Func != "" && number(t.Func, plan.NumFuncs) < 0:
			return at("tasks", i, "its task %d does %q, which no task does", i, kindOf(t))
		case !amount(t.Bytes) || !amount(t.FLOPs):
			return at("tasks", i, "its task %d has %d bytes and %d FLOPs", i, t.Bytes, t.FLOPs)
		}
		have[t.List] = true
		for _, w := range t.Waits {
			if w.Task < 0 || w.Task >= len(f.Tasks) || w.Back < 0 || w.Back > 1 {
				return at("tasks", i, "its task %d waits for one that does not exist", i)
			}
		}
	}
	for _, l := range []plan.List{plan.First, plan.Steady} {
		if !have[l.String()] {
			return fmt.Errorf("the list %s has no tasks", l)
		}
	}
	if f.Batch < 1 || f.Seq < 1 || f.Rows < 1 || f.Micros < 1 || f.Groups < 1 || f.Groups > f.Micros || f.Rows > f.Batch || f.Micros > f.Batch {
		return fmt.Errorf("a step of %d rows of %d tokens is not %d micro-batches of %d rows in %d groups", f.Batch, f.Seq, f.Micros, f.Rows, f.Groups)
	}
	return nil
}

// at is an error about an element of a list.
func at(list string, i int, format string, args ...any) error {
	return jsontext.In(fmt.Sprintf("%s[%d]", list, i), fmt.Errorf(format, args...))
}

func amount(n int64) bool { return 0 <= n && n <= maxAmount }
