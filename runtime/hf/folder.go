package hf

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sort"
	"strings"

	"github.com/megatrain/mtc/runtime/checkpoint/safetensors"
	"github.com/megatrain/mtc/runtime/fault"
)

// Names of files.
const (
	configFile  = "config.json"
	singleFile  = "model.safetensors"
	indexFile   = "model.safetensors.index.json"
	maxShards   = 10_000
	indexSuffix = ".safetensors.index.json"
)

// Folder is an open folder.
type Folder struct {
	Path   string
	Config object
	Index  string // name of the index file, "" without one
	Shards []*Shard
	tensor map[string]*located // by bare name
}

// Shard is one file of weights.
type Shard struct {
	Name string
	*safetensors.File
}

// located is a tensor with its file.
type located struct {
	*safetensors.Tensor
	shard *Shard
}

// bare is a tensor's name without the prefix of its base model, which some files have and
// others have not.
func bare(name string) string {
	for _, p := range []string{"model.", "transformer."} {
		if rest, ok := strings.CutPrefix(name, p); ok {
			return rest
		}
	}
	return name
}

// Open reads the configuration and the headers of all weights. Everything that is wrong with
// the files is one error.
func Open(dir string) (*Folder, error) {
	info, err := os.Stat(dir)
	if err == nil && !info.IsDir() {
		return nil, fault.New("MT0662", dir, "a folder is wanted: config.json and safetensors files")
	}
	if err != nil {
		return nil, unreadable(dir, err)
	}
	f := &Folder{Path: dir, tensor: map[string]*located{}}
	if f.Config, _, err = readObject(filepath.Join(dir, configFile)); err != nil {
		return nil, err
	}
	names, listed, faults, err := f.list()
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		s, err := safetensors.Open(filepath.Join(dir, name))
		if err != nil {
			var fe *fault.Error
			errors.As(err, &fe)
			faults = append(faults, fmt.Sprintf("%s: %s", name, strings.TrimPrefix(fe.Error(), fe.Code+": "+fe.Path+": ")))
			continue
		}
		f.Shards = append(f.Shards, &Shard{name, s})
	}
	faults = append(faults, f.gather()...)
	faults = append(faults, f.stale(listed)...)
	if len(faults) > 0 {
		f.Close()
		return nil, fault.New("MT0662", dir, "the weights cannot be used:%s", lines(faults)).Help("fetch the folder again")
	}
	return f, nil
}

// Close closes the shards.
func (f *Folder) Close() error {
	var err error
	for _, s := range f.Shards {
		err = errors.Join(err, s.Close())
	}
	return err
}

var numbered = regexp.MustCompile(`^model-\d+-of-\d+\.safetensors$`)

// list names the shards: those of the index, else the single file. listed is the index.
func (f *Folder) list() (names []string, listed map[string]string, faults []string, err error) {
	entries, err := os.ReadDir(f.Path)
	if err != nil {
		return nil, nil, nil, unreadable(f.Path, err)
	}
	var single, pickles bool
	var parts, others []string
	for _, e := range entries {
		name := e.Name()
		switch {
		case name == indexFile:
			f.Index = name
		case name == singleFile:
			single = true
		case numbered.MatchString(name):
			parts = append(parts, name)
		case strings.HasSuffix(name, ".safetensors") && !strings.HasPrefix(name, "."):
			others = append(others, name)
		case strings.HasPrefix(name, "pytorch_model") && strings.HasSuffix(name, ".bin"):
			pickles = true
		}
	}
	if f.Index == "" {
		switch {
		case single:
			return []string{singleFile}, nil, nil, nil
		case len(parts) > 0:
			return nil, nil, nil, fault.New("MT0662", f.Path, "there are %d shards, %s and on, and no %s", len(parts), parts[0], indexFile).
				Help("fetch the folder whole: without the index nobody knows whether shards are missing")
		case len(others) == 1:
			return others, nil, nil, nil
		case pickles:
			return nil, nil, nil, fault.New("MT0662", f.Path, "the weights are pickles of Python (pytorch_model*.bin), which can run code when they are read").
				Help("store them as safetensors: model.save_pretrained(DIR, safe_serialization=True)")
		}
		return nil, nil, nil, fault.New("MT0662", f.Path, "there are no weights: neither %s nor %s", singleFile, indexFile)
	}
	listed, err = f.readIndex()
	if err != nil {
		return nil, nil, nil, err
	}
	have := map[string]bool{}
	for _, e := range entries {
		have[e.Name()] = true
	}
	want := map[string]bool{}
	for _, shard := range listed {
		want[shard] = true
	}
	for shard := range want {
		names = append(names, shard)
	}
	sort.Strings(names)
	names = slices.DeleteFunc(names, func(n string) bool {
		if !have[n] {
			faults = append(faults, fmt.Sprintf("%s is missing; %s names it", n, f.Index))
		}
		return !have[n]
	})
	for _, p := range parts {
		if !want[p] {
			faults = append(faults, fmt.Sprintf("%s is there, and %s does not name it: the index is of other weights", p, f.Index))
		}
	}
	return names, listed, faults, nil
}

// readIndex returns the shard of each tensor.
func (f *Folder) readIndex() (map[string]string, error) {
	path := filepath.Join(f.Path, f.Index)
	o, _, err := readObject(path)
	if err != nil {
		return nil, err
	}
	m, ok := o["weight_map"].(object)
	if !ok || len(m) == 0 {
		return nil, fault.New("MT0662", path, "the index has no weight_map")
	}
	out := map[string]string{}
	shards := map[string]bool{}
	for tensor, v := range m {
		name, ok := v.(string)
		if !ok || !filepath.IsLocal(name) || filepath.Base(name) != name || !strings.HasSuffix(name, ".safetensors") {
			return nil, fault.New("MT0662", path, "the index puts %q into %s, which is no safetensors file of the folder", tensor, jsonText(v))
		}
		out[tensor] = name
		if shards[name] = true; len(shards) > maxShards {
			return nil, fault.New("MT0662", path, "the index names more than %d shards", maxShards)
		}
	}
	return out, nil
}

// gather notes the tensors of all shards. Two of one name are a fault, also where they differ
// in the prefix only.
func (f *Folder) gather() (faults []string) {
	for _, s := range f.Shards {
		for i := range s.Tensors {
			t := &s.Tensors[i]
			if twin, twice := f.tensor[bare(t.Name)]; twice {
				faults = append(faults, fmt.Sprintf("%s in %s and %s in %s are the same tensor twice", twin.Name, twin.shard.Name, t.Name, s.Name))
				continue
			}
			f.tensor[bare(t.Name)] = &located{t, s}
		}
	}
	return faults
}

// stale compares the index with what the shards hold.
func (f *Folder) stale(listed map[string]string) (faults []string) {
	if listed == nil {
		return nil
	}
	open := map[string]*Shard{}
	for _, s := range f.Shards {
		open[s.Name] = s
		for i := range s.Tensors {
			if name := s.Tensors[i].Name; listed[name] == "" {
				faults = append(faults, fmt.Sprintf("%s has %s, which %s does not list", s.Name, name, f.Index))
			}
		}
	}
	for tensor, shard := range listed {
		if s := open[shard]; s != nil && s.Lookup(tensor) == nil {
			faults = append(faults, fmt.Sprintf("%s is not in %s, where %s puts it", tensor, shard, f.Index))
		}
	}
	sort.Strings(faults)
	return faults
}

func unreadable(path string, err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		err = pe.Err
	}
	f := fault.New("MT0602", path, "cannot be read").Wrap(err)
	if filepath.Base(path) == configFile && errors.Is(err, fs.ErrNotExist) {
		f.Hint = "a Hugging Face model is a folder with config.json and safetensors files"
	}
	return f
}
