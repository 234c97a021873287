//go:build cuda

package cuda

import (
	"bytes"
	"fmt"
	"math"
	"testing"

	"github.com/megatrain/mtc/runtime/device"
)

// TestLittleLockedMemory: copies of host memory that is not locked go through the ring, or the
// driver's buffers where nothing can be locked, in the order of their lanes.
func TestLittleLockedMemory(t *testing.T) {
	const n = 3<<20 + 12 // elements: several times around the ring
	for _, limit := range []int64{0, 300 << 10, 1 << 20, 5 << 20, 1 << 30} {
		for _, jitter := range []int64{0, 7} {
			t.Run(fmt.Sprintf("%d bytes, jitter %d", limit, jitter), func(t *testing.T) {
				d := open(t, Options{Jitter: jitter, F32: true})
				d.LimitPinned(limit)
				host, dev := alloc(t, d, device.HostMemory, 4*n), alloc(t, d, device.DeviceMemory, 4*n)
				if err := d.Settle(); err != nil {
					t.Fatal(err)
				}
				if got, want := d.streams[device.H2D].ring != nil, limit != 0 && limit != 1<<30; got != want {
					t.Fatalf("a ring: %v", got)
				}
				x := asSlice[float32](d.View(host, 4*n), n)
				for i := range x {
					x[i] = float32(i % 1000)
				}
				in, done, out := d.NewEvent(), d.NewEvent(), d.NewEvent()
				const rounds = 4
				for range rounds {
					d.Queue(device.H2D).Wait(out)
					d.Queue(device.H2D).Copy(dev, host, 4*n)
					d.Queue(device.H2D).Record(in)
					d.Queue(device.Compute).Wait(in)
					d.Queue(device.Compute).Launch(add, addArgs(dev, dev, n, 1))
					d.Queue(device.Compute).Record(done)
					d.Queue(device.D2H).Wait(done)
					d.Queue(device.D2H).Copy(host, dev, 4*n)
					d.Queue(device.D2H).Record(out)
					// The host's own part, after the copy.
					d.Queue(device.Host).Wait(out)
					d.Queue(device.Host).Launch(add, addArgs(host, host, n, 1))
					d.Queue(device.Host).Record(out)
				}
				if err := d.Sync(); err != nil {
					t.Fatal(err)
				}
				for i := range x {
					if want := float32(i%1000) + 2*rounds; x[i] != want {
						t.Fatalf("element %d is %g, wanted %g", i, x[i], want)
					}
				}
			})
		}
	}
}

// TestLargeCopies: what Read and Write carry through their two buffers arrives, at any size and
// with nothing to lock.
func TestLargeCopies(t *testing.T) {
	for _, limit := range []int64{math.MaxInt64, 0} {
		d := open(t, Options{F32: true})
		d.LimitPinned(limit)
		for _, n := range []int{largeCopy - 1, largeCopy, 2*bounceChunk + 123} {
			p := alloc(t, d, device.DeviceMemory, int64(n)+8)
			in, out := make([]byte, n), make([]byte, n)
			for i := range in {
				in[i] = byte(i>>16) ^ byte(i*7)
			}
			if err := d.Write(p.At(8), in); err != nil {
				t.Fatal(err)
			}
			if err := d.Read(out, p.At(8)); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(in, out) {
				t.Errorf("limit %d, %d bytes: other bytes came back", limit, n)
			}
		}
	}
}
