//go:build cuda

package main

import "github.com/megatrain/mtc/runtime/device"

// relay is a queue that hands commands on to another, which may change.
type relay struct{ to device.Queue }

// Launch hands a launch on.
func (r *relay) Launch(k *device.Kernel, a device.Args) { r.to.Launch(k, a) }

// Copy hands a copy on.
func (r *relay) Copy(dst, src device.Ptr, n int64) { r.to.Copy(dst, src, n) }

// Record hands a record on.
func (r *relay) Record(e device.Event) { r.to.Record(e) }

// Wait hands a wait on.
func (r *relay) Wait(e device.Event) { r.to.Wait(e) }

// warm lets the device compile the kernels of all benches at once, on all cores.
func warm(m *memory, r *relay, all []bench) error {
	w, ok := m.dev.(device.Warmer)
	if !ok {
		return nil
	}
	own := r.to
	defer func() { r.to = own }()
	return w.Warm(func(q device.Queue) {
		r.to = q
		for _, b := range all {
			m.reset()
			b.setup()(0)
		}
	})
}
