package aside

import (
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// live has the folders of this process that are being written.
var live struct {
	sync.Mutex
	m map[*Folder]bool
}

func (f *Folder) enter() {
	live.Lock()
	defer live.Unlock()
	if live.m == nil {
		live.m = map[*Folder]bool{}
	}
	live.m[f] = true
}

func (f *Folder) leave() {
	live.Lock()
	defer live.Unlock()
	delete(live.m, f)
}

// Catch sends the signals that ask a process to end to c: interrupts, terminations, the processor time that is used
// up, and a terminal that is gone, unless the process was started to outlive that.
func Catch(c chan<- os.Signal) {
	signal.Notify(c, append(ends, os.Interrupt, syscall.SIGTERM)...)
	if !signal.Ignored(syscall.SIGHUP) {
		signal.Notify(c, syscall.SIGHUP)
	}
}

// Code is the exit code of a process that such a signal ended.
func Code(sig os.Signal) int {
	if n, ok := sig.(syscall.Signal); ok {
		return 128 + int(n)
	}
	return 130
}

// OnSignal makes a signal of Catch remove what is being written and end the process with its code,
// until stop is called. It is for commands that do nothing else.
func OnSignal() (stop func()) {
	caught := make(chan os.Signal, 1)
	Catch(caught)
	go func() {
		sig, ok := <-caught
		if !ok {
			return
		}
		live.Lock() // kept: nothing is moved to its place any more
		for f := range live.m {
			for range 3 { // files may appear while the folder is emptied
				if os.RemoveAll(f.Path) == nil {
					break
				}
			}
		}
		os.Exit(Code(sig))
	}()
	return sync.OnceFunc(func() {
		signal.Stop(caught)
		close(caught)
	})
}
