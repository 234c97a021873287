package cpu

import (
	"math/rand"
	"time"

	"github.com/megatrain/mtc/runtime/device"
)

// Naps is an Options.Delay for tests: every lane sleeps for random times under most, drawn
// from seed. Lanes share no state in it, so it orders nothing.
func Naps(seed int64, most time.Duration) func(device.Lane) {
	var lanes [device.NumLanes]*rand.Rand
	for l := range lanes {
		lanes[l] = rand.New(rand.NewSource(seed*int64(len(lanes)) + int64(l)))
	}
	return func(l device.Lane) {
		if r := lanes[l]; r.Intn(4) == 0 {
			time.Sleep(time.Duration(r.Int63n(int64(most))))
		}
	}
}
