//go:build unix

package main

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/megatrain/mtc/runtime/checkpoint"
)

// next reads what a run prints until a line that begins so.
func (s *started) next(until string) {
	s.t.Helper()
	for {
		line, err := s.out.ReadString('\n')
		if err != nil {
			s.t.Fatalf("it ended before a line %q\n%s", until, &s.errs)
		}
		if strings.HasPrefix(line, until) {
			return
		}
	}
}

// whole checks that a run folder has a whole checkpoint, generates by itself and goes on.
func (w *workFolder) whole(what, dir string) {
	w.t.Helper()
	c, err := checkpoint.Latest(filepath.Join(w.dir, dir))
	if err != nil || c.Verify() != nil {
		w.t.Errorf("%s: the newest checkpoint: %v", what, err)
		return
	}
	for _, name := range []string{"run.json", "program", "tiny one.mt", "schedule.json"} {
		if _, err := os.Stat(filepath.Join(w.dir, dir, name)); err != nil {
			w.t.Errorf("%s: %v", what, err)
		}
	}
	w.must(".", "generate", dir, "--prompt", "the", "--tokens", "4")
	code, _, errs := w.call(".", "run", "--resume", "--out", dir, "--steps", "1")
	if code != exitInput {
		w.t.Errorf("%s: going on to step 1: exit %d", what, code)
	}
	contains(w.t, what, errs, "MT0620", "the run has done")
}

// TestRunFolderThatGoesAway: whatever becomes of a run's folder while it trains, what was trained
// is in a whole run folder at the end, and the run says where unless that is the folder it was given.
func TestRunFolderThatGoesAway(t *testing.T) {
	w := newWorkFolder(t)
	w.must(".", "compile", "my models/tiny one.mt")
	make := func(path, name string) error {
		return errors.Join(os.RemoveAll(path), os.Mkdir(path, 0o777), os.WriteFile(filepath.Join(path, name), nil, 0o666))
	}
	for _, c := range []struct {
		name  string
		do    func(path string) error
		where string // of the run at the end, beside where it was; "": it goes on
	}{
		{"removed", os.RemoveAll, "run"},
		{"moved", func(path string) error { return os.Rename(path, path+"-moved") }, "run-moved"},
		{"made anew", func(path string) error { return errors.Join(os.RemoveAll(path), os.Mkdir(path, 0o777)) }, "run"},
		{"another folder in its place", func(path string) error { return make(path, "x") }, "run-2"},
		{"a file in its place", func(path string) error { return errors.Join(os.RemoveAll(path), os.WriteFile(path, nil, 0o666)) }, "run-2"},
		{"a link to nowhere in its place", func(path string) error { return errors.Join(os.RemoveAll(path), os.Symlink("nowhere", path)) }, "run-2"},
		{"the parent removed", func(path string) error { return errors.Join(os.RemoveAll(path), os.Remove(filepath.Dir(path))) }, "run"},
		{"its files removed", func(path string) error {
			return errors.Join(os.Remove(filepath.Join(path, "run.json")), os.Remove(filepath.Join(path, "program")), os.Remove(filepath.Join(path, ".lock")))
		}, ""},
		{"emptied", empty, ""},
	} {
		parent := filepath.Join("runs", c.name)
		run := w.start("save ", ".", "run", "--steps", "100000000", "--save-every", "20", "--out", filepath.Join(parent, "run"))
		run.stop() // it writes nothing meanwhile
		if err := c.do(filepath.Join(w.dir, parent, "run")); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		run.signal(syscall.SIGCONT)
		if c.where == "" {
			run.next("save ")
			run.next("save ")
			run.signal(syscall.SIGTERM)
		}
		code, text := run.end()
		where := filepath.Join(parent, "run")
		if c.where == "" {
			if code != 143 {
				t.Errorf("%s: exit %d\n%s", c.name, code, text)
			}
		} else {
			if code != exitInput {
				t.Errorf("%s: exit %d\n%s", c.name, code, text)
			}
			where = filepath.Join(parent, c.where)
			contains(t, c.name, text, "MT0629", "is saved", "goes on")
		}
		w.whole(c.name, where)
	}
}

// empty removes what is in a folder.
func empty(path string) error {
	entries, err := os.ReadDir(path)
	for _, e := range entries {
		err = errors.Join(err, os.RemoveAll(filepath.Join(path, e.Name())))
	}
	return err
}

// TestRunIsEndedFromOutside: a hangup and a reader that is gone end a run as an interrupt does, and
// a hangup that the run was started to outlive does not.
func TestRunIsEndedFromOutside(t *testing.T) {
	w := newWorkFolder(t)
	w.must(".", "compile", "my models/tiny one.mt")
	run := w.start("step ", ".", "run", "--steps", "100000000", "--out", "hangup")
	run.signal(syscall.SIGHUP)
	if code, text := run.end(); code != 129 || !strings.Contains(text, "finishing the step") {
		t.Errorf("a hangup: exit %d\n%s", code, text)
	}
	w.whole("a hangup", "hangup")

	r, to, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := w.command(".", "run", "--steps", "100000000", "--out", "no reader")
	cmd.Stdout = to
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	to.Close()
	buf := make([]byte, 1)
	if _, err := r.Read(buf); err != nil {
		t.Fatal(err)
	}
	r.Close()
	if code := exitCodeOf(t, cmd.Wait()); code != 141 {
		t.Errorf("no reader: exit %d", code)
	}
	if _, err := os.Stat(filepath.Join(w.dir, "no reader", "run.json")); err != nil {
		t.Error(err)
	}
	if got := w.steps("no reader"); len(got) != 1 {
		t.Errorf("no reader: checkpoints %v", got)
	}

	// Started to outlive a hangup, as by nohup: the shell ignores it, and so does what it becomes.
	sh := exec.Command("sh", "-c", `trap '' HUP; exec "$0" run --steps 100000000 --out outlives --save-every 1`, w.mtc)
	sh.Dir = w.dir
	out, err := sh.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := sh.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = sh.Process.Kill() })
	on := &started{t: t, cmd: sh, out: bufio.NewReader(out)}
	on.next("save ")
	on.signal(syscall.SIGHUP)
	for range 5 {
		on.next("save ")
	}
	on.signal(syscall.SIGTERM)
	if code, text := on.end(); code != 143 {
		t.Errorf("started to outlive a hangup: exit %d\n%s", code, text)
	}
}
