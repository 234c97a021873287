package schedule

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/megatrain/mtc/runtime/plan"
	"github.com/megatrain/mtc/tools/cputime"
)

// cases are the toys and options that differ in how their lists are built.
func cases() map[string]struct {
	toy toy
	o   Options
} {
	type c = struct {
		toy toy
		o   Options
	}
	return map[string]c{
		"resident":                 {toy{layers: 3, micros: 2}, Options{}},
		"resident tied":            {toy{layers: 2, micros: 2, tied: true, position: true}, Options{}},
		"resident no clip":         {toy{layers: 3, micros: 2, noClip: true}, Options{}},
		"resident groups":          {toy{layers: 2, micros: 3, tied: true}, Options{Groups: 3}},
		"resident groups no clip":  {toy{layers: 2, micros: 3, noClip: true}, Options{Groups: 2}},
		"stream":                   {toy{layers: 5, micros: 2}, Options{Placement: Stream}},
		"stream one slot":          {toy{layers: 4, micros: 2}, Options{Placement: Stream, Slots: 1, GradSlots: 1}},
		"stream deep":              {toy{layers: 6, micros: 1, twoKinds: true}, Options{Placement: Stream, Slots: 3, GradSlots: 3}},
		"stream tied":              {toy{layers: 4, micros: 2, tied: true, shared: true}, Options{Placement: Stream}},
		"stream recompute":         {toy{layers: 4, micros: 2, recompute: true}, Options{Placement: Stream}},
		"stream glue":              {toy{layers: 4, micros: 2, glue: true}, Options{Placement: Stream}},
		"stream skip":              {toy{layers: 4, micros: 2, skip: true}, Options{Placement: Stream}},
		"stream groups":            {toy{layers: 5, micros: 5, tied: true}, Options{Placement: Stream, Groups: 2, HostSlots: 2}},
		"stream no clip":           {toy{layers: 5, micros: 2, noClip: true}, Options{Placement: Stream, HostSlots: 2}},
		"stream no clip tied":      {toy{layers: 3, micros: 2, noClip: true, tied: true}, Options{Placement: Stream, HostSlots: 1}},
		"stream no clip groups":    {toy{layers: 4, micros: 4, noClip: true, tied: true}, Options{Placement: Stream, Groups: 4}},
		"stream more slots":        {toy{layers: 2, micros: 2}, Options{Placement: Stream, Slots: 8, GradSlots: 8}},
		"keep embedding":           {toy{layers: 3, micros: 2}, Options{Placement: Stream, Keep: 1}},
		"keep two layers":          {toy{layers: 4, micros: 2, recompute: true}, Options{Placement: Stream, Keep: 3, Slots: 1, GradSlots: 1}},
		"keep tied":                {toy{layers: 4, micros: 2, tied: true, shared: true}, Options{Placement: Stream, Keep: 2}},
		"keep all but the head":    {toy{layers: 2, micros: 2}, Options{Placement: Stream, Keep: 3}},
		"keep all":                 {toy{layers: 2, micros: 2}, Options{Placement: Stream, Keep: 4}},
		"keep no clip":             {toy{layers: 5, micros: 2, noClip: true}, Options{Placement: Stream, Keep: 3, HostSlots: 2}},
		"keep no clip tied":        {toy{layers: 4, micros: 2, noClip: true, tied: true, shared: true}, Options{Placement: Stream, Keep: 3}},
		"bf16":                     {toy{layers: 3, micros: 2, half: true}, Options{Target: "cuda"}},
		"bf16 stream":              {toy{layers: 4, micros: 2, half: true, tied: true}, Options{Target: "cuda", Placement: Stream}},
		"bf16 keep no clip":        {toy{layers: 4, micros: 2, half: true, noClip: true}, Options{Target: "cuda", Placement: Stream, Keep: 2}},
		"save all":                 {toy{layers: 5, micros: 3, recompute: true}, Options{Placement: Stream, SaveInputs: All}},
		"save two":                 {toy{layers: 5, micros: 2}, Options{Placement: Stream, SaveInputs: 2, Keep: 2}},
		"save groups":              {toy{layers: 4, micros: 4, recompute: true, tied: true}, Options{Placement: Stream, SaveInputs: 3, Groups: 2}},
		"save glue no clip":        {toy{layers: 4, micros: 2, glue: true, noClip: true}, Options{Placement: Stream, SaveInputs: All}},
		"save skip":                {toy{layers: 4, micros: 2, skip: true, recompute: true}, Options{Placement: Stream, SaveInputs: All}},
		"save resident":            {toy{layers: 4, micros: 3, half: true}, Options{Target: "cuda", SaveInputs: All, Order: LayerMajor}},
		"save values":              {toy{layers: 4, micros: 3}, Options{Placement: Stream, SaveKept: All}},
		"save some values":         {toy{layers: 5, micros: 2, tied: true, noClip: true, half: true}, Options{Target: "cuda", Placement: Stream, SaveKept: 3, SaveInputs: 2, Keep: 2}},
		"save values groups":       {toy{layers: 3, micros: 3, glue: true, twoKinds: true}, Options{Placement: Stream, SaveKept: 2, SaveInputs: All, Groups: 2}},
		"save values resident":     {toy{layers: 3, micros: 2}, Options{SaveKept: All}},
		"groups keep":              {toy{layers: 4, micros: 4}, Options{Placement: Stream, Groups: 2, Keep: 3}},
		"groups keep tied":         {toy{layers: 4, micros: 3, tied: true, shared: true, half: true}, Options{Target: "cuda", Placement: Stream, Groups: 3, Keep: 2}},
		"groups keep no clip":      {toy{layers: 4, micros: 3, noClip: true}, Options{Placement: Stream, Groups: 2, Keep: 3}},
		"groups keep by name":      {toy{layers: 4, micros: 2, noClip: true, tied: true}, Options{Placement: Stream, Groups: 2, KeepNames: []string{"layer[1]", "layer[3]"}}},
		"named":                    {toy{layers: 4, micros: 2}, Options{Placement: Stream, KeepNames: []string{"head", "layer[2]"}}},
		"own weight slots":         {toy{layers: 5, micros: 2, recompute: true}, Options{Placement: Stream, Keep: 1, DeviceWeights: 2}},
		"all weight slots own":     {toy{layers: 3, micros: 3, noClip: true}, Options{Placement: Stream, DeviceWeights: All, Groups: 3}},
		"device grads":             {toy{layers: 6, micros: 2}, Options{Placement: Stream, DeviceGrads: All, HostSlots: 2, SaveInputs: 2}},
		"device grads of some":     {toy{layers: 6, micros: 2, tied: true, half: true}, Options{Target: "cuda", Placement: Stream, Keep: 2, DeviceGrads: 3}},
		"device grads groups":      {toy{layers: 4, micros: 4, tied: true}, Options{Placement: Stream, DeviceGrads: All, Groups: 2}},
		"device grads no clip":     {toy{layers: 5, micros: 4, noClip: true}, Options{Placement: Stream, DeviceGrads: All, Groups: 2, HostSlots: 2, Keep: 1}},
		"device grads some groups": {toy{layers: 5, micros: 3, shared: true}, Options{Placement: Stream, DeviceGrads: 3, Groups: 2, Keep: 1}},
		"half grads":               {toy{layers: 5, micros: 2}, Options{Placement: Stream, HalfGrads: true}},
		"half grads no clip":       {toy{layers: 5, micros: 2, noClip: true, tied: true, half: true}, Options{Target: "cuda", Placement: Stream, HalfGrads: true, Keep: 2, HostSlots: 2}},
		"half grads on device":     {toy{layers: 5, micros: 2, shared: true, half: true}, Options{Target: "cuda", Placement: Stream, HalfGrads: true, DeviceGrads: All, Keep: 1}},
		"half grads of some":       {toy{layers: 5, micros: 2}, Options{Placement: Stream, HalfGrads: true, DeviceGrads: 2, GradSlots: 1, SaveInputs: All}},
		"every second input":       {toy{layers: 5, micros: 3, recompute: true}, Options{Placement: Stream, InputEvery: 2}},
		"every third input saved":  {toy{layers: 6, micros: 2, recompute: true, noClip: true}, Options{Placement: Stream, InputEvery: 3, SaveInputs: All}},
		"adapters":                 {toy{layers: 4, micros: 2, adapters: true, tied: true}, Options{}},
		"adapters stream":          {toy{layers: 5, micros: 2, adapters: true, half: true}, Options{Target: "cuda", Placement: Stream}},
		"adapters no clip":         {toy{layers: 5, micros: 2, adapters: true, noClip: true, tied: true}, Options{Placement: Stream, HostSlots: 2, Slots: 1}},
		"adapters keep":            {toy{layers: 5, micros: 3, adapters: true, recompute: true, half: true}, Options{Target: "cuda", Placement: Stream, Keep: 7, SaveInputs: All, InputEvery: 2}},
		"adapters groups":          {toy{layers: 4, micros: 4, adapters: true, tied: true}, Options{Placement: Stream, Groups: 2, KeepNames: []string{"layer[1].lora", "layer[2]"}, DeviceWeights: 1}},
		"adapters, device grads":   {toy{layers: 4, micros: 2, adapters: true, half: true}, Options{Target: "cuda", Placement: Stream, DeviceGrads: 2, HalfGrads: true}},
		"every second, one device": {toy{layers: 5, micros: 4, recompute: true, tied: true}, Options{InputEvery: 2, Order: LayerMajor}},
		"every second, groups":     {toy{layers: 6, micros: 3, recompute: true, glue: true, twoKinds: true}, Options{Placement: Stream, InputEvery: 2, Groups: 2, Keep: 2, DeviceGrads: 2}},
		"every third, rounded":     {toy{layers: 5, micros: 2, recompute: true, half: true}, Options{Target: "cuda", Placement: Stream, InputEvery: 3, HalfGrads: true, Slots: 3, GradSlots: 3}},
		"no layers":                {toy{micros: 1}, Options{Placement: Stream}},
		"one layer no clip stream": {toy{layers: 1, micros: 1, noClip: true}, Options{Placement: Stream}},
	}
}

func mustBuild(t *testing.T, y toy, o Options) *plan.Plan {
	t.Helper()
	p, err := Build(y.program(), o)
	if err != nil {
		t.Fatalf("build %v %+v: %v", y, o, err)
	}
	return p
}

func TestEveryCaseVerifies(t *testing.T) {
	for name, c := range cases() {
		t.Run(name, func(t *testing.T) {
			p := mustBuild(t, c.toy, c.o)
			if err := Verify(p); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestRandomProgramsVerify(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	coin := func() bool { return r.IntN(2) == 0 }
	for i := range 400 {
		y := toy{
			layers: r.IntN(8), micros: 1 + r.IntN(6), tied: coin(), shared: coin(), twoKinds: coin(), glue: coin(),
			skip: coin(), recompute: coin(), position: coin(), noClip: coin(), half: coin(), saved: int64(r.IntN(5000)), width: 1 + r.Int64N(40),
		}
		o := Options{
			Placement: []string{Resident, Stream}[r.IntN(2)], Slots: 1 + r.Int64N(4), GradSlots: 1 + r.Int64N(4),
			HostSlots: 1 + r.Int64N(4), Groups: 1 + r.Int64N(int64(y.micros)),
		}
		if coin() {
			o.InputEvery = 1 + r.Int64N(3)
			o.Slots, o.GradSlots = max(o.Slots, o.InputEvery), max(o.GradSlots, o.InputEvery)
		}
		if coin() {
			o.SaveInputs = r.Int64N(9) - 1
		}
		if coin() {
			o.Keep = r.Int64N(int64(y.layers) + 3)
		}
		if coin() {
			o.DeviceWeights = r.Int64N(int64(y.layers)+2) - 1
		}
		if coin() {
			o.DeviceGrads = All
			if !y.noClip {
				o.DeviceGrads = r.Int64N(int64(y.layers) + 3)
			}
		}
		if coin() {
			o.Groups, o.HalfGrads = 1, coin()
		}
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			p := mustBuild(t, y, o)
			if err := Verify(p); err != nil {
				t.Errorf("%v %+v: %v", y, o, err)
			}
		})
	}
}

func TestLargeScheduleIsFast(t *testing.T) {
	y := toy{layers: 80, micros: 128, width: 64}
	var p *plan.Plan
	built := cputime.Of(func() { p = mustBuild(t, y, Options{Placement: Stream}) })
	verified := cputime.Of(func() {
		if err := Verify(p); err != nil {
			t.Fatal(err)
		}
	})
	t.Logf("%d tasks: built in %v, verified in %v", len(p.Tasks), built, verified)
	if verified > 15*time.Second {
		t.Errorf("verifying took %v", verified)
	}
}
