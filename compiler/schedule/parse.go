package schedule

import (
	"bytes"
	"encoding/json"
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
	f := &File{}
	err := jsontext.Explain(text, json.Unmarshal(text, f))
	if err == nil && controls(text) {
		err = errors.New("it holds characters that a terminal acts on")
	}
	if err == nil {
		err = f.check()
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
	for _, l := range f.Lanes {
		if !lanes[l] {
			return fmt.Errorf("there is no lane %q", l)
		}
	}
	switch {
	case f.Model == "":
		return errors.New("it names no model")
	case len(f.Tasks) == 0:
		return errors.New("it has no tasks")
	}
	for _, n := range []int64{f.Params, f.Batch, f.Seq, f.Rows, f.Micros, f.Groups, f.Slots, f.GradSlots,
		f.Memory.DevicePeak, f.Memory.HostPeak, f.Memory.Runtime} {
		if n < 0 || n > maxAmount {
			return fmt.Errorf("%d is no amount of anything", n)
		}
	}
	for _, a := range f.Memory.Arenas {
		if !amount(a.Bytes) || !amount(a.Generation) {
			return fmt.Errorf("arena %q has %d bytes, %d for generation", a.Name, a.Bytes, a.Generation)
		}
		for _, h := range a.Holds {
			if !amount(h.Bytes) || h.Buffers < 0 {
				return fmt.Errorf("arena %q holds %d bytes in %d buffers", a.Name, h.Bytes, h.Buffers)
			}
		}
	}
	if w := f.Work; w != nil {
		for i, funcs := range w.Funcs {
			if len(funcs) > int(plan.NumFuncs) {
				return fmt.Errorf("a template has launches of %d functions", len(funcs))
			}
			for len(w.Funcs[i]) < int(plan.NumFuncs) {
				w.Funcs[i] = append(w.Funcs[i], nil) // of an older mtc
			}
			for _, launches := range funcs {
				for _, l := range launches {
					if !amount(l.FLOPs) || !amount(l.Bytes) || !amount(l.Times) {
						return fmt.Errorf("a launch of %q has %d FLOPs and %d bytes %d times", l.Kernel, l.FLOPs, l.Bytes, l.Times)
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
			return fmt.Errorf("its task %d is out of place", i)
		case !lists[t.List]:
			return fmt.Errorf("its task %d is in the list %q, which does not exist", i, t.List)
		case !lanes[t.Lane] || !slices.Contains(f.Lanes, t.Lane):
			return fmt.Errorf("its task %d is on the lane %q, which does not exist", i, t.Lane)
		case number(t.Kind, plan.NumKinds) < 0 || t.Func != "" && number(t.Func, plan.NumFuncs) < 0:
			return fmt.Errorf("its task %d does %q, which no task does", i, kindOf(t))
		case !amount(t.Bytes) || !amount(t.FLOPs):
			return fmt.Errorf("its task %d has %d bytes and %d FLOPs", i, t.Bytes, t.FLOPs)
		}
		have[t.List] = true
		for _, w := range t.Waits {
			if w.Task < 0 || w.Task >= len(f.Tasks) || w.Back < 0 || w.Back > 1 {
				return fmt.Errorf("its task %d waits for one that does not exist", i)
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

func amount(n int64) bool { return 0 <= n && n <= maxAmount }
