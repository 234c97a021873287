package compiler

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/megatrain/mtc/lang/diag"
	"github.com/megatrain/mtc/runtime/plan"
)

const loraText = `
model m(D = 16, L = 3, V = 32) {
  init normal(0.02)
  block attn(x) {
    h = n: layernorm(x)
    a = attention(q: linear(h, D, bias), k: linear(h, D), v: linear(h, D), heads = 2, causal)
    x += o: linear(a, D)
  }
  block layer(x) {
    attn(x)
    h = n: rmsnorm(x)
    x += down: linear(gelu(up: linear(h, 2 * D, bias)), D, bias)
  }
  forward(tokens) {
    x = wte: embed(tokens, V, D) + wpe: embed(position, 8, D)
    repeat L { layer(x) }
    return softcap(head: linear(norm: rmsnorm(x), V, bias), 30.0)
  }
}
train {
  seq   = 8
  batch = 4 rows
  eval  = every(10)
}
`

func compileLoRA(o Options, targets string) (*Result, *diag.List, error) {
	o.Path, o.Text = "m.mt", []byte(loraText)
	o.Set = append(o.Set, "train.lora=lora(rank = 2, alpha = 3, targets = "+targets+")")
	var l diag.List
	res, err := Compile(context.Background(), o, &l)
	return res, &l, err
}

// Adapters anywhere, one alone or many, make plans that the verifier passes, in every placement
// and order; and what learns is exactly what is named.
func TestAdaptersAnywhere(t *testing.T) {
	var all []string
	for l := range 3 {
		for _, n := range []string{"attn.q", "attn.k", "attn.v", "attn.o", "up", "down"} {
			all = append(all, fmt.Sprintf("layer[%d].%s", l, n))
		}
	}
	all = append(all, "head")
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range 60 {
		var names []string
		share := rng.Float64()
		for _, n := range all {
			if rng.Float64() < share*share {
				names = append(names, fmt.Sprintf("%q", n))
			}
		}
		if len(names) == 0 || i%6 == 0 {
			names = []string{fmt.Sprintf("%q", all[rng.IntN(len(all))])}
		}
		o := Options{MicroBatch: []int64{1, 2, 4}[rng.IntN(3)], Target: []string{"cpu", "cuda"}[rng.IntN(2)]}
		if rng.IntN(2) == 0 {
			o.Set = []string{"train.clip=1.0"}
		}
		if rng.IntN(3) > 0 {
			o.Placement = "stream"
			o.Resident = []string{"", "1", "3", "layer[1]"}[rng.IntN(4)]
			o.DeviceWeights = rng.Int64N(3)
			if o.Target == "cuda" && rng.IntN(3) == 0 {
				o.GradPrecision = "bf16"
			}
			o.SaveInputs = []string{"none", "all", "1"}[rng.IntN(3)]
			o.Slots, o.GradSlots = 1+rng.Int64N(3), 1+rng.Int64N(3)
		}
		if o.Recompute = []string{"none", "all"}[rng.IntN(2)]; o.Recompute == "all" && rng.IntN(2) == 0 {
			o.InputEvery, o.Slots, o.GradSlots = 2, 0, 0
		}
		if o.MicroBatch < 4 && o.GradPrecision == "" && rng.IntN(2) == 0 {
			o.Groups = 4 / o.MicroBatch
		}
		res, l, err := compileLoRA(o, "["+strings.Join(names, ", ")+"]")
		if err != nil {
			t.Fatalf("%v %+v: %v", names, o, l.Sorted()[0].Message)
		}
		p := res.Plan
		if len(p.LoRA.Adapters) != len(names) {
			t.Errorf("%v: %d adapters", names, len(p.LoRA.Adapters))
		}
		learns := map[string]bool{}
		for k := range p.Slabs {
			for _, q := range p.Slabs[k].Params {
				if learns[q.Name] = !p.Slabs[k].Frozen; learns[q.Name] != strings.Contains(q.Name, ".lora_") {
					t.Errorf("%v: %s learns: %t", names, q.Name, learns[q.Name])
				}
			}
		}
		for _, a := range p.LoRA.Adapters {
			if !learns[a.A] || !learns[a.B] || learns[a.Weight] {
				t.Errorf("%v: %+v is not what learns", names, a)
			}
		}
		// What stands before the first adapter has no backward.
		for _, task := range p.Tasks {
			if task.Func == plan.Backward && strings.HasPrefix(p.Units[task.Unit].Name, "embed") {
				t.Errorf("%v: the embedding has a backward", names)
			}
		}
	}
}

// What names mean: a label, the end of a path with an index or without, a pattern, all.
func TestTargetNames(t *testing.T) {
	for targets, want := range map[string]int{
		"q": 3, "attn.q": 0, `"attn.q"`: 3, `"layer.attn.q"`: 3, `"layer[1].attn.q"`: 1, `"layer[1].*"`: 6, `"*"`: 19, "all": 18,
		"head": 1, "[all, head]": 19, "[q, q, \"attn.q\"]": 3, `"*.attn.*"`: 12, `"attn"`: 0, `"layer[*].up"`: 3, `"l*r[2].d*n"`: 1, `"ttn.q"`: 0, "[]": 0,
		`"**q*"`: 3, "norm": 0, `""`: 0,
	} {
		res, l, err := compileLoRA(Options{}, targets)
		switch {
		case want == 0 && err == nil:
			t.Errorf("%s: %d adapters where none can be", targets, len(res.Plan.LoRA.Adapters))
		case want > 0 && err != nil:
			t.Errorf("%s: %s", targets, l.Sorted()[0].Message)
		case want > 0 && len(res.Plan.LoRA.Adapters) != want:
			t.Errorf("%s: %d adapters, not %d", targets, len(res.Plan.LoRA.Adapters), want)
		}
	}
}

// A checkpoint depends on where adapters are, on their rank and on alpha, and not on how the
// targets are written; one of a model without adapters is another.
func TestIdentityOfAdapters(t *testing.T) {
	hash := func(set ...string) string {
		t.Helper()
		var l diag.List
		res, err := Compile(context.Background(), Options{Path: "m.mt", Text: []byte(loraText), Set: set}, &l)
		if err != nil {
			t.Fatal(l.Sorted()[0].Message)
		}
		return res.Plan.ModelHash
	}
	a := hash("train.lora=lora(rank = 2, alpha = 3, targets = [q, v])")
	if b := hash(`train.lora=lora(2, 3.0, ["attn.v", "layer[*].attn.q"])`); a != b {
		t.Error("the same adapters, written in another way, are others")
	}
	for _, other := range []string{"lora(rank = 4, alpha = 6, targets = [q, v])", "lora(rank = 2, alpha = 4, targets = [q, v])", "lora(rank = 2, alpha = 3, targets = q)", "none"} {
		if hash("train.lora="+other) == a {
			t.Errorf("%s is the same model", other)
		}
	}
}
