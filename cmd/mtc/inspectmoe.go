package main

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/megatrain/mtc/compiler/view/routing"
	"github.com/megatrain/mtc/runtime/program"
)

// inspectMoe writes the figures of a run's routers.
func inspectMoe(e *env, args []string, file string) error {
	run, err := runFolder(args)
	if err != nil {
		return err
	}
	path := filepath.Join(run, program.RoutingFile)
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return inputErrorf("%s has no %s: its model has no mixture of experts, or it is no folder of a run", run, program.RoutingFile).
			hint("give the --out folder of a run of a model with `moe`")
	}
	if err != nil {
		return inputErrorf("%s cannot be read: %v", path, reasonOf(err))
	}
	defer f.Close()
	lines, err := routing.Read(f)
	if err != nil {
		return inputErrorf("%s: %v", path, err).hint("the run writes this file; restore it from a copy")
	}
	if len(lines) == 0 {
		return inputErrorf("%s has no line yet", path).hint("wait until the run has written one")
	}
	return writeView(e, "moe", file, func(w io.Writer) error { return routing.Write(w, filepath.Base(run), lines) })
}
