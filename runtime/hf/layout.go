package hf

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"

	"github.com/megatrain/mtc/runtime/checkpoint/safetensors"
	"github.com/megatrain/mtc/runtime/fault"
	"github.com/megatrain/mtc/runtime/plan"
)

// layout is the files of weights that an export writes.
type layout struct {
	files []outFile
	index []byte // text of the index file, nil: none
}

// outFile is one of them. With header it begins with these bytes; else one is made.
type outFile struct {
	name    string
	header  []byte
	meta    map[string]string
	tensors []outTensor
}

// outTensor is a tensor of the file: part Part of a line of the map, or a kept constant.
type outTensor struct {
	name   string
	dtype  string
	shape  []int64
	entry  *plan.Foreign
	part   int
	buffer *safetensors.Tensor
}

// keptLayout is the one of the folder that the weights came from.
func keptLayout(run string, foreign []plan.Foreign, shapes Shapes, buffers *safetensors.File) (*layout, error) {
	paths, err := filepath.Glob(filepath.Join(run, keepFolder, "*"+headerSuffix))
	if err != nil || len(paths) == 0 {
		return nil, fault.New("MT0664", filepath.Join(run, keepFolder), "the headers of the weights are gone")
	}
	sort.Strings(paths)
	lines := byName(foreign)
	l := &layout{}
	seen := map[string]bool{}
	for _, path := range paths {
		header, err := os.ReadFile(path)
		if err != nil {
			return nil, unreadable(path, err)
		}
		ts, meta, err := safetensors.Header(path, header)
		if err != nil {
			return nil, err
		}
		f := outFile{name: strings.TrimSuffix(filepath.Base(path), headerSuffix), header: header, meta: meta}
		for i := range ts {
			t := outTensor{name: ts[i].Name, dtype: ts[i].DType, shape: ts[i].Shape}
			line, ok := lines[bare(t.name)]
			switch {
			case ok:
				t.entry, t.part = line.Foreign, line.part
				seen[bare(t.name)] = true
			case buffers != nil && buffers.Lookup(t.name) != nil:
				t.buffer = buffers.Lookup(t.name)
			default:
				return nil, fault.New("MT0664", path, "the model has no tensor %s any more", t.name)
			}
			f.tensors = append(f.tensors, t)
		}
		l.files = append(l.files, f)
	}
	for i := range foreign {
		for _, name := range foreign[i].Names {
			if !seen[bare(name)] {
				return nil, fault.New("MT0664", filepath.Join(run, keepFolder), "the folder that the weights came from had no tensor %s, which the model has", name)
			}
		}
	}
	if l.index, err = os.ReadFile(filepath.Join(run, keepFolder, indexFile)); err != nil {
		l.index = nil
	}
	return l, l.check(shapes)
}

// line is a line of the map, and which of its names a tensor has.
type line struct {
	*plan.Foreign
	part int
}

func byName(foreign []plan.Foreign) map[string]line {
	out := map[string]line{}
	for i := range foreign {
		for j, name := range foreign[i].Names {
			out[bare(name)] = line{&foreign[i], j}
		}
		for _, name := range foreign[i].Also {
			out[bare(name)] = line{&foreign[i], 0}
		}
	}
	return out
}

// freshLayout cuts tensors into files of at most most bytes, in order; without dtype each keeps
// its own.
func freshLayout(tensors []outTensor, dtype string, most int64) *layout {
	meta := map[string]string{"format": "pt"}
	l := &layout{files: []outFile{{meta: meta}}}
	var total, size int64
	for _, t := range tensors {
		if dtype != "" && t.buffer == nil {
			t.dtype = dtype
		}
		n := width(t.dtype)
		for _, d := range t.shape {
			n *= d
		}
		if t.buffer != nil {
			n = t.buffer.Bytes
		}
		last := &l.files[len(l.files)-1]
		if size+n > most && len(last.tensors) > 0 {
			l.files = append(l.files, outFile{meta: meta})
			last, size = &l.files[len(l.files)-1], 0
		}
		last.tensors = append(last.tensors, t)
		size, total = size+n, total+n
	}
	if len(l.files) == 1 {
		l.files[0].name = singleFile
		return l
	}
	where := &ordered{}
	for i := range l.files {
		l.files[i].name = fmt.Sprintf("model-%05d-of-%05d.safetensors", i+1, len(l.files))
		for _, t := range l.files[i].tensors {
			where.add(t.name, l.files[i].name)
		}
	}
	about, index := &ordered{}, &ordered{}
	about.add("total_size", total)
	index.add("metadata", about)
	index.add("weight_map", where)
	text, err := json.MarshalIndent(index, "", "  ")
	if err != nil {
		panic(err) // plain data
	}
	l.index = append(text, '\n')
	return l
}

// tensorsOf lists a map's tensors in the order of the parameters.
func tensorsOf(p *plan.Plan) ([]outTensor, error) {
	order := map[string]int{}
	for i := range p.Slabs {
		for _, x := range p.Slabs[i].Params {
			order[x.Name] = len(order)
		}
	}
	lines := slices.Clone(p.Foreign)
	sort.SliceStable(lines, func(i, j int) bool { return order[lines[i].Params[0]] < order[lines[j].Params[0]] })
	shapes := ShapesOf(p)
	var out []outTensor
	for i := range lines {
		e := &lines[i]
		for j, name := range e.Names {
			shape, err := foreignShape(e, shapes)
			if err != nil {
				return nil, err
			}
			out = append(out, outTensor{name: name, shape: shape, entry: e, part: j})
		}
	}
	return out, nil
}

// foreignShape is the shape of each tensor of a line; parts of a join are alike.
func foreignShape(e *plan.Foreign, shapes Shapes) ([]int64, error) {
	shape := slices.Clone(shapes[e.Params[0]])
	switch {
	case strings.HasPrefix(e.Op, "split"):
		shape[0] = 0
		for _, p := range e.Params {
			shape[0] += shapes[p][0]
		}
	case strings.HasPrefix(e.Op, "join"):
		n := int64(len(e.Names))
		if shape[0]%n != 0 {
			return nil, fault.New("MT0664", "", "%s has %d rows, which do not make %d equal tensors", e.Params[0], shape[0], n)
		}
		shape[0] /= n
	}
	if transposed(e) && len(shape) == 2 {
		shape[0], shape[1] = shape[1], shape[0]
	}
	return shape, nil
}

// check holds a kept layout against the model's parameters.
func (l *layout) check(shapes Shapes) error {
	var faults []string
	for _, f := range l.files {
		for _, t := range f.tensors {
			if t.entry == nil {
				continue
			}
			want, err := foreignShape(t.entry, shapes)
			if err != nil {
				return err
			}
			if !slices.Equal(t.shape, want) {
				faults = append(faults, fmt.Sprintf("%s had the shape %s, the model makes %s", t.name, shapeText(t.shape), shapeText(want)))
			}
			if width(t.dtype) == 0 {
				faults = append(faults, fmt.Sprintf("%s had the dtype %s; F32, F16 and BF16 are written", t.name, t.dtype))
			}
		}
	}
	if len(faults) == 0 {
		return nil
	}
	return fault.New("MT0664", "", "the weights are no longer what they came as:%s", strings.Join(append([]string{""}, collapse(faults)...), "\n    "))
}
