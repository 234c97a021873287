package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/megatrain/mtc/lang/diag"
	"github.com/megatrain/mtc/lang/diag/suggest"
	"github.com/megatrain/mtc/lang/source"
)

// onlyModelFile is the one .mt file of the working folder.
func onlyModelFile() (string, error) {
	names, err := filepath.Glob("*.mt")
	if err != nil {
		return "", err
	}
	switch len(names) {
	case 1:
		return names[0], nil
	case 0:
		return "", usageErrorf("there is no .mt file in this folder").hint("name one, or `mtc new NAME` writes one to start from")
	}
	return "", usageErrorf("there are %d .mt files in this folder", len(names)).hint("name one: %s", suggest.List(names))
}

// cannotRead words the error of a model's file that cannot be read, as a finding; where a name
// in its folder is near, the help names it.
func cannotRead(name string, err error) error {
	var l diag.List
	if !errors.Is(err, fs.ErrNotExist) {
		var pe *fs.PathError
		if errors.As(err, &pe) {
			err = pe.Err // the message names the path already
		}
		d := l.Errorf("MT0204", source.Span{}, "cannot read %s: %v", name, err)
		if !errors.Is(err, fs.ErrPermission) {
			d.Hint("name a .mt file, or `-` for the input")
		}
		return l.Err()
	}
	d := l.Errorf("MT0204", source.Span{}, "there is no file %s", name)
	dir, base := filepath.Split(name)
	entries, _ := os.ReadDir(filepath.Clean("./" + dir))
	if filepath.IsAbs(name) {
		entries, _ = os.ReadDir(dir)
	}
	var names []string
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), filepath.Ext(base)) {
			names = append(names, e.Name())
		}
	}
	if near := suggest.Nearest(base, names); near != "" {
		d.Hint("did you mean `%s`?", dir+near)
	}
	return l.Err()
}
