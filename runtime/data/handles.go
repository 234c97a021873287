package data

import (
	"errors"
	"os"
	"sync"
	"syscall"

	"github.com/megatrain/mtc/runtime/hostmem"
)

// maxHandles bounds the open files of a corpus: it may have more files than a process may open. Two
// corpora, for training and evaluation, leave three quarters of that to the rest of a run.
var maxHandles = int(max(1, min(32, hostmem.OpenFiles()/8)))

// handles keeps the files used last open.
type handles struct {
	mu   sync.Mutex
	used int64
	m    map[string]*handle
}

type handle struct {
	f    *os.File
	used int64
	busy int // readers inside ReadAt; such a handle is not closed
}

// readAt reads from a file, opening it if need be. One that was written to or exchanged since it was
// found is errChanged; what was only added to reads as before.
func (h *handles) readAt(of *file, buf []byte, off int64) (int, error) {
	e, err := h.take(of.path)
	if err != nil {
		return 0, err
	}
	n, err := e.f.ReadAt(buf, off)
	if info, serr := e.f.Stat(); serr == nil && info.Size() == of.size && !info.ModTime().Equal(of.time) {
		err, n = errChanged, 0
	}
	h.mu.Lock()
	e.busy--
	h.mu.Unlock()
	return n, err
}

var errChanged = errors.New("the file was changed during the run")

func (h *handles) take(path string) (*handle, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.used++
	e := h.m[path]
	if e == nil {
		if h.m == nil {
			h.m = map[string]*handle{}
		}
		if len(h.m) >= maxHandles {
			h.evict()
		}
		f, err := openFile(path)
		for (errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)) && h.evict() {
			f, err = openFile(path)
		}
		if err != nil {
			return nil, err
		}
		e = &handle{f: f}
		h.m[path] = e
	}
	e.busy++
	e.used = h.used
	return e, nil
}

// evict closes the idle file that was used longest ago; false: there is none.
func (h *handles) evict() bool {
	oldest := ""
	for p, e := range h.m {
		if e.busy == 0 && (oldest == "" || e.used < h.m[oldest].used) {
			oldest = p
		}
	}
	if oldest == "" {
		return false
	}
	h.m[oldest].f.Close()
	delete(h.m, oldest)
	return true
}

func (h *handles) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for p, e := range h.m {
		if e.busy == 0 {
			e.f.Close()
			delete(h.m, p)
		}
	}
}
