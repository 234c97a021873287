package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"github.com/megatrain/mtc/runtime/aside"
)

// interrupts lets a verb that has begun something put it away when a signal asks it to end: the context ends at
// SIGINT, SIGTERM and SIGHUP.
type interrupts struct {
	ctx    context.Context
	caught chan os.Signal
	cancel context.CancelCauseFunc
}

func catchInterrupts(ctx context.Context) *interrupts {
	i := &interrupts{caught: make(chan os.Signal, 1)}
	i.ctx, i.cancel = context.WithCancelCause(ctx)
	aside.Catch(i.caught)
	go func() {
		if sig, ok := <-i.caught; ok {
			i.cancel(exitStatus(aside.Code(sig)))
		}
	}()
	return i
}

// interrupted is the exit status after a signal, nil without one.
func (i *interrupts) interrupted() error {
	var status exitStatus
	if errors.As(context.Cause(i.ctx), &status) {
		return status
	}
	return nil
}

// stop leaves signals to the system again.
func (i *interrupts) stop() {
	signal.Stop(i.caught)
	close(i.caught)
	i.cancel(nil)
}

// command is a program that ends with the verb: it is asked to, and has some seconds for it.
func (i *interrupts) command(name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(i.ctx, name, args...)
	cmd.Cancel = func() error {
		if cmd.Process.Signal(syscall.SIGTERM) != nil {
			return cmd.Process.Kill() // a system without it
		}
		return nil
	}
	cmd.WaitDelay = 5 * time.Second
	return cmd
}
