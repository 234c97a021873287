package schedule

import (
	"fmt"
	"slices"

	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/plan"
)

// Plan makes a plan of a file, for what looks at plans: the cost model and the views. It has
// the tasks with their lanes, waits, buffers and work, the buffers and arenas, and the names of
// slabs, units and templates; it cannot run, because bindings, but for which gradients are added to, and
// parameters are not in the file. Its order is verified: a wait that is gone is an error. FileOf of it gives the file again, but for what the file says about memory by purpose.
func (f *File) Plan() (*plan.Plan, error) {
	p := &plan.Plan{
		Model: f.Model, NumParams: f.Params, Placement: f.Placement, Source: f.Source, Target: f.Target, Compiler: f.Compiler,
		Hash: f.Hash, Precision: f.Precision, Values: f.Values, Batch: f.Batch, Seq: f.Seq, Rows: f.Rows, Micros: f.Micros,
		Groups: f.Groups, Slots: f.Slots, GradSlots: f.GradSlots, Clip: f.Clip, SavedInputs: f.SavedInputs, SavedLayers: f.SavedLayers, Scratch: f.Memory.Scratch, Prefill: f.Prefill, Templates: f.Templates,
		Buffers: make([]plan.Buffer, 1), ResultsEvent: -1,
	}
	b := &planOf{file: f, plan: p, arenas: map[string]int{}, buffers: map[string]plan.BufID{}, slabs: map[string]int{}, units: map[string]int{}, spans: map[string]int{"": 0}}
	p.Spans = []string{""}
	if err := b.memory(); err != nil {
		return nil, err
	}
	for i, s := range f.Slabs {
		b.slabs[s.Name] = i
		p.Slabs = append(p.Slabs, plan.Slab{
			Name: s.Name, Elems: s.Elems, Frozen: s.Frozen, Resident: s.Resident, Weight: b.buffers[s.Name+".weight"], Lo: b.buffers[s.Name+".lo"],
			M: b.buffers[s.Name+".m"], V: b.buffers[s.Name+".v"], Grad: b.buffers[s.Name+".grad"], HalfGrad: !s.Resident && f.GradPrecision == "bf16",
		})
	}
	for _, r := range f.Routers {
		p.Routers = append(p.Routers, plan.Router{Name: r.Name, Unit: -1, Kind: r.Kind, Experts: r.Experts, Slots: r.Slots, Mean: r.Mean})
	}
	p.Tasks = make([]plan.Task, 0, len(f.Tasks))
	for i := range f.Tasks {
		t, err := b.task(&f.Tasks[i])
		if err != nil {
			return nil, fmt.Errorf("its task %d %w", i, err)
		}
		p.Tasks = append(p.Tasks, t)
	}
	if err := b.lists(); err != nil {
		return nil, err
	}
	if err := b.events(); err != nil {
		return nil, err
	}
	return p, verifyOrder(p)
}

type planOf struct {
	file    *File
	plan    *plan.Plan
	arenas  map[string]int
	buffers map[string]plan.BufID
	slabs   map[string]int
	units   map[string]int
	spans   map[string]int
}

func (b *planOf) memory() error {
	p := b.plan
	for i, a := range b.file.Memory.Arenas {
		b.arenas[a.Name] = i
		m := device.DeviceMemory
		if a.Memory == device.HostMemory.String() {
			m = device.HostMemory
		}
		p.Arenas = append(p.Arenas, plan.Arena{Name: a.Name, Memory: m, Bytes: a.Bytes, GenBytes: a.Generation})
	}
	for _, x := range b.file.Buffers {
		a, ok := b.arenas[x.Arena]
		if !ok {
			return fmt.Errorf("its buffer %q lies in the arena %q, which does not exist", x.Name, x.Arena)
		}
		if !amount(x.Off) || !amount(x.Bytes) {
			return fmt.Errorf("its buffer %q has %d bytes at %d", x.Name, x.Bytes, x.Off)
		}
		b.buffers[x.Name] = plan.BufID(len(p.Buffers))
		p.Buffers = append(p.Buffers, plan.Buffer{Name: x.Name, Arena: a, Off: x.Off, Bytes: x.Bytes, Parity: x.Copies > 1})
	}
	return nil
}

// number is the place of a word in a list of words by number; -1 where it is none.
func number[E interface {
	~uint8
	String() string
}](word string, n E) int {
	for i := E(0); i < n; i++ {
		if i.String() == word {
			return int(i)
		}
	}
	return -1
}

func (b *planOf) task(x *FileTask) (plan.Task, error) {
	t := plan.Task{
		ID: x.ID, List: plan.List(number(x.List, plan.NumLists)), Kind: plan.Kind(number(x.Kind, plan.NumKinds)),
		Func: plan.Func(max(0, number(x.Func, plan.NumFuncs))), Lane: device.Lane(number(x.Lane, device.NumLanes)),
		Unit: -1, Slab: -1, Micro: x.Micro, Template: -1, Back: -x.Step, Event: -1,
		FLOPs: x.FLOPs, Moved: x.Bytes,
	}
	switch {
	case t.Back < 0 || t.Back > 1:
		return t, fmt.Errorf("belongs to step %d", x.Step)
	case number(x.Kind, plan.NumKinds) < 0 || (t.Kind == plan.Compute) != (t.Func != plan.NoFunc):
		return t, fmt.Errorf("is a %q with the function %q", x.Kind, x.Func)
	}
	if x.Unit != "" {
		k, ok := b.units[x.Unit]
		if !ok {
			k = len(b.plan.Units)
			b.units[x.Unit] = k
			b.plan.Units = append(b.plan.Units, plan.Unit{Name: x.Unit, Layer: x.Layer})
		}
		t.Unit = k
	}
	if x.Slab != "" {
		k, ok := b.slabs[x.Slab]
		if !ok {
			return t, fmt.Errorf("is about the slab %q, which does not exist", x.Slab)
		}
		t.Slab = k
	}
	if x.Template != "" {
		if t.Template = slices.Index(b.plan.Templates, x.Template); t.Template < 0 {
			return t, fmt.Errorf("runs the template %q, which does not exist", x.Template)
		}
		if t.Unit >= 0 {
			b.plan.Units[t.Unit].Template = t.Template
		}
	}
	k, ok := b.spans[x.Span]
	if !ok {
		k = len(b.plan.Spans)
		b.spans[x.Span] = k
		b.plan.Spans = append(b.plan.Spans, x.Span)
	}
	t.Span = k
	var err error
	if t.Reads, err = b.ids(x.Reads); err != nil {
		return t, err
	}
	if t.Writes, err = b.ids(x.Writes); err != nil {
		return t, err
	}
	for i, k := range x.Adds {
		if k < 0 || k >= plan.MaxSlabs || i > 0 && k <= x.Adds[i-1] || t.Kind != plan.Compute {
			return t, fmt.Errorf("adds to the gradients %d", x.Adds)
		}
		t.Bind.Add = append(t.Bind.Add, make([]bool, k+1-len(t.Bind.Add))...)
		t.Bind.Add[k] = true
	}
	if x.Src != "" {
		ends, err := b.ids([]string{x.Src, x.Dst})
		if err != nil {
			return t, err
		}
		t.Src, t.Dst = ends[0], ends[1]
		switch t.Kind {
		case plan.Accumulate:
		case plan.Round: // reads float32 for each bf16 that it writes
			t.Bytes, t.Moved = x.Bytes, 3*x.Bytes
		default:
			t.Bytes, t.Moved = x.Bytes, 2*x.Bytes
		}
	}
	return t, nil
}

func (b *planOf) ids(names []string) ([]plan.BufID, error) {
	if len(names) == 0 {
		return nil, nil
	}
	out := make([]plan.BufID, 0, len(names))
	for _, n := range names {
		id, ok := b.buffers[n]
		if !ok {
			return nil, fmt.Errorf("uses the buffer %q, which does not exist", n)
		}
		out = append(out, id)
	}
	return out, nil
}

// lists finds the lists, which have to stand one behind the other.
func (b *planOf) lists() error {
	p := b.plan
	for i := range p.Tasks {
		r := &p.Lists[p.Tasks[i].List]
		if r.End == 0 {
			r.Start = i
		} else if r.End != i {
			return fmt.Errorf("its list %s is in parts", p.Tasks[i].List)
		}
		r.End = i + 1
	}
	return nil
}

// events numbers what is waited for: a task of steady and the one of first, or of drain, that
// corresponds to it record the same event. Those of first are those of steady without the
// updates left over, which alone make up drain.
func (b *planOf) events() error {
	p := b.plan
	twins := map[int][]int{}
	var own, left []int
	for i := p.Lists[plan.Steady].Start; i < p.Lists[plan.Steady].End; i++ {
		if p.Tasks[i].Back == 1 {
			left = append(left, i)
		} else {
			own = append(own, i)
		}
	}
	for list, of := range map[plan.List][]int{plan.First: own, plan.Drain: left} {
		if r := p.Lists[list]; r.End-r.Start == len(of) {
			for k, i := range of {
				twins[i] = append(twins[i], r.Start+k)
			}
		}
	}
	event := make([]int, len(p.Tasks))
	for i := range event {
		event[i] = -1
	}
	record := func(task, n int) {
		event[task] = n
		for _, t := range twins[task] {
			event[t] = n
		}
	}
	for _, i := range b.file.Results {
		if i < 0 || i >= len(p.Tasks) {
			return fmt.Errorf("its results come from task %d, which does not exist", i)
		}
		p.ResultsEvent, p.Events = 0, 1
		event[i] = 0
	}
	// Steady first, so that its twins have its numbers.
	lists := []plan.List{plan.Steady, plan.First, plan.Drain, plan.Eval, plan.Prefill, plan.Decode}
	for _, l := range lists {
		for i := p.Lists[l].Start; i < p.Lists[l].End; i++ {
			for _, w := range b.file.Tasks[i].Waits {
				switch {
				case w.Back == 0 && (p.Tasks[w.Task].List != l || w.Task >= i):
					return fmt.Errorf("its task %d waits for task %d, which is not before it in %s", i, w.Task, l)
				case w.Back == 1 && p.Tasks[w.Task].List != plan.Steady:
					return fmt.Errorf("its task %d waits for task %d of the step before, which is not in steady", i, w.Task)
				}
				if event[w.Task] < 0 {
					record(w.Task, p.Events)
					p.Events++
				}
				p.Tasks[i].Waits = append(p.Tasks[i].Waits, plan.Wait{Event: event[w.Task], Back: w.Back})
			}
		}
	}
	for i := range p.Tasks {
		p.Tasks[i].Event = event[i]
	}
	return nil
}
