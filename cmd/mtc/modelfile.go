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
	"github.com/megatrain/mtc/runtime/fault"
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

// isModelFile is an error for a path that holds no text of a model: there is nothing, or a folder.
func isModelFile(path string) error {
	switch info, err := os.Stat(path); {
	case err != nil:
		return cannotRead(path, err)
	case info.IsDir() && exists(filepath.Join(path, scheduleFile)):
		return inputErrorf("%s is a folder that a model was built into, not a model", path).hint("name the .mt; `mtc inspect %s` shows what was built", fault.Shell(path))
	case info.IsDir():
		return inputErrorf("%s is a folder, not a model", path).hint("name a .mt file")
	}
	return nil
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
	switch near := suggest.Nearest(base, names); {
	case near != "":
		d.Hint("did you mean `%s`?", dir+near)
	case len(names) > 0 && filepath.Ext(base) == ".mt":
		d.Hint("of models there are %s", suggest.List(names))
	default:
		d.Hint("`mtc new NAME` writes a model to start from")
	}
	return l.Err()
}
