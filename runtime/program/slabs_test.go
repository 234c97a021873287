package program

import (
	"bytes"
	"math"
	"runtime"
	"testing"

	"github.com/megatrain/mtc/runtime/checkpoint"
	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/device/cpu"
	"github.com/megatrain/mtc/runtime/engine"
	"github.com/megatrain/mtc/runtime/plan"
)

// far is a device whose memory can only be copied from and to, as a GPU's.
type far struct{ *cpu.Device }

func (far) View(device.Ptr, int64) []byte { return nil }

// farPlan has slabs of one and of several parameters on the device, each with its state.
func farPlan() *plan.Plan {
	p := &plan.Plan{Precision: "bf16", Buffers: []plan.Buffer{{}}}
	var at int64
	buffer := func(n int64) plan.BufID {
		p.Buffers = append(p.Buffers, plan.Buffer{Name: "b", Off: at, Bytes: n})
		at += n
		return plan.BufID(len(p.Buffers) - 1)
	}
	slab := func(name string, shapes ...int64) {
		s := plan.Slab{Name: name, Resident: true}
		for i, n := range shapes {
			s.Params = append(s.Params, plan.Param{Name: name + string(rune('a'+i)), Off: s.Elems, Shape: []int64{n}, Init: plan.Init{Kind: plan.InitNormal, Scale: 1}})
			s.Elems += n
		}
		s.Weight, s.Lo, s.M, s.V = buffer(2*s.Elems), buffer(2*s.Elems), buffer(4*s.Elems), buffer(4*s.Elems)
		p.Slabs = append(p.Slabs, s)
	}
	slab("small", 1<<12)
	slab("embed", 3<<20)
	for range 4 {
		slab("layer"+string(rune('0'+len(p.Slabs))), 1<<18, 1<<18, 1<<12, 1<<19)
	}
	slab("head", 1<<12, 3<<20)
	p.Arenas = []plan.Arena{{Name: "a", Memory: device.DeviceMemory, Bytes: at, GenBytes: at}}
	return p
}

// State that is on a device goes through as much host memory as the plan says, however many slabs there
// are, and arrives whole: when it is made, saved, read and compared.
func TestStagedStateIsAsPlanned(t *testing.T) {
	p := farPlan()
	open := func() (*engine.Engine, func() [][]byte) {
		d := cpu.New()
		t.Cleanup(func() { d.Close() })
		e, err := engine.New(engine.Config{Plan: p, Device: far{d}, Infer: true})
		if err != nil {
			t.Fatal(err)
		}
		return e, func() (all [][]byte) {
			for id := 1; id < len(p.Buffers); id++ {
				all = append(all, d.View(e.Ptr(plan.BufID(id), 0), p.Buffers[id].Bytes))
			}
			return all
		}
	}
	// allocates runs f, which may take what the plan says from Go's memory, and little beside.
	allocates := func(what string, f func() error) {
		t.Helper()
		const beside = 4 << 20 // blocks of the cores, and tables
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if err := f(); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		runtime.ReadMemStats(&after)
		took := int64(after.TotalAlloc - before.TotalAlloc)
		t.Logf("%s: %d bytes, planned %d", what, took, p.Staged())
		if !raced && took > p.Staged()+beside+int64(runtime.GOMAXPROCS(0))<<20 {
			t.Errorf("%s took %d bytes, planned are %d", what, took, p.Staged())
		}
	}
	if want := int64(4 * (3<<20 + 1<<12)); p.Staged() != want {
		t.Fatalf("%d bytes are staged, want the head's %d", p.Staged(), want)
	}

	e, bytesOf := open()
	allocates("init", func() error { return initialize(e, 7) })
	for i, b := range bytesOf() { // moments that tell buffers and places apart
		if s := i % 4; s >= 2 {
			for at := 0; at < len(b); at += 1021 {
				b[at] = byte(i + at)
			}
		}
	}
	allocates("moved", func() error {
		m, err := movedWeights(e, 7)
		if m.Changed != 0 {
			t.Errorf("%+v of what init made", m)
		}
		return err
	})
	dir := t.TempDir()
	var path string
	allocates("save", func() (err error) {
		state := slabs{e: e, readOnly: true}
		files := checkpoint.FromSlabs(p, state.view)
		state.guard(files)
		path, err = checkpoint.Save(dir, checkpoint.State{Step: 1}, files, 1)
		return first(err, state.end())
	})
	c, err := checkpoint.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	other, otherBytes := open()
	allocates("load", func() error {
		state := slabs{e: other, fresh: true}
		return first(c.LoadSlabs(p, state.view, true), state.end())
	})
	want := bytesOf()
	for i, b := range otherBytes() {
		if !bytes.Equal(b, want[i]) {
			t.Errorf("buffer %d of the loaded state differs", i+1)
		}
	}
	if m, err := movedWeights(other, 8); err != nil || m.Changed < m.Weights*9/10 || math.IsNaN(m.Most) {
		t.Errorf("of another seed: %+v, %v", m, err)
	}
}
