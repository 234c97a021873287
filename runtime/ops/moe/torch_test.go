package moe_test

import (
	"encoding/json"
	"math"
	"os"
	"testing"

	"github.com/megatrain/mtc/runtime/ops/moe"
	"github.com/megatrain/mtc/runtime/plan"
)

// fixture is what tools/fixtures/moe.py writes.
type fixture struct {
	Batch, Seq, D, H, Experts int
	Cases                     []fixtureCase
}

type fixtureCase struct {
	Name   string
	Router struct {
		Kind, Pool, Balance          string
		K, Slots, Choice             int
		Sigmoid, Renorm              bool
		Rate, Scale, Alpha, ZLoss, U float32
		Capacity                     *float32
	}
	State struct {
		Threshold, Bias []float64
		Updates         float64
	}
	Targets                           []int32
	X, DY, Weight, Up, Down           []float64
	Token, Expert                     []int32
	Gates, Y, DX, DWeight, DUp, DDown []float64
	Count, Added                      []float64
	After                             struct{ Threshold, Bias []float64 }
}

// TestRoutersAgainstPyTorch runs a layer with each router: which pairs, their gates, the result,
// every gradient, and the state after the step.
func TestRoutersAgainstPyTorch(t *testing.T) {
	text, err := os.ReadFile("testdata/torch.json")
	if err != nil {
		t.Fatal(err)
	}
	var f fixture
	if err := json.Unmarshal(text, &f); err != nil {
		t.Fatal(err)
	}
	for _, c := range f.Cases {
		t.Run(c.Name, func(t *testing.T) { f.run(t, &c) })
	}
}

func (f *fixture) run(t *testing.T, c *fixtureCase) {
	if len(c.Added) != 2 || len(c.Y) != f.Batch*f.Seq*f.D || len(c.DUp) != f.Experts*f.D*f.H || len(c.After.Bias) != f.Experts {
		t.Fatal("the fixture is not whole")
	}
	l := newLayer(t, c.args(f.Experts), f.Batch, f.Seq, f.D, f.H)
	n := f.Batch * f.Seq
	k := l.tokens(n)
	l.set(k.x, c.X)
	l.set(k.dy, c.DY)
	l.set(l.weight, c.Weight)
	l.set(l.up, c.Up)
	l.set(l.down, c.Down)
	copy(view[int32](l, k.targets, n), c.Targets)
	s := l.parts()
	for i := range f.Experts {
		l.part(s.Threshold)[i] = float32(c.State.Threshold[i])
		l.part(s.Bias)[i] = float32(c.State.Bias[i])
	}
	view[float64](l, l.state, moe.Controls)[moe.ControlUpdates] = c.State.Updates
	counted := 0.0
	for _, x := range c.Targets {
		if x >= 0 {
			counted++
		}
	}
	l.scalar(plan.ScalarRoute, moe.RouteTrain)
	l.scalar(plan.ScalarInvTokens, 1/counted)

	l.logitsOf(k)
	if l.r.Observed {
		l.observe(k)
	}
	l.route(k)
	l.run(k)
	l.backward(k, false)
	l.sync()

	r := moe.RoutingOf(int64(n), int64(f.Experts), int64(l.r.Slots))
	w := view[int32](l, k.routing, int(r.Words))
	if rows := int(w[f.Experts]); rows != len(c.Token) {
		t.Fatalf("%d pairs, want %d", rows, len(c.Token))
	}
	for i := range c.Token {
		if w[r.Token+int64(i)] != c.Token[i] || w[r.Expert+int64(i)] != c.Expert[i] {
			t.Fatalf("row %d is token %d of expert %d, want token %d of expert %d", i, w[r.Token+int64(i)], w[r.Expert+int64(i)], c.Token[i], c.Expert[i])
		}
	}
	near := func(what string, got []float32, want []float64) {
		t.Helper()
		for i, x := range want {
			if d := math.Abs(float64(got[i]) - x); !(d <= 2e-5*(1+math.Abs(x))) {
				t.Errorf("%s[%d] = %v, want %v", what, i, got[i], x)
				return
			}
		}
	}
	near("gates", l.f32(k.gates, len(c.Gates)), c.Gates)
	near("y", l.f32(k.y, len(c.Y)), c.Y)
	near("d.x", l.f32(k.dx, len(c.DX)), c.DX)
	near("d.weight", l.f32(l.dweight, len(c.DWeight)), c.DWeight)
	near("d.up", l.f32(l.dup, len(c.DUp)), c.DUp)
	near("d.down", l.f32(l.ddown, len(c.DDown)), c.DDown)

	// The average is all of the step's quantile: ema is 0.
	l.advance()
	l.sync()
	rep := l.report()
	near("the losses", []float32{float32(rep.Balance), float32(rep.Z)}, c.Added)
	for e, x := range c.Count {
		if rep.Count[e] != x {
			t.Errorf("expert %d was counted %v times, want %v", e, rep.Count[e], x)
		}
	}
	for e, x := range c.After.Threshold {
		b := moe.Bucket(float32(x))
		if got := float64(l.part(s.Threshold)[e]); got < moe.Edge(b) || got > moe.Edge(b+1) {
			t.Errorf("expert %d: cutoff %v after the step is not in the bucket of the exact quantile %v", e, got, x)
		}
	}
	if c.Router.Balance == "lossfree" {
		near("bias", l.part(s.Bias), c.After.Bias)
	}
	if c.Router.Balance == "quantile" {
		for e, x := range c.After.Bias {
			if got := float64(l.part(s.Bias)[e]); math.Abs(got-x) > 2.0/64 {
				t.Errorf("expert %d: bias %v after the step, with exact quantiles it is %v", e, got, x)
			}
		}
	}
}

// args are the constants of a case's router.
func (c *fixtureCase) args(experts int) moe.SelectArgs {
	r := &c.Router
	a := moe.SelectArgs{
		Experts: experts, Slots: r.Slots, K: r.K, Sigmoid: r.Sigmoid, Renorm: r.Renorm, Choice: r.Choice,
		Rate: r.Rate, Capacity: -1, Scale: 1, Alpha: r.Alpha, ZLoss: r.ZLoss, U: r.U,
		Kind: map[string]int{"cutoff": moe.Cutoff, "topk": moe.TopK}[r.Kind],
		Pool: map[string]int{"sequence": moe.Sequence, "micro": moe.Micro, "step": moe.Step}[r.Pool], Observed: r.Pool == "step",
		Balance: map[string]int{"aux_step": moe.AuxStep, "aux_micro": moe.AuxMicro, "lossfree": moe.LossFree, "quantile": moe.QuantileTop}[r.Balance],
	}
	if r.Scale != 0 {
		a.Scale = r.Scale
	}
	if r.Capacity != nil {
		a.Capacity = *r.Capacity
	}
	return a
}
