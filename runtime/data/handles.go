package data

import (
	"os"
	"sync"
)

// maxHandles bounds the open files of a corpus: it may have more files than a process may open.
const maxHandles = 32

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

// readAt reads from a file, opening it if need be.
func (h *handles) readAt(path string, buf []byte, off int64) (int, error) {
	e, err := h.take(path)
	if err != nil {
		return 0, err
	}
	n, err := e.f.ReadAt(buf, off)
	h.mu.Lock()
	e.busy--
	h.mu.Unlock()
	return n, err
}

func (h *handles) take(path string) (*handle, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.used++
	e := h.m[path]
	if e == nil {
		f, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		if h.m == nil {
			h.m = map[string]*handle{}
		}
		h.evict()
		e = &handle{f: f}
		h.m[path] = e
	}
	e.busy++
	e.used = h.used
	return e, nil
}

// evict closes the idle file that was used longest ago when the table is full.
func (h *handles) evict() {
	if len(h.m) < maxHandles {
		return
	}
	oldest := ""
	for p, e := range h.m {
		if e.busy == 0 && (oldest == "" || e.used < h.m[oldest].used) {
			oldest = p
		}
	}
	if oldest != "" {
		h.m[oldest].f.Close()
		delete(h.m, oldest)
	}
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
