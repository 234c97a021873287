package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/megatrain/mtc/compiler/view/routing"
	"github.com/megatrain/mtc/runtime/jsontext"
	"github.com/megatrain/mtc/runtime/ops/moe"
	"github.com/megatrain/mtc/runtime/program"
)

// inspectMoe writes the figures of a run's routers; with data also those that need the model.
func inspectMoe(ctx context.Context, e *env, args []string, file string, data []string, asJSON bool) error {
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
	if err := ofRun(run, lines); err != nil {
		return inputErrorf("%s is not of this run: %v", path, err).hint("the run writes this file; restore it from a copy")
	}
	sample, err := sampleRouting(ctx, e, args, data)
	if err != nil {
		return err
	}
	out := viewFile{"moe", file, outPage}
	return out.write(e, asJSON, func(w io.Writer) error { return routing.Write(w, filepath.Base(run), lines, sample) })
}

// ofRun holds what routers did against the model of the run, by its schedule, where the folder has one.
func ofRun(run string, lines []moe.Line) error {
	s, err := loadSchedule([]string{run})
	if err != nil {
		return nil // its program was carried from its build
	}
	var names []string
	var experts []int64
	for _, r := range s.File.Routers {
		names, experts = append(names, r.Name), append(experts, r.Experts)
	}
	return routing.Fits(lines, names, experts)
}

// sampleRouting lets the run's program say how many experts tokens of data have by their loss;
// nil without data.
func sampleRouting(ctx context.Context, e *env, args, data []string) (*moe.Sample, error) {
	if len(data) == 0 {
		return nil, nil
	}
	run, exe, err := runProgram(args)
	if err != nil {
		return nil, err
	}
	argv := []string{"sample-routing", run}
	for _, d := range data {
		argv = append(argv, "--data", d)
	}
	exe, err = filepath.Abs(exe)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	in := catchInterrupts(ctx)
	defer in.stop()
	cmd := in.command(exe, argv...)
	cmd.Stdout, cmd.Stderr = &out, e.err
	if err := cmd.Run(); err != nil {
		if ended := in.interrupted(); ended != nil {
			return nil, ended
		}
		return nil, childError(exe, err)
	}
	s := &moe.Sample{}
	if err := jsontext.Read(out.Bytes(), s, jsontext.Whole); err != nil {
		return nil, inputErrorf("%s said what is no sample: %v", exe, err).hint("it may be of another version: `mtc run` makes it anew")
	}
	return s, nil
}
