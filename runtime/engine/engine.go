package engine

import (
	"errors"
	"fmt"
	"unsafe"

	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/plan"
)

// Config is what an engine is made of.
type Config struct {
	Plan      *plan.Plan
	Templates []Template // in the order of Plan.Templates
	Tables    []TableFunc
	Steps     Steps
	Device    device.Device
	// Infer allocates what generation needs and no more: Train and Evaluate cannot be called.
	Infer bool
}

// Engine is a plan bound to the memory and queues of a device. Its methods are called from
// one goroutine.
type Engine struct {
	plan      *plan.Plan
	dev       device.Device
	templates []Template
	steps     Steps

	arenas []arena
	queues [device.NumLanes]device.Queue
	tags   [device.NumLanes]device.Tagger // nil where the device has none
	events [2][]device.Event              // by parity of the step that records
	tables []device.Ptr                   // every binding shares it
	lists  [plan.NumLists][2][]command

	host    [2]hostBlocks
	gen     genBlocks
	state   State
	metrics Metrics // the last step's
	pending bool    // the last step's updates are not all submitted
}

// arena is an allocation; bytes is what was asked for, 0 when nothing was.
type arena struct {
	base  device.Ptr
	bytes int64
}

// hostBlocks are one parity's host memory that the engine writes before a step and reads
// after it.
type hostBlocks struct {
	tokens, targets  []int32
	scalars, results []float64
	routers          []float64 // reports of routers, nil without any

	// Where documents share rows: what the device reads, of which targets are a part (documents.go).
	blocks, starts []int32
}

type genBlocks struct {
	tokens, positions []int32
	logits            []float32
	half              []uint16 // what arrives when the plan computes in bf16; logits are made of it
}

// State is how far training is.
type State struct {
	Step    int64 // steps done
	Updates int64 // optimizer steps done: steps less the skipped ones
	Skipped int64 // steps whose loss or gradient was not finite
	InRow   int64 // of which the last ones, without an update between
}

// New allocates the plan's memory and resolves every task.
func New(c Config) (*Engine, error) {
	e := &Engine{plan: c.Plan, dev: c.Device, templates: c.Templates, steps: c.Steps}
	if err := e.allocate(c.Infer); err != nil {
		return nil, err
	}
	for l := range e.queues {
		e.queues[l] = e.dev.Queue(device.Lane(l))
		e.tags[l], _ = e.queues[l].(device.Tagger)
	}
	for p := range e.events {
		e.events[p] = make([]device.Event, c.Plan.Events)
		for i := range e.events[p] {
			e.events[p][i] = e.dev.NewEvent()
		}
	}
	if err := e.fillConstants(c.Tables); err != nil {
		return nil, err
	}
	for l := range plan.NumLists {
		if c.Infer && l != plan.Prefill && l != plan.Decode {
			continue
		}
		for parity := range 2 {
			if err := e.prepare(l, parity); err != nil {
				return nil, err
			}
		}
	}
	if !c.Infer {
		if err := e.hostViews(); err != nil {
			return nil, err
		}
	}
	if err := e.genViews(); err != nil {
		return nil, err
	}
	return e, e.warm()
}

// Plan is the plan that the engine runs.
func (e *Engine) Plan() *plan.Plan { return e.plan }

// Device is the device that it runs on.
func (e *Engine) Device() device.Device { return e.dev }

// State says how far training is.
func (e *Engine) State() State { return e.state }

// SetState continues a run from a state that was saved; weights and moments are the caller's.
func (e *Engine) SetState(s State) { e.state = s }

func (e *Engine) allocate(infer bool) error {
	e.arenas = make([]arena, len(e.plan.Arenas))
	for i, a := range e.plan.Arenas {
		n := a.Bytes
		if infer {
			n = a.GenBytes
		}
		if n == 0 {
			continue
		}
		base, err := e.dev.Alloc(a.Memory, n)
		if err != nil {
			return fmt.Errorf("arena %s: %w", a.Name, err)
		}
		e.arenas[i] = arena{base, n}
	}
	return nil
}

// Ptr is the address of a buffer's copy; nil for NoBuf and for what was not allocated.
func (e *Engine) Ptr(id plan.BufID, parity int) device.Ptr {
	if id == plan.NoBuf {
		return device.Ptr{}
	}
	b := &e.plan.Buffers[id]
	a := e.arenas[b.Arena]
	off := b.Off
	if b.Parity {
		off += int64(parity) * b.Bytes
	}
	if off+b.Bytes > a.bytes {
		return device.Ptr{}
	}
	return a.base.At(off)
}

// fillConstants writes what no task writes: tables and the positions of a batch's rows.
func (e *Engine) fillConstants(tables []TableFunc) error {
	if len(tables) != len(e.plan.Tables) {
		return fmt.Errorf("the plan has %d tables, the program %d", len(e.plan.Tables), len(tables))
	}
	e.tables = make([]device.Ptr, len(tables))
	for i, t := range e.plan.Tables {
		p := e.Ptr(t.Buf, 0)
		if e.tables[i] = p; p.Nil() {
			continue
		}
		values := make([]float32, e.plan.Buffers[t.Buf].Bytes/4)
		tables[i](values)
		if err := e.dev.Write(p, bytesOf(values)); err != nil {
			return fmt.Errorf("table %s: %w", t.Name, err)
		}
	}
	p := e.Ptr(e.plan.Positions, 0)
	if p.Nil() {
		return nil
	}
	positions := make([]int32, e.plan.Rows*e.plan.Seq)
	for i := range positions {
		positions[i] = int32(int64(i) % e.plan.Seq)
	}
	return e.dev.Write(p, bytesOf(positions))
}

var errNoView = errors.New("host memory cannot be reached")

func (e *Engine) hostViews() error {
	n := e.plan.Micros * e.plan.Rows * e.plan.Seq
	ok := true
	targets := n
	if e.plan.Documents {
		targets = 3 * n
	}
	for parity := range e.host {
		e.host[parity] = hostBlocks{
			tokens:  viewOf[int32](e, e.plan.HostTokens, parity, n, &ok),
			targets: viewOf[int32](e, e.plan.HostTargets, parity, targets, &ok),
			scalars: viewOf[float64](e, e.plan.HostScalars, parity, plan.NumScalars, &ok),
			results: viewOf[float64](e, e.plan.Results, parity, plan.NumScalars, &ok),
		}
	}
	if e.plan.HostRouters != plan.NoBuf {
		for parity := range e.host {
			e.host[parity].routers = viewOf[float64](e, e.plan.HostRouters, parity, e.plan.Buffers[e.plan.HostRouters].Bytes/8, &ok)
		}
	}
	if !ok {
		return errNoView
	}
	if e.plan.Documents {
		for parity := range e.host {
			e.host[parity].split(e.plan)
		}
	}
	return nil
}

func (e *Engine) genViews() error {
	if e.plan.HostGenTokens == plan.NoBuf {
		return nil
	}
	ok := true
	e.gen = genBlocks{
		tokens: viewOf[int32](e, e.plan.HostGenTokens, 0, e.plan.Prefill, &ok),
	}
	if e.plan.Bf16() {
		e.gen.half = viewOf[uint16](e, e.plan.HostGenLogits, 0, e.plan.Vocab, &ok)
		e.gen.logits = make([]float32, e.plan.Vocab)
	} else {
		e.gen.logits = viewOf[float32](e, e.plan.HostGenLogits, 0, e.plan.Vocab, &ok)
	}
	if !e.Ptr(e.plan.HostGenPositions, 0).Nil() { // a model that reads no position has none
		e.gen.positions = viewOf[int32](e, e.plan.HostGenPositions, 0, e.plan.Prefill, &ok)
	}
	if !ok {
		return errNoView
	}
	return nil
}

// viewOf is n elements of a host buffer, or clears ok.
func viewOf[E uint16 | int32 | float32 | float64](e *Engine, id plan.BufID, parity int, n int64, ok *bool) []E {
	var x E
	b := e.dev.View(e.Ptr(id, parity), n*int64(unsafe.Sizeof(x)))
	if b == nil {
		*ok = false
		return nil
	}
	return unsafe.Slice((*E)(unsafe.Pointer(unsafe.SliceData(b))), n)
}

func bytesOf[E int32 | float32](v []E) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(v))), len(v)*4)
}
