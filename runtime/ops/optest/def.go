package optest

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/op"
	"github.com/megatrain/mtc/runtime/tensor"
)

// CheckDef checks what can be said of a declaration without a call.
func CheckDef(t testing.TB, d *op.Def) {
	t.Helper()
	for _, s := range []string{d.Name, d.Doc, d.Formula} {
		if s == "" {
			t.Errorf("a Def has a name, a line of documentation and a formula: %+q", s)
		}
	}
	if !d.Hidden && !strings.Contains(d.Example, d.Name+"(") {
		t.Errorf("the example %q does not call %s", d.Example, d.Name)
	}
	for i, p := range d.Params {
		checkParam(t, d, i, p)
	}
	launches := append([]op.Launch{d.Forward}, d.Backward...)
	if d.Cached != nil {
		launches = append(launches, *d.Cached)
	}
	names := map[string]bool{}
	for _, l := range launches {
		if names[l.Func] {
			t.Errorf("two launchers %s", l.Func)
		}
		names[l.Func] = true
		checkLaunch(t, l)
	}
	if d.PassThrough && len(d.Backward) > 0 {
		t.Error("PassThrough launches nothing in backward")
	}
}

func checkParam(t testing.TB, d *op.Def, i int, p op.Param) {
	t.Helper()
	if p.Doc == "" {
		t.Errorf("parameter %s has no documentation", p.Name)
	}
	if p.Kind == op.Tensor && i > 0 && d.Params[i-1].Kind != op.Tensor {
		t.Errorf("tensor %s stands behind a constant", p.Name)
	}
	if p.Kind == op.Word && len(p.Words) == 0 {
		t.Errorf("word %s lists no words", p.Name)
	}
	if v := p.Default; v != nil && v.Kind == op.VWord && !slices.Contains(p.Words, v.Str) {
		t.Errorf("the default of %s is %s, which is not among %v", p.Name, v, p.Words)
	}
	for _, ctor := range p.Ctors {
		if !slices.Contains(p.Words, ctor.Name) {
			t.Errorf("constructor %s of %s is not among %v", ctor.Name, p.Name, p.Words)
		}
	}
}

func checkLaunch(t testing.TB, l op.Launch) {
	t.Helper()
	if l.Cost == nil {
		t.Errorf("%s has no cost", l.Func)
	}
	if len(l.Writes) == 0 {
		t.Errorf("%s writes nothing", l.Func)
	}
	for _, a := range l.Adds {
		if !slices.Contains(l.Writes, a) || !strings.HasPrefix(a, "d.") && a != "y" {
			t.Errorf("%s adds to %s, which is neither a gradient nor the result that it writes", l.Func, a)
		}
	}
	for _, p := range l.InPlace {
		if !slices.Contains(l.Reads, p[0]) || !slices.Contains(l.Writes, p[1]) {
			t.Errorf("%s has the pair %v, which is not (read, written)", l.Func, p)
		}
	}
}

// shape checks the inferred output, and that every input and weight has one gradient.
func (s *setup) shape(t testing.TB) {
	if got := s.call.Out.String(); got != s.good.Out {
		t.Errorf("output %s, want %s", got, s.good.Out)
	}
	written := map[string]int{}
	for _, l := range s.call.Def.Backward {
		for _, w := range l.Writes {
			written[w]++
		}
		for _, r := range l.Reads {
			// An operand that this call lacks is some weight of another call.
			if _, ok := s.call.Operand(r); !ok && strings.HasPrefix(r, "d.") {
				t.Errorf("%s reads %s", l.Func, r)
			}
		}
	}
	for _, name := range s.differentiable() {
		if n := written[op.Grad(name)]; n != 1 && !s.call.Def.PassThrough {
			t.Errorf("%d launches write the gradient of %s", n, name)
		}
	}
}

// differentiable lists the f32 inputs and the weights.
func (s *setup) differentiable() []string {
	var names []string
	for i, n := range s.call.Inputs {
		if s.call.In[i].DType != tensor.I32 {
			names = append(names, n)
		}
	}
	for _, w := range s.call.Weights {
		names = append(names, w.Name)
	}
	return names
}

// fields checks that the argument structs are what the compiler will fill in.
func (s *setup) fields(t testing.TB) {
	for _, l := range s.launches() {
		want := map[string]reflect.Type{}
		for _, o := range slices.Concat(l.Reads, l.Writes) {
			want[op.Field(o)] = reflect.TypeFor[device.Ptr]()
		}
		for _, a := range l.Adds {
			want["Add"+op.Field(a)] = reflect.TypeFor[device.Ptr]()
		}
		for _, c := range s.call.Consts {
			want[c.Field] = constType(c)
		}
		if s.call.Def.Pitched {
			want["Pitch"] = reflect.TypeFor[int]()
			if len(s.call.Weights) > 0 {
				want["Wide"] = reflect.TypeFor[int]()
			}
		}
		if s.call.Def.Documents && (l.Func == s.call.Def.Forward.Func || slices.ContainsFunc(s.call.Def.Backward, func(b op.Launch) bool { return b.Func == l.Func })) {
			want["Starts"] = reflect.TypeFor[device.Ptr]()
		}
		if s.call.Def.Ragged {
			want["Routing"], want["Experts"], want["Slots"] = reflect.TypeFor[device.Ptr](), reflect.TypeFor[int](), reflect.TypeFor[int]()
		}
		args := s.launcher(l).Type().In(1)
		if args.Name() != l.Func+"Args" {
			t.Errorf("%s takes %s, want %sArgs", l.Func, args.Name(), l.Func)
		}
		for i := range args.NumField() {
			f := args.Field(i)
			if want[f.Name] != f.Type {
				t.Errorf("%s has the field %s %s, want %v", args.Name(), f.Name, f.Type, want[f.Name])
			}
			delete(want, f.Name)
		}
		for name, typ := range want {
			t.Errorf("%s has no field %s %s", args.Name(), name, typ)
		}
	}
	for _, tab := range s.call.Tables {
		args := reflect.TypeOf(s.fn(tab.Func)).In(1)
		for _, c := range tab.Consts {
			f, ok := args.FieldByName(c.Field)
			if !ok || f.Type != constType(c) {
				t.Errorf("%s lacks the field %s %s", args.Name(), c.Field, constType(c))
			}
		}
	}
}

func constType(c op.Const) reflect.Type {
	switch c.Kind {
	case op.CFloat:
		return reflect.TypeFor[float32]()
	case op.CBool:
		return reflect.TypeFor[bool]()
	}
	return reflect.TypeFor[int]()
}

// cost compares every launcher's cost with the one worked out by hand.
func (s *setup) cost(t testing.TB) {
	for _, l := range s.launches() {
		if !s.present(l) {
			continue
		}
		got := l.Cost(s.call, s.sizes)
		want, ok := s.good.Cost[l.Func]
		if !ok || got != want {
			t.Errorf("%s costs %+v, by hand %+v", l.Func, got, want)
		}
	}
}
