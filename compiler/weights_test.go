package compiler

import (
	"fmt"
	"strings"
	"testing"
)

// TestWeightsMaps shows what the entries of a map expand to.
func TestWeightsMaps(t *testing.T) {
	const model = `
model m(D = 8, L = 2, V = 16, split = false) {
  init normal(0.02)
  block attn(x) { x += o: linear(attention(q: linear(x, D, bias), k: linear(x, D, bias), v: linear(x, D, bias), heads = 2, causal), D) }
  block layer(x) {
    attn(x)
    x += down: linear(silu(up: linear(ln: layernorm(x), 2 * D)), D)
  }
  forward(tokens) {
    x = wte: embed(tokens, V, D)
    repeat L { layer(x) }
    return head: linear(x, V, tie = wte)
  }
  weights w { MAP }
}
`
	for _, c := range []struct{ name, entries, want string }{
		{"prefixes keep what follows", `
wte = "emb"
layer[i] = "blocks.{i + 1}"
`, `
wte.weight <- emb.weight
layer[1].attn.q.bias <- blocks.2.attn.q.bias
layer[1].ln.weight <- blocks.2.ln.weight`},
		{"a whole name stands alone", `
wte.weight = "emb"
layer[i].attn = "a.{i}"
layer[i].ln.weight = "{i}.g"
layer[i].ln.bias = "{i}.b"
layer[i].up.weight = transpose("{i}.u")
layer[i].down = "{i}.d"
`, `
wte.weight <- emb
layer[0].attn.o.weight <- a.0.o.weight
layer[1].ln.bias <- 1.b
layer[1].up.weight <- transpose 1.u
layer[0].down.weight <- 0.d.weight`},
		{"split and join; a vector is not transposed", `
if split { wte = "no" } else { wte = "emb" }
layer[i].attn.q, layer[i].attn.k, layer[i].attn.v = split(transpose("{i}.qkv"))
layer[i].attn.o = join("{i}.o1", "{i}.o2")
layer[i].ln = "{i}.ln"
layer[i].up = join(transpose("{i}.u1"), transpose("{i}.u2"))
layer[i].down = "{i}.d"
`, `
layer[0].attn.q.weight layer[0].attn.k.weight layer[0].attn.v.weight <- split(transpose 0.qkv.weight
layer[1].attn.q.bias layer[1].attn.k.bias layer[1].attn.v.bias <- split 1.qkv.bias
layer[0].attn.o.weight <- join 0.o1.weight 0.o2.weight
layer[1].up.weight <- join(transpose 1.u1.weight 1.u2.weight`},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := strings.Replace(model, "MAP", c.entries, 1)
			m := find(t, Check, Options{Path: "m.mt", Text: []byte(text)}).Model
			have := map[string]bool{}
			seen := map[string]int{}
			for _, e := range m.Maps[0].Entries {
				var targets []string
				for _, p := range e.Targets {
					targets = append(targets, p.Path)
					seen[p.Path]++
				}
				line := strings.Join(targets, " ") + " <- "
				if e.Op != "" {
					line += e.Op + " "
				}
				have[line+strings.Join(e.Names, " ")] = true
			}
			for _, want := range strings.Split(strings.TrimSpace(c.want), "\n") {
				if !have[want] {
					t.Errorf("no entry %q in %s", want, fmt.Sprint(have))
				}
			}
			for _, p := range m.Params {
				if seen[p.Path] != 1 {
					t.Errorf("%s has %d entries", p.Path, seen[p.Path])
				}
			}
		})
	}
}
