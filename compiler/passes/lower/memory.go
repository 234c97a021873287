package lower

import (
	"slices"
	"sort"

	"github.com/megatrain/mtc/compiler/ir"
	"github.com/megatrain/mtc/runtime/plan"
)

// Memory gives every value of every function a place, proves that no two values that are
// alive at once overlap, and writes the functions into their templates. Values that nothing
// pins to another region share the Work region by their lifetimes; a launch that may work in
// place does so where its input is not read again.
func Memory(l *Lowering) { placeAll(l, place) }

func placeAll(l *Lowering, place func(*fn) *placement) {
	for _, t := range l.tmpls {
		for _, f := range t.funcs {
			p := place(f)
			if err := verify(f, p); err != nil {
				panic(t.Name + "." + f.kind.String() + ": " + err.Error())
			}
			t.Funcs[f.kind] = write(f, p)
		}
		t.funcs = nil
	}
}

// placement is where the values of a function lie.
type placement struct {
	at   map[*value]ir.Place // region, index and offset
	work int64
}

// life is the launches between which a value must be kept, both included.
type life struct{ from, to int }

func (a life) meets(b life) bool { return a.from <= b.to && b.from <= a.to }

// lives finds each value's lifetime. Inside the head's loop a value for all rows lives
// through the whole loop, because every pass touches it.
func lives(f *fn) map[*value]*life {
	out := map[*value]*life{}
	start, end := -1, -1
	for i, in := range f.insts {
		if in.inLoop {
			if start < 0 {
				start = i
			}
			end = i
		}
	}
	for i, in := range f.insts {
		from, to := i, i
		for _, list := range [][]operand{in.reads, in.adds, in.writes} {
			for _, o := range list {
				if o.v == nil {
					continue
				}
				from, to = i, i
				if in.inLoop && !o.v.chunk {
					from, to = start, end
				}
				lf := out[o.v]
				if lf == nil {
					lf = &life{from, to}
					out[o.v] = lf
				}
				lf.from, lf.to = min(lf.from, from), max(lf.to, to)
			}
		}
	}
	for v, p := range f.pins {
		lf := out[v]
		if lf == nil {
			continue
		}
		if p.filled {
			lf.from = -1
		}
		if p.result || p.locked {
			lf.to = len(f.insts)
		}
	}
	return out
}

// group is values that share one place one after another, each written over the one before.
type group struct {
	values []*value
	life   life
	bytes  int64
	pin    *pin
	id     int
}

// place assigns places.
func place(f *fn) *placement {
	life := lives(f)
	groups := map[*value]*group{}
	var list []*group
	open := func(v *value) *group {
		if g := groups[v]; g != nil {
			return g
		}
		g := &group{values: []*value{v}, life: *life[v], bytes: v.bytes, id: len(list)}
		if p, ok := f.pins[v]; ok {
			g.pin = &p
		}
		groups[v] = g
		list = append(list, g)
		return g
	}
	for _, in := range f.insts {
		for _, ops := range [][]operand{in.reads, in.adds, in.writes} {
			for _, o := range ops {
				if o.v != nil {
					open(o.v)
				}
			}
		}
	}
	for i, in := range f.insts {
		for _, w := range in.writes {
			if w.v == nil || w.v.mutable {
				continue
			}
			for _, r := range inPlaceCandidates(f, in, w) {
				if join(f, life, groups, list, i, in, w, r) {
					break
				}
			}
		}
	}
	p := &placement{at: map[*value]ir.Place{}}
	seen := map[*group]bool{}
	var free []*group
	for _, g := range list {
		if g = groups[g.values[0]]; seen[g] {
			continue
		}
		seen[g] = true
		if g.pin == nil {
			free = append(free, g)
			continue
		}
		for _, v := range g.values {
			p.at[v] = ir.Place{Region: g.pin.region, Index: g.pin.index, Off: g.pin.off}
		}
	}
	offs := pack(free)
	for i, g := range free {
		for _, v := range g.values {
			p.at[v] = ir.Place{Region: ir.RWork, Off: offs[i]}
		}
		p.work = max(p.work, offs[i]+align(g.bytes))
	}
	return p
}

// inPlaceCandidates lists the values that a launch may overwrite with w: the addend of a
// gradient, then what the op names, in its order.
//
// The addend of a forward launch stays where it is. Whether it is free to be overwritten depends
// on what is kept for backward, and a library of matrix products may round otherwise where it
// works in place: a layer would have other bits with recompute than without.
func inPlaceCandidates(f *fn, in *inst, w operand) []*value {
	var out []*value
	apart := f.kind != plan.Infer && in.launch == &in.call.Def.Forward
	for _, a := range in.adds {
		if a.name == w.name && a.v != nil && !apart {
			out = append(out, a.v)
		}
	}
	for _, pair := range in.launch.InPlace {
		if pair[1] != w.name {
			continue
		}
		for _, r := range in.reads {
			if r.name == pair[0] && r.v != nil {
				out = append(out, r.v)
			}
		}
	}
	return out
}

// mayShare tells whether launch in may write w over r: every operand that holds r must be
// one that w may overwrite. The addend of another gradient, or an operand the op does not
// name, forbids it.
func mayShare(in *inst, w operand, r *value) bool {
	for _, o := range in.reads {
		if o.v == r && !slices.Contains(in.launch.InPlace, [2]string{o.name, w.name}) {
			return false
		}
	}
	for _, o := range in.adds {
		if o.v == r && o.name != w.name {
			return false
		}
	}
	return true
}

// join puts the result w of launch i into the place of r, when r is not needed afterwards
// and nothing else claims the place meanwhile.
func join(f *fn, lives map[*value]*life, groups map[*value]*group, list []*group, i int, in *inst, w operand, r *value) bool {
	gw, gr := groups[w.v], groups[r]
	if gw == gr || r.mutable || r.bytes != w.v.bytes || lives[r].to != i || lives[w.v].from != i || !mayShare(in, w, r) {
		return false
	}
	if in.inLoop && (!r.chunk || !w.v.chunk) {
		return false // lives through the loop
	}
	if gr.life.to != i || gw.life.from != i {
		return false // another result of this launch took the place already
	}
	pin := gw.pin
	switch {
	case gr.pin != nil && gw.pin != nil:
		if gr.pin.locked || gr.pin.region != gw.pin.region || gr.pin.index != gw.pin.index || gr.pin.off != gw.pin.off {
			return false
		}
	case gr.pin != nil:
		return false // somebody else's memory, or the place of a result
	case gw.pin != nil:
		// r moves to the place of w: nothing else may live there by then.
		for _, g := range list {
			g = groups[g.values[0]]
			if g != gw && g != gr && g.pin != nil && g.pin.overlaps(g.bytes, gw.pin, gw.bytes) && g.life.meets(gr.life) {
				return false
			}
		}
	}
	gr.values = append(gr.values, gw.values...)
	gr.life.to = gw.life.to
	gr.pin = pin
	for _, v := range gw.values {
		groups[v] = gr
	}
	return true
}

func (p *pin) overlaps(n int64, q *pin, m int64) bool {
	return p.region == q.region && p.index == q.index && p.off < q.off+m && q.off < p.off+n
}

// pack gives each group an offset so that groups that live at the same time are apart: the
// largest first, each at the lowest offset that is free.
func pack(groups []*group) []int64 {
	order := make([]int, len(groups))
	for i := range order {
		order[i] = i
	}
	sort.SliceStable(order, func(a, b int) bool { return groups[order[a]].bytes > groups[order[b]].bytes })
	offs := make([]int64, len(groups))
	var placed []int
	for _, i := range order {
		g := groups[i]
		var busy [][2]int64
		for _, j := range placed {
			if groups[j].life.meets(g.life) {
				busy = append(busy, [2]int64{offs[j], offs[j] + align(groups[j].bytes)})
			}
		}
		sort.Slice(busy, func(a, b int) bool { return busy[a][0] < busy[b][0] })
		var at int64
		for _, s := range busy {
			if at+g.bytes <= s[0] {
				break
			}
			at = max(at, s[1])
		}
		offs[i] = at
		placed = append(placed, i)
	}
	return offs
}

// write turns a placed function into statements.
func write(f *fn, p *placement) *ir.Function {
	out := &ir.Function{Func: f.kind, WorkBytes: p.work}
	out.FLOPs, out.Moved = f.cost()
	var loop *ir.Loop
	for _, in := range f.insts {
		call := &ir.Call{Op: in.call, Launch: in.launch, Args: arguments(f, in, p), Span: in.span}
		switch {
		case in.inLoop:
			if loop == nil {
				loop = &ir.Loop{Rows: f.loop.Rows, Chunk: f.loop.Chunk, Last: f.loop.Last}
				out.Body = append(out.Body, loop)
			}
			loop.Body = append(loop.Body, call)
		case in.guard >= 0:
			if g, ok := last(out.Body).(*ir.IfFirst); ok && g.Slab == in.guard {
				g.Body = append(g.Body, call)
				continue
			}
			out.Body = append(out.Body, &ir.IfFirst{Slab: in.guard, Body: []ir.Stmt{call}})
		case in.whole > 0:
			if g, ok := last(out.Body).(*ir.IfWhole); ok && g.Slab == in.whole-1 {
				g.Body = append(g.Body, call)
				continue
			}
			out.Body = append(out.Body, &ir.IfWhole{Slab: in.whole - 1, Body: []ir.Stmt{call}})
		default:
			out.Body = append(out.Body, call)
		}
	}
	return out
}

func last(body []ir.Stmt) ir.Stmt {
	if len(body) == 0 {
		return nil
	}
	return body[len(body)-1]
}
