package compiler

import (
	"github.com/megatrain/mtc/compiler/passes/front"
	"github.com/megatrain/mtc/runtime/ops/all"
)

// frontPass makes a pass of the front half.
func frontPass(name, doc string, run func(*front.State), dump func(*front.State) string) pass {
	return pass{
		Name: name,
		Doc:  doc,
		Run: func(s *state) {
			run(s.front)
			s.res.File, s.res.Model = s.front.Main, s.front.Model
		},
		Dump: func(s *state) string { return dump(s.front) },
	}
}

// newFront starts the front half's state from the options.
func newFront(s *state) *front.State {
	o := s.opts
	return front.New(front.Input{
		Path: o.Path, Text: o.Text, ReadFile: o.ReadFile,
		Model: o.Model, Preset: o.Preset, Set: o.Set,
		Ops: front.Ops{Lookup: all.Lookup, Names: all.Names},
	}, s.diags)
}
