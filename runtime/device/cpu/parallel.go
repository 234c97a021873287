package cpu

import (
	"runtime/debug"
	"sync"
	"sync/atomic"
)

// Parallel calls body for disjoint ranges that cover [0, n). Every range starts at a multiple
// of grain. The caller takes part, so a call makes progress even when another lane holds all
// workers. A panic in any range is raised again in the caller once all ranges are done.
func (d *Device) Parallel(n, grain int64, body func(lo, hi int64)) {
	if n <= 0 {
		return
	}
	chunk := cut(n, grain, d.threads)
	switch {
	case chunk >= n:
		body(0, n)
	case raceOn:
		fork(n, chunk, d.threads, body)
	default:
		d.pool.do(n, chunk, body)
	}
}

// cut chooses the size of a range: a multiple of grain, some four ranges for each thread, so
// that a thread that was held up leaves its share to the others.
func cut(n, grain int64, threads int) int64 {
	if grain < 1 {
		grain = 1
	}
	if threads <= 1 {
		return n
	}
	units := (n + grain - 1) / grain
	per := units / int64(4*threads)
	if per < 1 {
		per = 1
	}
	return per * grain
}

// job is one Parallel call that workers help with.
type job struct {
	body     func(lo, hi int64)
	n, chunk int64
	next     atomic.Int64 // start of the next range
	left     atomic.Int64 // ranges not done
	refs     atomic.Int32 // the caller and the invitations out; the last one recycles the job
	finished chan struct{}
	panicked atomic.Pointer[workerPanic]
}

// workerPanic carries a panic from a worker to the goroutine that called Parallel.
type workerPanic struct {
	value any
	stack []byte
}

// run does ranges until none is left, and says whether it did the last one.
func (j *job) run() (last bool) {
	for {
		lo := j.next.Add(j.chunk) - j.chunk
		if lo >= j.n {
			return last
		}
		j.one(lo, min(lo+j.chunk, j.n))
		if j.left.Add(-1) == 0 {
			last = true
		}
	}
}

func (j *job) one(lo, hi int64) {
	defer func() {
		if r := recover(); r != nil {
			j.panicked.CompareAndSwap(nil, &workerPanic{r, debug.Stack()})
		}
	}()
	j.body(lo, hi)
}

// pool is the workers that all lanes share.
type pool struct {
	invite  chan *job
	workers int
	free    chan *job // finished jobs; a call allocates nothing once the pool is warm
	ended   sync.WaitGroup
}

// newPool starts threads-1 workers: the caller is the other one.
func newPool(threads int) *pool {
	p := &pool{invite: make(chan *job, 4*threads), workers: threads - 1, free: make(chan *job, 16)}
	for range p.workers {
		p.ended.Go(func() {
			for j := range p.invite {
				if j.run() {
					j.finished <- struct{}{}
				}
				p.release(j)
			}
		})
	}
	return p
}

func (p *pool) close() {
	close(p.invite)
	p.ended.Wait()
}

func (p *pool) do(n, chunk int64, body func(lo, hi int64)) {
	var j *job
	select {
	case j = <-p.free:
	default:
		j = &job{finished: make(chan struct{}, 1)}
	}
	ranges := (n + chunk - 1) / chunk
	j.body, j.n, j.chunk = body, n, chunk
	j.panicked.Store(nil)
	j.next.Store(0)
	j.left.Store(ranges)
	helpers := min(int64(p.workers), ranges-1)
	j.refs.Store(int32(helpers) + 1)
	sent := int64(0)
	for ; sent < helpers; sent++ {
		if !p.tryInvite(j) { // all workers are busy for a while: the caller does it
			j.refs.Add(int32(sent - helpers))
			break
		}
	}
	if !j.run() {
		<-j.finished
	}
	w := j.panicked.Load()
	p.release(j)
	if w != nil {
		panic(w)
	}
}

func (p *pool) tryInvite(j *job) bool {
	select {
	case p.invite <- j:
		return true
	default:
		return false
	}
}

// release drops one reference to a job.
func (p *pool) release(j *job) {
	if j.refs.Add(-1) > 0 {
		return
	}
	j.body = nil
	select {
	case p.free <- j:
	default:
	}
}

// fork does what pool.do does with goroutines of its own. Ranges are dealt in turn, so every
// goroutine gets some and the race detector sees ranges that overlap.
func fork(n, chunk int64, threads int, body func(lo, hi int64)) {
	var wg sync.WaitGroup
	j := &job{body: body}
	for t := range int64(threads) {
		wg.Go(func() {
			for lo := t * chunk; lo < n; lo += int64(threads) * chunk {
				j.one(lo, min(lo+chunk, n))
			}
		})
	}
	wg.Wait()
	if w := j.panicked.Load(); w != nil {
		panic(w)
	}
}
