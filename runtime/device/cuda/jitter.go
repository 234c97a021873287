//go:build cuda

package cuda

import (
	"math/rand/v2"
	"sync"
	"time"

	"github.com/megatrain/mtc/runtime/device"
)

// jitter pauses lanes at random.
type jitter struct {
	mu  sync.Mutex // the submitter and the host lane draw from it
	rnd *rand.Rand
}

func newJitter(seed int64) *jitter {
	return &jitter{rnd: rand.New(rand.NewPCG(uint64(seed), 1))}
}

// maxPause is the longest pause.
const maxPause = 300 * time.Microsecond

// draw is a pause, most often none.
func (j *jitter) draw() time.Duration {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.rnd.IntN(4) != 0 {
		return 0
	}
	return time.Duration(j.rnd.Int64N(int64(maxPause)))
}

// nap pauses the host lane.
func (j *jitter) nap() {
	if d := j.draw(); d > 0 {
		time.Sleep(d)
	}
}

var pause = device.Kernel{Name: "pause", CUDA: &device.Source{
	Text: `#include "mtc.cuh"
extern "C" __global__ void mtc_pause(Args a) {
    u64 start, now;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(start));
    do {
        __nanosleep(1000);
        asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
    } while (now - start < (u64)a.i[0]);
}
`,
	Func: "mtc_pause",
	Grid: func(*device.Args) device.Grid { return device.Grid{X: 1, Threads: 1} },
}}

// stall enqueues a pause on a stream.
func (j *jitter) stall(s *stream) {
	if d := j.draw(); d > 0 {
		a := device.Args{I: [device.MaxInts]int64{int64(d)}}
		if err := s.launch(&pause, &a); err != nil {
			s.dev.failed(s, pause.Name, err)
		}
	}
}
