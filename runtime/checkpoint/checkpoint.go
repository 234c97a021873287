// Package checkpoint keeps a run's state in its folder, so that training can go on from it
// bit for bit.
//
// A checkpoint is a folder:
//
//	step-000123/
//	    weights.safetensors     every parameter that learns by its path, f32
//	    optimizer.safetensors   moments: "m.<path>" and "v.<path>"
//	    router.safetensors      states of routers, only of a mixture of experts
//	    state.json              step, data position, seed, model, totals (State)
//	    manifest.json           size and CRC-32C of each of the others
//	best/                       the weights with the lowest evaluation loss, without moments
//
// Writing is atomic: everything goes to a hidden temporary folder, files and folder are
// synced, the manifest comes last, then one rename gives the folder its name. A crash or a
// full disk leaves the checkpoints before it untouched and, at most, a temporary folder that
// the next Save removes.
//
// Reading never falls back silently: when the newest checkpoint is damaged, the error says so
// and names the newest one that is whole; going on from that is the user's choice.
//
// Errors are *fault.Error with codes MT0602 and MT0620 to MT0626.
package checkpoint

import (
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"

	"github.com/megatrain/mtc/runtime/checkpoint/safetensors"
	"github.com/megatrain/mtc/runtime/fault"
	"github.com/megatrain/mtc/runtime/jsontext"
	"github.com/megatrain/mtc/runtime/plan"
)

// Names of the files of a checkpoint.
const (
	WeightsFile   = "weights.safetensors"
	OptimizerFile = "optimizer.safetensors"
	stateFile     = "state.json"
	manifestFile  = "manifest.json"
)

// State is what a run needs beside tensors. Batches are a pure function of seed and step, so
// the step is the data position.
type State struct {
	Step     int64  `json:"step"`     // training steps done; the next one has this number, from 0
	Updates  int64  `json:"updates"`  // optimizer updates done: Step less the skipped ones
	Skipped  int64  `json:"skipped"`  // steps skipped for a non-finite norm, in all
	InARow   int64  `json:"in_a_row"` // of which the last ones, without an update between
	Tokens   int64  `json:"tokens"`   // target tokens trained on
	Seed     int64  `json:"seed"`
	Batch    int64  `json:"batch"` // rows a step
	Seq      int64  `json:"seq"`
	Data     string `json:"data"` // data.Corpus.ID of the training data
	Model    string `json:"model"`
	Hash     string `json:"hash"`     // plan.Plan.ModelHash
	Compiler string `json:"compiler"` // version of mtc

	Values []plan.Value `json:"values,omitempty"` // plan.Plan.Values
	Sums   string       `json:"sums,omitempty"`   // plan.Plan.Sums

	Vectors string `json:"vectors,omitempty"` // instructions that the processor computed with

	// Base is where the frozen weights come from, of a run that trains adapters; they are not in
	// the checkpoint. Nil: everything is.
	Base *Base `json:"base,omitempty"`

	EvalLoss *float64 `json:"eval_loss,omitempty"` // of the weights, where they have been evaluated
	EvalData string   `json:"eval_data,omitempty"` // what that was on
	EvalOwed bool     `json:"eval_owed,omitempty"` // the evaluation that comes after this step was broken off
}

// Base names weights that a checkpoint goes with.
type Base struct {
	Path        string `json:"path"`        // the Hugging Face folder, absolute
	Fingerprint string `json:"fingerprint"` // of the tensors in it: hf.Matching.Fingerprint
}

// manifest lists the files; a folder without one is not a checkpoint.
type manifest struct {
	Format int             `json:"format"`
	Files  []manifestEntry `json:"files"`
}

type manifestEntry struct {
	Name  string `json:"name"`
	Bytes int64  `json:"bytes"`
	CRC   string `json:"crc32c"`
}

// format is the version of the folder's layout.
const format = 1

func sum(crc uint32) string { return fmt.Sprintf("%08x", crc) }

// Checkpoint is a folder whose manifest, sizes and state have been checked. The content of the
// tensors is checked when it is loaded.
type Checkpoint struct {
	Path     string
	State    State
	manifest manifest
}

// Open checks the manifest, the sizes of all files, and the state.
func Open(path string) (*Checkpoint, error) {
	c, err := open(path)
	if err != nil {
		return nil, advise(path, err)
	}
	return c, nil
}

func open(path string) (*Checkpoint, error) {
	c := &Checkpoint{Path: path}
	text, err := os.ReadFile(filepath.Join(path, manifestFile))
	if err != nil {
		return nil, c.damaged(manifestFile, "cannot be read").Wrap(cause(err))
	}
	if err := strict(text, &c.manifest); err != nil {
		return nil, c.damaged(manifestFile, "is not what was written").Wrap(err)
	}
	if c.manifest.Format != format {
		return nil, c.damaged(manifestFile, "has format %d, this program reads %d", c.manifest.Format, format)
	}
	for _, f := range c.manifest.Files {
		if !filepath.IsLocal(f.Name) || filepath.Base(f.Name) != f.Name {
			return nil, c.damaged(manifestFile, "names %q, which is not a file of the folder", f.Name)
		}
		info, err := os.Stat(filepath.Join(path, f.Name))
		switch {
		case err != nil:
			return nil, c.damaged(f.Name, "is missing").Wrap(cause(err))
		case info.Size() < f.Bytes:
			return nil, c.damaged(f.Name, "is cut short: %d bytes of %d", info.Size(), f.Bytes).At(info.Size())
		case info.Size() != f.Bytes:
			return nil, c.damaged(f.Name, "has %d bytes, %d were written", info.Size(), f.Bytes)
		}
	}
	text, err = os.ReadFile(filepath.Join(path, stateFile))
	if err != nil {
		return nil, c.damaged(stateFile, "cannot be read").Wrap(cause(err))
	}
	if err := c.compare(stateFile, crc32.Checksum(text, safetensors.Castagnoli)); err != nil {
		return nil, err
	}
	if err := strict(text, &c.State); err != nil {
		return nil, c.damaged(stateFile, "is not what was written").Wrap(err)
	}
	if step, ok := stepOf(filepath.Base(path)); ok && step != c.State.Step {
		return nil, c.damaged(stateFile, "is of step %d, and the folder's name says step %d: it was renamed or copied", c.State.Step, step)
	}
	return c, nil
}

// Tensors returns the header of one of the safetensors files.
func (c *Checkpoint) Tensors(name string) ([]safetensors.Tensor, error) {
	f, err := safetensors.Open(filepath.Join(c.Path, name))
	if err != nil {
		return nil, advise(c.Path, c.damaged(name, "cannot be used").Wrap(cause(err)))
	}
	defer f.Close()
	return f.Tensors, nil
}

// Use gets pieces of a tensor's bytes with where each begins, several at a time; it keeps none.
type Use func(at int64, b []byte)

// Load reads one safetensors file once, on all cores, hands each tensor's bytes to what into
// returns for it, and checks the file's CRC. When it fails, what was handed out must not be used.
func (c *Checkpoint) Load(name string, into func(t *safetensors.Tensor) (Use, error)) error {
	return advise(c.Path, c.load(name, into))
}

func (c *Checkpoint) load(name string, into func(t *safetensors.Tensor) (Use, error)) error {
	f, err := safetensors.Open(filepath.Join(c.Path, name))
	if err != nil {
		return c.damaged(name, "cannot be used").Wrap(cause(err))
	}
	defer f.Close()
	crc, err := f.Sum(f.HeaderBytes())
	if err != nil {
		return c.damaged(name, "cannot be read").Wrap(cause(err))
	}
	for i := range f.Tensors {
		t := &f.Tensors[i]
		use, err := into(t)
		if err != nil { // a header that was altered says what it likes
			if bad := c.intact(name); bad != nil {
				return bad
			}
			return err
		}
		sum, err := f.Range(t, 0, t.Bytes, use)
		if err != nil {
			return c.damaged(name, "tensor %q cannot be read", t.Name).Wrap(cause(err))
		}
		crc = safetensors.JoinSums(crc, sum, t.Bytes)
	}
	return c.compare(name, crc)
}

// Verify reads every file and checks its CRC.
func (c *Checkpoint) Verify() error { return advise(c.Path, c.verify()) }

func (c *Checkpoint) verify() error {
	for _, e := range c.manifest.Files {
		if err := c.intact(e.Name); err != nil {
			return err
		}
	}
	return nil
}

// intact reads a file and checks its CRC.
func (c *Checkpoint) intact(name string) error {
	crc, err := safetensors.SumFile(filepath.Join(c.Path, name))
	if err != nil {
		return c.damaged(name, "cannot be read").Wrap(cause(err))
	}
	return c.compare(name, crc)
}

func (c *Checkpoint) compare(name string, crc uint32) error {
	for _, f := range c.manifest.Files {
		if f.Name == name {
			if f.CRC != sum(crc) {
				return c.damaged(name, "was altered after it was written: CRC-32C %s instead of %s", sum(crc), f.CRC)
			}
			return nil
		}
	}
	return c.damaged(manifestFile, "does not list %s", name)
}

// damaged is an error about one file.
func (c *Checkpoint) damaged(name, format string, args ...any) *fault.Error {
	return fault.New("MT0621", filepath.Join(c.Path, name), "the checkpoint is damaged: "+name+" "+format, args...)
}

// advise adds to an error about a damaged checkpoint the newest whole one before it.
func advise(path string, err error) error {
	var f *fault.Error
	if !errors.As(err, &f) || f.Code != "MT0621" || f.Hint != "" {
		return err
	}
	if good := previous(path); good != "" {
		return f.Help("the newest whole one before it is %s; `mtc run ... --resume=%s` goes on from there", filepath.Base(good), filepath.Base(good))
	}
	return f.Help("there is no whole checkpoint before it: restore this one from a copy, or start again in another folder, `mtc run ... --out DIR`")
}

// strict decodes one JSON value that has no unknown keys and nothing after it.
func strict(text []byte, v any) error { return jsontext.Read(text, v, jsontext.Known) }
