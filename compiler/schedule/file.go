package schedule

import (
	"github.com/megatrain/mtc/compiler/cost"
	"github.com/megatrain/mtc/compiler/memplan"
	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/plan"
)

// File is what schedule.json holds: a plan in words, for people and tools. It is written by
// JSON and read by Parse; names stand for numbers, except tasks, which keep their IDs.
type File struct {
	Model  string `json:"model"`
	Params int64  `json:"params"`
	// Trained is how many of the parameters learn, where others are frozen; 0: all.
	Trained   int64  `json:"trained,omitempty"`
	Placement string `json:"placement"`
	Source    string `json:"source"`
	Target    string `json:"target"`
	Compiler  string `json:"compiler"`
	Hash      string `json:"hash"`
	Precision string `json:"precision"`
	// Active is how many of the parameters a token passes on average; as many as Params without a
	// mixture of experts, and then left out.
	Active  int64        `json:"active_params,omitempty"`
	Routers []FileRouter `json:"routers,omitempty"`
	// Values are the parameters of the model, as text.
	Values []plan.Value `json:"values"`
	// Planned is what the planner chose for; nil where it did not.
	Planned *Planned `json:"planned,omitempty"`

	Batch  int64 `json:"batch"` // rows a step
	Seq    int64 `json:"seq"`
	Rows   int64 `json:"rows"` // of a micro-batch
	Micros int64 `json:"micros"`
	Groups int64 `json:"groups"`
	// What a stream keeps where, left out where it is nothing: inputs of layers that are saved to
	// the host, slabs that stream and whose gradient waits on the device, "bf16" where gradients
	// are rounded to it for the link.
	SavedInputs   int64  `json:"saved_inputs,omitempty"`
	SavedLayers   int64  `json:"saved_layers,omitempty"` // layers whose saved activations wait on the host
	DeviceGrads   int64  `json:"device_grads,omitempty"`
	GradPrecision string `json:"grad_precision,omitempty"`
	Slots         int64  `json:"slots"`
	GradSlots     int64  `json:"grad_slots"`
	Clip          bool   `json:"clip"`
	Prefill       int64  `json:"prefill"` // positions of a prefill chunk

	Lanes []string `json:"lanes"`
	// Templates are in the order in which the program has them.
	Templates []string `json:"templates"`
	// Results are the tasks after which a step's results are on the host, one in each list that
	// has results.
	Results []int        `json:"results"`
	Work    *cost.Work   `json:"work"`
	Memory  FileMemory   `json:"memory"`
	Slabs   []FileSlab   `json:"slabs"`
	Buffers []FileBuffer `json:"buffers"`
	Tasks   []FileTask   `json:"tasks"`
}

// Planned is a machine that a plan was made for, by name or by its profile, and the bytes that it was given of
// it, 0: all.
type Planned struct {
	Machine      string `json:"machine"`
	DeviceMemory int64  `json:"device_memory,omitempty"`
	HostMemory   int64  `json:"host_memory,omitempty"`
}

// FileMemory are the peaks in bytes. HostPeak includes Runtime: what the process needs
// besides the plan's arenas.
type FileMemory struct {
	DevicePeak int64       `json:"device_peak"`
	HostPeak   int64       `json:"host_peak"`
	Runtime    int64       `json:"runtime"`
	Scratch    int64       `json:"scratch,omitempty"` // plan.Plan.Scratch
	Arenas     []FileArena `json:"arenas"`
}

// FileArena is an arena and, by purpose, the buffers in it. Purposes may add up to more than
// the arena, because buffers of different times share memory.
type FileArena struct {
	Name       string     `json:"name"`
	Memory     string     `json:"memory"`
	Bytes      int64      `json:"bytes"`
	Generation int64      `json:"generation"` // bytes that generation alone needs
	Holds      []FileHold `json:"holds"`
}

// FileHold is the buffers of an arena that serve one purpose.
type FileHold struct {
	Purpose string `json:"purpose"`
	Buffers int    `json:"buffers"`
	Bytes   int64  `json:"bytes"`
}

// FileSlab is a slab.
type FileSlab struct {
	Name   string `json:"name"`
	Elems  int64  `json:"elems"`
	Params int    `json:"params"`
	// Resident says that weights, gradient and state are on the device.
	Resident bool `json:"resident"`
	// Decayed is how many of its parameters weight decay reaches: those of matrices.
	Decayed int64 `json:"decayed"`
	// Frozen says that it has weights alone: nothing of it learns.
	Frozen bool `json:"frozen,omitempty"`
	// Spare is how many of its elements belong to no parameter: rows that make a product faster.
	Spare int64 `json:"spare,omitempty"`
}

// FileBuffer is a buffer.
type FileBuffer struct {
	Name    string `json:"name"`
	Arena   string `json:"arena"`
	Purpose string `json:"purpose"` // as in FileHold
	Off     int64  `json:"off"`
	Bytes   int64  `json:"bytes"`
	Copies  int    `json:"copies"`
}

// FileTask is a task. Layer counts block instances from 0 and is -1 for what belongs to none,
// as Micro is for what belongs to no micro-batch. Bytes are those a copy moves, else those
// the task reads and writes.
type FileTask struct {
	ID       int      `json:"id"`
	List     string   `json:"list"`
	Kind     string   `json:"kind"`
	Func     string   `json:"func,omitempty"`
	Lane     string   `json:"lane"`
	Layer    int      `json:"layer"`
	Micro    int      `json:"micro"`
	Unit     string   `json:"unit,omitempty"`
	Slab     string   `json:"slab,omitempty"`
	Template string   `json:"template"`
	Step     int      `json:"step"` // 0: the list's own step, -1: the step before
	Span     string   `json:"span,omitempty"`
	Reads    []string `json:"reads"`
	Writes   []string `json:"writes"`
	Src      string   `json:"src,omitempty"`
	Dst      string   `json:"dst,omitempty"`
	// Adds are the places, among the slabs of the template, of those whose gradient the task adds to.
	Adds  []int      `json:"adds,omitempty"`
	Waits []FileWait `json:"waits"`
	FLOPs int64      `json:"flops"`
	Bytes int64      `json:"bytes"`
}

// FileWait names a task that must be done before: of the same list, or with Back = 1 the task
// of the step before that corresponds to the one named.
type FileWait struct {
	Task int `json:"task"`
	Back int `json:"back"`
}

// decayed counts the parameters of a slab that weight decay reaches.
func decayed(s *plan.Slab) (n int64) {
	for i := range s.Params {
		if s.Params[i].Decay {
			n += sizeOf(&s.Params[i])
		}
	}
	return n
}

// spare counts the elements of a slab that belong to no parameter.
func spare(s *plan.Slab) int64 {
	n := s.Elems
	for i := range s.Params {
		n -= sizeOf(&s.Params[i])
	}
	return n
}

// sizeOf is how many elements a parameter has.
func sizeOf(p *plan.Param) int64 {
	n := int64(1)
	for _, d := range p.Shape {
		n *= d
	}
	return n
}

// FileOf puts a plan in words.
func FileOf(p *plan.Plan) *File {
	f := &File{
		Model: p.Model, Params: p.NumParams, Placement: p.Placement, Source: p.Source, Target: p.Target,
		Compiler: p.Compiler, Hash: p.Hash, Batch: p.Batch, Seq: p.Seq, Rows: p.Rows, Micros: p.Micros,
		Groups: p.Groups, Slots: p.Slots, GradSlots: p.GradSlots, Clip: p.Clip, Precision: p.Precision, Prefill: p.Prefill,
		Values: append([]plan.Value{}, p.Values...), Templates: append([]string{}, p.Templates...), Results: []int{},
		Lanes: []string{}, Slabs: []FileSlab{}, Buffers: []FileBuffer{}, Tasks: []FileTask{},
	}
	for l := range device.NumLanes {
		f.Lanes = append(f.Lanes, l.String())
	}
	for _, s := range p.Slabs {
		f.Slabs = append(f.Slabs, FileSlab{s.Name, s.Elems, len(s.Params), s.Resident, decayed(&s), s.Frozen, spare(&s)})
	}
	purpose := purposes(p)
	for i, b := range p.Buffers[1:] {
		copies := 1
		if b.Parity {
			copies = 2
		}
		f.Buffers = append(f.Buffers, FileBuffer{b.Name, p.Arenas[b.Arena].Name, purpose[i+1], b.Off, b.Bytes, copies})
	}
	if p.Trained() < len(p.Slabs) {
		f.Trained = p.NumTrained()
	}
	f.SavedInputs, f.SavedLayers, f.DeviceGrads = p.SavedInputs, p.SavedLayers, int64(p.DeviceGrads())
	if p.HalfGrads() {
		f.GradPrecision = "bf16"
	}
	f.Memory = fileMemory(p, purpose)
	f.Routers, f.Active = fileRouters(p)
	recorders := recordersOf(p)
	for l := range plan.NumLists {
		if e := p.ResultsEvent; e >= 0 && e < p.Events && recorders[l][e] >= 0 {
			f.Results = append(f.Results, recorders[l][e])
		}
	}
	f.Tasks = make([]FileTask, 0, len(p.Tasks))
	for i := range p.Tasks {
		f.Tasks = append(f.Tasks, fileTask(p, &p.Tasks[i], recorders))
	}
	return f
}

func fileTask(p *plan.Plan, t *plan.Task, recorders [plan.NumLists][]int) FileTask {
	x := FileTask{
		ID: t.ID, List: t.List.String(), Kind: t.Kind.String(), Func: t.Func.String(), Lane: t.Lane.String(),
		Layer: -1, Micro: t.Micro, Step: -t.Back, Reads: make([]string, 0, len(t.Reads)), Writes: make([]string, 0, len(t.Writes)), Waits: make([]FileWait, 0, len(t.Waits)),
		FLOPs: t.FLOPs, Bytes: t.Moved,
	}
	if t.Unit >= 0 {
		x.Unit, x.Layer = p.Units[t.Unit].Name, p.Units[t.Unit].Layer
	}
	if t.Slab >= 0 {
		x.Slab = p.Slabs[t.Slab].Name
	}
	if t.Template >= 0 {
		x.Template = p.Templates[t.Template]
	}
	if t.Span < len(p.Spans) {
		x.Span = p.Spans[t.Span]
	}
	for _, id := range t.Reads {
		x.Reads = append(x.Reads, p.Buffers[id].Name)
	}
	for _, id := range t.Writes {
		x.Writes = append(x.Writes, p.Buffers[id].Name)
	}
	for i, add := range t.Bind.Add {
		if add && t.Kind == plan.Compute {
			x.Adds = append(x.Adds, i)
		}
	}
	if t.Src != plan.NoBuf {
		x.Src, x.Dst = p.Buffers[t.Src].Name, p.Buffers[t.Dst].Name
		if t.Kind != plan.Accumulate {
			x.Bytes = t.Bytes
		}
	}
	for _, w := range t.Waits {
		// What the step before recorded was recorded by the steady step's task in the long run.
		list := t.List
		if w.Back == 1 {
			list = plan.Steady
		}
		x.Waits = append(x.Waits, FileWait{recorders[list][w.Event], w.Back})
	}
	return x
}

// recordersOf finds, by list and event, the task that records it; -1 for none.
func recordersOf(p *plan.Plan) [plan.NumLists][]int {
	var out [plan.NumLists][]int
	for l := range out {
		out[l] = make([]int, p.Events)
		for e := range out[l] {
			out[l][e] = -1
		}
		for i := p.Lists[l].Start; i < p.Lists[l].End; i++ {
			if e := p.Tasks[i].Event; e >= 0 {
				out[l][e] = i
			}
		}
	}
	return out
}

// MemoryOf is what a plan's arenas hold, by purpose.
func MemoryOf(p *plan.Plan) FileMemory { return fileMemory(p, purposes(p)) }

func fileMemory(p *plan.Plan, purpose []string) FileMemory {
	m := FileMemory{Runtime: memplan.RuntimeBytes(p), Scratch: p.Scratch, Arenas: []FileArena{}}
	m.DevicePeak, m.HostPeak = memplan.Peak(p)
	m.HostPeak += m.Runtime
	for a, arena := range p.Arenas {
		x := FileArena{Name: arena.Name, Memory: arena.Memory.String(), Bytes: arena.Bytes, Generation: arena.GenBytes, Holds: []FileHold{}}
		for i := 1; i < len(p.Buffers); i++ {
			b := &p.Buffers[i]
			if b.Arena != a {
				continue
			}
			k := 0
			for k < len(x.Holds) && x.Holds[k].Purpose != purpose[i] {
				k++
			}
			if k == len(x.Holds) {
				x.Holds = append(x.Holds, FileHold{Purpose: purpose[i]})
			}
			x.Holds[k].Buffers++
			x.Holds[k].Bytes += b.Bytes
			if b.Parity {
				x.Holds[k].Bytes += b.Bytes
			}
		}
		m.Arenas = append(m.Arenas, x)
	}
	return m
}
