package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/megatrain/mtc/compiler/view/routing"
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
	sample, err := sampleRouting(ctx, e, args, data)
	if err != nil {
		return err
	}
	out := viewFile{"moe", file, outPage}
	return out.write(e, asJSON, func(w io.Writer) error { return routing.Write(w, filepath.Base(run), lines, sample) })
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
	cmd := exec.CommandContext(ctx, exe, argv...)
	cmd.Stdout, cmd.Stderr = &out, e.err
	if err := cmd.Run(); err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) && exit.ExitCode() > 0 {
			return nil, exitStatus(exit.ExitCode())
		}
		return nil, machineErrorf("%s cannot be run: %v", exe, reasonOf(err))
	}
	s := &moe.Sample{}
	if err := json.Unmarshal(out.Bytes(), s); err != nil {
		return nil, inputErrorf("%s said what is no sample: %v", exe, err).hint("it may be of another version: `mtc run` makes it anew")
	}
	return s, nil
}
