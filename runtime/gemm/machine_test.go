package gemm

import (
	"sync"
	"time"
)

var started = time.Now()

// now is seconds since the test began.
func now() float64 { return time.Since(started).Seconds() }

// goroutines cuts a range into pieces of a few grains for n goroutines.
type goroutines int

func (g goroutines) Parallel(n, grain int64, body func(lo, hi int64)) {
	chunk := max(grain, n/int64(4*g))
	var wg sync.WaitGroup
	next := make(chan int64, n/chunk+1)
	for lo := int64(0); lo < n; lo += chunk {
		next <- lo
	}
	close(next)
	for range int(g) {
		wg.Go(func() {
			for lo := range next {
				body(lo, min(lo+chunk, n))
			}
		})
	}
	wg.Wait()
}
