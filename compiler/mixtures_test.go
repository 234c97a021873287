package compiler

import (
	"context"
	"strings"
	"testing"

	"github.com/megatrain/mtc/lang/diag"
)

// TestUnusualMixtures compiles mixtures of experts in places that no file of models/ has them in,
// in both placements and for a GPU: the verifier runs on each.
func TestUnusualMixtures(t *testing.T) {
	const (
		mlp  = "block mlp(x, width = 8, act = true) { return down: linear(if act then silu(up: linear(x, width)) else up: linear(x, width), D) }\n"
		wte  = "x = wte: embed(tokens, V, D)\n"
		head = "\nreturn head: linear(x, V)"
		run  = wte + "repeat L { layer(x) }" + head
	)
	for name, c := range map[string]struct{ blocks, forward string }{
		"of the block's input, nothing before or behind": {"block layer(x) { return m: moe(x, experts = 3, expert = mlp, router = topk(1)) }", wte + "x = layer(x)\nx += layer(x)" + head},
		"in a block in a block, twice": {"block ffn(x) { y = m: moe(x, experts = 3, expert = mlp(width = 4), router = threshold(0.5))\nreturn 0.5 * y }\n" +
			"block layer(x) { h = n: rmsnorm(x)\nx += ffn(h)\nx += again: ffn(h)\nx = softcap(x, 9.0) }", run},
		"two in one sum, of different kinds": {"block layer(x) { x += a: moe(x, experts = 3, expert = mlp(), router = topk(2)) + b: moe(x, experts = 5, expert = mlp(act = false), router = expert_choice(0.3, pool = micro), rows = 3) }", run},
		"expert, shared and router as parameters": {"block layer(x, e, s, r) { x += m: moe(x, experts = 4, expert = e, shared = s, router = r) }",
			wte + "layer(x, mlp(width = 4), mlp, topk(2))\nlayer(x, mlp(act = false), none, threshold(0.25, warmup = causal(3)))" + head},
		"a result that two units read": {"block layer(x, y) { x += 0.1 * y\ny = moe(x, experts = 3, expert = mlp, router = threshold(0.4, warmup = expert_choice(2, pool = sequence)))\nx += y }",
			wte + "y = x\nrepeat L { layer(x, y) }\nx += y" + head},
		"one expert":                       {"block layer(x) { x += m: moe(x, experts = 1, expert = mlp, router = threshold(1.0)) }", run},
		"all experts for all tokens":       {"block layer(x) { x += m: moe(x, experts = 3, expert = mlp, router = topk(3, renorm, scores = sigmoid)) }", run},
		"an expert of one linear":          {"block one(x) { return o: linear(x, D) }\nblock layer(x) { x += m: moe(x, experts = 3, expert = one, router = topk(1)) }", run},
		"an expert with biases and a norm": {"block wide(x) { return down: linear(rmsnorm(silu(gate: linear(x, 8, bias)) * up: linear(x, 8, bias), weight = false), D, bias) }\nblock layer(x) { x += m: moe(x, experts = 3, expert = wide, router = threshold(0.5)) }", run},
		"an expert of a norm alone":        {"block normed(x) { return n: layernorm(x) }\nblock layer(x) { x += m: moe(x, experts = 3, expert = normed, router = topk(2)) }", run},
		"norms before, between and behind": {"block wide(x) { h = act: layernorm(silu(up: linear(pre: rmsnorm(x), 8)), bias = false)\nreturn x + post: rmsnorm(down: linear(h, D), per = 4) }\nblock layer(x) { x += m: moe(x, experts = 3, expert = wide, shared = wide, router = threshold(0.5)) }", run},
		"an expert without a weight":       {"block idle(x) { return silu(x) * x }\nblock layer(x) { x += m: moe(x, experts = 3, expert = idle, router = topk(2)) }", run},
		"an expert that adds its input":    {"block keep(x) { return x + 0.5 * o: linear(x, D) }\nblock layer(x) { x += m: moe(x, experts = 3, expert = keep, router = threshold(0.5)) }", run},
		"a step's pool and a step's loss":  {"block layer(x) { x += a: moe(x, experts = 3, expert = mlp, router = expert_choice(0.5, pool = step))\nx += b: moe(x, experts = 3, expert = mlp, router = topk(1, balance = aux(0.1, scope = step))) }", run},
	} {
		text := "model m(D = 12, L = 2, V = 32) {\ninit normal(0.02)\n" + mlp + c.blocks + "\nforward(tokens) {\n" + c.forward + "\n}\n}\n" +
			"train { seq = 16; batch = 64 tokens; clip = 1.0; eval = every(3); lr = 1e-3; steps = 9 }\n"
		for _, o := range []Options{
			{}, {MicroBatch: 1, Recompute: "all"}, {Placement: "stream", MicroBatch: 2}, {Placement: "stream", Recompute: "all", MicroBatch: 1, Slots: 1, GradSlots: 1},
			{Placement: "stream", MicroBatch: 1, Groups: 2}, {Placement: "stream", MicroBatch: 1, Groups: 2, GradHome: "device", Recompute: "all"},
			{Target: "cuda", Recompute: "all"}, {Target: "cuda", Placement: "stream", MicroBatch: 1, SaveInputs: "all"},
		} {
			t.Run(name+"/"+o.Target+o.Placement+o.Recompute, func(t *testing.T) {
				o.Path, o.Text = "m.mt", []byte(text)
				var diags diag.List
				r, err := Compile(context.Background(), o, &diags)
				if o.Groups > 1 && strings.Contains(name, "a step's") {
					if err == nil || !strings.Contains(err.Error(), "looks at a whole step") {
						t.Errorf("groups of a step that a router looks at as a whole: %v", err)
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				if len(r.Plan.Routers) == 0 {
					t.Error("the plan has no router")
				}
			})
		}
	}
}

// TestSharesOfMicroBatches: where an expert's share or capacity is of a micro-batch, it is at least one token
// of it, however large the step is.
func TestSharesOfMicroBatches(t *testing.T) {
	for router, fits := range map[string]bool{
		"expert_choice(0.04, pool = micro)": false, "threshold(0.04, capacity = 0.5)": false, "threshold(0.04, warmup = expert_choice(3, pool = micro))": false,
		"expert_choice(0.07, pool = micro)": true, "threshold(0.04)": true, "topk(1)": true,
	} {
		text := "model m(D = 12, V = 32) {\ninit normal(0.2)\nblock one(x) { return o: linear(x, D) }\n" +
			"block layer(x) { x += m: moe(x, experts = 4, expert = one, router = " + router + ") }\n" +
			"forward(tokens) {\nx = wte: embed(tokens, V, D)\nlayer(x)\nreturn head: linear(x, V)\n}\n}\n" +
			"train { seq = 16; batch = 64 tokens; lr = 1e-3; steps = 9 }\n"
		for _, rows := range []int64{1, 4} {
			var diags diag.List
			_, err := Compile(context.Background(), Options{Path: "m.mt", Text: []byte(text), MicroBatch: rows}, &diags)
			if want := fits || rows == 4; (err == nil) != want {
				t.Errorf("%s in micro-batches of %d rows: %v", router, rows, err)
			}
		}
	}
}

// TestRowsAreNoPartOfAModel: a run whose rows did not do goes on with more of them; other experts, cutoffs or
// biases are another model.
func TestRowsAreNoPartOfAModel(t *testing.T) {
	hash := func(moe string) string {
		text := "model m(D = 12, V = 32) {\ninit normal(0.2)\nblock one(x, b = false) { return o: linear(x, D, bias = b) }\n" +
			"block layer(x) { x += m: moe(x, " + moe + ") }\nforward(tokens) {\nx = wte: embed(tokens, V, D)\nlayer(x)\nreturn head: linear(x, V)\n}\n}\n" +
			"train { seq = 16; batch = 64 tokens; lr = 1e-3; steps = 9 }\n"
		var diags diag.List
		r, err := Compile(context.Background(), Options{Path: "m.mt", Text: []byte(text)}, &diags)
		if err != nil {
			t.Fatal(err)
		}
		return r.Plan.ModelHash
	}
	want := hash("experts = 4, expert = one, router = threshold(0.25)")
	if got := hash("experts = 4, expert = one, router = threshold(0.25), rows = 4"); got != want {
		t.Error("more rows make another model")
	}
	for _, other := range []string{"experts = 4, expert = one, router = threshold(0.3)", "experts = 4, expert = one(b = true), router = threshold(0.25)", "experts = 4, expert = one, router = topk(1)"} {
		if hash(other) == want {
			t.Errorf("%s is the same model", other)
		}
	}
}

// TestRouterConstantsAreNamed: a checkpoint says by its values which constant of a router is another.
func TestRouterConstantsAreNamed(t *testing.T) {
	values := func(t *testing.T, router string) map[string]string {
		text := "model m(D = 12, L = 2, V = 32) {\ninit normal(0.02)\nblock mlp(x) { return down: linear(up: linear(x, 8), D) }\n" +
			"block layer(x) { x += m: moe(x, experts = 4, expert = mlp, router = " + router + ") }\n" +
			"forward(tokens) { x = wte: embed(tokens, V, D)\nrepeat L { layer(x) }\nreturn head: linear(x, V) }\n}\n" +
			"train { seq = 16; batch = 64 tokens; lr = 1e-3; steps = 90 }\n"
		var diags diag.List
		r, err := Compile(context.Background(), Options{Path: "m.mt", Text: []byte(text)}, &diags)
		if err != nil {
			t.Fatal(err)
		}
		out := map[string]string{}
		for _, v := range r.Plan.Values {
			out[v.Name] = v.Text
		}
		return out
	}
	for _, c := range []struct{ a, b, name, there, here string }{
		{"threshold(0.25)", "threshold(0.5)", "rate", "0.25", "0.5"},
		{"threshold(0.25)", "threshold(0.25, ema = 0.9)", "ema", "0.999", "0.9"},
		{"threshold(0.25)", "threshold(0.25, warmup = causal(9))", "warmup", "none", "causal(9)"},
		{"threshold(0.25, warmup = expert_choice(9))", "threshold(0.25, warmup = expert_choice(8, pool = micro))", "warmup", "expert_choice(9, pool = step)", "expert_choice(8, pool = micro)"},
		{"threshold(0.25)", "threshold(0.25, capacity = 0.5)", "capacity", "none", "0.5"},
		{"threshold(0.25)", "expert_choice(0.25)", "router", "threshold", "expert_choice"},
		{"expert_choice(0.25)", "expert_choice(0.25, pool = micro)", "pool", "sequence", "micro"},
		{"topk(2)", "topk(1)", "k", "2", "1"},
		{"topk(2)", "topk(2, renorm)", "renorm", "false", "true"},
		{"topk(2)", "topk(2, scores = sigmoid)", "scores", "softmax", "sigmoid"},
		{"topk(2)", "topk(2, balance = aux(0.1))", "balance", "none", "aux(0.1, scope = micro)"},
		{"topk(2, balance = lossfree(0.01))", "topk(2, balance = lossfree(0.02))", "balance", "lossfree(0.01)", "lossfree(0.02)"},
		{"topk(2)", "topk(2, zloss = 0.001)", "zloss", "0", "0.001"},
		{"topk(2)", "topk(2, scale = 2.5)", "scale", "1", "2.5"},
	} {
		a, b := values(t, c.a), values(t, c.b)
		name := "layer[0].m." + c.name
		if a[name] != c.there || b[name] != c.here {
			t.Errorf("%s: %q and %q, want %q and %q", name, a[name], b[name], c.there, c.here)
		}
		if _, ok := a["layer[1].m."+c.name]; ok {
			t.Errorf("the equal router of the next layer is told too")
		}
	}
}
