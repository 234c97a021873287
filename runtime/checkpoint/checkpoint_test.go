package checkpoint

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/megatrain/mtc/runtime/checkpoint/safetensors"
	"github.com/megatrain/mtc/runtime/fault"
	"github.com/megatrain/mtc/runtime/plan"
)

// memory is a tiny plan with its buffers: two slabs with an alignment gap.
type memory struct {
	plan *plan.Plan
	bufs map[plan.BufID][]byte
}

func (m *memory) view(b plan.BufID) []byte { return m.bufs[b] }

func newMemory(fill byte) *memory {
	m := &memory{plan: &plan.Plan{Model: "tiny", Hash: "h1"}, bufs: map[plan.BufID][]byte{}}
	m.plan.Slabs = []plan.Slab{
		{Name: "wte", Elems: 16, Weight: 1, M: 2, V: 3, Params: []plan.Param{{Name: "wte.weight", Shape: []int64{5, 3}}}},
		{Name: "layer[0]", Elems: 24, Weight: 4, M: 5, V: 6, Params: []plan.Param{
			{Name: "layer[0].q.weight", Off: 0, Shape: []int64{4, 4}}, {Name: "layer[0].ln.bias", Off: 16, Shape: []int64{3}}}},
	}
	for i, s := range m.plan.Slabs {
		for k := range 3 {
			b := make([]byte, 4*s.Elems)
			for _, p := range s.Params {
				for j := range part(&p, b) {
					part(&p, b)[j] = fill + byte(j*7+31*k+100*i)
				}
			}
			m.bufs[plan.BufID(3*i+k+1)] = b
		}
	}
	return m
}

func state(step int64) State {
	return State{Step: step, Updates: step - 1, Skipped: 1, Tokens: step * 100, Seed: 1337, Batch: 4, Seq: 25, Data: "d", Model: "tiny", Hash: "h1", Compiler: "dev"}
}

func mustSave(t *testing.T, dir string, step, keep int64) string {
	t.Helper()
	m := newMemory(byte(step))
	path, err := Save(dir, state(step), FromSlabs(m.plan, m.view), keep)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func wantFault(t *testing.T, what string, err error, code string, parts ...string) {
	t.Helper()
	var f *fault.Error
	if !errors.As(err, &f) || f.Code != code {
		t.Errorf("%s: got %v, wanted %s", what, err, code)
		return
	}
	for _, p := range parts {
		if !strings.Contains(fault.Text(err), p) {
			t.Errorf("%s: no %q in:\n%s", what, p, fault.Text(err))
		}
	}
}

func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

func TestSavedStateLoadsBitForBit(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "runs", "a")
	path := mustSave(t, dir, 12, 0)
	c, err := Latest(dir)
	if err != nil {
		t.Fatal(err)
	}
	if c.Path != path || filepath.Base(path) != "step-000012" {
		t.Errorf("saved to %s, found %s", path, c.Path)
	}
	if d := cmp.Diff(state(12), c.State); d != "" {
		t.Error(d)
	}
	if err := c.Verify(); err != nil {
		t.Error(err)
	}
	want, got := newMemory(12), newMemory(99)
	if err := c.LoadSlabs(got.plan, got.view, true); err != nil {
		t.Fatal(err)
	}
	for b := range want.bufs {
		if !bytes.Equal(want.bufs[b], got.bufs[b]) {
			t.Errorf("buffer %d differs", b)
		}
	}
	got = newMemory(99)
	if err := c.LoadSlabs(got.plan, got.view, false); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(want.bufs[1], got.bufs[1]) || !bytes.Equal(newMemory(99).bufs[2], got.bufs[2]) {
		t.Error("without moments, weights and nothing else are loaded")
	}
	ts, err := c.Tensors(OptimizerFile)
	if err != nil || len(ts) != 6 || ts[0].Name != "m.wte.weight" || ts[1].Name != "v.wte.weight" {
		t.Errorf("%v, %v", ts, err)
	}
}

func TestLatestGoesByNumber(t *testing.T) {
	dir := t.TempDir()
	for _, s := range []int64{999999, 2, 1000000, 30} {
		mustSave(t, dir, s, 0)
	}
	for _, stray := range []string{".tmp-step-2000000", "step-x", "step-07", "step--00001"} {
		if err := os.Mkdir(filepath.Join(dir, stray), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	for which, want := range map[string]int64{"": 1000000, "latest": 1000000, "30": 30, "step-000002": 2, filepath.Join(dir, "step-000030"): 30, dir: 1000000} {
		c, err := Resolve(dir, which)
		if err != nil || c.State.Step != want {
			t.Errorf("%q: %v, %v; wanted step %d", which, c, err, want)
		}
	}
	numbered := filepath.Join(dir, "77")
	mustSave(t, numbered, 4, 0)
	t.Chdir(dir)
	for _, path := range []string{"77", filepath.Join("77", "step-000004")} {
		if c, err := Resolve(path, path); err != nil || c.State.Step != 4 {
			t.Errorf("%s: %v", path, err)
		}
	}
	_, err := Resolve(dir, "31")
	wantFault(t, "missing step", err, "MT0620", "step 31", "step-000030, step-999999")
	_, err = Resolve(dir, filepath.Join(dir, "nowhere"))
	wantFault(t, "missing folder", err, "MT0620", "`mtc run ... --out DIR` starts one")
	_, err = Latest(t.TempDir())
	wantFault(t, "empty folder", err, "MT0620")
}

func TestSaveKeepsTheNewest(t *testing.T) {
	dir := t.TempDir()
	for s := int64(1); s <= 5; s++ {
		mustSave(t, dir, s*10, 2)
	}
	if d := cmp.Diff([]string{"step-000040", "step-000050"}, names(t, dir)); d != "" {
		t.Error(d)
	}
	// The one just written stays even when others have higher steps.
	mustSave(t, dir, 5, 1)
	if d := cmp.Diff([]string{"step-000005"}, names(t, dir)); d != "" {
		t.Error(d)
	}
}

func TestSavingAStepAgainReplacesIt(t *testing.T) {
	dir := t.TempDir()
	mustSave(t, dir, 7, 0)
	m := newMemory(50)
	if _, err := Save(dir, state(7), FromSlabs(m.plan, m.view), 0); err != nil {
		t.Fatal(err)
	}
	c, err := Latest(dir)
	if err != nil {
		t.Fatal(err)
	}
	got := newMemory(0)
	if err := c.LoadSlabs(got.plan, got.view, true); err != nil || !bytes.Equal(got.bufs[1], m.bufs[1]) {
		t.Errorf("%v; the second one is not there", err)
	}
	if d := cmp.Diff([]string{"step-000007"}, names(t, dir)); d != "" {
		t.Error(d)
	}
}

// TestNamesThatAreNoCheckpoints: what stands under the name of a checkpoint is never passed over.
func TestNamesThatAreNoCheckpoints(t *testing.T) {
	for _, c := range []struct {
		name string
		make func(dir, path string) error // under the name of step 6, beside steps 2 and 4
		want string                       // of the error, "": it is step 6
	}{
		{"a copy of another step", func(dir, path string) error { return os.CopyFS(path, os.DirFS(filepath.Join(dir, "step-000004"))) },
			"is of step 4, and the folder's name says step 6"},
		{"a link to another step", func(dir, path string) error { return os.Symlink("step-000004", path) },
			"is of step 4, and the folder's name says step 6"},
		{"a link to a step elsewhere", func(dir, path string) error {
			mustSave(t, dir+"-far", 6, 0)
			return os.Symlink(filepath.Join(dir+"-far", "step-000006"), path)
		}, ""},
		{"a link to nowhere", func(dir, path string) error { return os.Symlink("nowhere", path) }, "manifest.json cannot be read"},
		{"a link to itself", func(dir, path string) error { return os.Symlink("step-000006", path) }, "manifest.json cannot be read"},
		{"a file", func(dir, path string) error { return os.WriteFile(path, []byte("x"), 0o666) }, "manifest.json cannot be read"},
		{"an empty folder", func(dir, path string) error { return os.Mkdir(path, 0o777) }, "manifest.json cannot be read"},
		{"without access", func(dir, path string) error { return os.WriteFile(path, nil, 0) }, "manifest.json cannot be read"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "run")
			mustSave(t, dir, 2, 0)
			mustSave(t, dir, 4, 0)
			if err := c.make(dir, filepath.Join(dir, "step-000006")); err != nil {
				t.Fatal(err)
			}
			if found, err := Latest(dir); c.want == "" {
				if err != nil || found.State.Step != 6 {
					t.Fatalf("%v, %v", found, err)
				}
				return
			} else {
				wantFault(t, c.name, err, "MT0621", c.want, "--resume=step-000004")
			}
			// It counts for none when old ones go, and goes aside when the run goes on.
			mustSave(t, dir, 5, 2)
			if d := cmp.Diff([]string{"step-000004", "step-000005", "step-000006"}, names(t, dir)); d != "" {
				t.Error(d)
			}
			if _, err := SetAside(dir, 5); err != nil {
				t.Error(err)
			}
			if found, err := Latest(dir); err != nil || found.State.Step != 5 {
				t.Errorf("%v, %v", found, err)
			}
		})
	}
}

// Each file in turn is cut, flipped and removed; the error names it and the good one before.
func TestDamageIsSaidWithThePreviousGoodOne(t *testing.T) {
	for _, file := range []string{WeightsFile, OptimizerFile, stateFile, manifestFile} {
		for _, harm := range []string{"cut", "flip", "flip header", "remove", "grow"} {
			t.Run(file+" "+harm, func(t *testing.T) {
				dir := t.TempDir()
				good := mustSave(t, dir, 1, 0)
				ruined := mustSave(t, dir, 2, 0)
				path := mustSave(t, dir, 3, 0)
				// The one in between is damaged too, so it must not be advised.
				if err := os.Remove(filepath.Join(ruined, WeightsFile)); err != nil {
					t.Fatal(err)
				}
				harmFile(t, filepath.Join(path, file), harm)
				c, err := Latest(dir)
				if err == nil {
					m := newMemory(0)
					err = c.LoadSlabs(m.plan, m.view, true)
				}
				wantFault(t, harm, err, "MT0621", file, "--resume="+filepath.Base(good), filepath.Join("step-000003", file))
				if c, err := Resolve(dir, filepath.Base(good)); err != nil || c.Verify() != nil {
					t.Errorf("the good one does not open: %v", err)
				}
				// What is advised works: the damaged ones are no later history, and go aside.
				if err := Newest(dir, 1); err != nil {
					t.Errorf("going on from the good one: %v", err)
				}
				aside, err := SetAside(dir, 1)
				if err != nil || len(aside) != 2 {
					t.Errorf("set aside %v: %v", aside, err)
				}
				if d := cmp.Diff([]string{"step-000001", "step-000002.damaged", "step-000003.damaged"}, names(t, dir)); d != "" {
					t.Error(d)
				}
				if c, err := Latest(dir); err != nil || c.State.Step != 1 {
					t.Errorf("the newest is now %v: %v", c, err)
				}
			})
		}
	}
}

func harmFile(t *testing.T, path, harm string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	switch harm {
	case "cut":
		text = text[:len(text)-3]
	case "grow":
		text = append(text, '!')
	case "flip":
		text[len(text)*3/4] ^= 4
	case "flip header":
		text[9] ^= 1
	case "remove":
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		return
	}
	if err := os.WriteFile(path, text, 0o666); err != nil {
		t.Fatal(err)
	}
}

// Every single bit of every file: a flip is found, or it changed nothing that is read.
func TestEveryBitFlipIsFound(t *testing.T) {
	dir := t.TempDir()
	path := mustSave(t, dir, 1, 0)
	want := newMemory(1)
	for _, file := range []string{WeightsFile, OptimizerFile, stateFile, manifestFile} {
		text, err := os.ReadFile(filepath.Join(path, file))
		if err != nil {
			t.Fatal(err)
		}
		for i := range text {
			bad := bytes.Clone(text)
			bad[i] ^= 1 << (i % 8)
			if err := os.WriteFile(filepath.Join(path, file), bad, 0o666); err != nil {
				t.Fatal(err)
			}
			c, err := Open(path)
			got := newMemory(0)
			if err == nil {
				err = c.LoadSlabs(got.plan, got.view, true)
			}
			if err != nil {
				continue
			}
			same := cmp.Equal(c.State, state(1))
			for b := range want.bufs {
				same = same && bytes.Equal(want.bufs[b], got.bufs[b])
			}
			if !same {
				t.Fatalf("%s: a flip in byte %d went through", file, i)
			}
			if file != manifestFile {
				t.Errorf("%s: a flip in byte %d was not found", file, i)
			}
		}
		if err := os.WriteFile(filepath.Join(path, file), text, 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAnotherModelIsRefusedWithBothNames(t *testing.T) {
	dir := t.TempDir()
	st := state(1)
	st.Values = []plan.Value{{Name: "D", Text: "16"}, {Name: "eps", Text: "1e-05"}}
	m := newMemory(1)
	if _, err := Save(dir, st, FromSlabs(m.plan, m.view), 0); err != nil {
		t.Fatal(err)
	}
	c, err := Latest(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		name   string
		change func(p *plan.Plan)
		parts  []string
	}{
		{"another model", func(p *plan.Plan) { p.Model, p.Values = "gpt2", []plan.Value{{Name: "D", Text: "32"}} },
			[]string{"model tiny", "gpt2", "D is 16 there and 32 here"}},
		{"seq and a constant", func(p *plan.Plan) { p.Seq, p.Values = 9, []plan.Value{{Name: "eps", Text: "1e-06"}} },
			[]string{"another tiny", fmt.Sprintf("seq is %d there and 9 here", st.Seq), "eps is 1e-05 there and 1e-06 here"}},
		{"a name", func(p *plan.Plan) { p.Slabs[0].Params[0].Name = "emb.weight" },
			[]string{"emb.weight is only here", "wte.weight is only there"}},
		{"a shape", func(p *plan.Plan) { p.Slabs[0].Params[0].Shape = []int64{3, 5} },
			[]string{"wte.weight is [5 3] there and [3 5] here"}},
		{"much", func(p *plan.Plan) {
			p.Values = []plan.Value{{Name: "D", Text: "1"}, {Name: "eps", Text: "1"}}
			p.Seq = 9
			p.Slabs = nil
		}, []string{"seq is", "D is", "eps is"}},
		{"more than fits a line", func(p *plan.Plan) {
			p.Slabs = nil
			p.Slabs = append(p.Slabs, plan.Slab{Params: []plan.Param{{Name: "x"}, {Name: "y"}}})
		},
			[]string{"x is only here", "y is only here", "and 2 more"}},
		{"nothing to name", func(p *plan.Plan) {}, []string{"the ops between its parameters differ"}},
	} {
		p := newMemory(1).plan
		p.Seq, p.ModelHash = st.Seq, st.Hash
		if err := c.Match(p); err != nil {
			t.Fatal(err)
		}
		p.ModelHash = "another"
		x.change(p)
		err := c.Match(p)
		for _, part := range x.parts {
			wantFault(t, x.name, err, "MT0622", part)
		}
	}
}

func TestTensorsMustBeTheModels(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(p *plan.Plan)
		part   string
	}{
		{"renamed", func(p *plan.Plan) { p.Slabs[0].Params[0].Name = "emb.weight" }, `"wte.weight"`},
		{"shape", func(p *plan.Plan) { p.Slabs[0].Params[0].Shape = []int64{3, 5} }, "[5 3]"},
		{"more", func(p *plan.Plan) {
			p.Slabs[1].Params = append(p.Slabs[1].Params, plan.Param{Name: "x", Off: 20, Shape: []int64{1}})
		}, "3 of the model's 4"},
	} {
		dir := t.TempDir()
		mustSave(t, dir, 1, 0)
		ck, err := Latest(dir)
		if err != nil {
			t.Fatal(err)
		}
		m := newMemory(0)
		c.change(m.plan)
		wantFault(t, c.name, ck.LoadSlabs(m.plan, m.view, true), "MT0625", c.part)
	}
}

// fullDisk lets a number of bytes through, then says that the disk is full.
type fullDisk struct {
	*os.File
	left *int
}

func (f fullDisk) Write(p []byte) (int, error) {
	n := min(len(p), *f.left)
	*f.left -= n
	if _, err := f.File.Write(p[:n]); err != nil || n == len(p) {
		return n, err
	}
	return n, &os.PathError{Op: "write", Path: f.Name(), Err: syscall.ENOSPC}
}

func TestFullDiskLeavesTheLastGoodOne(t *testing.T) {
	defer func(old func(string) (syncWriter, error)) { create = old }(create)
	for _, room := range []int{0, 100, 700, 1500} {
		dir := t.TempDir()
		mustSave(t, dir, 1, 1)
		left := room
		create = func(path string) (syncWriter, error) {
			f, err := os.Create(path)
			return fullDisk{f, &left}, err
		}
		m := newMemory(2)
		_, err := Save(dir, state(2), FromSlabs(m.plan, m.view), 1)
		create = func(path string) (syncWriter, error) { return os.Create(path) }
		wantFault(t, fmt.Sprint(room), err, "MT0623", "step 2", "no space left", "MB", "step-000001 is untouched", "`mtc run ... --resume --out "+dir+"`")
		var f *fault.Error
		if errors.As(err, &f) && f.ExitCode() != 3 {
			t.Errorf("exit code %d for a full disk", f.ExitCode())
		}
		if d := cmp.Diff([]string{"step-000001"}, names(t, dir)); d != "" {
			t.Error(d)
		}
		if c, err := Latest(dir); err != nil || c.Verify() != nil {
			t.Errorf("the last good one: %v", err)
		}
	}
}

// TestLimitsHideNoCheckpoint: a process that may open no more files cannot see the earlier checkpoints either, and says
// nothing of them.
func TestLimitsHideNoCheckpoint(t *testing.T) {
	err := &os.PathError{Op: "open", Path: "x", Err: syscall.EMFILE}
	if got := notWritten(t.TempDir(), 2, nil, err).Error(); strings.Contains(got, "no earlier") {
		t.Error(got)
	}
	var f *fault.Error
	if !errors.As(notWritten(t.TempDir(), 2, nil, err), &f) || !f.Machine || strings.Contains(f.Hint, "earlier") || !strings.Contains(f.Hint, "ulimit -n") {
		t.Errorf("help: %q", f.Hint)
	}
}

// TestDeviceThatFailsInASave: what cannot be read is the device's fault, not the folder's, and leaves the last good one.
func TestDeviceThatFailsInASave(t *testing.T) {
	dir := t.TempDir()
	mustSave(t, dir, 1, 1)
	lost := fault.New("MT0510", "", "the GPU failed during a copy from the GPU").OnMachine().Help("look at it")
	for _, at := range []int{0, 1} {
		m := newMemory(2)
		files := FromSlabs(m.plan, m.view)
		files[at].Tensors[1].Stream = func(io.Writer) error { return lost }
		_, err := Save(dir, state(2), files, 1)
		wantFault(t, fmt.Sprint(at), err, "MT0510", "while the checkpoint of step 2 was written", "look at it")
		if strings.Contains(fault.Text(err), "--out") {
			t.Errorf("the folder is blamed: %v", err)
		}
		if d := cmp.Diff([]string{"step-000001"}, names(t, dir)); d != "" {
			t.Error(d)
		}
	}
}

func TestFolderThatCannotBeWritten(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	m := newMemory(1)
	_, err := Save(filepath.Join(file, "run"), state(1), FromSlabs(m.plan, m.view), 0)
	wantFault(t, "below a file", err, "MT0623", "--out")
	if os.Geteuid() == 0 {
		return // root may write anywhere
	}
	locked := filepath.Join(dir, "locked")
	if err := os.Mkdir(locked, 0o555); err != nil {
		t.Fatal(err)
	}
	_, err = Save(locked, state(1), FromSlabs(m.plan, m.view), 0)
	wantFault(t, "no permission", err, "MT0623", "permission denied")
}

// TestSetAsideLosesNothing: a name that is taken already is not overwritten.
func TestSetAsideLosesNothing(t *testing.T) {
	dir := t.TempDir()
	mustSave(t, dir, 1, 0)
	for range 3 {
		if err := os.Remove(filepath.Join(mustSave(t, dir, 2, 0), manifestFile)); err != nil {
			t.Fatal(err)
		}
		if _, err := SetAside(dir, 1); err != nil {
			t.Fatal(err)
		}
	}
	if d := cmp.Diff([]string{"step-000001", "step-000002.damaged", "step-000002.damaged-2", "step-000002.damaged-3"}, names(t, dir)); d != "" {
		t.Error(d)
	}
}

func TestSaveSweepsWhatACrashLeft(t *testing.T) {
	dir := t.TempDir()
	for _, left := range []string{".tmp-step-000009", ".old-step-000001"} {
		if err := os.MkdirAll(filepath.Join(dir, left, "x"), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	mustSave(t, dir, 10, 0)
	if d := cmp.Diff([]string{"step-000010"}, names(t, dir)); d != "" {
		t.Error(d)
	}
}

func TestRunFoldersAreNotMixed(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	if err := Fresh(dir); err != nil {
		t.Error(err)
	}
	mustSave(t, dir, 10, 0)
	mustSave(t, dir, 20, 0)
	wantFault(t, "not fresh", Fresh(dir), "MT0626", "step 20", "--resume")
	wantFault(t, "abandons", Newest(dir, 10), "MT0626", "step-000020")
	if err := Newest(dir, 20); err != nil {
		t.Error(err)
	}
}

func TestLockKeepsASecondRunOut(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	f, err := Lock(dir)
	if err != nil {
		t.Fatal(err)
	}
	_, err = Lock(dir)
	wantFault(t, "second", err, "MT0626", "another process")
	if err := os.Remove(filepath.Join(dir, lockFile)); err != nil {
		t.Fatal(err)
	}
	_, err = Lock(dir)
	wantFault(t, "without the file", err, "MT0626", "another process")
	f.Unlock()
	if f, err = Lock(dir); err != nil {
		t.Fatalf("after unlock: %v", err)
	}
	f.Unlock()
}

// TestFolderKnowsItsPlace: a run folder that was moved, removed or replaced is not taken for the
// one that was locked.
func TestFolderKnowsItsPlace(t *testing.T) {
	for _, c := range []struct {
		name string
		do   func(dir string) error
		want string // below the parent; "": nowhere
	}{
		{"left alone", func(string) error { return nil }, "run"},
		{"moved", func(dir string) error { return os.Rename(dir, dir+"-moved") }, "run-moved"},
		{"removed", os.RemoveAll, ""},
		{"made anew", func(dir string) error { return errors.Join(os.RemoveAll(dir), os.Mkdir(dir, 0o777)) }, ""},
		{"a file in its place", func(dir string) error { return errors.Join(os.RemoveAll(dir), os.WriteFile(dir, nil, 0o666)) }, ""},
		{"a link to where it is", func(dir string) error {
			return errors.Join(os.Rename(dir, dir+"-moved"), os.Symlink(dir+"-moved", dir))
		}, "run"},
	} {
		dir := filepath.Join(t.TempDir(), "run")
		f, err := Lock(dir)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.do(dir); err != nil {
			t.Fatal(err)
		}
		want := ""
		if c.want != "" {
			want = filepath.Join(filepath.Dir(dir), c.want)
		}
		if got := f.Place(); got != want && !(got == "" && runtime.GOOS != "linux") {
			t.Errorf("%s: it is in %q, wanted %q", c.name, got, want)
		}
		f.Unlock()
	}
}

func TestLoadStopsAtAFailingWriter(t *testing.T) {
	dir := t.TempDir()
	mustSave(t, dir, 1, 0)
	c, err := Latest(dir)
	if err != nil {
		t.Fatal(err)
	}
	boom := errors.New("boom")
	err = c.Load(WeightsFile, func(*safetensors.Tensor) (Use, error) { return nil, boom })
	if !errors.Is(err, boom) {
		t.Errorf("got %v", err)
	}
}

func FuzzManifest(f *testing.F) {
	dir := f.TempDir()
	m := newMemory(1)
	path, err := Save(dir, state(1), FromSlabs(m.plan, m.view), 0)
	if err != nil {
		f.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(path, manifestFile))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte(`{"format":1,"files":[{"name":"../../x","bytes":0,"crc32c":""}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		if err := os.WriteFile(filepath.Join(path, manifestFile), text, 0o666); err != nil {
			t.Fatal(err)
		}
		c, err := Open(path)
		if err != nil {
			var fe *fault.Error
			if !errors.As(err, &fe) || fe.Code != "MT0621" {
				t.Fatalf("not a checkpoint fault: %v", err)
			}
			return
		}
		if !json.Valid(text) {
			t.Fatal("a manifest that is not JSON was accepted")
		}
		for _, e := range c.manifest.Files {
			if strings.ContainsAny(e.Name, "/\\") {
				t.Fatalf("a file outside of the folder was accepted: %q", e.Name)
			}
		}
	})
}

// splitMemory is memory with split masters that are those of m.
func splitMemory(m *memory) *memory {
	s := &memory{plan: &plan.Plan{Model: m.plan.Model, ModelHash: m.plan.ModelHash, Precision: "bf16"}, bufs: map[plan.BufID][]byte{}}
	for i, slab := range m.plan.Slabs {
		whole := MastersOf(&slab, m.view)
		slab.Lo = plan.BufID(100 + i)
		s.bufs[slab.Weight], s.bufs[slab.Lo] = make([]byte, 2*slab.Elems), make([]byte, 2*slab.Elems)
		s.bufs[slab.M], s.bufs[slab.V] = m.bufs[slab.M], m.bufs[slab.V]
		split := MastersOf(&slab, s.view)
		split.Write(0, whole.Range(0, slab.Elems))
		s.plan.Slabs = append(s.plan.Slabs, slab)
	}
	return s
}

// TestCheckpointsMoveBetweenPrecisions: the files are the same whether masters are split, and
// each kind of memory loads them.
func TestCheckpointsMoveBetweenPrecisions(t *testing.T) {
	whole := newMemory(9)
	split := splitMemory(whole)
	dirs := []string{t.TempDir(), t.TempDir()}
	for i, m := range []*memory{whole, split} {
		if _, err := Save(dirs[i], state(3), FromSlabs(m.plan, m.view), 0); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{WeightsFile, OptimizerFile} {
		a, err := os.ReadFile(filepath.Join(dirs[0], "step-000003", name))
		b, err2 := os.ReadFile(filepath.Join(dirs[1], "step-000003", name))
		if err != nil || err2 != nil || !bytes.Equal(a, b) {
			t.Errorf("%s differs (%v, %v)", name, err, err2)
		}
	}
	c, err := Latest(dirs[0])
	if err != nil {
		t.Fatal(err)
	}
	for _, moments := range []bool{true, false} {
		to := splitMemory(newMemory(77))
		if !moments { // as in generation, which has no lo
			for i := range to.plan.Slabs {
				delete(to.bufs, to.plan.Slabs[i].Lo)
			}
		}
		if err := c.LoadSlabs(to.plan, to.view, moments); err != nil {
			t.Fatal(err)
		}
		for _, s := range to.plan.Slabs {
			for _, id := range []plan.BufID{s.Weight, s.Lo, s.M, s.V} {
				if got, ok := to.bufs[id]; ok && (moments || id == s.Weight) && !bytes.Equal(got, split.bufs[id]) {
					t.Errorf("moments %t: buffer %d of %s is not what was saved", moments, id, s.Name)
				}
			}
		}
	}
}
