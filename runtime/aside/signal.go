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

// OnSignal makes an interrupt or a termination remove what is being written and end the
// process with 130 or 143, until stop is called. It is for commands that do nothing else.
func OnSignal() (stop func()) {
	caught := make(chan os.Signal, 1)
	signal.Notify(caught, os.Interrupt, syscall.SIGTERM)
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
		if sig == syscall.SIGTERM {
			os.Exit(143)
		}
		os.Exit(130)
	}()
	return func() {
		signal.Stop(caught)
		close(caught)
	}
}
