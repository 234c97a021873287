package hf

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"

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
	if entries, err := os.ReadDir(dir); err == nil && len(entries) > 0 || err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fault.New("MT0664", dir, "there is something there already").Help("give a folder that is not there yet")
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
	parent := filepath.Dir(filepath.Clean(dir))
	if err := os.MkdirAll(parent, 0o777); err != nil {
		return nil, cannotWrite(parent, err)
	}
	x.tmp = filepath.Join(parent, fmt.Sprintf(".export-%d-%s", os.Getpid(), filepath.Base(filepath.Clean(dir))))
	if err := os.Mkdir(x.tmp, 0o777); err != nil {
		return nil, cannotWrite(parent, err)
	}
	defer os.RemoveAll(x.tmp)
	if err := x.write(); err != nil {
		var f *fault.Error
		if errors.As(err, &f) {
			return nil, err
		}
		return nil, cannotWrite(dir, err)
	}
	if err := os.Rename(x.tmp, dir); err != nil {
		return nil, cannotWrite(dir, err)
	}
	return x.res, nil
}

// exporter is an export under way.
type exporter struct {
	*Request
	res     *Result
	layout  *layout
	config  []byte // nil: the kept one
	weights *safetensors.File
	buffers *safetensors.File
	tmp     string
	memory  buffers
}

// plan decides on configuration and files before anything is written.
func (x *exporter) plan() error {
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
	if why != "" {
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

// Differences lists where a description differs from the family that a program is of.
func Differences(d *Description, f plan.Family) (out []string) {
	if d.Family != f.Name {
		return []string{fmt.Sprintf("family %s there and %s here", d.Family, f.Name)}
	}
	here := values(f.Values)
	for _, v := range d.Values {
		// The weight of the balance loss is a setting of training, as the learning rate is.
		if mine := here[v.Name]; normal(mine) != normal(v.Text) && v.Name != "alpha" {
			out = append(out, fmt.Sprintf("%s is %s there and %s here", v.Name, v.Text, mine))
		}
	}
	return out
}

// normal writes a value with the defaults that may be left out of it.
func normal(text string) string {
	if s, ok := strings.CutPrefix(text, "yarn("); ok {
		for n := strings.Count(s, ","); n < 3; n++ {
			s = strings.TrimSuffix(s, ")") + []string{"", ", 32)", ", 1)"}[n]
		}
		return "yarn(" + s
	}
	return text
}

// write writes the files.
func (x *exporter) write() error {
	for i := range x.layout.files {
		if err := x.file(&x.layout.files[i]); err != nil {
			return err
		}
	}
	if x.layout.index != nil {
		if err := x.put(indexFile, x.layout.index); err != nil {
			return err
		}
	}
	if x.config != nil {
		if err := x.put(configFile, x.config); err != nil {
			return err
		}
	}
	for _, dir := range []string{keepFolder, tokenizerFolder} {
		entries, err := os.ReadDir(filepath.Join(x.Run, dir))
		if err != nil {
			continue // a run that keeps none
		}
		for _, e := range entries {
			name := e.Name()
			if strings.HasSuffix(name, headerSuffix) || name == buffersFile || name == indexFile || e.IsDir() || exists(filepath.Join(x.tmp, name)) {
				continue
			}
			if err := copyFile(filepath.Join(x.Run, dir, name), filepath.Join(x.tmp, name)); err != nil {
				return err
			}
			x.res.Files = append(x.res.Files, name)
		}
	}
	return nil
}

func (x *exporter) put(name string, text []byte) error {
	x.res.Files = append(x.res.Files, name)
	return os.WriteFile(filepath.Join(x.tmp, name), text, 0o666)
}

// same says whether two paths are one folder.
func same(a, b string) bool {
	x, err1 := os.Stat(a)
	y, err2 := os.Stat(b)
	return err1 == nil && err2 == nil && os.SameFile(x, y)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// file writes one file of weights.
func (x *exporter) file(f *outFile) error {
	out, err := os.Create(filepath.Join(x.tmp, f.name))
	if err != nil {
		return err
	}
	defer out.Close()
	w := bufio.NewWriterSize(out, 1<<20)
	var entries []safetensors.Entry
	for i := range f.tensors {
		t := &f.tensors[i]
		entries = append(entries, safetensors.Entry{Name: t.name, DType: t.dtype, Shape: t.shape, Stream: func(w io.Writer) error { return x.tensor(w, t) }})
	}
	if f.header == nil {
		err = safetensors.Write(w, f.meta, entries)
	} else if _, err = io.Copy(w, bytes.NewReader(f.header)); err == nil {
		for i := range entries {
			if err = entries[i].Stream(w); err != nil {
				break
			}
		}
	}
	if err == nil {
		err = w.Flush()
	}
	if err != nil {
		return err
	}
	info, err := out.Stat()
	if err != nil {
		return err
	}
	x.res.Bytes += info.Size()
	x.res.Tensors += len(f.tensors)
	x.res.Files = append(x.res.Files, f.name)
	return out.Close()
}

// tensor writes the data of one tensor.
func (x *exporter) tensor(w io.Writer, t *outTensor) error {
	if t.buffer != nil {
		_, err := io.Copy(w, x.buffers.Data(t.buffer))
		return err
	}
	raw := make([]byte, block*width(t.dtype))
	var lost int64
	put := func(v []float32) error {
		for len(v) > 0 {
			k := min(len(v), block)
			lost += encode(raw, v[:k], t.dtype)
			if _, err := w.Write(raw[:int64(k)*width(t.dtype)]); err != nil {
				return err
			}
			v = v[k:]
		}
		return nil
	}
	err := x.values(t, put)
	if lost > 0 {
		x.res.Notes = append(x.res.Notes, fmt.Sprintf("%d values of %s are too large for %s and are infinite there", lost, t.name, dtypeNames[t.dtype]))
	}
	return err
}

// values hands out a tensor's numbers in order.
func (x *exporter) values(t *outTensor, put func([]float32) error) error {
	var parts []*located
	for _, path := range t.entry.Params {
		p := x.weights.Lookup(path)
		if p == nil || p.DType != "F32" {
			return fault.New("MT0625", x.weights.Path, "there is no tensor %s of f32", path)
		}
		parts = append(parts, &located{p, &Shard{File: x.weights}})
	}
	from, rows := int64(0), int64(0)
	for _, p := range parts {
		rows += p.Shape[0]
	}
	transposed := strings.Contains(t.entry.Op, "transpose")
	if n := int64(len(t.entry.Names)); n > 1 { // a join: rows of the only parameter
		rows /= n
		from = int64(t.part) * rows
	}
	if !transposed {
		for _, p := range parts {
			per := p.Elems() / p.Shape[0]
			if err := p.elements(from*per, min(rows, p.Shape[0])*per, &x.memory, put); err != nil {
				return p.failed(err)
			}
		}
		return nil
	}
	cols := parts[0].Shape[1]
	raw := x.memory.whole(4 * rows * cols)[:0]
	for _, p := range parts {
		in := io.NewSectionReader(x.weights.DataAt(p.Tensor), 4*from*cols, 4*min(rows, p.Shape[0])*cols)
		at := len(raw)
		raw = raw[:int64(at)+in.Size()]
		if _, err := io.ReadFull(in, raw[at:]); err != nil {
			return p.failed(err)
		}
	}
	return columns(raw, "F32", rows, cols, 0, cols, &x.memory, put)
}
