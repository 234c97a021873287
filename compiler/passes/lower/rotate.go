package lower

import (
	"slices"

	"github.com/megatrain/mtc/runtime/op"
	"github.com/megatrain/mtc/runtime/ops/qkrope"
	"github.com/megatrain/mtc/runtime/ops/rope"
)

// rotations puts into one launch what stands between the products of q and k and attention: the
// rotation of both, and the norms of their heads before or behind it, where the model has them; in
// backward likewise. The values between, and their gradients, are then never stored. Bits stay
// the same (package qkrope). In generation backward is nil.
func (b *builder) rotations(forward, backward []*inst) (f, g []*inst) {
	u := b.uses(forward, backward)
	var ahead, back []*turn
	for _, in := range forward {
		if isTurn(in, "Forward") {
			ahead = append(ahead, u.forward(forward, in))
		}
	}
	for _, in := range backward {
		if isTurn(in, "Backward") {
			back = append(back, u.backward(backward, in, ahead))
		}
	}
	for _, t := range ahead {
		// A norm behind the rotation reads in backward what the rotation made: both are fused, or none.
		if t.norm == qkrope.After && u.readers[t.between] > 1 && !slices.ContainsFunc(back, func(o *turn) bool { return o.x == t.x && o.norm == t.norm }) {
			*t = turn{rope: t.rope, x: t.x}
		}
	}
	return fuseTurns(forward, ahead, &qkrope.Def.Forward), fuseTurns(backward, back, &qkrope.Def.Backward[0])
}

// turn is a rotation, or its gradient, with that of a norm of the same heads.
type turn struct {
	rope    *inst
	normed  *inst  // nil: there is none
	norm    int64  // qkrope.None, Before or After
	x       *value // what goes into both in forward; nil in backward without a norm
	between *value // what one of them makes for the other
}

// launches are those that the turn stands for.
func (t *turn) launches() []*inst {
	if t.normed == nil {
		return []*inst{t.rope}
	}
	return []*inst{t.rope, t.normed}
}

// isTurn tells whether a launch is a rotation, or its gradient, that the fused launches take.
func isTurn(in *inst, launch string) bool {
	return in.call.Def.Name == "rope" && in.launch.Func == launch && !in.inLoop && rope.Whole(in.call) && qkrope.Fits(in.call.Int("hd"))
}

// isNorm tells whether a launch is a norm of the heads that rope turns, or its gradient.
func isNorm(in, rope *inst) bool {
	return in != nil && in.call.Def.Name == "rmsnorm" && in.launch.Func == rope.launch.Func && !in.inLoop && in.call.Int("per") == rope.call.Int("hd")
}

// uses knows who reads the values of a template, which are fixed, and who makes them.
type uses struct {
	readers map[*value]int
	maker   map[*value]*inst
	fixed   map[*value]pin
}

func (b *builder) uses(forward, backward []*inst) *uses {
	u := &uses{readers: map[*value]int{}, maker: map[*value]*inst{}, fixed: b.pins}
	for _, in := range slices.Concat(forward, backward) {
		for _, o := range slices.Concat(in.reads, in.adds) {
			u.readers[o.v]++
		}
		for _, o := range in.writes {
			u.maker[o.v] = in
		}
	}
	for _, out := range b.t.Graph.Outputs {
		u.readers[b.values[out]]++
	}
	return u
}

// forward is the turn of a rotation.
func (u *uses) forward(list []*inst, rope *inst) *turn {
	x, y := rope.readOf("x"), rope.writeOf("y")
	if n := u.maker[x]; isNorm(n, rope) && u.readers[x] == 1 && fits(list, rope, n) {
		return &turn{rope: rope, normed: n, norm: qkrope.Before, x: n.readOf("x"), between: x}
	}
	if n := reader(list, "x", y); isNorm(n, rope) && u.readers[y] <= 2 && fits(list, rope, n) {
		return &turn{rope: rope, normed: n, norm: qkrope.After, x: x, between: y}
	}
	return &turn{rope: rope, x: x}
}

// backward is the turn of a rotation's gradient; ahead are those of forward.
func (u *uses) backward(list []*inst, rope *inst, ahead []*turn) *turn {
	dy, dx := rope.readOf("d.y"), rope.writeOf("d.x")
	_, fixed := u.fixed[dx]
	if n := reader(list, "d.y", dx); isNorm(n, rope) && u.readers[dx] == 1 && !fixed && !rope.addsAny() && fits(list, rope, n) {
		return &turn{rope: rope, normed: n, norm: qkrope.Before, x: n.readOf("x"), between: dx}
	}
	if n := u.maker[dy]; isNorm(n, rope) && u.readers[dy] == 1 && n.addOf("d.x") == nil && fits(list, rope, n) {
		for _, f := range ahead {
			if f.norm == qkrope.After && f.between == n.readOf("x") {
				return &turn{rope: rope, normed: n, norm: qkrope.After, x: f.x, between: dy}
			}
		}
	}
	return &turn{rope: rope}
}

// reader is the first launch that reads a value by that operand name.
func reader(list []*inst, name string, v *value) *inst {
	for _, in := range list {
		if in.readOf(name) == v {
			return in
		}
	}
	return nil
}

// fuseTurns puts fused launches in the place of turns: two that go together in one.
func fuseTurns(list []*inst, turns []*turn, launch *op.Launch) []*inst {
	out := slices.Clone(list)
	gone := map[*inst]bool{}
	for i := 0; i < len(turns); i++ {
		q, k := turns[i], (*turn)(nil)
		if i+1 < len(turns) && q.matches(turns[i+1]) {
			if _, ok := spot(list, slices.Concat(q.launches(), turns[i+1].launches())); ok {
				i++
				k = turns[i]
			}
		}
		all := q.launches()
		if k != nil {
			all = append(all, k.launches()...)
		}
		if len(all) == 1 {
			continue // a rotation by itself stays what it is
		}
		at, _ := spot(list, all)
		for _, in := range all {
			gone[in] = true
		}
		if k != nil && launch != &qkrope.Def.Forward {
			q, k = k, q // backward has them the other way round
		}
		out[at] = q.fused(k, launch)
	}
	return slices.DeleteFunc(out, func(in *inst) bool { return gone[in] })
}

// matches tells whether one launch can take both: of one norm, layout and table, neither made of
// the other, and with gradients of weights of their own.
func (q *turn) matches(k *turn) bool {
	for _, a := range q.launches() {
		for _, b := range k.launches() {
			if touch(a.writes, b.reads) || touch(a.writes, b.adds) {
				return false
			}
		}
	}
	a, b := q.rope, k.rope
	if q.norm != k.norm || a.call.Int("hd") != b.call.Int("hd") || a.call.Word("layout") != b.call.Word("layout") ||
		a.readOf("cs") != b.readOf("cs") || a.readOf("starts") != b.readOf("starts") {
		return false
	}
	if q.norm == qkrope.None {
		return true
	}
	dw := q.normed.writeOf("d.weight")
	return q.normed.call.Float("eps") == k.normed.call.Float("eps") && (dw == nil || dw != k.normed.writeOf("d.weight"))
}

// fits tells whether launches can be one.
func fits(list []*inst, of ...*inst) bool { _, ok := spot(list, of); return ok }

// spot finds where in a list one launch can stand for several: nothing between a launch and that
// place touches what it writes, or makes what it reads.
func spot(list, of []*inst) (at int, ok bool) {
	for i := len(list) - 1; i >= 0; i-- {
		if slices.Contains(of, list[i]) && !slices.ContainsFunc(of, func(in *inst) bool { return !mayStand(list, of, in, i) }) {
			return i, true
		}
	}
	return 0, false
}

// mayStand tells whether launch in, one of several that become one, may stand at a place.
func mayStand(list, of []*inst, in *inst, at int) bool {
	from := slices.Index(list, in)
	between, later := list[min(from, at):max(from, at)], from > at
	for _, other := range between {
		if slices.Contains(of, other) {
			continue
		}
		if touch(in.writes, other.reads) || touch(in.writes, other.adds) || touch(in.writes, other.writes) ||
			later && (touch(other.writes, in.reads) || touch(other.writes, in.adds)) {
			return false
		}
	}
	return true
}

// touch tells whether two lists have a value in common.
func touch(a, b []operand) bool {
	return slices.ContainsFunc(a, func(x operand) bool {
		return x.v != nil && slices.ContainsFunc(b, func(y operand) bool { return x.v == y.v })
	})
}

// fused is the launch of q and k; k nil: of q alone.
func (q *turn) fused(k *turn, launch *op.Launch) *inst {
	s := qkrope.Sides{Heads: q.heads(), HD: q.rope.call.Int("hd"), Norm: q.norm, Interleaved: q.rope.call.Word("layout") == "interleaved"}
	if k != nil {
		s.KV = k.heads()
	}
	if q.normed != nil {
		s.Eps = q.normed.call.Float("eps")
	}
	if q.rope.readOf("starts") != nil {
		launch = launch.WithStarts()
	}
	in := &inst{call: qkrope.New(q.rope.call, s), launch: launch, span: q.rope.span, guard: -1}
	for _, name := range launch.Reads {
		in.reads = append(in.reads, operand{name: name, v: q.operand(k, name)})
	}
	for _, name := range launch.Writes {
		in.writes = append(in.writes, operand{name: name, v: q.operand(k, name)})
	}
	for _, name := range launch.Adds {
		in.adds = append(in.adds, q.addend(k, name))
	}
	return in
}

func (q *turn) heads() int64 { return q.rope.call.Out.Shape.Last().N / q.rope.call.Int("hd") }

// side tells whose operand a name of the fused launch is: nil where there is no k.
func (q *turn) side(k *turn, name string) *turn {
	if name[len(name)-1] == 'k' {
		return k
	}
	return q
}

// operand is the value of an operand of the fused launch; nil where it is absent.
func (q *turn) operand(k *turn, name string) *value {
	if name == "cs" || name == "starts" {
		return q.rope.readOf(name)
	}
	t := q.side(k, name)
	if t == nil {
		return nil
	}
	first, second := t.rope, t.rope // in the order of forward
	switch t.norm {
	case qkrope.Before:
		first = t.normed
	case qkrope.After:
		second = t.normed
	}
	switch name {
	case "q", "k":
		return t.x
	case "yq", "yk":
		return second.writeOf("y")
	case "d.yq", "d.yk":
		return second.readOf("d.y")
	case "d.q", "d.k":
		return first.writeOf("d.x")
	}
	if t.normed == nil {
		return nil
	}
	switch name {
	case "wq", "wk":
		return t.normed.readOf("weight")
	case "d.wq", "d.wk":
		return t.normed.writeOf("d.weight")
	case "invq", "invk":
		if v := t.normed.writeOf("inv"); v != nil {
			return v
		}
		return t.normed.readOf("inv")
	}
	panic("the fused rotation has no operand " + name)
}

// addend is what a gradient of the fused launch is added to.
func (q *turn) addend(k *turn, name string) operand {
	out := operand{name: name}
	t := q.side(k, name)
	if t == nil {
		return out
	}
	from, of := t.rope, "d.x"
	switch {
	case name == "d.wq" || name == "d.wk":
		from, of = t.normed, "d.weight"
	case t.norm == qkrope.Before:
		from = t.normed
	}
	if from != nil {
		if a := from.addOf(of); a != nil {
			out.v, out.maybe = a.v, a.maybe
		}
	}
	return out
}

// writeOf is the value that a launch writes as an operand; nil when it has none.
func (in *inst) writeOf(name string) *value {
	for _, o := range in.writes {
		if o.name == name {
			return o.v
		}
	}
	return nil
}

// addOf is the addend of a gradient; nil when it has none.
func (in *inst) addOf(name string) *operand {
	for i := range in.adds {
		if in.adds[i].name == name && in.adds[i].v != nil {
			return &in.adds[i]
		}
	}
	return nil
}
