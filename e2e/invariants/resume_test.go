package invariants

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/megatrain/mtc/compiler"
)

// TestCheckpointsFitEveryBuild: a run goes on in a build with another placement, batch, lr or
// number of steps, which says what makes it another run; another model is refused.
func TestCheckpointsFitEveryBuild(t *testing.T) {
	t.Parallel()
	data := corpus(t, 1500)
	base := program(t, "llama", llama)
	dir := out(t)
	run(t, base, "train", "--data", data, "--steps", "6", "--set", "train.lr=1e-3", "--out", dir)
	saved := checkpointOf(t, dir)

	resume := func(binary string, args ...string) (notes string, o *outcome) {
		t.Helper()
		to := out(t)
		var errs bytes.Buffer
		cmd := exec.Command(binary, append([]string{"train", "--resume=" + saved, "--steps", "8", "--out", to}, args...)...)
		cmd.Stderr = &errs
		if err := cmd.Run(); err != nil {
			t.Fatalf("%v: %v\n%s", args, err, &errs)
		}
		// That nothing is held out of three files is said by every run, in lines of which the later ones are indented.
		passed := false
		for line := range strings.Lines(errs.String()) {
			passed = strings.HasPrefix(line, "note: nothing is evaluated") || passed && strings.HasPrefix(line, "      ")
			if !passed {
				notes += line
			}
		}
		return notes, read(t, to)
	}
	notes, want := resume(base)
	if notes != "" {
		t.Errorf("the same program says %q", notes)
	}

	// Where it runs changes no bit.
	notes, streamed := resume(program(t, "llama", compiler.Options{MicroBatch: 4, Placement: "stream", Slots: 1, GradSlots: 1, Set: []string{"train.clip=1.0"}}))
	if notes != "" {
		t.Errorf("another placement says %q", notes)
	}
	for name, w := range want.tensors {
		if !bytes.Equal(streamed.tensors[name], w) {
			t.Errorf("another placement: %s differs", name)
		}
	}

	// What was edited holds, also against the old run's command line, and is said.
	edited := program(t, "llama", compiler.Options{MicroBatch: 4, Set: []string{
		"train.lr=constant(peak = 2e-3)", "train.batch=4 rows", "train.steps=24", "train.clip=none", "train.seed=7"}})
	notes, o := resume(edited)
	for _, w := range []string{
		"batch of 4 rows instead of 8", "lr constant(peak = 0.002) instead of constant(peak = 0.001)", "clip none instead of 1",
	} {
		if !says(notes, w) {
			t.Errorf("no %q in\n%s", w, notes)
		}
	}
	if says(notes, "seed") || says(notes, "data") || says(notes, "optimizer") {
		t.Errorf("it says\n%s", notes)
	}
	if last := o.lines[len(o.lines)-2]; !strings.Contains(last, `"lr":0.002`) {
		t.Errorf("the last step is %s", last)
	}

	// Flags come before all.
	notes, _ = resume(base, "--seed", "8", "--data", corpus(t, 1800))
	if !says(notes, "seed 8 instead of 7") || !says(notes, "data: ") {
		t.Errorf("another seed says %q", notes)
	}
	files, err := filepath.Glob(filepath.Join(data, "*"))
	if err != nil || len(files) == 0 {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(data, "more.txt"), []byte("more"))
	if notes, _ = resume(base); !says(notes, "files were added, removed or changed") {
		t.Errorf("more data says %q", notes)
	}
	if err := os.Remove(filepath.Join(data, "more.txt")); err != nil {
		t.Fatal(err)
	}

	// Generation reads it too; another model does not.
	run(t, edited, "generate", saved, "--prompt", "the", "--tokens", "4")
	for _, c := range []struct{ set, want string }{
		{"D=64", "D is 32 there and 64 here"},
		{"train.seq=8", "seq is 16 there and 8 here"},
	} {
		other := program(t, "llama", compiler.Options{MicroBatch: 4, Set: []string{c.set}})
		code, text := fails(t, other, "train", "--resume="+saved, "--steps", "8", "--out", out(t))
		if code != 1 || !says(text, "MT0622") || !says(text, c.want) || strings.Count(text, "llama") < 1 {
			t.Errorf("%s: exit code %d\n%s", c.set, code, text)
		}
	}
}
