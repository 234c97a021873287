package lower

import (
	"slices"
	"strings"
	"testing"

	"github.com/megatrain/mtc/compiler/ir"
	"github.com/megatrain/mtc/runtime/op"
	"github.com/megatrain/mtc/runtime/plan"
)

// heads is a model of one layer whose q and k are made as given from the products of x, with two heads
// of 16 elements for q and one for k.
func heads(t *testing.T, made func(u *unitBuilder, q, k *ir.Value) (q2, k2 *ir.Value)) *ir.Model {
	return oddModel(t, 2, func(u *unitBuilder, x *ir.Value) *ir.Value {
		q, k := made(u, u.linear("q", 32, x), u.linear("k", 16, x))
		a := u.op("attention", "a", attrs{"heads": *op.IntValue(2), "kv": *op.IntValue(1), "causal": *op.BoolValue(true)}, q, k, u.linear("v", 16, x))
		return u.add(x, u.linear("o", 10, a))
	})
}

func turnOf(u *unitBuilder, x *ir.Value) *ir.Value {
	return u.op("rope", "", attrs{"hd": *op.IntValue(16)}, x)
}

func normHeads(u *unitBuilder, name string, x *ir.Value) *ir.Value {
	return u.op("rmsnorm", name, attrs{"per": *op.IntValue(16)}, x)
}

// rotated are models in which rotations are fused, or must not be, with the launches that are left of
// rope, rmsnorm (of heads) and qk_rope in a layer's forward, backward and infer.
var rotated = map[string]struct {
	build                    func(t *testing.T) *ir.Model
	forward, backward, infer string
}{
	"rotations": {func(t *testing.T) *ir.Model {
		return heads(t, func(u *unitBuilder, q, k *ir.Value) (a, b *ir.Value) { return turnOf(u, q), turnOf(u, k) })
	}, "qk", "qk", "qk"},
	"norms before rotations": {func(t *testing.T) *ir.Model {
		return heads(t, func(u *unitBuilder, q, k *ir.Value) (a, b *ir.Value) {
			q, k = normHeads(u, "q_norm", q), normHeads(u, "k_norm", k)
			return turnOf(u, q), turnOf(u, k)
		})
	}, "qk", "qk", "qk"},
	"norms behind rotations": {func(t *testing.T) *ir.Model {
		return heads(t, func(u *unitBuilder, q, k *ir.Value) (a, b *ir.Value) {
			return normHeads(u, "q_norm", turnOf(u, q)), normHeads(u, "k_norm", turnOf(u, k))
		})
	}, "qk", "qk", "qk"},
	"a norm of q alone": {func(t *testing.T) *ir.Model {
		return heads(t, func(u *unitBuilder, q, k *ir.Value) (a, b *ir.Value) {
			return turnOf(u, normHeads(u, "q_norm", q)), turnOf(u, k)
		})
	}, "qk rope", "rope qk", "qk rope"},
	"a norm behind the rotation of k alone": {func(t *testing.T) *ir.Model {
		return heads(t, func(u *unitBuilder, q, k *ir.Value) (a, b *ir.Value) {
			return turnOf(u, q), normHeads(u, "k_norm", turnOf(u, k))
		})
	}, "rope qk", "qk rope", "rope qk"},
	"what is turned is read elsewhere": {func(t *testing.T) *ir.Model {
		return heads(t, func(u *unitBuilder, q, k *ir.Value) (a, b *ir.Value) {
			q = turnOf(u, q)
			n := normHeads(u, "q_norm", q)
			return u.add(n, q), turnOf(u, k)
		})
	}, "qk rmsnorm", "rmsnorm qk", "qk rmsnorm"},
	"what is normed is read elsewhere": {func(t *testing.T) *ir.Model {
		return heads(t, func(u *unitBuilder, q, k *ir.Value) (a, b *ir.Value) {
			q = normHeads(u, "q_norm", q)
			return u.mul(turnOf(u, q), q), turnOf(u, k)
		})
	}, "rmsnorm qk", "qk rmsnorm", "rmsnorm qk"},
	"q turned twice": {func(t *testing.T) *ir.Model {
		return heads(t, func(u *unitBuilder, q, k *ir.Value) (a, b *ir.Value) { return turnOf(u, turnOf(u, q)), turnOf(u, k) })
	}, "rope qk", "qk rope", "rope qk"},
	"k is made of q": {func(t *testing.T) *ir.Model {
		return heads(t, func(u *unitBuilder, q, _ *ir.Value) (a, b *ir.Value) {
			q = turnOf(u, q)
			return q, turnOf(u, u.linear("k2", 16, q))
		})
	}, "rope rope", "rope rope", "rope rope"},
}

func init() {
	for name, m := range rotated {
		models["heads: "+name] = m.build
	}
}

// TestRotations: what is left in each function.
func TestRotations(t *testing.T) {
	for name, m := range rotated {
		t.Run(name, func(t *testing.T) {
			p := mustLower(t, m.build(t), small)
			i := slices.IndexFunc(p.Templates, func(t *ir.Template) bool { return t.Name == "layer" })
			for kind, want := range map[plan.Func]string{plan.Forward: m.forward, plan.Backward: m.backward, plan.Infer: m.infer} {
				var got []string
				for _, s := range p.Templates[i].Funcs[kind].Body {
					c, ok := s.(*ir.Call)
					if !ok {
						continue
					}
					switch name := c.Op.Def.Name; name {
					case "rope", "rmsnorm":
						got = append(got, name)
					case "qk_rope":
						got = append(got, "qk")
					}
				}
				if text := strings.Join(got, " "); text != want {
					t.Errorf("%s: %q, want %q", kind, text, want)
				}
			}
		})
	}
}
