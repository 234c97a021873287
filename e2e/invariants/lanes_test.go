package invariants

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/megatrain/mtc/compiler"
)

// withDelay makes a program whose device calls a delay before each command of a lane.
func withDelay(t *testing.T, delay string) func(files map[string][]byte) {
	return func(files map[string][]byte) {
		main := string(files["main.go"])
		slow := strings.Replace(main, "cpu.New()", "cpu.NewWith(cpu.Options{Delay: "+delay+"})", 1)
		slow = strings.Replace(slow, "import (", "import (\n\t\"time\"", 1)
		if strings.Count(slow, "time") < 2 || !strings.Contains(slow, delay) {
			t.Fatalf("main.go is not what this test expects:\n%s", main)
		}
		files["main.go"] = []byte(slow)
	}
}

// delayed are the plans that differ in what copies and updates they have.
var delayed = []compiler.Options{
	{MicroBatch: 4, Placement: "stream", Slots: 2, GradSlots: 2, Set: []string{"train.clip=1.0"}},
	{MicroBatch: 2, Placement: "stream", Recompute: "all", SaveInputs: "all", Set: []string{"train.clip=1.0"}},
	{MicroBatch: 2, Placement: "stream", SaveInputs: "1", Groups: 2, Set: []string{"train.clip=none"}},
	{MicroBatch: 2, Placement: "stream", SaveInputs: "1", GradHome: "device", HostSlots: 1, Set: []string{"train.clip=1.0"}},
	{MicroBatch: 4, Placement: "stream", GradPrecision: "bf16", GradHome: "2", Set: []string{"train.clip=1.0"}},
	{MicroBatch: 2, Placement: "stream", Groups: 2, Resident: "2", DeviceWeights: 1, Set: []string{"train.clip=1.0"}},
}

// TestDelaysChangeNothing: a streaming program whose lanes are held up at random, so that they
// meet in other orders, gives the same bits.
func TestDelaysChangeNothing(t *testing.T) {
	forEachFamily(t, func(t *testing.T, family string, args []string) {
		for i, o := range delayed {
			if i > 0 && family != "gpt2" {
				break // programs take their time to build, and plans differ more than families
			}
			want := train(t, program(t, family, o), out(t), args...)
			o.Path = filepath.Join("testdata", "models", family+".mt")
			binary, _ := build(t, o, withDelay(t, "cpu.Naps(time.Now().UnixNano(), 100*time.Microsecond)"))
			for range 2 {
				same(t, fmt.Sprintf("delayed %+v", o), train(t, binary, out(t), args...), want)
			}
		}
	})
}

// TestNoRaces builds programs with the race detector and trains, evaluates and generates with
// them. Between lanes the CPU device has no edges but the plan's waits (device/cpu), so a wait
// that is missing is found. It runs when this test itself is built with -race.
func TestNoRaces(t *testing.T) {
	data := corpus(t, 1500)
	for i, o := range []compiler.Options{
		{MicroBatch: 4, Placement: "stream", Slots: 2, GradSlots: 2},
		{MicroBatch: 2, Placement: "stream", Slots: 1, GradSlots: 1, Groups: 2, Recompute: "all"},
		{MicroBatch: 4, Placement: "stream", Slots: 3, GradSlots: 2, Set: []string{"train.clip=none"}},
		{MicroBatch: 2, Placement: "stream", SaveInputs: "all", Recompute: "all"},
		{MicroBatch: 4},
	} {
		family := families[i]
		t.Run(fmt.Sprintf("%s %s", family, o.Placement), func(t *testing.T) {
			o.Path = filepath.Join("testdata", "models", family+".mt")
			binary := buildRaced(t, o, withDelay(t, "cpu.Naps(1, 100*time.Microsecond)"))
			dir := out(t)
			run(t, binary, "train", "--data", data, "--holdout", "0.4", "--steps", "6", "--out", dir)
			run(t, binary, "generate", dir, "--prompt", "the ", "--tokens", "5")
		})
	}
}

// TestRacesAreFound: a program whose gradients are copied out without waiting is reported.
func TestRacesAreFound(t *testing.T) {
	binary := buildRaced(t, compiler.Options{Path: "testdata/models/llama.mt", MicroBatch: 4, Placement: "stream"}, func(files map[string][]byte) {
		lines := strings.Split(string(files["plan_gen.go"]), "\n")
		cut := 0
		for i, l := range lines {
			before, rest, ok := strings.Cut(l, "Waits: waits{")
			_, after, closed := strings.Cut(rest, "}}, ")
			if strings.Contains(l, "plan.Offload") && ok && closed {
				lines[i] = before + after
				cut++
			}
		}
		if cut == 0 {
			t.Fatal("plan_gen.go is not what this test expects")
		}
		files["plan_gen.go"] = []byte(strings.Join(lines, "\n"))
	})
	_, text := fails(t, binary, "train", "--data", corpus(t, 1500), "--steps", "6")
	if !strings.Contains(text, "DATA RACE") {
		t.Errorf("nothing was found:\n%s", text)
	}
}
