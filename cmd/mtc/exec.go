package main

import (
	"errors"
	"os"
	"os/exec"
	"os/signal"
)

// runChild runs a program and takes over its exit code.
func runChild(e *env, path string, args []string) error {
	cmd := exec.Command(path, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = e.in, e.results.w, e.err
	// A terminal interrupts the program too, which saves and then ends; mtc waits for that.
	interrupts := make(chan os.Signal, 1)
	signal.Notify(interrupts, os.Interrupt)
	defer signal.Stop(interrupts)
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
