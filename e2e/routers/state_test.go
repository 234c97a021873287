package routers

import (
	"fmt"
	"math"
	"slices"
	"testing"
)

// TestCutoffsDoNotDependOnMicroBatches: of the same logits every cut of a step makes the same
// cutoffs, bit for bit. On a GPU a product of other size may round otherwise, which moves a logit
// into the next bucket at most; its first router is the same still, as what it reads is made row
// by row.
func TestCutoffsDoNotDependOnMicroBatches(t *testing.T) {
	onEach(t, func(t *testing.T, precision string) {
		in := drawn(t, "still", 4, 6)
		whole := try(t, "still", precision, in)
		for _, name := range []string{"still-4", "still-2", "still-1", "still-groups", "still-free"} {
			got := try(t, name, precision, in)
			for _, r := range whole.routers() {
				if len(precisions()) == 1 {
					if !slices.Equal(got.f32("threshold."+r), whole.f32("threshold."+r)) || !slices.Equal(got.f64("count."+r), whole.f64("count."+r)) {
						t.Errorf("%s: %s has other cutoffs or counts", name, r)
					}
					continue
				}
				limit := 0.03
				if precision == "bf16" {
					limit = 0.06
				}
				most(t, name+", cutoffs of "+r, got.f32("threshold."+r), whole.f32("threshold."+r), limit)
			}
		}
	})
}

// TestStillLogitsMeetTheRate: with weights that stay as they are each expert comes to its share.
func TestStillLogitsMeetTheRate(t *testing.T) {
	onEach(t, func(t *testing.T, precision string) {
		const steps = 200
		in := drawn(t, "still-long", steps, 7)
		got := try(t, "still-long", precision, in)
		got.finite()
		for _, r := range got.routers() {
			count := got.f64("count." + r)
			usage := make([]float64, 6)
			for i, c := range count[len(count)/4:] {
				usage[i%6] += c / (steps * 3 / 4 * rows * seq)
			}
			// 128 tokens a step, 150 steps: a deviation of 0.003, and what the average lags behind.
			most(t, "usage of "+r, usage, slices.Repeat([]float64{0.25}, 6), 0.02)
		}
	})
}

// TestPushedCutoffComesBack: an expert whose cutoff was pushed far up gets nothing at first, and
// its share again within the time that the average takes.
func TestPushedCutoffComesBack(t *testing.T) {
	onEach(t, func(t *testing.T, precision string) {
		const steps, push = 60, 20.0
		in := drawn(t, "still-long", steps, 8)
		settled := try(t, "still-long", precision, in)
		for _, r := range settled.routers() {
			v := settled.f32("threshold." + r)
			for e := range v {
				in.cutoffs[r] = append(in.cutoffs[r], float32(v[e]))
			}
			in.cutoffs[r][2] += push
		}
		got := try(t, "still-long", precision, in)
		for _, r := range got.routers() {
			count := got.f64("count." + r)
			if count[2] != 0 {
				t.Errorf("%s: the expert with a cutoff far above all logits has %v tokens", r, count[2])
			}
			// The average forgets with 0.8 a step: the rest of the push is below 0.1 after 24 steps.
			sum := 0.0
			for s := steps / 2; s < steps; s++ {
				sum += count[6*s+2] / (steps / 2 * rows * seq)
			}
			if math.Abs(sum-0.25) > 0.04 {
				t.Errorf("%s: usage %.3f after %d steps", r, sum, steps/2)
			}
		}
	})
}

// TestLayerWithoutTokens: no token passes any cutoff of any layer. The step is finite, the experts'
// weights have gradients of 0, and everything else goes on.
func TestLayerWithoutTokens(t *testing.T) {
	onEach(t, func(t *testing.T, precision string) {
		in := drawn(t, "threshold", 3, 9)
		for _, r := range []string{"layer[1].moe", "layer[2].moe"} {
			in.cutoffs[r] = slices.Repeat([]float32{1e4}, 6)
		}
		got := try(t, "threshold", precision, in)
		got.finite()
		for name, init := range in.weights {
			zero := !slices.ContainsFunc(got.f32("grad."+name), func(x float64) bool { return x != 0 })
			routed := in.shapes[name][0] == 6 || isExpert(name)
			if zero != routed {
				t.Errorf("the gradient of %s is 0: %v", name, zero)
			}
			if routed {
				continue
			}
			after := got.f32("final." + name)
			if !slices.ContainsFunc(after, func(x float64) bool { return math.IsNaN(x) }) && math.Abs(after[0]-float64(init[0])) == 0 && math.Abs(after[1]-float64(init[1])) == 0 {
				t.Errorf("%s did not move", name)
			}
		}
		if c := got.f64("count.layer[1].moe"); slices.Max(c[:6]) != 0 {
			t.Errorf("tokens passed: %v", c[:6])
		}
	})
}

func isExpert(name string) bool {
	var layer, e int
	_, err := fmt.Sscanf(name, "layer[%d].moe.expert[%d]", &layer, &e)
	return err == nil
}

// TestCutoffsFarTooLow: every token passes every expert. Rows stay within the plan's, what is beyond
// is dropped and counted, and the run goes on and comes back to its rate.
func TestCutoffsFarTooLow(t *testing.T) {
	onEach(t, func(t *testing.T, precision string) {
		const steps = 60
		in := drawn(t, "still-long", steps, 10)
		for _, r := range []string{"layer[1].moe", "layer[2].moe"} {
			in.cutoffs[r] = slices.Repeat([]float32{-20}, 6)
		}
		got := try(t, "still-long", precision, in)
		got.finite()
		// 1.5 experts a token, so memory is made for 3 of 6.
		const slots = 3
		for _, r := range got.routers() {
			count, dropped := got.f64("count."+r), got.f64("dropped."+r)
			pairs := 0.0
			for _, c := range count[:6] {
				pairs += c
			}
			if pairs != slots*rows*seq || dropped[0] != (6-slots)*rows*seq {
				t.Errorf("%s: %v pairs and %v dropped in a step of %d tokens", r, pairs, dropped[0], rows*seq)
			}
			if dropped[steps-1] != 0 || math.Abs(count[6*(steps-1)]/(rows*seq)-0.25) > 0.15 {
				t.Errorf("%s: %v dropped in the last step, expert 0 has %v", r, dropped[steps-1], count[6*(steps-1)])
			}
		}
	})
}

// TestPaddingOnly: a step in which no token counts moves no router and no weight. A row, and a whole
// micro-batch, in which none does has no part in counts and loss, whatever it holds.
func TestPaddingOnly(t *testing.T) {
	onEach(t, func(t *testing.T, precision string) {
		for _, kind := range append([]string{"threshold-2", "choice-1", "topk-1"}, kinds...) {
			in := drawn(t, kind, 2, 11)
			in.targets = slices.Repeat([]int32{-1}, 2*rows*seq)
			got := try(t, kind, precision, in)
			for _, r := range got.routers() {
				if c := got.f64("count." + r); slices.Max(c) != 0 {
					t.Errorf("%s: padding counts for %s: %v", kind, r, c)
				}
			}
			// One row of padding among others.
			for i := range in.targets {
				in.targets[i] = int32(i % vocab)
				if i/seq%rows == 3 {
					in.targets[i] = -1
				}
			}
			got = try(t, kind, precision, in)
			got.finite()
			for i := range in.tokens { // what it holds changes no count and no cutoff
				if i/(seq+1)%rows == 3 {
					in.tokens[i] = (in.tokens[i] + 50) % vocab
				}
			}
			other := try(t, kind, precision, in)
			if !slices.Equal(got.f64("loss"), other.f64("loss")) {
				t.Errorf("%s: padding changes the loss: %v and %v", kind, got.f64("loss"), other.f64("loss"))
			}
			for _, r := range got.routers() {
				if !slices.Equal(got.f64("count."+r), other.f64("count."+r)) {
					t.Errorf("%s: padding changes counts of %s", kind, r)
				}
			}
		}
	})
}

// TestMadeAgainIsNotCountedAgain: where a layer's input is made again from one before it, and all of a
// layer in backward, routers count and move as if nothing were.
func TestMadeAgainIsNotCountedAgain(t *testing.T) {
	onEach(t, func(t *testing.T, precision string) {
		for again, plain := range map[string]string{"threshold-again": "threshold-2", "choice-again": "choice-1", "topk-again": "topk-1"} {
			in := drawn(t, plain, 3, 15)
			want, got := try(t, plain, precision, in), try(t, again, precision, in)
			for _, r := range want.routers() {
				for _, what := range []string{"count.", "pairs.", "threshold.", "bias."} {
					if !slices.Equal(got.f32(what+r), want.f32(what+r)) {
						t.Errorf("%s: %s%s is %v, and %v where nothing is made again", again, what, r, got.f32(what+r), want.f32(what+r))
					}
				}
			}
			if !slices.Equal(got.f64("added"), want.f64("added")) {
				t.Errorf("%s: routers add %v to the loss, and %v where nothing is made again", again, got.f64("added"), want.f64("added"))
			}
		}
	})
}
