package main

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
)

// runChild runs a program and takes over its exit code.
func runChild(e *env, path string, args []string) error {
	cmd := exec.Command(path, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = e.in, e.results.w, e.err
	// A terminal interrupts the program too, which saves and then ends; mtc waits for that.
	interrupts := make(chan os.Signal, 1)
	signal.Notify(interrupts, os.Interrupt)
	defer signal.Stop(interrupts)
	if err := cmd.Run(); err != nil {
		return childError(path, err)
	}
	return nil
}

// childError is what a program's end means for mtc: its exit code, or an error of the machine.
func childError(path string, err error) error {
	var exit *exec.ExitError
	switch {
	case !errors.As(err, &exit):
		return cannotRun(path, err)
	case exit.ExitCode() > 0:
		return exitStatus(exit.ExitCode())
	}
	return machineErrorf("%s was ended by the system: %v", path, err).
		hint("where memory is short the system does that; `mtc inspect` shows what the plan takes")
}

// cannotRun is the error for a program that the system does not start.
func cannotRun(path string, err error) error {
	e := machineErrorf("%s cannot be run: %v", path, reasonOf(err))
	switch {
	case errors.Is(err, syscall.ENOEXEC):
		return e.hint("it was built for another system or processor (GOOS, GOARCH), or is damaged: compile the model again here")
	case errors.Is(err, fs.ErrPermission):
		return e.hint("the file may not be executed, or lies on a disk that is mounted without that (noexec): `chmod +x` it, or compile into another folder")
	case errors.Is(err, syscall.EAGAIN):
		return e.hint("no more processes may be started: raise their limit (`ulimit -u 4096`; of a container, its pids)")
	case errors.Is(err, syscall.ENOMEM):
		return e.hint("there is no memory to start a program: end what else takes it")
	case errors.Is(err, syscall.ETXTBSY):
		return e.hint("it is being written: wait for that to end")
	case errors.Is(err, fs.ErrNotExist):
		return e.hint("compile the model again: the folder holds its program no more")
	}
	return e
}
