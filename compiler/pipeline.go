package compiler

import (
	"context"
	"fmt"
	"runtime/debug"
	"strings"

	"github.com/megatrain/mtc/lang/diag"
	"github.com/megatrain/mtc/lang/source"
)

// state is what passes hand on.
type state struct {
	ctx   context.Context
	opts  Options
	diags *diag.List
	res   *Result
}

// pass is one step of the compiler.
type pass struct {
	Name string
	Doc  string // one line
	Run  func(*state)
	// Dump prints what the pass made, for --dump-after.
	Dump func(*state) string
	// Back marks the passes that Check leaves out.
	Back bool
}

// pipeline is the compiler, in order.
var pipeline = []pass{}

// PassInfo names a pass.
type PassInfo struct{ Name, Doc string }

// Passes lists the passes in order.
func Passes() []PassInfo {
	out := make([]PassInfo, len(pipeline))
	for i, p := range pipeline {
		out[i] = PassInfo{p.Name, p.Doc}
	}
	return out
}

// run is the driver: it runs the passes in order and stops after one that reports errors.
func run(ctx context.Context, o Options, diags *diag.List, back bool) (*Result, error) {
	s := &state{ctx: ctx, opts: o, diags: diags, res: &Result{}}
	for i := range pipeline {
		p := &pipeline[i]
		if p.Back && !back {
			break
		}
		if err := ctx.Err(); err != nil {
			return s.res, err
		}
		guard(p, s)
		if diags.HasErrors() {
			break
		}
		if o.DumpAfter == p.Name && p.Dump != nil {
			s.res.Dump = p.Dump(s)
		}
	}
	return s.res, diags.Err()
}

// guard runs one pass and turns a panic into a diagnostic: a bug of the compiler must not
// look like one of the text, nor end the process without saying where it happened.
func guard(p *pass, s *state) {
	defer func() {
		if r := recover(); r != nil {
			d := s.diags.Errorf("MT0001", source.Span{}, "internal compiler error in pass %s: %v", p.Name, r)
			for _, line := range ownFrames(debug.Stack()) {
				d.Note("%s", line)
			}
			d.Hint("this is a fault of mtc, not of the text; please report it with the .mt file")
		}
	}()
	p.Run(s)
}

// ownFrames keeps the few stack lines below the panic that say where it came from.
func ownFrames(stack []byte) []string {
	var out []string
	lines := strings.Split(string(stack), "\n")
	past := false
	for _, l := range lines {
		if strings.HasPrefix(l, "panic(") {
			past = true
			continue
		}
		if past && !strings.HasPrefix(l, "\t") && strings.Contains(l, "mtc/") {
			name, _, _ := strings.Cut(l, "(0x")
			out = append(out, fmt.Sprintf("in %s", name[strings.LastIndexByte(name, '/')+1:]))
			if len(out) == 3 {
				break
			}
		}
	}
	return out
}
