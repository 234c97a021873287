package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/megatrain/mtc/lang/diag/suggest"
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

// missingFile words the error of a file that is not there, with the nearest name in its folder.
func missingFile(name string, err error) error {
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	ce := inputErrorf("there is no file %s", name)
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
		return ce.hint("did you mean `%s`?", dir+near)
	}
	return ce
}
