package compiler

import (
	"strings"
	"testing"
)

const identityModel = `model m(D = 16, L = 2, V = 64, eps = 1e-5) {
  init normal(0.1)
  block layer(x) {
    h = norm: rmsnorm(x, eps)
    a = attention(rope(q: linear(h, D), 8), rope(k: linear(h, D), 8), v: linear(h, D), heads = 2, causal)
    x += down: linear(a, D)
  }
  forward(tokens) {
    x = wte: embed(tokens, V, D)
    repeat L { layer(x) }
    return head: linear(softcap(x, 15.0), V)
  }
}
train {
  seq = 8
  batch = 4 rows
  steps = 10
  lr = 1e-3
  clip = 1.0
}
`

// hashes compiles a text and returns the hash of its build and that of its model.
func hashes(t *testing.T, text string, o Options) (build, model string) {
	t.Helper()
	o.Path, o.Text = "m.mt", []byte(text)
	p := find(t, Compile, o).Plan
	return p.Hash, p.ModelHash
}

// TestModelHash: what trains or places a model leaves its hash alone, what computes something
// else changes it.
func TestModelHash(t *testing.T) {
	build, model := hashes(t, identityModel, Options{})
	for _, c := range []struct {
		name, old, new string
		o              Options
		same           bool
	}{
		{"steps", "steps = 10", "steps = 20", Options{}, true},
		{"lr", "lr = 1e-3", "lr = cosine(peak = 1e-2, warmup = 3)", Options{}, true},
		{"clip off", "clip = 1.0", "clip = none", Options{}, true},
		{"batch", "4 rows", "8 rows", Options{}, true},
		{"precision", "clip = 1.0", "clip = 1.0; precision = f32", Options{}, true},
		{"init", "normal(0.1)", "normal(0.2)", Options{}, true},
		{"a comment", "train {", "// as before\ntrain {", Options{}, true},
		{"a variable", "h = norm: rmsnorm(x, eps)\n", "n = norm: rmsnorm(x, eps); h = n\n", Options{}, true},
		{"the model's name", "model m(", "model other(", Options{}, true},
		{"a float written as an int", "15.0", "15", Options{}, true},
		{"a parameter nothing reads", "eps = 1e-5", "eps = 1e-5, unused = 3", Options{}, true},
		{"placement", "", "", Options{Placement: "stream", Slots: 1}, true},
		{"micro-batch", "", "", Options{MicroBatch: 2, Groups: 2}, true},
		{"recompute", "", "", Options{Recompute: "all"}, true},
		{"target", "", "", Options{Target: "cuda"}, true},

		{"seq", "seq = 8", "seq = 16", Options{}, false},
		{"width", "D = 16", "D = 32", Options{}, false},
		{"depth", "L = 2", "L = 3", Options{}, false},
		{"a constant", "eps = 1e-5", "eps = 1e-6", Options{}, false},
		{"heads", "heads = 2", "heads = 4", Options{}, false},
		{"causal", "heads = 2, causal", "heads = 2, causal, window = 4", Options{}, false},
		{"an op", "softcap(x, 15.0)", "x", Options{}, false},
		{"order of operands", "rope(q: linear(h, D), 8), rope(k: linear(h, D), 8)", "rope(k: linear(h, D), 8), rope(q: linear(h, D), 8)", Options{}, false},
		{"a name", "down: linear", "out: linear", Options{}, false},
		{"a tie", "softcap(x, 15.0), V", "softcap(x, 15.0), V, tie = wte", Options{}, false},
	} {
		text := strings.ReplaceAll(identityModel, c.old, c.new)
		if c.old == "" {
			text = identityModel
		} else if text == identityModel {
			t.Fatalf("%s: nothing changed", c.name)
		}
		b, m := hashes(t, text, c.o)
		if (m == model) != c.same {
			t.Errorf("%s: model hash %s, was %s", c.name, m, model)
		}
		if b == build {
			t.Errorf("%s: the build hash stayed", c.name)
		}
	}
}

// TestIdentityShowsTheGraph: the text is what a person compares.
func TestIdentityShowsTheGraph(t *testing.T) {
	got := find(t, Compile, Options{Path: "m.mt", Text: []byte(identityModel), DumpAfter: "identity"}).Dump
	for _, want := range []string{
		"seq 8\n", "param layer[1].q.weight 16 16\n", "%0 = embed ids=tokens rows=64 dim=16 wte.weight\n", "eps=1e-05", " layer[0].down.weight\n", "\nlogits %",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	if strings.Contains(got, "init") {
		t.Errorf("it holds how weights start:\n%s", got)
	}
}
