package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"github.com/megatrain/mtc/compiler/view"
)

// viewFile is a file that a view is asked for in.
type viewFile struct {
	flag, path string
	kind       outKind
}

// files are the files that the flags ask for, --moe's first. What could not be written is refused here, before
// anything is.
func (o *inspectOptions) files(given func(flag string) bool) ([]viewFile, error) {
	var out []viewFile
	for _, f := range []viewFile{{"moe", o.moe, outPage}, {"html", o.html, outPage}, {"trace", o.trace, outTrace}} {
		if !given(f.flag) {
			continue
		}
		if f.path == "" {
			return nil, usageErrorf("`--%s` is empty", f.flag).hint("write `--%s FILE`", f.flag)
		}
		for _, other := range out {
			if samePath(other.path, f.path) {
				return nil, usageErrorf("`--%s` and `--%s` name one file", other.flag, f.flag).hint("give each a file of its own")
			}
		}
		if err := canWriteOut(f.path, f.kind); err != nil {
			return nil, outError(f.path, err)
		}
		out = append(out, f)
	}
	return out, nil
}

// samePath says whether two paths are of one file, there or not.
func samePath(a, b string) bool {
	x, err1 := os.Stat(a)
	y, err2 := os.Stat(b)
	if err1 == nil && err2 == nil {
		return x.Mode().IsRegular() && os.SameFile(x, y)
	}
	a, err1 = linkEnd(a)
	b, err2 = linkEnd(b)
	return err1 == nil && err2 == nil && relativeTo(".", a) == relativeTo(".", b)
}

// writeSteps writes the steady step to files.
func writeSteps(e *env, s *loaded, o inspectOptions, files []viewFile) error {
	if len(files) == 0 {
		return nil
	}
	predicted, measured, err := s.steps(o.machine)
	if err != nil {
		return err
	}
	steps := []*view.Step{predicted}
	if measured != nil {
		steps = append(steps, measured)
	}
	for _, f := range files {
		write := func(w io.Writer) error { return view.WriteTrace(w, steps) }
		if f.flag == "html" {
			write = (&view.Page{Steps: steps, Sources: s.sources(), Go: s.generated()}).WriteHTML
		}
		if err := f.write(e, o.json, write); err != nil {
			return err
		}
	}
	return nil
}

// write writes the file, whole or not at all, and says so: beside JSON on the standard output, on
// the other one.
func (f *viewFile) write(e *env, json bool, write func(io.Writer) error) error {
	if err := writeKind(f.path, f.kind, write); err != nil {
		return outError(f.path, err)
	}
	if info, err := os.Stat(f.path); err == nil && isStdout(info) {
		return nil // nothing behind the file in its own text
	}
	w := e.out
	if json {
		w = e.err
	}
	_, err := fmt.Fprintf(w, "wrote %s\n", f.path)
	return err
}

// sources are the .mt files that tasks name: those that the build was made from, where they
// are as they were, else the copy beside the schedule.
func (s *loaded) sources() []view.Text {
	wanted := map[string]bool{}
	for _, span := range s.Plan.Spans {
		if k := strings.LastIndexByte(span, ':'); k > 0 {
			wanted[span[:k]] = true
		}
	}
	texts := map[string]string{}
	if record, err := readRecord(s.dir); err == nil {
		for _, f := range record.Files {
			path := record.resolve(s.dir, f.Path)
			if !wanted[filepath.Base(path)] {
				continue
			}
			if text, err := os.ReadFile(path); err == nil && hashOf(text) == f.SHA256 {
				texts[filepath.Base(path)] = string(text)
			}
		}
	}
	var out []view.Text
	for name := range wanted {
		text, ok := texts[name]
		if !ok && name == filepath.Base(name) {
			b, err := os.ReadFile(filepath.Join(s.dir, name))
			text, ok = string(b), err == nil
		}
		if ok {
			out = append(out, view.Text{Name: name, Text: text})
		}
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Name < out[j].Name })
	return out
}

// generated are the Go files of the build with functions of templates.
func (s *loaded) generated() []view.Text {
	found, _ := filepath.Glob(filepath.Join(s.dir, "template_*_gen.go"))
	sort.Strings(found)
	var out []view.Text
	for _, path := range append(found, filepath.Join(s.dir, "main.go")) {
		if text, err := os.ReadFile(path); err == nil {
			out = append(out, view.Text{Name: filepath.Base(path), Text: string(text)})
		}
	}
	return out
}
