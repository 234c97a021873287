package lower

import (
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"unsafe"

	"github.com/megatrain/mtc/compiler/ir"
	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/device/cpu"
	"github.com/megatrain/mtc/runtime/op"
	"github.com/megatrain/mtc/runtime/ops/add"
	"github.com/megatrain/mtc/runtime/ops/attention"
	opcopy "github.com/megatrain/mtc/runtime/ops/copy"
	"github.com/megatrain/mtc/runtime/ops/crossentropy"
	"github.com/megatrain/mtc/runtime/ops/embed"
	"github.com/megatrain/mtc/runtime/ops/fill"
	"github.com/megatrain/mtc/runtime/ops/gelu"
	"github.com/megatrain/mtc/runtime/ops/layernorm"
	"github.com/megatrain/mtc/runtime/ops/linear"
	"github.com/megatrain/mtc/runtime/ops/mul"
	"github.com/megatrain/mtc/runtime/ops/qkrope"
	"github.com/megatrain/mtc/runtime/ops/relu"
	"github.com/megatrain/mtc/runtime/ops/rmsnorm"
	"github.com/megatrain/mtc/runtime/ops/rope"
	"github.com/megatrain/mtc/runtime/ops/scale"
	"github.com/megatrain/mtc/runtime/ops/silu"
	"github.com/megatrain/mtc/runtime/ops/softcap"
	"github.com/megatrain/mtc/runtime/ops/sub"
	"github.com/megatrain/mtc/runtime/ops/swiglu"
	"github.com/megatrain/mtc/runtime/plan"
)

// launchers are the rooms' launchers by op and function, called through reflection.
var launchers = map[string]any{
	"add.Forward": add.Forward, "attention.Forward": attention.Forward, "attention.Backward": attention.Backward,
	"attention.ForwardCached": attention.ForwardCached, "copy.Forward": opcopy.Forward,
	"crossentropy.Eval": crossentropy.Eval, "crossentropy.Loss": crossentropy.Loss,
	"embed.Forward": embed.Forward, "embed.BackwardWeight": embed.BackwardWeight, "fill.Forward": fill.Forward,
	"gelu.Forward": gelu.Forward, "gelu.Backward": gelu.Backward,
	"layernorm.Forward": layernorm.Forward, "layernorm.Backward": layernorm.Backward,
	"linear.Forward": linear.Forward, "linear.BackwardInput": linear.BackwardInput,
	"linear.BackwardWeight": linear.BackwardWeight, "linear.BackwardBias": linear.BackwardBias,
	"linear.ForwardGelu": linear.ForwardGelu, "linear.BackwardInputGelu": linear.BackwardInputGelu,
	"mul.Forward": mul.Forward, "mul.BackwardA": mul.BackwardA, "mul.BackwardB": mul.BackwardB,
	"relu.Forward": relu.Forward, "relu.Backward": relu.Backward,
	"qk_rope.Forward": qkrope.Forward, "qk_rope.Backward": qkrope.Backward,
	"rmsnorm.Forward": rmsnorm.Forward, "rmsnorm.Backward": rmsnorm.Backward,
	"rope.Forward": rope.Forward, "rope.Backward": rope.Backward, "scale.Forward": scale.Forward, "scale.Backward": scale.Backward,
	"silu.Forward": silu.Forward, "silu.Backward": silu.Backward, "softcap.Forward": softcap.Forward, "softcap.Backward": softcap.Backward,
	"sub.Forward": sub.Forward, "sub.BackwardA": sub.BackwardA, "sub.BackwardB": sub.BackwardB,
	"swiglu.Forward": swiglu.Forward, "swiglu.Backward": swiglu.Backward,
}

var tableFuncs = map[string]any{"rope.Angles": rope.Angles}

// machine runs a program's functions on the CPU device, every region in an allocation of
// its own that is poisoned with NaN before each use.
type machine struct {
	t    testing.TB
	p    *ir.Program
	dev  *cpu.Device
	q    device.Queue
	w, g []device.Ptr // by slab
	tabs []device.Ptr
	scal device.Ptr
	part device.Ptr
	size map[device.Ptr]int64
	mem  device.Ptr // one arena, handed out in pieces with gaps between
	top  int64
}

const testArena = 32 << 20

func newMachine(t testing.TB, p *ir.Program) *machine {
	m := &machine{t: t, p: p, dev: cpu.New(), size: map[device.Ptr]int64{}}
	t.Cleanup(func() { m.dev.Close() })
	m.q = m.dev.Queue(device.Compute)
	mem, err := m.dev.Alloc(device.DeviceMemory, testArena)
	if err != nil {
		t.Fatal(err)
	}
	m.mem = mem
	rng := rand.New(rand.NewPCG(1, 2))
	for _, s := range p.Slabs {
		w, g := m.alloc(4*s.Elems), m.alloc(4*s.Elems)
		m.w, m.g = append(m.w, w), append(m.g, g)
		f := m.f32(w)
		clear(f)
		for i, q := range s.Params {
			for k := range q.Elems() {
				x := rng.NormFloat64() * 0.3
				if q.Role == op.Norm {
					x = 1 + 0.1*x
				}
				f[s.Offs[i]+k] = float32(x)
			}
		}
	}
	for _, tb := range p.Tables {
		ptr := m.alloc(tb.Table.Type.Bytes())
		m.tabs = append(m.tabs, ptr)
		fn := reflect.ValueOf(tableFuncs[tb.Room+"."+tb.Table.Func])
		args := reflect.New(fn.Type().In(1)).Elem()
		m.consts(args, tb.Table.Consts, op.Sizes{}, 0)
		fn.Call([]reflect.Value{reflect.ValueOf(m.f32(ptr)), args})
	}
	m.scal = m.alloc(8 * plan.NumScalars)
	m.part = m.alloc(16)
	return m
}

func (m *machine) alloc(n int64) device.Ptr {
	if n == 0 {
		return device.Ptr{}
	}
	p := m.mem.At(m.top)
	m.top += align(n) + memAlign
	if m.top > testArena {
		m.t.Fatal("the test's arena is too small")
	}
	m.size[p] = n
	m.poison(p)
	return p
}

func (m *machine) poison(p device.Ptr) {
	if p.Nil() {
		return
	}
	f := m.f32(p)
	for i := range f {
		f[i] = float32(math.NaN())
	}
}

func (m *machine) f32(p device.Ptr) []float32 { return slice[float32](m, p) }
func (m *machine) i32(p device.Ptr) []int32   { return slice[int32](m, p) }
func (m *machine) f64(p device.Ptr) []float64 { return slice[float64](m, p) }

func slice[T any](m *machine, p device.Ptr) []T {
	n := m.size[p]
	b := m.dev.View(p, n)
	var x T
	return unsafe.Slice((*T)(unsafe.Pointer(&b[0])), n/int64(unsafe.Sizeof(x)))
}

// call is what a function is bound to.
type bound struct {
	in, out, din, dout []device.Ptr
	saved, state       device.Ptr
	targets            device.Ptr
	w, g               []device.Ptr
	add                []bool
	rows, pos          int // generation
}

// run executes a function; Work is fresh and poisoned.
func (m *machine) run(f *ir.Function, b *bound, sizes op.Sizes) {
	work := m.alloc(f.WorkBytes)
	m.body(f.Body, b, work, sizes, 0, false)
	if err := m.dev.Sync(); err != nil {
		m.t.Fatal(err)
	}
}

func (m *machine) body(list []ir.Stmt, b *bound, work device.Ptr, sizes op.Sizes, row int64, later bool) {
	for _, s := range list {
		switch s := s.(type) {
		case *ir.Call:
			m.call(s, b, work, sizes, row, later)
		case *ir.Loop:
			if s.Last {
				m.body(s.Body, b, work, op.Sizes{Batch: 1, Seq: 1}, int64(b.rows)-1, false)
				continue
			}
			for r := int64(0); r < s.Rows; r += s.Chunk {
				m.body(s.Body, b, work, op.Sizes{Batch: 1, Seq: min(s.Chunk, s.Rows-r)}, r, r > 0)
			}
		case *ir.IfWhole:
			// The sums of squares are tried with whole programs.
		case *ir.IfFirst:
			if !b.add[s.Slab] {
				m.body(s.Body, b, work, sizes, row, later)
			}
		}
	}
}

func (m *machine) call(c *ir.Call, b *bound, work device.Ptr, sizes op.Sizes, row int64, later bool) {
	name := c.Op.Def.Name + "." + c.Launch.Func
	f, ok := launchers[name]
	if !ok {
		m.t.Fatalf("no launcher %s", name)
	}
	fn := reflect.ValueOf(f)
	args := reflect.New(fn.Type().In(1)).Elem()
	for _, a := range c.Args {
		if p := m.ptr(a.Place, b, work, row, later); !p.Nil() {
			field := args.FieldByName(a.Field)
			if !field.IsValid() {
				m.t.Fatalf("%s has no field %s", name, a.Field)
			}
			field.Set(reflect.ValueOf(p))
		}
	}
	m.consts(args, c.Op.Consts, sizes, b.pos)
	fn.Call([]reflect.Value{reflect.ValueOf(m.q), args})
}

func (m *machine) consts(args reflect.Value, list []op.Const, s op.Sizes, pos int) {
	for _, k := range list {
		field := args.FieldByName(k.Field)
		if !field.IsValid() {
			m.t.Fatalf("%s has no field %s", args.Type(), k.Field)
		}
		switch k.Kind {
		case op.CInt:
			field.SetInt(k.Int)
		case op.CFloat:
			field.SetFloat(k.Float)
		case op.CBool:
			field.SetBool(k.Bool)
		case op.CRows:
			field.SetInt(s.Rows())
		case op.CBatch:
			field.SetInt(s.Batch)
		case op.CSeq:
			field.SetInt(s.Seq)
		case op.CPos:
			field.SetInt(int64(pos))
		}
	}
}

func (m *machine) ptr(p ir.Place, b *bound, work device.Ptr, row int64, later bool) device.Ptr {
	var base device.Ptr
	switch p.Region {
	case ir.RNil:
		return device.Ptr{}
	case ir.RIn:
		base = b.in[p.Index]
	case ir.ROut:
		base = b.out[p.Index]
	case ir.RDIn:
		base = b.din[p.Index]
	case ir.RDOut:
		base = b.dout[p.Index]
	case ir.RSaved:
		base = b.saved
	case ir.RWork:
		base = work
	case ir.RWeight:
		base = b.w[p.Index]
	case ir.RGrad:
		base = b.g[p.Index]
	case ir.RGradAdd:
		if !b.add[p.Index] && !later {
			return device.Ptr{}
		}
		base = b.g[p.Index]
	case ir.RState:
		base = b.state
	case ir.RTable:
		base = m.tabs[p.Index]
	case ir.RTargets:
		base = b.targets
	case ir.RScalars:
		base = m.scal
	case ir.RPartials:
		base = m.part
	}
	if base.Nil() {
		m.t.Fatalf("%s: region %s is not bound", p.Name, regionNames[p.Region])
	}
	return base.At(p.Off + row*p.RowBytes)
}

func (m *machine) bind(u *ir.UnitBinding, b *bound, contributed map[int]bool) {
	for _, s := range u.Slabs {
		b.w, b.g = append(b.w, m.w[s]), append(b.g, m.g[s])
		b.add = append(b.add, contributed[s])
	}
}

// step runs forward (and backward) of a whole batch in micro-batches, layer by layer, and
// returns the mean loss; with train the gradients are in m.g.
func (m *machine) step(tokens, targets []int32, train bool) float64 {
	defer func(top int64) { m.top = top }(m.top)
	mod := m.p.Model
	rows, seq := m.p.Rows, mod.Seq
	sizes := op.Sizes{Batch: rows, Seq: seq}
	n := rows * seq
	micros := int(int64(len(tokens)) / n)
	m.f64(m.scal)[plan.ScalarInvTokens] = 1 / float64(len(targets))
	if train {
		for _, g := range m.g {
			m.poison(g)
		}
	}
	values := make([][]device.Ptr, micros)
	saved := make([][]device.Ptr, micros)
	grads := make([][]device.Ptr, micros)
	targ := make([]device.Ptr, micros)
	var loss, count float64
	sum := func() {
		loss += m.f64(m.part)[0]
		count += m.f64(m.part)[1]
		m.poison(m.part)
	}
	for k := range micros {
		values[k] = make([]device.Ptr, len(mod.Values))
		grads[k] = make([]device.Ptr, len(mod.Values))
		for i, v := range mod.Values {
			values[k][i] = m.alloc(v.Type.Bytes())
			grads[k][i] = m.alloc(v.Type.Bytes())
			switch v.Name {
			case "tokens":
				copy(m.i32(values[k][i]), tokens[int64(k)*n:])
			case "position":
				for r, p := 0, m.i32(values[k][i]); r < len(p); r++ {
					p[r] = int32(r % int(seq))
				}
			}
		}
		targ[k] = m.alloc(4 * n)
		copy(m.i32(targ[k]), targets[int64(k)*n:int64(k+1)*n])
		saved[k] = make([]device.Ptr, len(m.p.Units))
	}
	pick := func(from []device.Ptr, idx []int) []device.Ptr {
		var out []device.Ptr
		for _, i := range idx {
			out = append(out, from[i])
		}
		return out
	}
	for i, u := range m.p.Units {
		t := m.p.Templates[u.Template]
		if t.Funcs[plan.Forward] == nil {
			continue
		}
		for k := range micros {
			if !t.Recompute {
				saved[k][i] = m.alloc(t.SavedBytes)
			}
			b := &bound{in: pick(values[k], u.In), out: pick(values[k], u.Out), saved: saved[k][i]}
			m.bind(u, b, nil)
			m.run(t.Funcs[plan.Forward], b, sizes)
		}
	}
	if !train {
		u := m.p.Units[len(m.p.Units)-1]
		t := m.p.Templates[u.Template]
		for k := range micros {
			b := &bound{in: pick(values[k], u.In), targets: targ[k]}
			m.bind(u, b, nil)
			m.run(t.Funcs[plan.EvalLoss], b, sizes)
			sum()
		}
		return loss / count
	}
	contributed := map[int]bool{}
	for i, u := range slices.Backward(m.p.Units) {
		t := m.p.Templates[u.Template]
		for k := range micros {
			b := &bound{in: pick(values[k], u.In), din: pick(grads[k], u.In), dout: pick(grads[k], u.Out),
				saved: saved[k][i], targets: targ[k]}
			m.bind(u, b, contributed)
			if t.Recompute {
				b.saved = m.alloc(t.SavedBytes)
				m.run(t.Funcs[plan.Recompute], b, sizes)
			}
			switch {
			case t.Funcs[plan.Loss] != nil:
				m.run(t.Funcs[plan.Loss], b, sizes)
				sum()
			case t.Funcs[plan.Backward] != nil:
				m.run(t.Funcs[plan.Backward], b, sizes)
			}
			for _, s := range u.Slabs {
				contributed[s] = true
			}
		}
	}
	return loss / count
}

// generate runs tokens through the infer functions in chunks of the given sizes and returns
// the logits after each chunk.
func (m *machine) generate(tokens []int32, chunks []int) [][]float32 {
	mod := m.p.Model
	states := make([]device.Ptr, len(m.p.Units))
	for i, u := range m.p.Units {
		states[i] = m.alloc(m.p.Templates[u.Template].StateBytes)
	}
	var out [][]float32
	pos := 0
	for _, n := range chunks {
		values := make([]device.Ptr, len(mod.Values))
		for i, v := range mod.Values {
			values[i] = m.alloc(sized(v.Type, 1, m.p.Prefill).Bytes())
			switch v.Name {
			case "tokens":
				copy(m.i32(values[i]), tokens[pos:pos+n])
			case "position":
				for r := range n {
					m.i32(values[i])[r] = int32(pos + r)
				}
			}
		}
		for i, u := range m.p.Units {
			t := m.p.Templates[u.Template]
			b := &bound{state: states[i], rows: n, pos: pos}
			for _, k := range u.In {
				b.in = append(b.in, values[k])
			}
			for _, k := range u.Out {
				b.out = append(b.out, values[k])
			}
			if u.Unit.Kind == ir.HeadUnit {
				b.out = []device.Ptr{m.alloc(t.Out[0].Bytes())}
			}
			m.bind(u, b, nil)
			m.run(t.Funcs[plan.Infer], b, op.Sizes{Batch: 1, Seq: int64(n)})
			if u.Unit.Kind == ir.HeadUnit {
				out = append(out, slices.Clone(m.f32(b.out[0])))
			}
		}
		pos += n
	}
	return out
}

// batch makes tokens and targets; a few targets are ignored.
func batch(m *ir.Model) (tokens, targets []int32) {
	rng := rand.New(rand.NewPCG(7, 8))
	for range m.Batch * m.Seq {
		tokens = append(tokens, int32(rng.Int64N(m.Vocab)))
		targets = append(targets, int32(rng.Int64N(m.Vocab)))
	}
	return tokens, targets
}

// grads copies all gradients.
func (m *machine) grads() [][]float32 {
	var out [][]float32
	for i := range m.p.Slabs {
		out = append(out, slices.Clone(m.f32(m.g[i])))
	}
	return out
}

// checkGradients compares every parameter's gradient with finite differences of the loss,
// along the gradient itself and along two random directions.
func checkGradients(t *testing.T, p *ir.Program) {
	t.Helper()
	m := newMachine(t, p)
	tokens, targets := batch(p.Model)
	loss := m.step(tokens, targets, true)
	if l := m.step(tokens, targets, false); math.Abs(l-loss) > 1e-6*math.Abs(loss) {
		t.Errorf("loss %v in training, %v in evaluation", loss, l)
	}
	grads := m.grads()
	rng := rand.New(rand.NewPCG(3, 4))
	for s, slab := range p.Slabs {
		w := m.f32(m.w[s])
		covered := make([]bool, slab.Elems)
		for i, q := range slab.Params {
			lo, hi := slab.Offs[i], slab.Offs[i]+q.Elems()
			g := grads[s][lo:hi]
			for k := range g {
				covered[lo+int64(k)] = true
			}
			var norm float64
			for _, x := range g {
				norm += float64(x) * float64(x)
			}
			norm = math.Sqrt(norm)
			if math.IsNaN(norm) {
				t.Errorf("%s: gradient holds NaN", q.Path)
				continue
			}
			for dir := range 3 {
				u := make([]float64, len(g))
				for k := range u {
					u[k] = rng.NormFloat64()
					if dir == 0 && norm > 0 {
						u[k] = float64(g[k])
					}
				}
				var un, want float64
				for _, x := range u {
					un += x * x
				}
				un = math.Sqrt(un)
				for k := range u {
					u[k] /= un
					want += u[k] * float64(g[k])
				}
				const eps = 6e-3
				old := slices.Clone(w[lo:hi])
				at := func(h float64) float64 {
					for k := range u {
						w[lo+int64(k)] = float32(float64(old[k]) + h*u[k])
					}
					return m.step(tokens, targets, false)
				}
				// Fourth-order central difference.
				got := (8*(at(eps)-at(-eps)) - (at(2*eps) - at(-2*eps))) / (12 * eps)
				copy(w[lo:hi], old)
				if diff := math.Abs(got - want); diff > 2e-3*norm+2e-4 {
					t.Errorf("%s along direction %d: gradient %.6g, finite difference %.6g (norm %.4g)", q.Path, dir, want, got, norm)
				}
			}
		}
		for k, c := range covered {
			if !c && grads[s][k] != 0 {
				t.Errorf("gap %d of slab %s holds %v", k, slab.Name, grads[s][k])
			}
		}
	}
}

func equalBits(t *testing.T, what string, a, b [][]float32) {
	t.Helper()
	for i := range a {
		for k := range a[i] {
			if math.Float32bits(a[i][k]) != math.Float32bits(b[i][k]) {
				t.Errorf("%s: %d differs at %d: %v and %v", what, i, k, a[i][k], b[i][k])
				return
			}
		}
	}
}

func near(t *testing.T, what string, a, b [][]float32, tol float64) {
	t.Helper()
	var worst float64
	for i := range a {
		var size float64
		for k := range a[i] {
			size = max(size, math.Abs(float64(a[i][k])))
		}
		for k := range a[i] {
			worst = max(worst, math.Abs(float64(a[i][k])-float64(b[i][k]))/(size+1e-12))
		}
	}
	if worst > tol || math.IsNaN(worst) {
		t.Errorf("%s: largest relative difference %.3g, at most %.3g", what, worst, tol)
	}
}
