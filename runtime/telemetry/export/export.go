// Package export hands a run's metrics to other programs while it trains: event files for
// TensorBoard, a CSV file, and an endpoint that Prometheus reads. A Feed stands between them
// and the run: it never waits for an exporter, and one that fails is told of once and left
// behind, so that nothing here can stop a run.
package export

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/megatrain/mtc/runtime/telemetry"
)

// Exporter takes what a run measures. Its methods are called one after another.
type Exporter interface {
	Step(s telemetry.Step) error
	Eval(e telemetry.Eval) error
	Close() error
}

// waiting is how many lines may wait for an exporter, and patience how long a run waits for
// the last of them at its end.
const (
	waiting  = 1024
	patience = 5 * time.Second
)

// Feed is one exporter behind a queue of its own.
type Feed struct {
	name  string
	queue chan any // telemetry.Step or telemetry.Eval
	done  chan struct{}

	mu     sync.Mutex
	warn   io.Writer
	warned bool
}

// Start opens an exporter behind a queue: also opening may hang, on a pipe that nobody reads.
// What goes wrong is written to warn, once.
func Start(name string, warn io.Writer, open func() (Exporter, error)) *Feed {
	f := &Feed{name: name, queue: make(chan any, waiting), done: make(chan struct{}), warn: warn}
	go f.run(open)
	return f
}

func (f *Feed) run(open func() (Exporter, error)) {
	defer close(f.done)
	e, err := open()
	failed := err != nil
	if failed {
		f.say("%v", err)
	}
	for line := range f.queue {
		if failed {
			continue
		}
		switch x := line.(type) {
		case telemetry.Step:
			err = e.Step(x)
		case telemetry.Eval:
			err = e.Eval(x)
		}
		if err != nil {
			failed = true
			f.say("%v", err)
		}
	}
	if e == nil {
		return
	}
	if err := e.Close(); err != nil && !failed {
		f.say("%v", err)
	}
}

// say warns, the first time.
func (f *Feed) say(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.warned {
		return
	}
	f.warned = true
	fmt.Fprintf(f.warn, "note: --%s stops here, the run goes on: %s\n", f.name, strings.ReplaceAll(fmt.Sprintf(format, args...), "\n", "; "))
}

// Step hands on a step.
func (f *Feed) Step(s telemetry.Step) { f.put(s) }

// Eval hands on an evaluation.
func (f *Feed) Eval(e telemetry.Eval) { f.put(e) }

func (f *Feed) put(line any) {
	select {
	case f.queue <- line:
	default:
		f.say("it is %d lines behind, and some are lost", waiting)
	}
}

// Close waits a little for what is under way.
func (f *Feed) Close() {
	close(f.queue)
	select {
	case <-f.done:
	case <-time.After(patience):
		f.say("it does not end within %v", patience)
	}
}
