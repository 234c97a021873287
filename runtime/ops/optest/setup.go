package optest

import (
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/op"
	"github.com/megatrain/mtc/runtime/tensor"
)

// setup is one good call with its sizes and data.
type setup struct {
	c     Case
	good  Good
	call  *op.Call
	sizes op.Sizes
	pos   int64
	data  map[string]any // operand -> []float32 or []int32: inputs, weights, tables, d.y
}

func newSetup(t testing.TB, c Case, g Good) *setup {
	t.Helper()
	call, err := Bind(c.Def, g.In, g.Attr)
	if err != nil {
		t.Fatal(err)
	}
	s := &setup{c: c, good: g, call: call, sizes: op.Sizes{Batch: g.Batch, Seq: g.Seq}}
	s.data = s.random()
	return s
}

// resized is the same call over other sizes, with new data.
func (s *setup) resized(batch, seq int64) *setup {
	r := *s
	r.sizes = op.Sizes{Batch: batch, Seq: seq}
	r.data = r.random()
	return &r
}

// random draws every operand that launches read.
func (s *setup) random() map[string]any {
	data := map[string]any{}
	half := s.good.Range
	if half == 0 {
		half = 2
	}
	for i, name := range s.call.Inputs {
		if s.call.In[i].DType == tensor.I32 {
			data[name] = randomIds(name, s.sizes.Elems(s.call.In[i].Shape), s.idBound())
			continue
		}
		data[name] = uniform(name, s.sizes.Elems(s.call.In[i].Shape), half)
	}
	for _, w := range s.call.Weights {
		data[w.Name] = uniform(w.Name, w.Shape.Elems(), 1)
	}
	for _, tab := range s.call.Tables {
		data[tab.Operand] = s.table(tab)
	}
	data["d.y"] = uniform("d.y", s.sizes.Elems(s.call.Out.Shape), 1)
	return data
}

// idBound is the number of rows of the table that ids look up.
func (s *setup) idBound() int64 { return s.call.Weights[0].Shape[0].N }

func (s *setup) table(tab op.Table) []float32 {
	dst := make([]float32, s.sizes.Elems(tab.Type.Shape))
	f := reflect.ValueOf(s.fn(tab.Func))
	args := reflect.New(f.Type().In(1)).Elem()
	for _, c := range tab.Consts {
		setConst(args.FieldByName(c.Field), c, s)
	}
	f.Call([]reflect.Value{reflect.ValueOf(dst), args})
	return dst
}

// launches are all launches of the op.
func (s *setup) launches() []op.Launch {
	all := append([]op.Launch{s.call.Def.Forward}, s.call.Def.Backward...)
	if s.call.Def.Cached != nil {
		all = append(all, *s.call.Def.Cached)
	}
	return all
}

// backward are the launches that have something to write in this call.
func (s *setup) backward() []op.Launch {
	return slices.DeleteFunc(slices.Clone(s.call.Def.Backward), func(l op.Launch) bool { return !s.present(l) })
}

func (s *setup) present(l op.Launch) bool {
	return slices.ContainsFunc(l.Writes, func(w string) bool { _, ok := s.call.Operand(w); return ok })
}

func (s *setup) fn(name string) any {
	f, ok := s.c.Funcs[name]
	if !ok {
		panic("the case of " + s.c.Def.Name + " has no function " + name)
	}
	return f
}

func (s *setup) launcher(l op.Launch) reflect.Value { return reflect.ValueOf(s.fn(l.Func)) }

// elems is the number of elements of an operand.
func (s *setup) elems(operand string) int64 {
	typ, ok := s.call.Operand(operand)
	if !ok {
		return 0
	}
	return s.sizes.Elems(typ.Shape)
}

// byRow reports whether an operand has one part for each row.
func (s *setup) byRow(operand string) bool {
	typ, ok := s.call.Operand(operand)
	return ok && len(typ.Shape) >= 2 && typ.Shape[0].Name == "B" && typ.Shape[1].Name == "T"
}

// launch runs one launcher. ptrs gives the operands by Go field; absent ones are nil.
func (s *setup) launch(m *Machine, l op.Launch, ptrs map[string]device.Ptr) {
	s.launchOn(m.Queue, l, ptrs)
}

func (s *setup) launchOn(q device.Queue, l op.Launch, ptrs map[string]device.Ptr) {
	f := s.launcher(l)
	args := reflect.New(f.Type().In(1)).Elem()
	for field, p := range ptrs {
		if v := args.FieldByName(field); v.IsValid() && v.Type() == reflect.TypeFor[device.Ptr]() {
			v.Set(reflect.ValueOf(p))
		}
	}
	for _, c := range s.call.Consts {
		setConst(args.FieldByName(c.Field), c, s)
	}
	f.Call([]reflect.Value{reflect.ValueOf(q), args})
}

func setConst(v reflect.Value, c op.Const, s *setup) {
	switch c.Kind {
	case op.CInt:
		v.SetInt(c.Int)
	case op.CFloat:
		v.SetFloat(c.Float)
	case op.CBool:
		v.SetBool(c.Bool)
	case op.CRows:
		v.SetInt(s.sizes.Rows())
	case op.CBatch:
		v.SetInt(s.sizes.Batch)
	case op.CSeq:
		v.SetInt(s.sizes.Seq)
	case op.CPos:
		v.SetInt(s.pos)
	}
}

// place puts the data into a machine and makes room for what Forward writes.
func (s *setup) place(m *Machine) map[string]device.Ptr {
	ptrs := map[string]device.Ptr{}
	for _, name := range slices.Sorted(maps.Keys(s.data)) {
		switch v := s.data[name].(type) {
		case []float32:
			ptrs[op.Field(name)] = m.F32(v...)
		case []int32:
			ptrs[op.Field(name)] = m.I32(v...)
		}
	}
	for _, w := range s.call.Def.Forward.Writes {
		ptrs[op.Field(w)] = m.Bytes(4 * s.elems(w))
	}
	return ptrs
}

// results are tensors by operand name.
type results map[string][]float32

// run executes Forward and every backward launch, with nil add operands.
func (s *setup) run(t testing.TB, threads int) results {
	t.Helper()
	return s.runOn(NewMachine(t, threads))
}

func (s *setup) runOn(m *Machine) results {
	m.t.Helper()
	ptrs := s.place(m)
	writes := slices.Clone(s.call.Def.Forward.Writes)
	for _, l := range s.backward() {
		for _, w := range l.Writes {
			if n := s.elems(w); n > 0 {
				ptrs[op.Field(w)] = m.Bytes(4 * n)
				writes = append(writes, w)
			}
		}
	}
	s.launch(m, s.call.Def.Forward, ptrs)
	for _, l := range s.backward() {
		s.launch(m, l, ptrs)
	}
	m.Sync()
	out := results{}
	for _, w := range writes {
		out[w] = m.ReadF32(ptrs[op.Field(w)], s.elems(w))
	}
	if s.call.Def.PassThrough {
		for _, n := range s.differentiable() {
			out[op.Grad(n)] = s.data["d.y"].([]float32)
		}
	}
	return out
}

// uniform draws n numbers in (-half, half), none of them near 0, where some ops have a kink;
// they depend on the name and the place alone.
func uniform(name string, n int64, half float64) []float32 {
	v := make([]float32, n)
	for i := range v {
		u := 2*unit(name, i) - 1
		v[i] = float32(half * math.Copysign(math.Max(math.Abs(u), 0.01), u))
	}
	return v
}

func randomIds(name string, n, bound int64) []int32 {
	v := make([]int32, n)
	for i := range v {
		v[i] = int32(unit(name, i) * float64(bound))
	}
	return v
}

// unit is a number in [0, 1) from a name and an index (SplitMix64's finaliser).
func unit(name string, i int) float64 {
	z := uint64(i) * 0x9e3779b97f4a7c15
	for _, c := range []byte(strings.ToLower(name)) {
		z = (z ^ uint64(c)) * 0x100000001b3
	}
	z ^= z >> 30
	z *= 0xbf58476d1ce4e5b9
	z ^= z >> 27
	z *= 0x94d049bb133111eb
	z ^= z >> 31
	return float64(z>>11) / (1 << 53)
}
