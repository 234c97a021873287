package main

import (
	"errors"
	"os/exec"
)

// runChild runs a program and takes over its exit code.
func runChild(e *env, path string, args []string) error {
	cmd := exec.Command(path, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = e.in, e.out, e.err
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &exit) && exit.ExitCode() > 0:
		return exitStatus(exit.ExitCode())
	case errors.As(err, &exit):
		return machineErrorf("%s was ended by the system: %v", path, err).
			hint("where memory is short the system does that; `mtc inspect` shows what the plan takes")
	}
	return machineErrorf("%s cannot be run: %v", path, err)
}
