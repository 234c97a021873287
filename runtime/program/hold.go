package program

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/megatrain/mtc/runtime/checkpoint"
	"github.com/megatrain/mtc/runtime/engine"
	"github.com/megatrain/mtc/runtime/fault"
)

// furnish writes what a run folder has besides checkpoints and metrics.
func (s *session) furnish() error {
	return first(s.prog.writeRunFolder(s.out, s.train, s.packedAs()), s.keepWeights(), s.keepTokenizer())
}

// hold looks after the run folder before something is written there: it is the one that the run
// began in, and has what going on takes. Files that are gone are written again. A folder that was
// moved or removed while the run went on ends it, behind a checkpoint of the drained engine: in the
// folder where it is now, or in a new one.
func (s *session) hold(st engine.State) error {
	where := s.folder.Place()
	if where == s.out {
		for _, name := range []string{runFile, FileName(), filepath.Base(s.plan.Source)} {
			if _, err := os.Lstat(filepath.Join(s.out, name)); errors.Is(err, os.ErrNotExist) {
				fmt.Fprintf(s.outw, "note: %s had been removed from %s, and is written again\n", name, s.out)
				return s.furnish()
			}
		}
		return nil
	}
	lost := fault.New("MT0629", s.out, "the run folder was moved or removed during the run")
	was := s.out
	s.out = where
	if where == "" || s.write(st) != nil { // or is on its way out
		s.out = was
		if err := s.refound(); err != nil {
			return lost.Wrap(err).Help("the steps after the last checkpoint are lost")
		}
		if err := s.write(st); err != nil {
			return lost.Wrap(err).Help("the steps after the last checkpoint are lost")
		}
	}
	return lost.Help("what was trained until step %d is saved; `mtc run ... --resume --out %s` goes on", st.Step, fault.Shell(s.out))
}

// refound begins a run folder in place of one that is gone, under another name where something
// else stands there.
func (s *session) refound() (err error) {
	name := s.out
	for n := 2; ; n++ {
		if _, err := os.Lstat(s.out); err != nil {
			break
		}
		// The steps since have begun their lines anew in a folder that is empty but for them.
		if entries, err := os.ReadDir(s.out); err == nil && !slices.ContainsFunc(entries, func(e os.DirEntry) bool { return e.Name() != metricsFile && e.Name() != RoutingFile }) {
			break
		}
		s.out = fmt.Sprintf("%s-%d", name, n)
	}
	folder, err := checkpoint.Lock(s.out)
	if err != nil {
		return err
	}
	s.folder.Unlock()
	s.folder = folder
	return s.furnish()
}

// rescue saves what was trained where a run ends for what has no part in its state, such as data
// that cannot be read any more, and says so.
func (s *session) rescue(err error) error {
	var halted *engine.Halted
	var f *fault.Error
	st := s.engine.State()
	if s.noSave || st.Step == s.savedStep || st.Updates == 0 || !errors.As(err, &halted) ||
		!errors.As(err, &f) || f.Code == "MT0623" || f.Code == "MT0629" {
		return err
	}
	s.feed.Close() // its open files may be those that saving lacks
	note := fmt.Sprintf("what was trained until step %d is saved", st.Step)
	if failed := (*fault.Error)(nil); errors.As(s.save(st), &failed) {
		note = fmt.Sprintf("step %d: %v; %s", st.Step, failed, failed.Hint)
	}
	f.Hint = strings.TrimPrefix(f.Hint+"; "+note, "; ")
	return err
}
