package optest

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/op"
)

// gpu is a device that runs CUDA kernels, in one precision.
type gpu struct {
	dev   device.Device
	arena device.Ptr
	bytes int64
	f32   bool
	// other is called before each machine: it may change what results must not depend on.
	other func()
}

// Widths are calls of an elementwise op of n inputs for Case.Wide: several blocks of whole
// vectors, and a width that leaves rows unaligned.
func Widths(n int, attr map[string]op.Value) (calls []Good) {
	for _, d := range []int64{136, 137} {
		g := Good{Name: fmt.Sprint("width ", d), Attr: attr, Batch: 2, Seq: 33, Range: 12}
		for range n {
			g.In = append(g.In, F32(d))
		}
		calls = append(calls, g)
	}
	return calls
}

// openGPU returns the device of a precision; the error is a reason to skip. It is nil in builds
// without CUDA.
var openGPU func(f32 bool) (*gpu, error)

// precisions are the ways in which a GPU computes.
var precisions = []struct {
	name string
	f32  bool
}{{"bf16", false}, {"f32", true}}

// GPU returns a machine on a device that runs CUDA kernels; the test is skipped, with the
// reason, where there is none. Activations and weights are float32 or bf16 there: Act places
// them, ReadAct reads them.
func GPU(t testing.TB, f32 bool) *Machine {
	t.Helper()
	if openGPU == nil {
		t.Skip("built without CUDA: -tags cuda")
	}
	g, err := openGPU(f32)
	if err != nil {
		t.Skip(err)
	}
	return g.machine(t)
}

// OnGPU runs a test in both precisions of a GPU.
func OnGPU(t *testing.T, run func(t *testing.T, f32 bool)) {
	for _, p := range precisions {
		t.Run("cuda "+p.name, func(t *testing.T) { run(t, p.f32) })
	}
}

func (g *gpu) machine(t testing.TB) *Machine {
	if g.other != nil {
		g.other()
	}
	return &Machine{t: t, dev: g.dev, Queue: g.dev.Queue(device.Compute), base: g.arena, size: g.bytes, gpu: g}
}

// half reports whether an operand is bf16 in that precision: activations, their gradients,
// weights and state are; the gradients of weights, statistics and tables are float32.
func (s *setup) half(operand string) bool {
	base, grad := strings.CutPrefix(operand, "d.")
	for _, w := range s.call.Weights {
		if w.Name == base {
			return !grad
		}
	}
	for _, o := range s.call.Saved {
		if o.Name == base {
			return false
		}
	}
	return !slices.Contains(s.c.F32, operand) &&
		!slices.ContainsFunc(s.call.Tables, func(t op.Table) bool { return t.Operand == base })
}

// RoundBF16 rounds every element to bf16.
func RoundBF16(v []float32) []float32 {
	w := make([]float32, len(v))
	for i, x := range v {
		b := math.Float32bits(x)
		if x == x {
			b += 0x7fff + b>>16&1
		}
		w[i] = math.Float32frombits(b &^ 0xffff)
	}
	return w
}

// as rounds what a GPU of the precision holds.
func (s *setup) as(f32 bool, operand string, v []float32) []float32 {
	if f32 || !s.half(operand) {
		return v
	}
	return RoundBF16(v)
}

// onGPU compares every launch with the CPU's, from the same (rounded) operands: values, AddX
// apart and shared, pairs in place, chunks of rows, and twice the same bits.
func (s *setup) onGPU(t *testing.T, f32 bool) {
	if openGPU == nil {
		t.Skip("built without CUDA: -tags cuda")
	}
	g, err := openGPU(f32)
	if err != nil {
		t.Skip(err)
	}
	r := *s
	r.data = maps.Clone(s.data)
	for name, v := range r.data {
		if v, ok := v.([]float32); ok {
			r.data[name] = s.as(f32, name, v)
		}
	}
	base := r.runOn(newMachine(t, 2, r.room()))
	for name, v := range base {
		if !strings.HasPrefix(name, "d.") {
			base[name] = s.as(f32, name, v)
		}
	}
	for _, l := range append([]op.Launch{s.call.Def.Forward}, s.backward()...) {
		t.Run(l.Func, func(t *testing.T) {
			if !r.hasCUDA(l) {
				t.Skip("no CUDA kernel")
			}
			x := &crossing{setup: &r, g: g, l: l, base: base, library: r.kernelOf(l).Matmul != nil}
			x.run(t)
		})
	}
}

// room is enough memory for all operands several times over.
func (s *setup) room() int64 {
	var n int64
	for _, v := range s.data {
		if v, ok := v.([]float32); ok {
			n += int64(len(v))
		}
	}
	return 64*n + machineBytes
}

func (s *setup) hasCUDA(l op.Launch) bool {
	k := s.kernelOf(l)
	return k.CUDA != nil || k.Matmul != nil
}

// kernelOf launches into a queue that looks at the kernel.
func (s *setup) kernelOf(l op.Launch) *device.Kernel {
	q := onlooker{kernel: &device.Kernel{}}
	s.launchOn(&q, l, nil)
	return q.kernel
}

type onlooker struct {
	device.Queue
	kernel *device.Kernel
}

func (q *onlooker) Launch(k *device.Kernel, _ device.Args) { q.kernel = k }

// crossing compares one launch on two devices.
type crossing struct {
	*setup
	g    *gpu
	l    op.Launch
	base results
	// library says that a matrix library runs the launch. It chooses an algorithm by the number
	// of rows and by where operands lie, and some round a product to bf16 before they add the
	// bias or the addend: bits are the same for the same call alone.
	library bool
}

func (x *crossing) run(t *testing.T) {
	plain := x.gpu(t, nil)
	x.compare(t, plain, x.cpu(t, nil))
	x.same(t, "once more", x.gpu(t, nil), plain)
	for _, g := range x.l.Adds {
		n := x.elems(g)
		if n == 0 {
			continue
		}
		add := x.as(x.g.f32, g, uniform("add "+g, n, 1))
		v := &variant{add: g, addend: add}
		apart := x.gpu(t, v)
		x.compare(t, apart, x.cpu(t, v))
		v.shared = true
		x.alike(t, g+" added in place", x.gpu(t, v), apart)
	}
	for _, pair := range x.l.InPlace {
		if x.elems(pair[0]) > 0 && x.elems(pair[1]) > 0 {
			x.same(t, pair[1]+" over "+pair[0], x.gpu(t, &variant{pair: pair}), plain)
		}
	}
	if rows := x.sizes.Rows(); x.call.Def.RowWise && rows > 1 {
		x.alike(t, "in chunks", x.gpu(t, &variant{cut: rows/2 + 1}), plain)
	}
}

// alike is same, or for a matrix library what compare asks for.
func (x *crossing) alike(t testing.TB, what string, got, want results) {
	t.Helper()
	if !x.library {
		x.same(t, what, got, want)
		return
	}
	part := results{} // chunks give no sums over rows
	for name := range got {
		part[name] = want[name]
	}
	x.compare(t, got, part)
}

// variant is a launch that differs from the plain one.
type variant struct {
	add    string // the gradient that has an addend
	addend []float32
	shared bool // the addend is the result's buffer
	pair   [2]string
	cut    int64 // rows of the first of two launches
}

// gpu runs the launch on the GPU and returns what it wrote.
func (x *crossing) gpu(t testing.TB, v *variant) results {
	t.Helper()
	if v == nil {
		v = &variant{}
	}
	m := x.g.machine(t)
	ptrs := map[string]device.Ptr{}
	put := func(operand string, v []float32) device.Ptr {
		if x.half(operand) {
			return m.Act(v...)
		}
		return m.F32(v...)
	}
	for _, r := range x.l.Reads {
		switch data := x.operand(r).(type) {
		case []float32:
			ptrs[op.Field(r)] = put(r, data)
		case []int32:
			ptrs[op.Field(r)] = m.I32(data...)
		}
	}
	for _, w := range x.l.Writes {
		if n := x.elems(w); n > 0 {
			ptrs[op.Field(w)] = m.Bytes(n * x.size(w))
		}
	}
	if v.add != "" {
		p := put(v.add, v.addend)
		ptrs["Add"+op.Field(v.add)] = p
		if v.shared {
			ptrs[op.Field(v.add)] = p
		}
	}
	if v.pair[0] != "" {
		ptrs[op.Field(v.pair[1])] = ptrs[op.Field(v.pair[0])]
	}
	if v.cut == 0 {
		x.launch(m, x.l, ptrs)
	} else {
		x.inChunks(m, ptrs, v.cut)
	}
	m.Sync()
	out := results{}
	for _, w := range x.l.Writes {
		n := x.elems(w)
		if n == 0 || v.cut > 0 && !x.byRow(w) {
			continue
		}
		if x.half(w) {
			out[w] = m.ReadAct(ptrs[op.Field(w)], n)
		} else {
			out[w] = m.ReadF32(ptrs[op.Field(w)], n)
		}
	}
	if v.add != "" && !v.shared {
		p, n := ptrs["Add"+op.Field(v.add)], x.elems(v.add)
		kept := m.ReadF32
		if x.half(v.add) {
			kept = m.ReadAct
		}
		same(t, "the add operand of "+v.add, kept(p, n), v.addend)
	}
	return out
}

// inChunks launches the rows before cut, then the others.
func (x *crossing) inChunks(m *Machine, ptrs map[string]device.Ptr, cut int64) {
	rows := x.sizes.Rows()
	for _, c := range [][2]int64{{0, cut}, {cut, rows - cut}} {
		part := *x.setup
		part.sizes = op.Sizes{Batch: 1, Seq: c[1]}
		at := maps.Clone(ptrs)
		for _, o := range slices.Concat(x.l.Reads, x.l.Writes) {
			if x.byRow(o) {
				at[op.Field(o)] = ptrs[op.Field(o)].At(x.size(o) * x.elems(o) / rows * c[0])
			}
		}
		part.launch(m, x.l, at)
	}
}

// size is the bytes of an element on the GPU.
func (x *crossing) size(operand string) int64 {
	if x.half(operand) && !x.g.f32 && !x.isInt(operand) {
		return 2
	}
	return 4
}

func (x *crossing) isInt(operand string) bool { _, ok := x.data[operand].([]int32); return ok }

// operand is what a launch reads.
func (x *crossing) operand(name string) any {
	if v, ok := x.data[name]; ok {
		return v
	}
	if v, ok := x.base[name]; ok {
		return v
	}
	return nil
}

// cpu runs the launch on the CPU, from the same operands.
func (x *crossing) cpu(t testing.TB, v *variant) results {
	t.Helper()
	m := newMachine(t, 2, x.room())
	ptrs := x.filled(m, x.l, x.base)
	if v != nil {
		ptrs["Add"+op.Field(v.add)] = m.F32(v.addend...)
	}
	x.launch(m, x.l, ptrs)
	m.Sync()
	out := results{}
	for _, w := range x.l.Writes {
		if n := x.elems(w); n > 0 {
			out[w] = m.ReadF32(ptrs[op.Field(w)], n)
		}
	}
	return out
}

// Allowances against the CPU, relative to a tensor's largest element. That of bf16 comes on top
// of the rounding of a result to bf16.
const (
	tolF32  = 1e-5
	tolBF16 = 1e-4
)

// half is half an ulp of bf16, relative to the power of two below.
const half = 1.0 / 256

func (x *crossing) compare(t testing.TB, got, want results) {
	t.Helper()
	for _, w := range x.l.Writes {
		if want[w] == nil {
			continue
		}
		tol, expect := max(tolF32, x.good.Tol), wide(want[w])
		if !x.g.f32 {
			tol = max(tolBF16, x.good.BF16)
		}
		if !x.g.f32 && x.half(w) {
			Rounded(expect, got[w])
			if x.library {
				tol = max(tol, half)
			}
		}
		compare(t, w, got[w], expect, tol, x.good.Scale)
	}
}

// Rounded moves what is wanted towards what was got, by as much as a rounding to bf16 may have
// taken it away.
func Rounded(want []float64, got []float32) {
	for i, g := range got {
		if off := float64(g) - want[i]; !math.IsNaN(off) {
			want[i] += math.Copysign(math.Min(math.Abs(off), half*math.Abs(want[i])), off)
		}
	}
}

func (x *crossing) same(t testing.TB, what string, got, want results) {
	t.Helper()
	for _, w := range x.l.Writes {
		if got[w] != nil {
			same(t, x.l.Func+" "+what+": "+w, got[w], want[w])
		}
	}
}
