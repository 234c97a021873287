//go:build unix

package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/megatrain/mtc/runtime/checkpoint"
)

// workFolder is a fresh folder, with spaces in every name, that holds a model and its data, and
// a command mtc: this test's executable acts as one when it is called so.
type workFolder struct {
	t        *testing.T
	dir, mtc string
}

// slowTrain makes a step take seconds; quickTrain, no time.
const (
	quickTrain = "seq = 8; batch = 2 rows"
	slowTrain  = "seq = 128; batch = 32768 rows"
)

func newWorkFolder(t *testing.T) *workFolder {
	t.Helper()
	if signal.Ignored(syscall.SIGHUP) { // as under nohup; what is started here is to hear of it
		signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	}
	root := filepath.Join(t.TempDir(), "a folder")
	bin := filepath.Join(t.TempDir(), "mtc")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(self, bin); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"my models", "some text", "else where"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	w := &workFolder{t, root, bin}
	for _, name := range []string{"a b.txt", "c d.txt"} {
		w.write(filepath.Join("some text", name), strings.Repeat("the slab leaves the host and comes back. ", 50))
	}
	w.model("tiny one.mt", quickTrain)
	return w
}

func (w *workFolder) write(name, text string) {
	w.t.Helper()
	if err := os.WriteFile(filepath.Join(w.dir, name), []byte(text), 0o666); err != nil {
		w.t.Fatal(err)
	}
}

func (w *workFolder) model(name, train string) {
	w.t.Helper()
	w.write(filepath.Join("my models", name), `model tiny(D = 16, V = 128) {
  init normal(0.1)
  block layer(x) { x += down: linear(relu(up: linear(x, D)), D) }
  forward(tokens) {
    x = wte: embed(tokens, V, D)
    layer(x)
    return head: linear(rmsnorm(x, weight = false), V, tie = wte)
  }
}
train {
  data = "../some text"
  `+train+`
  clip = 1.0
}
`)
}

// command is mtc with arguments in a folder of the work folder.
func (w *workFolder) command(dir string, args ...string) *exec.Cmd {
	cmd := exec.Command(w.mtc, args...)
	cmd.Dir = filepath.Join(w.dir, dir)
	return cmd
}

// call runs mtc to its end and returns its exit code and what it printed.
func (w *workFolder) call(dir string, args ...string) (code int, out, errs string) {
	w.t.Helper()
	var o, e bytes.Buffer
	cmd := w.command(dir, args...)
	cmd.Stdout, cmd.Stderr = &o, &e
	return exitCodeOf(w.t, cmd.Run()), o.String(), e.String()
}

func exitCodeOf(t *testing.T, err error) int {
	t.Helper()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return exit.ExitCode() // -1: ended by a signal
	}
	t.Fatal(err)
	return 0
}

// must is call where anything but exit 0 ends the test.
func (w *workFolder) must(dir string, args ...string) (out, errs string) {
	w.t.Helper()
	code, out, errs := w.call(dir, args...)
	if code != 0 {
		w.t.Fatalf("mtc %q: exit %d\n%s%s", args, code, out, errs)
	}
	return out, errs
}

// steps lists the checkpoints of a run folder.
func (w *workFolder) steps(dir string) (steps []int64) {
	w.t.Helper()
	all, err := checkpoint.List(filepath.Join(w.dir, dir))
	if err != nil {
		w.t.Fatal(err)
	}
	for _, c := range all {
		steps = append(steps, c.Step)
	}
	return steps
}

// started is a run in the background.
type started struct {
	t    *testing.T
	cmd  *exec.Cmd
	out  *bufio.Reader
	errs bytes.Buffer
}

// start begins a run and waits for a line that begins so.
func (w *workFolder) start(until, dir string, args ...string) *started {
	w.t.Helper()
	s := &started{t: w.t, cmd: w.command(dir, args...)}
	pipe, err := s.cmd.StdoutPipe()
	if err != nil {
		w.t.Fatal(err)
	}
	s.cmd.Stderr = &s.errs
	if err := s.cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = s.cmd.Process.Kill() })
	s.out = bufio.NewReader(pipe)
	for {
		line, err := s.out.ReadString('\n')
		if err != nil {
			_ = s.cmd.Wait()
			w.t.Fatalf("it ended before a line %q\n%s", until, &s.errs)
		}
		if strings.HasPrefix(line, until) {
			return s
		}
	}
}

// signal sends it to the process that was started as mtc.
func (s *started) signal(sig os.Signal) {
	s.t.Helper()
	if err := s.cmd.Process.Signal(sig); err != nil {
		s.t.Fatal(err)
	}
}

// stop stops it, and waits until it does nothing any more: a thread that is in the system goes on to its end.
func (s *started) stop() {
	s.t.Helper()
	s.signal(syscall.SIGSTOP)
	threads := fmt.Sprintf("/proc/%d/task", s.cmd.Process.Pid)
	for {
		running := 0
		entries, err := os.ReadDir(threads)
		if err != nil {
			s.t.Skip("the system does not tell whether a process has stopped")
		}
		for _, e := range entries {
			text, _ := os.ReadFile(filepath.Join(threads, e.Name(), "stat"))
			if _, rest, ok := strings.Cut(string(text), ") "); ok && !strings.HasPrefix(rest, "T") {
				running++
			}
		}
		if running == 0 {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// end waits for the end.
func (s *started) end() (code int, text string) {
	s.t.Helper()
	rest, _ := io.ReadAll(s.out)
	code = exitCodeOf(s.t, s.cmd.Wait())
	return code, string(rest) + s.errs.String()
}

// contains checks that a text holds every part, wherever its lines are broken.
func contains(t *testing.T, what, text string, parts ...string) {
	t.Helper()
	joined := strings.Join(strings.Fields(text), " ")
	for _, p := range parts {
		if !strings.Contains(text, p) && !strings.Contains(joined, strings.TrimSpace(p)) {
			t.Errorf("%s: no %q in\n%s", what, p, text)
		}
	}
}

// TestRunFlagsThroughMtc: what mtc passes on arrives, with relative paths and spaces in them, from
// a folder that is neither the build's nor the model's.
func TestRunFlagsThroughMtc(t *testing.T) {
	w := newWorkFolder(t)
	out, errs := w.must("else where", "run", "../my models/tiny one.mt", "--steps", "3", "--seed", "5",
		"--out", "../runs of mine/first one", "--metrics", "metrics here/m 1.jsonl", "--set", "train.lr=constant(peak = 1e-2)", "--save-every", "2")
	contains(t, "a first run", errs, "compiling ../my models/tiny one.mt into build/tiny one")
	contains(t, "a first run", out, "| seed          | 5 ", "constant(peak = 0.01)", "step 3/3", "2 files",
		"'../runs of mine/first one/program' --resume --out '../runs of mine/first one' --steps 6")
	if got := w.steps("runs of mine/first one"); len(got) != 2 || got[1] != 3 {
		t.Errorf("checkpoints %v", got)
	}
	text, err := os.ReadFile(filepath.Join(w.dir, "else where", "metrics here", "m 1.jsonl"))
	if err != nil || bytes.Count(text, []byte("\n")) != 3 {
		t.Errorf("metrics %v\n%s", err, text)
	}

	// The build, from the folder above; resumed by a relative path, from yet another one.
	out, errs = w.must(".", "run", "else where/build/tiny one", "--resume", "--out", "runs of mine/first one", "--steps", "5")
	contains(t, "resumed", out, "step 4/5", "step 5/5", "constant(peak = 0.01)")
	if strings.Contains(out, "step 3/5") || errs != "" {
		t.Errorf("resumed: %s%s", errs, out)
	}
	out, _ = w.must("some text", "run", "../else where/build/tiny one", "--resume=../runs of mine/first one/step-000003", "--out", "../second", "--steps", "4")
	contains(t, "resumed elsewhere", out, "step 4/4", "resumed from", "first one/step-000003")
	if strings.Contains(out, "step 3/4") {
		t.Errorf("resumed elsewhere: %s", out)
	}

	// A finished run: refused without --resume and, with it, where nothing is left to do. Nothing is lost.
	before := w.steps("second")
	code, _, errs := w.call(".", "run", "else where/build/tiny one", "--out", "second", "--steps", "4")
	if code != exitInput {
		t.Errorf("a second run into a folder: exit %d", code)
	}
	contains(t, "a second run into a folder", errs, "MT0626", "checkpoints up to step 4", "--resume")
	code, _, errs = w.call(".", "run", "else where/build/tiny one", "--resume", "--out", "second")
	if code != exitInput {
		t.Errorf("nothing left to do: exit %d", code)
	}
	contains(t, "nothing left to do", errs, "4 steps of 4", "--steps N")
	if got := w.steps("second"); len(got) != len(before) || len(got) == 0 {
		t.Errorf("checkpoints %v, were %v", got, before)
	}

	// A file that is not metrics is left alone.
	code, _, errs = w.call(".", "run", "else where/build/tiny one", "--steps", "1", "--metrics", "some text/a b.txt")
	if code != exitInput {
		t.Errorf("metrics into a text: exit %d", code)
	}
	contains(t, "metrics into a text", errs, "MT0627", "a b.txt")
	if text, err := os.ReadFile(filepath.Join(w.dir, "some text/a b.txt")); err != nil || !strings.HasPrefix(string(text), "the slab") {
		t.Errorf("the text is gone: %v", err)
	}

	// An edit of lr and steps compiles again, goes on and says so.
	w.model("tiny one.mt", quickTrain+"; steps = 7; lr = 2e-3")
	out, errs = w.must("else where", "run", "../my models/tiny one.mt", "--resume", "--out", "../second")
	contains(t, "an edited text", errs, "tiny one.mt changed", "lr constant(peak = 0.002) instead of constant(peak = 0.01)")
	contains(t, "an edited text", out, "step 7/7")
	w.must(".", "generate", "runs of mine/first one/step-000005", "--prompt", "the", "--tokens", "20")
}

// TestSignalsThroughMtc: mtc becomes the program, so signals reach it: the first one saves, the
// second one ends at once, and a folder in use is refused.
func TestSignalsThroughMtc(t *testing.T) {
	w := newWorkFolder(t)
	w.must(".", "compile", "my models/tiny one.mt")
	for _, c := range []struct {
		signal syscall.Signal
		code   int
		out    string
	}{{syscall.SIGINT, 130, "runs/int run"}, {syscall.SIGTERM, 143, "runs/term run"}} {
		run := w.start("step ", ".", "run", "--steps", "100000000", "--out", c.out)
		code, _, errs := w.call(".", "run", "--steps", "5", "--out", c.out)
		if code != exitInput {
			t.Errorf("a folder in use: exit %d", code)
		}
		contains(t, "a folder in use", errs, "MT0626", "another process is training into this folder", "--out")
		run.signal(c.signal)
		code, text := run.end()
		if code != c.code {
			t.Errorf("%v: exit %d, want %d\n%s", c.signal, code, c.code, text)
		}
		contains(t, c.signal.String(), text, "finishing the step", "--resume --out '"+c.out+"'")
		if got := w.steps(c.out); len(got) != 1 || got[0] < 1 {
			t.Errorf("%v: checkpoints %v", c.signal, got)
		}
	}

	w.model("slow one.mt", slowTrain)
	w.write("some text/more.txt", strings.Repeat("a text long enough for many rows. ", 130000))
	slow := w.start("| run folder", ".", "run", "my models/slow one.mt", "--out", "slow", "--micro-batch", "1024")
	slow.signal(syscall.SIGTERM)
	slow.signal(os.Interrupt)
	code, text := slow.end()
	if code != 130 && code != 143 { // the system may deliver two kinds in either order
		t.Errorf("a second signal: exit %d\n%s", code, text)
	}
	if got := w.steps("slow"); len(got) > 0 {
		t.Errorf("a second signal: it saved %v", got)
	}
}

// TestSignalsDuringABuild: a build that is interrupted leaves the earlier one whole, and nothing
// where there was none.
func TestSignalsDuringABuild(t *testing.T) {
	w := newWorkFolder(t)
	w.must(".", "compile", "my models/tiny one.mt")
	whole := w.snapshot("build/tiny one")
	// A toolchain that takes long and, at a signal, ends as go does.
	w.write("go", "#!/bin/sh\ntrap 'exit 1' INT TERM\ntouch started\nwhile :; do sleep 0.05; done\n")
	if err := os.Chmod(filepath.Join(w.dir, "go"), 0o777); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		signal syscall.Signal
		code   int
		out    string
	}{{syscall.SIGINT, 130, "build/tiny one"}, {syscall.SIGTERM, 143, "build/tiny one"}, {syscall.SIGTERM, 143, "fresh"}} {
		cmd := w.command(".", "compile", "my models/tiny one.mt", "--set", "D=24", "-o", c.out)
		cmd.Env = append(os.Environ(), "PATH="+w.dir+string(filepath.ListSeparator)+os.Getenv("PATH"))
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = cmd.Process.Kill() })
		for {
			found, _ := filepath.Glob(filepath.Join(w.dir, c.out, stagePrefix+"*", "started"))
			if len(found) > 0 {
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
		if err := cmd.Process.Signal(c.signal); err != nil {
			t.Fatal(err)
		}
		if code := exitCodeOf(t, cmd.Wait()); code != c.code {
			t.Errorf("%v: exit %d, want %d", c.signal, code, c.code)
		}
		if d := cmp.Diff(whole, w.snapshot("build/tiny one")); d != "" {
			t.Errorf("%v: the earlier build changed: %s", c.signal, d)
		}
	}
	if _, err := os.Stat(filepath.Join(w.dir, "fresh")); err == nil {
		t.Error("a build that was interrupted left its folder")
	}
	_, errs := w.must(".", "run", "build/tiny one", "--steps", "1")
	if strings.Contains(errs, "compiling") {
		t.Errorf("the earlier build: %s", errs)
	}
}

// snapshot is the text of each file of a folder.
func (w *workFolder) snapshot(dir string) map[string]string {
	w.t.Helper()
	entries, err := os.ReadDir(filepath.Join(w.dir, dir))
	if err != nil {
		w.t.Fatal(err)
	}
	out := map[string]string{}
	for _, e := range entries {
		text, err := os.ReadFile(filepath.Join(w.dir, dir, e.Name()))
		if err != nil {
			w.t.Fatal(err)
		}
		out[e.Name()] = hashOf(text)
	}
	return out
}
