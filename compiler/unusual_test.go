package compiler

import "testing"

// TestUnusualModels compiles shapes of models that no file of models/ has, in both
// placements: the verifier runs on each.
func TestUnusualModels(t *testing.T) {
	const (
		head  = "return head: linear(x, V)"
		wte   = "x = wte: embed(tokens, V, D)\n"
		layer = "block layer(x) { x += o: linear(x, D) }\n"
	)
	for name, c := range map[string]struct{ blocks, forward string }{
		"a block without weights":          {"block layer(x) { x = silu(x) }", wte + "repeat L { layer(x) }\n" + head},
		"no block":                         {"", wte + "x = norm: rmsnorm(x)\n" + head},
		"an embedding and a head":          {"", "return head: linear(wte: embed(tokens, V, D), V, bias)"},
		"ops between blocks":               {layer, wte + "s = x\nlayer(x)\nx = x * 0.5 + s\nlayer(x)\ny = silu(x)\nlayer(x)\nreturn head: linear(x + y, V)"},
		"a residual past all blocks":       {layer, wte + "s = x\nrepeat L { layer(x) }\nreturn head: linear(x + s, V)"},
		"a tie in every layer":             {"block layer(x) { x += back: linear(linear(x, V, tie = wte), D) }", wte + "repeat L { layer(x) }\nreturn linear(x, V, tie = wte)"},
		"down and up with skips":           {"block down(x) { x += o: linear(x, D) }\nblock up(x, s) { x += p: linear(x + s, D) }", wte + "down(x)\ns1 = x\ndown(x)\ns2 = x\nup(x, s2)\nup(x, s1)\n" + head},
		"a block that assigns two":         {"block a(x, y) { x += o: linear(x * y, D)\ny += p: linear(x, D) }", wte + "y = silu(x)\nrepeat L { a(x, y) }\nreturn head: linear(x + y, V)"},
		"blocks in expressions":            {"block f(x) { return o: linear(silu(x), D) }", wte + "x += f(rmsnorm(x, weight = false))\nx = f(x) + x\nreturn softcap(head: linear(x, V) * 0.5, 30.0)"},
		"one value for two parameters":     {"block a(x, y) { x += o: linear(x * y, D) }", wte + "repeat L { a(x, x) }\n" + head},
		"a value added to itself":          {"block a(x) { x = x + x\nx = x * x\nx += o: linear(x, D) }", wte + "repeat L { a(x) }\n" + head},
		"units of several names":           {layer, wte + "first: layer(x)\nmid: layer(x)\nmid: layer(x)\n" + head},
		"a position table used late":       {layer, "p = wpe: embed(position, 16, D)\n" + wte + "layer(x)\nx += p\nlayer(x)\n" + head},
		"a tied head with a bias and norm": {layer, wte + "layer(x)\nreturn head: linear(ln: layernorm(x), V, tie = wte, bias)"},
		"windows that alternate":           {"block a(x, w, heads = 2) { x += o: linear(attention(x, x, x, heads = heads, causal, window = w), D) }", wte + "repeat L as i { a(x, if i % 2 == 0 then 4 else none, heads = i + 1) }\n" + head},
		"a repeat in a repeat":             {layer, wte + "repeat 2 { layer(x)\nrepeat L { inner: layer(x) } }\n" + head},
		"blocks in blocks in blocks":       {"block a(x) { x += o: linear(x, D) }\nblock b(x) { first: a(x)\nsecond: a(x) }\nblock c(x) { left: b(x)\nright: b(x) }", wte + "repeat L { c(x) }\n" + head},
	} {
		text := "model m(D = 12, L = 3, V = 32) {\ninit normal(0.02)\n" + c.blocks + "\nforward(tokens) {\n" + c.forward + "\n}\n}\n" +
			"train { seq = 16; batch = 64 tokens; clip = 1.0; eval = every(3) }\n"
		for _, o := range []Options{{Placement: "resident"}, {Placement: "stream"}, {Placement: "stream", Recompute: "all", MicroBatch: 1, Groups: 2}} {
			t.Run(name+"/"+o.Placement+o.Recompute, func(t *testing.T) {
				o.Path, o.Text = "m.mt", []byte(text)
				find(t, Compile, o)
			})
		}
	}
}
