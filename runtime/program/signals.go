package program

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"

	"github.com/megatrain/mtc/runtime/aside"
)

// interrupt notes that the run was asked to end.
type interrupt struct {
	code atomic.Int32 // exit code, 0: go on
	c    chan os.Signal
	errw io.Writer
}

// errInterrupted breaks off an evaluation.
var errInterrupted = errors.New("interrupted")

// watch makes a signal of aside.Catch ask for the end of the run; the second one ends the process,
// until that ends.
// A reader of the output that is gone asks for it too, where the system would end the process.
func watch(errw io.Writer) *interrupt {
	in := &interrupt{c: make(chan os.Signal, 2), errw: errw}
	signal.Ignore(syscall.SIGPIPE)
	aside.Catch(in.c)
	go func() {
		for s := range in.c {
			if !in.ask(s.String(), aside.Code(s)) {
				os.Exit(aside.Code(s))
			}
		}
	}()
	return in
}

// ask asks for the end of the run; false: that had been done.
func (in *interrupt) ask(why string, code int) bool {
	first := in.code.CompareAndSwap(0, int32(code))
	if first {
		fmt.Fprintf(in.errw, "\n%s: finishing the step in hand and saving; once more to end at once\n", why)
	}
	return first
}

func (in *interrupt) stopped() bool { return in.code.Load() != 0 }

// outlet passes on to w, until nobody reads it any more.
func (in *interrupt) outlet(w io.Writer) io.Writer { return &outlet{w, in} }

type outlet struct {
	io.Writer
	in *interrupt
}

func (o *outlet) Write(b []byte) (int, error) {
	n, err := o.Writer.Write(b)
	if errors.Is(err, syscall.EPIPE) {
		o.in.ask("nobody reads the output", aside.Code(syscall.SIGPIPE))
	}
	return n, err
}
