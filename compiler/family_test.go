package compiler

import (
	"strings"
	"testing"

	"github.com/megatrain/mtc/runtime/plan"
)

const ownLlama = `model mine(D = 32, F = 48) {
  init normal(0.02)
  block layer(x) {
    h = a: rmsnorm(x, 1e-5)
    q = linear(h, D)
    k = linear(h, 16)
    v = linear(h, 16)
    z = attention(rope(q, 8, 5e5), rope(k, 8, 5e5), v, heads = 4, kv = 2, causal)
    x += out: linear(z, D)
    h = b: rmsnorm(x, 1e-5)
    x += down: linear(silu(gate: linear(h, F)) * up: linear(h, F), D)
  }
  forward(tokens) {
    x = table: embed(tokens, 64, D)
    repeat 2 { layer(x) }
    return linear: linear(last: rmsnorm(x, 1e-5), 64, tie = table)
  }
}
train { seq = 8; batch = 4 rows; steps = 3; clip = 1.0 }
`

func planOf(t *testing.T, text string, o Options) *plan.Plan {
	t.Helper()
	o.Path, o.Text = "m.mt", []byte(text)
	return find(t, Compile, o).Plan
}

// A model is of a family when its graph is, whatever it calls things; the map comes from the
// family then. One op that differs says so.
func TestFamilyGoesByTheGraph(t *testing.T) {
	p := planOf(t, ownLlama, Options{})
	values := map[string]string{}
	for _, v := range p.Family.Values {
		values[v.Name] = v.Text
	}
	for name, want := range map[string]string{"D": "32", "KV": "2", "hd": "8", "theta": "500000", "eps": "1e-05", "tied": "true", "qkv_bias": "false", "window": "none"} {
		if p.Family.Name != "llama" || values[name] != want {
			t.Errorf("family %q, %s is %q instead of %q (%s)", p.Family.Name, name, values[name], want, p.Family.Why)
		}
	}
	names := map[string]string{}
	for _, f := range p.Foreign {
		names[f.Params[0]] = f.Names[0]
	}
	if names["layer[1].out.weight"] != "model.layers.1.self_attn.o_proj.weight" || names["table.weight"] != "model.embed_tokens.weight" {
		t.Errorf("the map is %v", names)
	}
	for what, change := range map[string][2]string{
		"another activation":      {"silu(", "relu("},
		"a norm of another eps":   {"b: rmsnorm(x, 1e-5)", "b: rmsnorm(x, 1e-6)"},
		"a cap on the logits":     {"return linear: linear(last: rmsnorm(x, 1e-5), 64, tie = table)", "return softcap(linear: linear(last: rmsnorm(x, 1e-5), 64, tie = table), 30.0)"},
		"rope on the values too":  {"rope(k, 8, 5e5), v,", "rope(k, 8, 5e5), rope(v, 8, 5e5),"},
		"a bias on one of three":  {"up: linear(h, F)", "up: linear(h, F, bias)"},
		"a window in the scores":  {"kv = 2, causal)", "kv = 2, causal, scale = 0.5)"},
		"theta of keys by itself": {"rope(k, 8, 5e5)", "rope(k, 8, 1e4)"},
	} {
		text := strings.Replace(ownLlama, change[0], change[1], 1)
		if text == ownLlama {
			t.Fatalf("%s changes nothing", what)
		}
		if p := planOf(t, text, Options{}); p.Family.Name != "" || p.Family.Why == "" {
			t.Errorf("%s: still %q, %q", what, p.Family.Name, p.Family.Why)
		}
	}
}
