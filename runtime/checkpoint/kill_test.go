package checkpoint

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// killed stands for a process that ends at once: nothing after it runs.
type killed struct{}

// killAt runs do and ends it at its n-th change of the file system; false: it came to its end.
func killAt(n int, do func()) (died bool) {
	defer func(old func()) { between = old }(between)
	between = func() {
		if n--; n < 0 {
			panic(killed{})
		}
	}
	defer func() {
		if r := recover(); r != nil {
			if _, died = r.(killed); !died {
				panic(r)
			}
		}
	}()
	do()
	return false
}

// TestKilledAtEveryStage: whenever a run is killed while it saves, a whole checkpoint is the newest
// by name, never one older than before, and the next save and the best go on from there.
func TestKilledAtEveryStage(t *testing.T) {
	for _, c := range []struct {
		name string
		keep int64
		step int64 // that is saved, beside 2 and 4
	}{
		{"the first to go is the oldest", 2, 6},
		{"all earlier ones go", 1, 6},
		{"one that is there is replaced", 2, 4},
	} {
		stages := 0
		for died := true; died; stages++ {
			dir := filepath.Join(t.TempDir(), "run")
			mustSave(t, dir, 2, 0)
			mustSave(t, dir, 4, 0)
			m := newMemory(byte(c.step))
			died = killAt(stages, func() {
				if _, err := Save(dir, state(c.step), FromSlabs(m.plan, m.view), c.keep); err != nil {
					t.Fatal(err)
				}
			})
			at := fmt.Sprintf("%s, stage %d", c.name, stages)
			found, err := Latest(dir)
			if err != nil || found.Verify() != nil || found.State.Step < map[bool]int64{true: 4, false: 2}[runtime.GOOS == "linux"] {
				t.Fatalf("%s: %v, %v in %v", at, found, err, names(t, dir))
			}
			if !died && found.State.Step != c.step {
				t.Errorf("%s: the newest is of step %d", at, found.State.Step)
			}
			mustSave(t, dir, 8, 1)
			if left := names(t, dir); len(left) != 1 || left[0] != "step-000008" {
				t.Errorf("%s: the next save leaves %v", at, left)
			}
		}
		if stages < 10 {
			t.Errorf("%s: there were %d stages", c.name, stages)
		}
	}
}

// TestKilledWhileTheBestIsReplaced: the best weights are those before, or the new ones.
func TestKilledWhileTheBestIsReplaced(t *testing.T) {
	for stage, died := 0, true; died; stage++ {
		dir := t.TempDir()
		saveBest(t, dir, 3, 2.5)
		died = killAt(stage, func() { saveBest(t, dir, 5, 2) })
		c, err := Best(dir)
		if err != nil || c == nil || c.Verify() != nil {
			t.Fatalf("stage %d: %v, %v", stage, c, err)
		}
		if want := map[bool]int64{true: c.State.Step, false: 5}[died]; c.State.Step != want {
			t.Errorf("stage %d: the best is of step %d", stage, c.State.Step)
		}
		saveBest(t, dir, 7, 1)
		wantBest(t, dir, 7, 1)
		if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
			t.Errorf("stage %d: %v are left, %v", stage, names(t, dir), err)
		}
	}
}
