package program

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
)

// interrupt notes that the run was asked to end.
type interrupt struct {
	code atomic.Int32 // exit code, 0: go on
	c    chan os.Signal
}

// errInterrupted breaks off an evaluation.
var errInterrupted = errors.New("interrupted")

// watch makes SIGINT and SIGTERM ask for the end of the run; the second one ends the process.
func watch(errw io.Writer) *interrupt {
	in := &interrupt{c: make(chan os.Signal, 2)}
	signal.Notify(in.c, os.Interrupt, syscall.SIGTERM)
	go func() {
		for s := range in.c {
			code := int32(130)
			if s == syscall.SIGTERM {
				code = 143
			}
			if !in.code.CompareAndSwap(0, code) {
				os.Exit(int(code))
			}
			fmt.Fprintf(errw, "\n%v: finishing the step in hand and saving; once more to end at once\n", s)
		}
	}()
	return in
}

func (in *interrupt) stopped() bool { return in.code.Load() != 0 }

// end stops watching.
func (in *interrupt) end() {
	signal.Stop(in.c)
	close(in.c)
}
