package invariants

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/megatrain/mtc/compiler"
	"github.com/megatrain/mtc/compiler/memplan"
	"github.com/megatrain/mtc/runtime/checkpoint"
)

var llama = compiler.Options{MicroBatch: 4, Set: []string{"train.clip=1.0"}}

// start runs a training in the background and waits for its first lines of steps.
func start(t *testing.T, binary string, steps int, args ...string) (cmd *exec.Cmd, rest func() string) {
	t.Helper()
	cmd = exec.Command(binary, args...)
	cmd.Dir = t.TempDir()
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var errs bytes.Buffer
	cmd.Stderr = &errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	r := bufio.NewReader(pipe)
	for steps > 0 {
		line, err := r.ReadString('\n')
		if err != nil {
			t.Fatalf("it ended early: %v\n%s", err, &errs)
		}
		if strings.HasPrefix(line, "step ") {
			steps--
		}
	}
	return cmd, func() string {
		text, _ := io.ReadAll(r)
		return string(text) + errs.String()
	}
}

func exitCode(t *testing.T, cmd *exec.Cmd) int {
	t.Helper()
	err := cmd.Wait()
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		t.Fatalf("it ended with %v", err)
	}
	return exit.ExitCode()
}

// TestSignalsSave: SIGINT and SIGTERM end a run behind the step in hand with a checkpoint and
// their exit codes; resumed, it becomes the run that nobody interrupted, with every evaluation: the one
// that a signal broke off is made then.
func TestSignalsSave(t *testing.T) {
	binary := program(t, "llama", llama)
	data := corpus(t, 1500)
	for _, c := range []struct {
		signal syscall.Signal
		code   int
		eval   string
	}{{syscall.SIGINT, 130, "0"}, {syscall.SIGTERM, 143, "1"}} {
		dir := out(t)
		args := []string{"train", "--data", data, "--set", "train.lr=1e-3", "--steps", "1000000", "--eval-data", data, "--eval-every", c.eval, "--out"}
		cmd, rest := start(t, binary, 4, append(args, dir)...)
		if err := cmd.Process.Signal(c.signal); err != nil {
			t.Fatal(err)
		}
		text := rest()
		if code := exitCode(t, cmd); code != c.code {
			t.Fatalf("%v: exit code %d, want %d\n%s", c.signal, code, c.code, text)
		}
		ck, err := checkpoint.Latest(dir)
		if err != nil {
			t.Fatalf("%v: %v\n%s", c.signal, err, text)
		}
		if !says(text, "finishing the step") || !says(text, "--resume") || ck.State.Step < 4 {
			t.Errorf("%v: step %d, it said\n%s", c.signal, ck.State.Step, text)
		}
		steps := strconv.FormatInt(ck.State.Step+3, 10)
		run(t, binary, "train", "--resume", "--out", dir, "--steps", steps)
		whole := out(t)
		run(t, binary, append(args, whole, "--steps", steps)...)
		a, b := read(t, dir), read(t, whole)
		for name := range b.tensors {
			if !bytes.Equal(a.tensors[name], b.tensors[name]) {
				t.Errorf("%v: %s differs after resuming", c.signal, name)
			}
		}
		if strings.Join(a.lines, "\n") != strings.Join(b.lines, "\n") {
			t.Errorf("%v: metrics differ after resuming", c.signal)
		}
	}
}

// TestSecondSignalEndsAtOnce: it waits for nothing, though a step takes long.
func TestSecondSignalEndsAtOnce(t *testing.T) {
	o := llama
	o.Path = "testdata/models/llama.mt"
	binary, _ := build(t, o, withDelay(t, "func(device.Lane) { time.Sleep(60 * time.Millisecond) }"))
	dir := out(t)
	cmd, rest := start(t, binary, 1, "train", "--data", corpus(t, 1500), "--out", dir)
	for range 2 {
		time.Sleep(200 * time.Millisecond) // into the second step, which takes over six seconds
		if err := cmd.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
	}
	text := rest()
	if code := exitCode(t, cmd); code != 130 {
		t.Errorf("exit code %d\n%s", code, text)
	}
	if all, err := checkpoint.List(dir); err != nil || len(all) > 0 {
		t.Errorf("it saved %v, %v", all, err)
	}
	if says(text, "step ") && says(text, "loss") {
		t.Errorf("it finished its step:\n%s", text)
	}
}

// TestFailures: each ends with its exit code, says what is wrong and what to do, and leaves
// what was there.
func TestFailures(t *testing.T) {
	binary := program(t, "llama", llama)
	other := program(t, "qwen", compiler.Options{MicroBatch: 4, Set: []string{"train.clip=1.0"}})
	data := corpus(t, 1500)
	good := out(t)
	run(t, binary, "train", "--data", data, "--steps", "2", "--out", good)
	damaged := out(t)
	run(t, binary, "train", "--data", data, "--steps", "2", "--save-every", "1", "--out", damaged)
	weights := filepath.Join(damaged, "step-000002", "weights.safetensors")
	info, err := os.Stat(weights)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(weights, info.Size()-100); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "file")
	writeFile(t, file, []byte("too little to train on"))
	fresh := out(t)

	for _, c := range []struct {
		name   string
		binary string
		args   []string
		code   int
		want   []string
	}{
		{"no data", binary, []string{"train", "--out", fresh}, 2, []string{"there is no data", "--data PATH"}},
		{"no such data", binary, []string{"--data", "nowhere/*.txt", "--out", fresh}, 1, []string{"MT0601", "nowhere"}},
		{"too little data", binary, []string{"--data", file, "--out", fresh}, 1, []string{"MT0607", "23 tokens", "144"}},
		{"folder in use", binary, []string{"--data", data, "--out", good}, 1, []string{"MT0626", "--resume"}},
		{"folder below a file", binary, []string{"--data", data, "--out", filepath.Join(file, "run")}, 1, []string{"MT06", "--out"}},
		{"metrics below a file", binary, []string{"--data", data, "--out", out(t), "--metrics", filepath.Join(file, "m")}, 1, []string{"MT0627", "--metrics"}},
		{"nothing to resume", binary, []string{"--data", data, "--resume", "--out", fresh}, 1, []string{"MT0620"}},
		{"no such step", binary, []string{"--data", data, "--resume=7", "--out", good}, 1, []string{"MT0620", "step-000002"}},
		{"done already", binary, []string{"--resume", "--out", good}, 1, []string{"2 steps of 2", "--steps N"}},
		{"another model", other, []string{"--data", data, "--resume", "--steps", "5", "--out", good}, 1, []string{"MT0622", "model llama", "is qwen"}},
		{"other data", binary, []string{"--resume", "--steps", "5", "--set", `train.data="` + file + `"`, "--out", good}, 1, []string{"MT06"}},
		{"damaged", binary, []string{"--resume", "--steps", "5", "--out", damaged}, 1, []string{"MT0621", "weights.safetensors", "step-000001"}},
		{"bad flag", binary, []string{"--data", data, "--step", "5"}, 2, []string{"did you mean `--steps`?"}},
		{"bad command", binary, []string{"trian"}, 2, []string{"did you mean `train`?"}},
		{"schedule", binary, []string{"--data", data, "--set", "D=64"}, 2, []string{"mtc run", "D=64"}},
		{"no steps", binary, []string{"--data", data, "--steps", "0"}, 2, []string{"--steps", "at least 1"}},
		{"divergence", binary, []string{"--data", data, "--set", "train.lr=1e38", "--steps", "40", "--out", out(t)}, 1, []string{"the last 10 steps", "learning rate"}},
		{"no checkpoint", binary, []string{"generate", fresh, "--prompt", "x"}, 1, []string{"MT0620"}},
		{"long prompt", binary, []string{"generate", good, "--stop-at-seq", "--prompt", strings.Repeat("x", 20)}, 2, []string{"seq = 16", "shorten it by 6"}},
		{"other model's weights", other, []string{"generate", good, "--prompt", "x"}, 1, []string{"MT0622"}},
	} {
		code, text := fails(t, c.binary, c.args...)
		if code != c.code {
			t.Errorf("%s: exit code %d, want %d\n%s", c.name, code, c.code, text)
		}
		for _, w := range c.want {
			if !says(text, w) {
				t.Errorf("%s: no %q in\n%s", c.name, w, text)
			}
		}
	}
	if _, err := os.Stat(fresh); err == nil {
		t.Error("a run that could not start left a folder")
	}
	// What was there still serves.
	run(t, binary, "train", "--resume", "--steps", "3", "--out", good)
	run(t, binary, "train", "--resume=1", "--steps", "3", "--data", data, "--out", out(t), "--resume="+filepath.Join(damaged, "step-000001"))
}

// TestTooLittleMemory: a plan larger than the machine is refused before it takes anything.
func TestTooLittleMemory(t *testing.T) {
	binary := program(t, "llama", compiler.Options{MicroBatch: 8 << 20, Set: []string{"train.batch=8388608 rows"}})
	file := filepath.Join(t.TempDir(), "sparse")
	writeFile(t, file, nil)
	if err := os.Truncate(file, 1<<28); err != nil {
		t.Fatal(err)
	}
	code, text := fails(t, binary, "train", "--data", file)
	if code != 3 || !says(text, "MT0410") || !says(text, "645.5 GiB of memory (643.5 GiB device") || !says(text, "micro-batch") {
		t.Errorf("exit code %d\n%s", code, text)
	}
}

// TestPeakMemoryIsWithinPlan: the resident set of a training process stays below what the plan
// and the process of its size are said to take, within 5 %.
func TestPeakMemoryIsWithinPlan(t *testing.T) {
	data := corpus(t, 60000)
	for _, placement := range []string{"resident", "stream"} {
		o := compiler.Options{Path: "testdata/models/llama.mt", Placement: placement, MicroBatch: 4,
			Set: []string{"D=256", "F=1024", "L=8", "train.seq=128"}}
		binary, res := build(t, o, nil)
		dev, host := memplan.Peak(res.Plan)
		said := dev + host + memplan.RuntimeBytes(res.Plan)
		cmd := exec.Command(binary, "train", "--data", data, "--steps", "2", "--out", out(t))
		if text, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage)
		if !ok {
			t.Skip("the system does not tell the peak")
		}
		peak := usage.Maxrss << 10
		t.Logf("%s: peak %.1f MB, said %.1f MB", placement, float64(peak)/1e6, float64(said)/1e6)
		if float64(peak) > 1.05*float64(said) || float64(peak) < 0.5*float64(said) {
			t.Errorf("%s: the process took %d bytes, said were %d", placement, peak, said)
		}
	}
}
