package planner

import (
	"errors"
	"fmt"
	"math/rand"
	"os"
	"testing"

	"github.com/megatrain/mtc/compiler"
	"github.com/megatrain/mtc/compiler/cost"
	"github.com/megatrain/mtc/compiler/schedule"
	"github.com/megatrain/mtc/runtime/device"
)

// capped are models that are planned in no time, of every kind: clipped or not, with experts, with adapters, of
// which most of the memory is the layers' or the embedding's.
var capped = []struct {
	name, path string
	set        []string
	target     string
	device     [2]int64 // MiB: the range of caps
	host       [2]int64
	// edge: so few layers that slots are most of their memory. What is pinned by hand there may be over 3 % faster.
	edge bool
}{
	{"clipped", "", nil, "cuda", [2]int64{780, 1600}, [2]int64{860, 1400}, false},
	{"not clipped", "", []string{"train.clip=none"}, "cuda", [2]int64{780, 1600}, [2]int64{860, 1400}, false},
	{"long step", "", []string{"train.batch=360 rows", "train.seq=512"}, "cuda", [2]int64{780, 2400}, [2]int64{860, 2400}, false},
	{"vocabulary", "", []string{"V=65536", "L=3"}, "cuda", [2]int64{800, 2400}, [2]int64{900, 2400}, false},
	{"experts", "../../models/et_moe_nano.mt", nil, "cuda", [2]int64{780, 1300}, [2]int64{900, 1400}, false},
	{"on a processor", "", nil, "cpu", [2]int64{0, 0}, [2]int64{250, 2500}, false},
	{"a layer on a processor", "", []string{"L=1"}, "cpu", [2]int64{0, 0}, [2]int64{60, 400}, false},
	{"a layer", "", []string{"L=1"}, "cuda", [2]int64{770, 900}, [2]int64{810, 900}, true},
	{"short rows", "", []string{"L=2", "train.batch=4096 rows", "train.seq=64"}, "cuda", [2]int64{770, 1000}, [2]int64{800, 1200}, true},
}

func cappedRequest(k int, device, host int64, pins ...string) Request {
	c := capped[k]
	r := Request{
		Options: compiler.Options{Path: "small.mt", Text: []byte(small), Target: c.target, Set: c.set},
		Machine: cost.Shipped("rtx4090"), Device: device, Host: host, Pinned: map[string]bool{},
	}
	if c.path != "" {
		r.Options.Path, r.Options.Text = c.path, nil
	}
	if c.target == "cpu" {
		m := *r.Machine // only what it takes counts here
		m.Target, m.DeviceMemory = "cpu", m.HostMemory
		r.Machine, r.Device = &m, 0
	}
	for _, p := range pins {
		r.Pinned[p] = true
	}
	return r
}

// TestRandomCaps: over memories of all sizes, a plan that is said to fit does by a count of its own, and where
// none fits what is said to be needed is the least.
func TestRandomCaps(t *testing.T) {
	rounds := 1
	if os.Getenv("MTC_LONG") != "" {
		rounds = 25
	}
	for k, m := range capped {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			rng := rand.New(rand.NewSource(int64(k)))
			between := func(r [2]int64) int64 { return (r[0] + rng.Int63n(r[1]-r[0]+1)) * mib }
			fit := 0
			for range rounds {
				r := cappedRequest(k, between(m.device), between(m.host))
				c, err := choose(t, r)
				var short *ShortError
				switch {
				case errors.As(err, &short):
					needed(t, r, short)
				case err != nil:
					t.Error(err)
				default:
					fit++
					recounted(t, c)
				}
				if t.Failed() {
					t.Fatalf("device %d, host %d", r.Device, r.Host)
				}
			}
			t.Logf("%d of %d fit", fit, rounds)
		})
	}
}

// recounted checks the peak of a plan that is said to fit: buffers that live at the same time lie apart, all in
// their arenas, and those take no more than there is.
func recounted(t *testing.T, c *Choice) {
	t.Helper()
	if err := schedule.Verify(c.Plan); err != nil {
		t.Error(err)
	}
	var top [2]int64
	ends := make([]int64, len(c.Plan.Arenas))
	for _, b := range c.Plan.Buffers[1:] {
		n := b.Bytes
		if b.Parity {
			n *= 2
		}
		ends[b.Arena] = max(ends[b.Arena], b.Off+n)
	}
	for i, a := range c.Plan.Arenas {
		if ends[i] > a.Bytes {
			t.Errorf("arena %s of %d bytes has a buffer that ends at %d", a.Name, a.Bytes, ends[i])
		}
		k := 0
		if a.Memory != device.DeviceMemory {
			k = 1
		}
		top[k] += ends[i]
	}
	if c.Plan.Target == "cpu" {
		top = [2]int64{0, top[0] + top[1]}
	}
	if top[0] > c.DevicePeak || top[1] > c.HostPeak || c.DevicePeak > c.DeviceLimit || c.HostPeak > c.HostLimit {
		t.Errorf("buffers take %d and %d bytes, the plan is said to take %d and %d of %d and %d: %v",
			top[0], top[1], c.DevicePeak, c.HostPeak, c.DeviceLimit, c.HostLimit, c.from)
	}
}

// rises reports whether one request is said to need more than another.
func rises(a, than *ShortError) bool {
	return a.Device > max(a.DeviceLimit, than.Device) || a.Host > max(a.HostLimit, than.Host)
}

// TestMoreMemoryIsNoSlower: with more of either memory a step is never predicted to take over 1 % longer, and
// what is needed does not rise.
func TestMoreMemoryIsNoSlower(t *testing.T) {
	walks, steps := 1, 3
	if os.Getenv("MTC_LONG") != "" {
		walks, steps = 8, 6
	}
	for k, m := range capped {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			rng := rand.New(rand.NewSource(int64(100 + k)))
			between := func(lo, hi int64) int64 { return lo + rng.Int63n(max(1, hi-lo)) }
			for range walks {
				d, h := m.device[0]+between(0, (m.device[1]-m.device[0])/4+1), m.host[0]+between(0, (m.host[1]-m.host[0])/2)
				var last *Choice
				var short *ShortError
				text := ""
				for range steps {
					c, err := choose(t, cappedRequest(k, d*mib, h*mib))
					var s *ShortError
					switch {
					case errors.As(err, &s):
						if last != nil {
							t.Errorf("%d and %d MiB: %v, and with less it fits: %v", d, h, s, last.from)
						}
						if short != nil && rises(s, short) {
							t.Errorf("%d and %d MiB: %v, with less: %v", d, h, s, short)
						}
						short = s
					case err != nil:
						t.Fatal(err)
					default:
						if last != nil && c.Timeline.Seconds > 1.01*last.Timeline.Seconds {
							t.Errorf("%d and %d MiB: %.4g s (%v), with less (%s): %.4g s (%v)", d, h, c.Timeline.Seconds, c.from, text, last.Timeline.Seconds, last.from)
						}
						if last == nil || c.Timeline.Seconds < last.Timeline.Seconds {
							last, text = c, fmt.Sprintf("%d and %d MiB", d, h)
						}
					}
					if rng.Intn(2) == 0 && m.target != "cpu" {
						d += between(1, (m.device[1]-m.device[0])/5)
					} else {
						h += between(1, (m.host[1]-m.host[0])/5)
					}
				}
			}
		})
	}
}
