package hf

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/megatrain/mtc/runtime/aside"
	"github.com/megatrain/mtc/runtime/checkpoint"
	"github.com/megatrain/mtc/runtime/checkpoint/safetensors"
	"github.com/megatrain/mtc/runtime/fault"
	"github.com/megatrain/mtc/runtime/plan"
)

// ShardBytes is the size from which an export begins another file.
const ShardBytes = 5_000_000_000

// Request is what to export.
type Request struct {
	Plan       *plan.Plan
	Run        string // the run folder
	Checkpoint *checkpoint.Checkpoint
	DType      string // F32, F16, BF16; "": as the weights came, else F32
	ShardBytes int64  // of one file at most, if its tensors are smaller; 0: ShardBytes
	// Base is the frozen weights, of a run that trains adapters: Export merges these into them.
	Base *Matching
}

// Result is what an export wrote.
type Result struct {
	Dir     string
	Arch    string
	Files   []string
	Bytes   int64
	Tensors int
	Notes   []string
}

// Export writes the folder dir, which must not be there or be empty. It takes its name when it
// is whole.
func Export(dir string, r *Request) (*Result, error) {
	place, err := placeOf(dir)
	if err != nil {
		return nil, err
	}
	if own := filepath.Base(filepath.Clean(dir)); (own == keepFolder || own == tokenizerFolder) && same(filepath.Dir(filepath.Clean(dir)), r.Run) {
		return nil, fault.New("MT0664", dir, "the run folder keeps files of its own there").Help("give another folder")
	}
	x := &exporter{Request: r, res: &Result{Dir: dir}}
	if err := x.plan(); err != nil {
		return nil, err
	}
	if err := r.Checkpoint.Verify(); err != nil {
		return nil, err
	}
	weights, err := safetensors.Open(filepath.Join(r.Checkpoint.Path, checkpoint.WeightsFile))
	if err != nil {
		return nil, err
	}
	defer weights.Close()
	x.weights = weights
	parent := filepath.Dir(place)
	if err := os.MkdirAll(parent, 0o777); err != nil {
		return nil, cannotWrite(parent, err)
	}
	tmp, err := aside.Make(parent, ".export-")
	if err != nil {
		return nil, cannotWrite(parent, err)
	}
	defer tmp.Remove()
	x.tmp = tmp.Path
	if err := x.write(); err != nil {
		return nil, x.cannotWrite(err)
	}
	if err := tmp.Move(place); err != nil {
		return nil, cannotWrite(dir, err)
	}
	return x.res, nil
}

// placeOf is where an export named dir goes.
func placeOf(dir string) (string, error) {
	place, err := aside.Place(dir)
	if err != nil {
		return "", fault.New("MT0664", dir, "it cannot be written").Wrap(err).Help("give a folder that is not there yet")
	}
	return place, nil
}

// cannotWrite is an error of an export; files have the names that they would have had.
func (x *exporter) cannotWrite(err error) error {
	var f *fault.Error
	var pe *os.PathError
	if errors.As(err, &f) {
		return err
	}
	if errors.As(err, &pe) && filepath.Dir(pe.Path) == x.tmp {
		err = &os.PathError{Op: pe.Op, Path: filepath.Join(x.res.Dir, filepath.Base(pe.Path)), Err: pe.Err}
	}
	return cannotWrite(x.res.Dir, err)
}

// exporter is an export under way.
type exporter struct {
	*Request
	res     *Result
	layout  *layout
	config  []byte // nil: the kept one
	own     bool   // own.go
	weights *safetensors.File
	buffers *safetensors.File
	tmp     string
}

// plan decides on configuration and files before anything is written.
func (x *exporter) plan() error {
	if x.own = owned(x.Plan); x.own && len(x.Plan.Foreign) == 0 {
		p := *x.Plan
		p.Foreign = Entries(x.Plan)
		x.Plan = &p
	}
	if len(x.Plan.Foreign) == 0 {
		return x.none(x.Plan.Family.Why)
	}
	anew := x.DType != "" || x.ShardBytes != 0
	if x.ShardBytes == 0 {
		x.ShardBytes = ShardBytes
	}
	if path := filepath.Join(x.Run, keepFolder, buffersFile); exists(path) {
		f, err := safetensors.Open(path)
		if err != nil {
			return err
		}
		x.buffers = f
	}
	if !Kept(x.Run) {
		return x.fresh("")
	}
	kept, err := keptLayout(x.Run, x.Plan.Foreign, ShapesOf(x.Plan), x.buffers)
	if err != nil {
		return err
	}
	x.layout = kept
	if anew {
		var all []outTensor
		for _, f := range kept.files {
			all = append(all, f.tensors...)
		}
		x.layout = freshLayout(all, x.DType, x.ShardBytes)
	}
	return x.keptConfig()
}

// none is the error for a model that no architecture expresses.
func (x *exporter) none(why string) error {
	return fault.New("MT0664", x.Plan.Source, "no known architecture is this model: %s", why).
		Help("known are %s; the weights themselves are in %s, which anything reads that reads safetensors",
			strings.Join(Architectures(), ", "), filepath.Join(x.Checkpoint.Path, checkpoint.WeightsFile))
}

// fresh is an export of a model whose weights came from nowhere else.
func (x *exporter) fresh(dtype string) error {
	if x.DType != "" {
		dtype = x.DType
	}
	if dtype == "" {
		dtype = "F32"
	}
	text, why := configOf(x.Plan.Family, dtype, x.Plan.Seq)
	if x.own {
		var err error
		if text, err = x.ownConfig(dtype); err != nil {
			return err
		}
		x.res.Notes = append(x.res.Notes, "no other architecture is this model: "+x.Plan.Family.Why)
	} else if why != "" {
		return x.none(why)
	}
	x.config = text
	if x.layout == nil {
		tensors, err := tensorsOf(x.Plan)
		if err != nil {
			return err
		}
		x.layout = freshLayout(tensors, dtype, x.ShardBytes)
	}
	return x.noteArch(text)
}

func (x *exporter) noteArch(config []byte) error {
	o, err := parseObject(config)
	if err != nil {
		return err
	}
	if list, ok := o["architectures"].([]any); ok && len(list) > 0 {
		x.res.Arch = fmt.Sprint(list[0])
	}
	return nil
}

var dtypeKey = regexp.MustCompile(`("(?:torch_)?dtype"\s*:\s*)"[a-z0-9]+"`)

// keptConfig takes the configuration that came with the weights, as long as it is still that of
// the model.
func (x *exporter) keptConfig() error {
	if x.own {
		return x.fresh(x.layout.files[0].tensors[0].dtype)
	}
	path := filepath.Join(x.Run, keepFolder, configFile)
	o, text, err := readObject(path)
	if err != nil {
		return err
	}
	d, err := describe(path, o)
	switch {
	case err != nil && x.Plan.Family.Name == "":
		x.res.Notes = append(x.res.Notes, "config.json is the one that came with the weights; whether it is still the model's, nobody knows here")
	case x.Plan.Family.Name == "":
		return x.none(x.Plan.Family.Why)
	case err != nil:
		return err
	default:
		if diff := Differences(d, x.Plan.Family); len(diff) > 0 {
			x.res.Notes = append(x.res.Notes, "config.json is written anew, since the model is no longer the one that came: "+strings.Join(diff, ", "))
			if err := x.fresh(x.layout.files[0].tensors[0].dtype); err != nil {
				return err
			}
			return nil
		}
	}
	if x.DType != "" {
		text = dtypeKey.ReplaceAll(text, []byte(`${1}"`+dtypeNames[x.DType]+`"`))
		x.config = text
	}
	return x.noteArch(text)
}
