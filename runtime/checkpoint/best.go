package checkpoint

import (
	"os"
	"path/filepath"

	"github.com/megatrain/mtc/runtime/fault"
)

// BestFolder, in a run folder, holds the weights with the lowest evaluation loss so far: a
// checkpoint without the optimizer's state, to generate from or to export, not to go on from.
const BestFolder = "best"

const (
	bestTmp = tmpPrefix + BestFolder
	bestOld = oldPrefix + BestFolder
)

// SaveBest writes BestFolder, or replaces it. Files of the optimizer are left out.
func SaveBest(dir string, st State, files []File) error {
	var weights []File
	for _, f := range files {
		if f.Name != OptimizerFile {
			weights = append(weights, f)
		}
	}
	if err := restoreBest(dir); err != nil {
		return notWritten(dir, st.Step, weights, err)
	}
	tmp, final, old := filepath.Join(dir, bestTmp), filepath.Join(dir, BestFolder), filepath.Join(dir, bestOld)
	err := write(dir, tmp, st, weights)
	if err == nil {
		err = os.RemoveAll(old)
	}
	if err == nil {
		err = swap(tmp, final, old)
	}
	if err != nil {
		os.RemoveAll(tmp)
		return notWritten(dir, st.Step, weights, err)
	}
	return nil
}

// Best opens BestFolder, nil when there is none.
func Best(dir string) (*Checkpoint, error) {
	if err := restoreBest(dir); err != nil {
		return nil, fault.New("MT0623", dir, "the best checkpoint cannot be put back").Wrap(cause(err))
	}
	path := filepath.Join(dir, BestFolder)
	if _, err := os.Stat(path); os.IsNotExist(err) {
		return nil, nil
	}
	return Open(path)
}

// restoreBest puts back what a SaveBest that was cut short had moved aside.
func restoreBest(dir string) error {
	old, final := filepath.Join(dir, bestOld), filepath.Join(dir, BestFolder)
	if _, err := os.Lstat(final); !os.IsNotExist(err) {
		return nil
	}
	if err := os.Rename(old, final); err != nil && !os.IsNotExist(err) {
		return err
	}
	return nil
}

// Whole says whether a checkpoint has what going on takes, and not the weights alone.
func (c *Checkpoint) Whole() bool {
	for _, f := range c.manifest.Files {
		if f.Name == OptimizerFile {
			return true
		}
	}
	return false
}
