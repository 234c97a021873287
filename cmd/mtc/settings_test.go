package main

import (
	"slices"
	"testing"

	"github.com/megatrain/mtc/compiler/passes/front"
	"github.com/megatrain/mtc/runtime/program"
)

// The fields and constructors that a program's --set reads are those of the language, with the
// same defaults: the runtime cannot import the compiler, so they are declared twice.
func TestProgramKnowsTheTrainBlock(t *testing.T) {
	known := map[string]bool{}
	for _, f := range append(append([]string{}, program.Free...), program.Fixed...) {
		known[f] = true
	}
	for _, f := range front.TrainFields() {
		name := f.Param.Name
		if !known[name] {
			t.Errorf("train.%s is neither free nor fixed", name)
		}
		delete(known, name)
		if slices.Contains(program.Fixed, name) {
			continue // what the schedule depends on: a program refuses another value, whatever it is made of
		}
		ctors := program.Ctors[name]
		if contains := len(f.Param.Ctors) > 0; contains != (len(ctors) > 0) || len(ctors) != len(f.Param.Ctors) {
			t.Errorf("train.%s has %d constructors here, %d in the language", name, len(ctors), len(f.Param.Ctors))
			continue
		}
		for i, want := range f.Param.Ctors {
			got := ctors[i]
			if got.Name != want.Name || len(got.Args) != len(want.Params) {
				t.Errorf("train.%s: %s with %d arguments, want %s with %d", name, got.Name, len(got.Args), want.Name, len(want.Params))
				continue
			}
			for j, p := range want.Params {
				a := got.Args[j]
				text := ""
				if p.Default != nil {
					text = p.Default.String()
				}
				if a.Name != p.Name || a.Required != (p.Default == nil) || a.Default != text {
					t.Errorf("train.%s: %s has %+v, want %s = %q", name, got.Name, a, p.Name, text)
				}
			}
		}
	}
	for name := range known {
		t.Errorf("train.%s is not in the language", name)
	}
}
