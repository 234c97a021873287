package main

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// meterEvery is how often a meter tells of what takes long, and how long it waits before the first time.
const meterEvery = 2 * time.Second

// meter prints a line of progress every two seconds, however long one step of the work takes.
type meter struct {
	w     io.Writer
	what  string
	began time.Time

	mu   sync.Mutex
	text string
	stop chan struct{}
	done sync.WaitGroup
}

// newMeter starts a meter of some work, "planning"; a writer that is nil gets none. End it with end, before anything
// else is written.
func newMeter(w io.Writer, what string) *meter {
	m := &meter{w: w, what: what, began: time.Now(), stop: make(chan struct{})}
	if w == nil {
		return m
	}
	m.done.Go(func() {
		tick := time.NewTicker(meterEvery)
		defer tick.Stop()
		for {
			select {
			case <-m.stop:
				return
			case <-tick.C:
				m.print()
			}
		}
	})
	return m
}

// say keeps what the work is at.
func (m *meter) say(text string) {
	m.mu.Lock()
	m.text = text
	m.mu.Unlock()
}

func (m *meter) print() {
	m.mu.Lock()
	text := m.text
	m.mu.Unlock()
	if text != "" {
		text = ": " + text
	}
	fmt.Fprintf(m.w, "%s, %.0f s%s\n", m.what, time.Since(m.began).Seconds(), text)
}

// end stops it.
func (m *meter) end() {
	close(m.stop)
	m.done.Wait()
}
