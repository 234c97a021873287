package front

import (
	"fmt"
	"slices"
	"strings"

	"github.com/megatrain/mtc/compiler/ir"
	"github.com/megatrain/mtc/lang/diag/suggest"
	"github.com/megatrain/mtc/runtime/op"
	"github.com/megatrain/mtc/runtime/ops/moe"
)

// Targets finds the linears that the train block lays adapters beside. A name is the path of a
// linear, with its index or without, or the end of one after a dot: `q` is layer[0].attn.q,
// layer[1].attn.q and so on. `*` in quotes stands for any text, in the names of linears. `all` is every
// linear of the blocks.
func Targets(s *State) {
	if s.lora == nil || s.Diags.HasErrors() {
		return
	}
	f := &targetFinder{s: s, out: &ir.LoRA{Span: s.lora.at, Rank: s.lora.rank, Alpha: s.lora.alpha}}
	f.collect()
	taken := map[*ir.Node]bool{}
	for _, name := range s.lora.targets {
		f.mark(name, taken)
	}
	f.routers()
	warned := false
	for _, l := range f.linears {
		if !taken[l.node] {
			continue
		}
		if in, out := l.node.Inputs[0].Type.Shape.Last().N, l.weight.Shape[0].N; s.lora.rank > min(in, out) {
			if !warned {
				s.Diags.Warnf(codeLoRA, s.lora.at, "rank %d is above what `%s` can use: it is %s, of rank %d at most", s.lora.rank, l.path, l.weight.Shape, min(in, out)).
					Hint("a lower rank says the same with fewer parameters")
			}
			warned = true
		}
		f.out.Targets = append(f.out.Targets, &ir.LoRATarget{Unit: l.unit, Node: l.node, Weight: l.weight})
	}
	s.Model.LoRA = f.out
}

type targetFinder struct {
	s       *State
	out     *ir.LoRA
	linears []linear
}

// linear is an op that owns a matrix, with what forbids an adapter beside it.
type linear struct {
	unit   *ir.Unit
	node   *ir.Node
	weight *ir.Param
	path   string // "layer[3].attn.q"
	plain  string // without the indices
	why    string // "": it may have one
}

// collect lists the model's matrices in forward order.
func (f *targetFinder) collect() {
	for _, b := range f.s.units {
		u := b.unit
		for _, n := range u.Graph.Nodes {
			if len(n.Weights) == 0 || n.Weights[0].Role != op.Matrix && n.Weights[0].Role != op.Embedding {
				continue
			}
			p := u.Params[slices.Index(u.Graph.Weights, n.Weights[0])]
			path := strings.TrimSuffix(p.Path, ".weight")
			if info := f.s.nodes[n]; info.tie != nil && info.name.Name != "" {
				path = b.prefix + info.prefix + info.name.Name // its own name, not the owner's
			}
			why := ""
			switch name := n.Call.Def.Name; {
			case name == "grouped":
				why = "the weights of all experts are one, and adapters of experts are not available in this version"
			case name == "embed":
				why = "it is a table, and adapters stand beside linears"
			case name != "linear":
				why = "it is no linear"
			case p.Uses > 1 || n.Weights[0].Role == op.Embedding:
				why = "its weight is tied, and an adapter cannot be merged into one use of it alone"
			}
			f.linears = append(f.linears, linear{u, n, p, path, withoutIndex(path), why})
		}
	}
}

// mark notes the linears that a name means.
func (f *targetFinder) mark(name loraName, taken map[*ir.Node]bool) {
	found := false
	for i := range f.linears {
		l := &f.linears[i]
		several := name.text == "all" || strings.Contains(name.text, "*")
		op := l.node.Call.Def.Name
		switch {
		case several && op != "linear" && op != "grouped", name.text == "all" && l.unit.Kind != ir.LayerUnit:
			continue
		case name.text != "all" && !matches(name.text, l.path) && !matches(name.text, l.plain):
			continue
		}
		if l.why != "" {
			f.s.errorf(codeLoRA, name.at, "`%s` cannot have an adapter: %s", l.path, l.why).
				Also(l.node.Span, "declared here").Hint("possible here are %s", suggest.List(f.possible()))
			return
		}
		found = true
		taken[l.node] = true
	}
	if !found && !f.s.full() {
		d := f.s.errorf(codeLoRA, name.at, "no linear of `%s` is called `%s`", f.s.Model.Name, name.text)
		if here := f.elsewhere(name.text); len(here) > 0 {
			d.Hint("what other programs call `%s` is %s here", name.text, suggest.List(here))
		} else {
			d.Hint("%s", suggest.HintOr(name.text, append(f.possible(), "all")))
		}
	}
}

// elsewhere are the linears that the model's maps give this name: `q_proj` is q.
func (f *targetFinder) elsewhere(name string) []string {
	var out []string
	for _, m := range f.s.Model.Maps {
		for _, e := range m.Entries {
			for _, foreign := range e.Names {
				if foreign = strings.TrimSuffix(foreign, ".weight"); foreign != name && !strings.HasSuffix(foreign, "."+name) {
					continue
				}
				for _, p := range e.Targets {
					short := withoutIndex(strings.TrimSuffix(p.Path, ".weight"))
					if short = short[strings.LastIndexByte(short, '.')+1:]; slices.Contains(f.possible(), short) && !slices.Contains(out, short) {
						out = append(out, short)
					}
				}
			}
		}
	}
	return out
}

// possible are the last parts of the names of linears that may have an adapter.
func (f *targetFinder) possible() []string {
	var out []string
	for i := range f.linears {
		l := &f.linears[i]
		if short := l.plain[strings.LastIndexByte(l.plain, '.')+1:]; l.why == "" && !slices.Contains(out, short) {
			out = append(out, short)
		}
	}
	return out
}

// routers refuses a mixture whose routers go on moving by themselves: the base is to stay as it is.
func (f *targetFinder) routers() {
	for _, r := range f.s.Model.Routers {
		if b := r.Attr["balance"].Int; r.Attr["kind"].Int != moe.TopK || b == moe.LossFree || b == moe.QuantileTop {
			f.s.errorf(codeLoRA, f.s.lora.at, "the router of `%s` keeps a state that moves with every step, and adapters leave the model they are laid beside as it is", r.Path).
				Also(r.Span, "the router").
				Hint("adapters go with routers without a state: `topk` without `lossfree` or `quantile`")
			return
		}
	}
}

// matches reports whether a name or pattern is a path or its end after a dot.
func matches(pattern, path string) bool {
	for at := 0; ; {
		if glob(pattern, path[at:]) {
			return true
		}
		dot := strings.IndexByte(path[at:], '.')
		if dot < 0 {
			return false
		}
		at += dot + 1
	}
}

// glob matches a text with a pattern in which `*` is any text. After a mismatch only the last `*`
// takes one more byte, so that the time is that of the pattern times that of the text.
func glob(pattern, text string) bool {
	p, t, star, from := 0, 0, -1, 0
	for t < len(text) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, from = p, t
			p++
		case p < len(pattern) && pattern[p] == text[t]:
			p++
			t++
		case star >= 0:
			from++
			p, t = star+1, from
		default:
			return false
		}
	}
	return strings.Trim(pattern[p:], "*") == ""
}

// withoutIndex is a path without "[3]".
func withoutIndex(path string) string {
	var b strings.Builder
	in := false
	for _, r := range path {
		if r == '[' {
			in = true
		}
		if !in {
			b.WriteRune(r)
		}
		if r == ']' {
			in = false
		}
	}
	return b.String()
}

// DumpTargets prints the linears that get adapters.
func DumpTargets(s *State) string {
	if s.Model.LoRA == nil {
		return "no adapters\n"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "lora rank %d alpha %g\n", s.Model.LoRA.Rank, s.Model.LoRA.Alpha)
	for _, t := range s.Model.LoRA.Targets {
		fmt.Fprintf(&b, "%s %s\n", t.Weight.Path, t.Weight.Shape)
	}
	return b.String()
}
