// Package bench measures what a model of time needs to know of a machine: the rates of matrix
// products by shape, of attention, of the kernels that memory bounds and of the optimizer;
// copies between the memories alone and together, and beside the optimizer; fresh memory, the
// disk, and what a launch costs. In goes a device, the same that programs run on, out comes a
// Result of plain numbers. It judges none of them and knows no model.
package bench

import (
	"fmt"
	"io"
	"runtime"
	"time"

	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/hostmem"
	"github.com/megatrain/mtc/runtime/op"
	"github.com/megatrain/mtc/runtime/tensor"
)

// Result is what was measured. Rates are per second; a zero was not measured.
type Result struct {
	Device    string `json:"device"`
	Target    string `json:"target"`    // "cpu" or "cuda"
	Precision string `json:"precision"` // "f32" or "bf16"
	Cores     int    `json:"cores"`     // that the process may use

	DeviceMemory int64 `json:"device_memory"` // bytes that a process may take
	HostMemory   int64 `json:"host_memory"`

	Kernels []Kernel `json:"kernels"`
	Launch  float64  `json:"launch"` // seconds of one with nothing to do, among many
	// Sustained is FLOP/s of the largest product after seconds of it: a GPU's power limit.
	Sustained float64 `json:"sustained"`

	H2D      float64 `json:"h2d"`
	D2H      float64 `json:"d2h"`
	Both     float64 `json:"both"`     // each, at the same time
	Updating float64 `json:"updating"` // each, at the same time, beside the optimizer
	Latency  float64 `json:"latency"`  // seconds of a copy of few bytes

	Optimizer  float64   `json:"optimizer"` // bytes/s on the host, at 28 bytes a parameter
	Copying    float64   `json:"copying"`   // the same while copies go both ways
	Threads    []Threads `json:"threads"`
	Memory     float64   `json:"memory"`      // bytes/s of accumulate: two in, one out
	FirstTouch float64   `json:"first_touch"` // bytes/s
	DiskWrite  float64   `json:"disk_write"`
	DiskRead   float64   `json:"disk_read"`
	DiskFault  string    `json:"disk_fault,omitempty"` // why the disk was not measured

	Seconds float64 `json:"seconds"` // that measuring took
	// Load says what else used the processors meanwhile; "" where nothing to speak of did.
	Load string `json:"load,omitempty"`
}

// Kernel is a launcher at a size.
type Kernel struct {
	Name    string   `json:"name"` // "linear.Forward", "rope.Backward", or a kind of task: "update"
	Shape   op.Shape `json:"shape"`
	FLOPs   int64    `json:"flops"`
	Bytes   int64    `json:"bytes"`
	Seconds float64  `json:"seconds"`
}

// Threads is the host optimizer's rate on so many threads.
type Threads struct {
	Threads int     `json:"threads"`
	Rate    float64 `json:"rate"`
}

// Options of a measurement.
type Options struct {
	Target   string
	DType    tensor.DType // of activations and weights
	Memory   int64        // bytes of device memory to work in, 0: as much as the cases need
	Folder   string       // where the disk is measured, "": not
	Quick    bool         // few cases: tests, and a second precision
	Progress io.Writer    // a line for each part; nil: none
	// Each is the time that a case is measured for; 0: 60 ms, on a CPU 40 ms a round.
	Each time.Duration

	// Clock is what is measured by, nil: time as it passes. Processor time, with GOMAXPROCS=1,
	// tells the rates of one core of a machine that others use.
	Clock func() time.Duration

	sizes []sizes // nil: those of the target
}

// Run measures a device.
func Run(dev device.Device, o Options) (*Result, error) {
	start := time.Now()
	if o.Each == 0 {
		o.Each = 60 * time.Millisecond
		if o.Target == "cpu" {
			o.Each = 40 * time.Millisecond // and that in rounds
		}
	}
	r := &Result{
		Device: dev.Name(), Target: o.Target, Precision: o.DType.String(), Cores: runtime.GOMAXPROCS(0),
	}
	if free, ok := hostmem.Available(); ok {
		r.HostMemory = free.Bytes
	}
	r.DeviceMemory = r.HostMemory
	if d, ok := dev.(interface{ Free() (free, total int64) }); ok {
		r.DeviceMemory, _ = d.Free()
	}
	if o.Clock == nil {
		o.Clock = func() time.Duration { return time.Since(start) }
	}
	loaded := loadNow()
	b := &bencher{dev: dev, o: o, r: r, start: start}
	for _, part := range []struct {
		name string
		run  func() error
	}{
		{"link and optimizer", b.link},
		{"kernels", b.kernels},
		{"host", b.host},
		{"disk", b.disk},
	} {
		if err := part.run(); err != nil {
			return nil, fmt.Errorf("%s: %w", part.name, err)
		}
	}
	r.Seconds, r.Load = time.Since(start).Seconds(), loaded()
	return r, nil
}

// bencher is a measurement under way.
type bencher struct {
	dev device.Device
	o   Options
	r   *Result

	start time.Time
}

func (b *bencher) progress(format string, args ...any) {
	if b.o.Progress != nil {
		fmt.Fprintf(b.o.Progress, format+"\n", args...)
	}
}
