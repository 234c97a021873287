package program

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/megatrain/mtc/runtime/fault"
	"github.com/megatrain/mtc/runtime/plan"
)

func testPlan() *plan.Plan {
	return &plan.Plan{Model: "tiny", Source: "tiny.mt", Vocab: 256, Batch: 2, Seq: 8, Train: plan.Train{
		Data: []string{"text.txt"}, Steps: 10, LR: plan.Schedule{Kind: "constant", Peak: 1e-3}}}
}

// TestSettingsOutOfRange: each is a usage error that says what to write.
func TestSettingsOutOfRange(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, c := range []struct{ arg, want string }{
		{"--threads=0", "1 to 1024"},
		{"--threads=-1", "1 to 1024"},
		{"--threads=99999", "1 to 1024"},
		{"--out=", "`--out` is empty"},
		{"--steps=0", "at least 1"},
		{"--holdout=1", "below 1"},
		{"--holdout=nan", "below 1"},
		{"--holdout=-inf", "below 1"},
		{"--pinned-memory=lots", "a size"},
		{"--pinned-memory=", "`--pinned-memory` is empty"},
		{"--pinned-memory=1GiB", "compile with `--target cuda`"},
	} {
		_, err := (&Program{Plan: testPlan()}).settings([]string{c.arg}, &strings.Builder{})
		var u *usageError
		if !errors.As(err, &u) || !strings.Contains(u.msg+" | "+strings.Join(u.help, " | "), c.want) {
			t.Errorf("%s: got %+v, want %s", c.arg, err, c.want)
		}
	}
	if s, err := (&Program{Plan: testPlan()}).settings([]string{"--threads=1024"}, &strings.Builder{}); err != nil || s.threads != 1024 {
		t.Errorf("1024 threads: %v", err)
	}
	for _, both := range [][]string{{"--steps", "3", "--epochs", "2"}, {"--eval-data", "a", "--holdout", "0.1"}} {
		_, err := (&Program{Plan: testPlan()}).settings(both, &strings.Builder{})
		var u *usageError
		if !errors.As(err, &u) || !strings.Contains(u.msg, "exclude each other") {
			t.Errorf("%v: %v", both, err)
		}
	}
	for _, epochs := range []string{"0", "-1", "10000000"} {
		if _, err := (&Program{Plan: testPlan()}).settings([]string{"--epochs", epochs}, &strings.Builder{}); err == nil {
			t.Errorf("%s epochs", epochs)
		}
	}
	gpu := testPlan()
	gpu.Target = "cuda"
	for arg, want := range map[string]int64{"0": 0, "1.5GiB": 3 << 29, "2MB": 2e6} {
		s, err := (&Program{Plan: gpu}).settings([]string{"--pinned-memory=" + arg}, &strings.Builder{})
		if err != nil || s.pinned == nil || *s.pinned != want {
			t.Errorf("--pinned-memory=%s: %v", arg, err)
		}
	}
}

// TestCheckTellsBeforeTheProgramIsBuilt what a run would end with, and changes nothing.
func TestCheckTellsBeforeTheProgramIsBuilt(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	if err := os.WriteFile("text.txt", []byte(strings.Repeat("some text ", 20)), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{nil, exitOK, ""},
		{[]string{"--data", "nowhere"}, exitInput, "MT0601"},
		{[]string{"--resume"}, exitInput, "MT0620"},
		{[]string{"--steps", "0"}, exitUsage, "out of range"},
		{[]string{"--root", "elsewhere"}, exitInput, "MT0601"},
	} {
		var errs strings.Builder
		if code := finish(Check(testPlan(), c.args, io.Discard), &errs); code != c.code || !strings.Contains(errs.String(), c.want) {
			t.Errorf("%q: exit %d, want %d with %q\n%s", c.args, code, c.code, c.want, &errs)
		}
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
}

// TestCopyOfTheProgram: an equal copy is left as it is, another one replaced.
func TestCopyOfTheProgram(t *testing.T) {
	to := filepath.Join(t.TempDir(), "program")
	same := func() os.FileInfo {
		t.Helper()
		if err := copyProgram(to); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(to)
		if err != nil {
			t.Fatal(err)
		}
		return info
	}
	first := same()
	if !os.SameFile(first, same()) {
		t.Error("an equal copy was written again")
	}
	f, err := os.OpenFile(to, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt([]byte("x"), first.Size()/2); err != nil {
		t.Fatal(err)
	}
	f.Close()
	if again := same(); os.SameFile(first, again) || again.Size() != first.Size() {
		t.Error("another program was kept")
	}
}

// TestRunFolderThatCannotBeWritten says whether the machine or the name is at fault.
func TestRunFolderThatCannotBeWritten(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	p := &Program{Plan: testPlan()}
	err := p.writeRunFolder(filepath.Join(file, "run"), p.Plan.Train, nil)
	var f *fault.Error
	if !errors.As(err, &f) || f.Code != "MT0623" || f.ExitCode() != exitInput || !strings.Contains(f.Hint, "--out") {
		t.Errorf("below a file: %v", err)
	}
	if err == nil || strings.Contains(err.Error(), "run.json") {
		t.Errorf("the path is told twice: %v", err)
	}
}

// TestLongWarmupIsTold: where the command line made a run too short for its learning rate; what the text
// alone says is the compiler's to tell.
func TestLongWarmupIsTold(t *testing.T) {
	compiled := plan.Train{Steps: 100, LR: plan.Schedule{Kind: "cosine", Peak: 1, Warmup: 20}}
	wsd := plan.Schedule{Kind: "wsd", Peak: 1, Warmup: 5, Decay: 10}
	for _, c := range []struct {
		name  string
		steps int64
		lr    plan.Schedule
		want  bool
	}{
		{"as compiled", 100, compiled.LR, false},
		{"just long enough", 20, compiled.LR, false},
		{"too short", 19, compiled.LR, true},
		{"one step", 1, compiled.LR, true},
		{"decay counts", 14, wsd, true},
		{"another rate", 100, wsd, false},
		{"another rate, too long", 100, plan.Schedule{Kind: "constant", Peak: 1, Warmup: 101}, true},
	} {
		if got := longWarmup(&plan.Train{Steps: c.steps, LR: c.lr}, &compiled); (got != "") != c.want {
			t.Errorf("%s: %q", c.name, got)
		}
	}
}
