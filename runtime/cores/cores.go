// Package cores spreads loops over host memory and files over the cores of a machine. What a
// device computes runs on its own threads.
package cores

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// Each calls body for [0, n) in pieces of size (the last may be less), on as many cores as the
// process may use, and returns when all are done. Where pieces begin does not depend on how
// many cores there are; in which order they run does.
func Each(n, size int64, body func(from, to int64)) {
	if n <= size { // not worth a goroutine
		if n > 0 {
			body(0, n)
		}
		return
	}
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(int64(runtime.GOMAXPROCS(0)), (n+size-1)/size) {
		wg.Go(func() {
			for from := next.Add(size) - size; from < n; from = next.Add(size) - size {
				body(from, min(from+size, n))
			}
		})
	}
	wg.Wait()
}
