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

// writeView writes a file of a view, whole or not at all, and says so.
func writeView(e *env, flag, path string, write func(io.Writer) error) error {
	if path == "" {
		return usageErrorf("`--%s` is empty", flag).hint("write `--%s FILE`", flag)
	}
	if err := writeOut(path, write); err != nil {
		return outError(path, err)
	}
	if info, err := os.Stat(path); err == nil && isStdout(info) {
		return nil // nothing behind the file in its own text
	}
	_, err := fmt.Fprintf(e.out, "wrote %s\n", path)
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
