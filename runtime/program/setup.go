package program

import (
	"errors"
	"os"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/engine"
	"github.com/megatrain/mtc/runtime/fault"
	"github.com/megatrain/mtc/runtime/hostmem"
	"github.com/megatrain/mtc/runtime/ops/finite"
	"github.com/megatrain/mtc/runtime/plan"
	"github.com/megatrain/mtc/runtime/telemetry"
)

// memory is what a plan takes, by kind of memory; for generation alone with infer.
func memory(p *plan.Plan, infer bool) (dev, host int64) {
	for _, a := range p.Arenas {
		n := a.Bytes
		if infer {
			n = a.GenBytes
		}
		if a.Memory == device.DeviceMemory {
			dev += n
		} else {
			host += n
		}
	}
	return dev, host
}

// preflight refuses a plan that this machine has no memory for, before anything is touched:
// memory is taken as it is first used, so the system would end the process somewhere in the
// first step instead.
func preflight(p *plan.Plan, infer bool) error {
	free, ok := hostmem.Available()
	if !ok {
		return nil
	}
	dev, host := memory(p, infer)
	if p.Target == "cuda" {
		dev = 0
	}
	if dev+host <= free.Bytes {
		return nil
	}
	what := "training " + p.Model
	if infer {
		what = "generating with " + p.Model
	}
	return outOfMemory("%s needs %s of memory (%s device, %s host), there are %s: %s", what, telemetry.Bytes(dev+host),
		telemetry.Bytes(dev), telemetry.Bytes(host), telemetry.Bytes(free.Bytes), free.Limit).
		Help("compile with a smaller --micro-batch, --recompute all, or a smaller preset; `mtc inspect` shows what takes the memory")
}

// graphics is what a GPU tells besides.
type graphics interface {
	Free() (free, total int64) // its memory, in bytes
	Unpinned() int64           // bytes of host memory that could not be locked
	LimitPinned(bytes int64)   // bounds what is locked
}

// fits refuses a plan that a GPU has no memory for.
func fits(p *plan.Plan, infer bool, d device.Device) error {
	gpu, ok := d.(graphics)
	if !ok {
		return nil
	}
	want, _ := memory(p, infer)
	if !infer {
		want += p.Scratch
	}
	free, total := gpu.Free()
	if want <= free {
		return nil
	}
	return fault.New("MT0506", "", "%s needs %s of device memory, and %s of the %s of %s are free", p.Model,
		telemetry.Bytes(want), telemetry.Bytes(free), telemetry.Bytes(total), d.Name()).OnMachine().
		Help("%s", lessMemory)
}

// lessMemory is what takes less of it.
const lessMemory = "compile with a smaller --micro-batch, --recompute all or --placement stream; `mtc inspect` shows what takes the memory"

// outOfMemory is a fault of the machine.
func outOfMemory(format string, args ...any) *fault.Error {
	return fault.New("MT0410", "", format, args...).OnMachine()
}

// open makes the device and the engine, ready to run.
func (p *Program) open(threads int64, infer bool) (*engine.Engine, error) {
	e, err := p.openPinned(threads, infer, nil, p.Plan.Train.Optimizer)
	if err != nil {
		return nil, err
	}
	if d, ok := e.Device().(device.Starter); ok {
		err = d.Settle()
	}
	return e, err
}

// openPinned is open with a bound on the host memory that is locked for a GPU, nil: none, and the
// constants of the optimizer in force.
func (p *Program) openPinned(threads int64, infer bool, pinned *int64, optimizer plan.AdamW) (*engine.Engine, error) {
	if threads > 0 {
		runtime.GOMAXPROCS(int(threads))
	}
	d, err := p.Device()
	var known *fault.Error
	if errors.As(err, &known) {
		return nil, err
	}
	if err != nil {
		return nil, fault.New("MT0501", "", "the device cannot be used").Wrap(err).OnMachine()
	}
	if gpu, ok := d.(graphics); ok && pinned != nil {
		gpu.LimitPinned(*pinned)
	}
	if err := fits(p.Plan, infer, d); err != nil {
		d.Close()
		return nil, err
	}
	own := *p.Plan
	own.Train.Optimizer = optimizer
	e, err := engine.New(engine.Config{Plan: &own, Templates: p.Templates, Tables: p.Tables, Steps: steps, Device: d, Infer: infer})
	if err != nil {
		d.Close()
		var m *device.MemoryError
		if errors.As(err, &m) {
			f := outOfMemory("the plan's memory cannot be had").Wrap(err)
			if p.Plan.Target == "cuda" {
				f.Code = map[device.Memory]string{device.DeviceMemory: "MT0506", device.HostMemory: "MT0507"}[m.Memory]
			}
			f.Help("%s", lessMemory)
			return nil, f
		}
		return nil, err
	}
	if err := p.writeDigest(os.Getenv("MTC_DIGEST")); err != nil {
		d.Close()
		return nil, err
	}
	if p.Plan.Target == "cuda" {
		return e, nil // arenas are outside of Go's heap
	}
	// Arenas count as live heap, and the collector lets garbage grow with that; keep it small.
	dev, host := memory(p.Plan, infer)
	const garbage = 16 << 20
	debug.SetGCPercent(int(min(100, max(1, 100*garbage/max(1, dev+host)))))
	return e, nil
}

// failed adds to an error of the engine what the user can do.
func failed(err error, wayBack string) error {
	var task *engine.TaskError
	var skipped *engine.SkippedError
	var machine *fault.Error
	var bad *finite.NonFinite
	switch {
	case errors.As(err, &bad) && errors.As(err, &task):
		f := fault.New("MT0631", "", "the first value that is not finite: %v", bad)
		return f.Help("it was made in task %s; look at what goes into that op, at the learning rate and at init%s", task.Task, after(wayBack))
	case errors.As(err, &machine) && machine.Machine:
		if task != nil || errors.As(err, &task) {
			machine.Message += ", task " + task.Task
		}
		if wayBack != "" && machine.Code != "MT0623" { // which says it itself
			machine.Hint = strings.TrimPrefix(machine.Hint+"; "+wayBack, "; ")
		}
		return machine
	case errors.As(err, &task):
		return &internalError{err, wayBack}
	case errors.As(err, &skipped):
		return fault.New("MT0630", "", "%v", err).
			Help("lower the learning rate (--set train.lr=...) or set `clip`; %s", wayBack)
	}
	return err
}

// after continues a help with another one.
func after(wayBack string) string {
	if wayBack == "" {
		return ""
	}
	return "; " + wayBack
}

// internalError is a kernel that failed: a fault of mtc.
type internalError struct {
	err     error
	wayBack string
}

func (e *internalError) Error() string { return e.err.Error() }

func (e *internalError) Unwrap() error { return e.err }

// text is the error with the stack of the kernel.
func (e *internalError) text() string {
	s := "internal error: " + e.err.Error() + "\n"
	var f *device.Failure
	if errors.As(e.err, &f) {
		s += string(f.Stack)
	}
	s += "  help: this is a fault of mtc, not of your input; please report it with the command line and the .mt file\n"
	if e.wayBack != "" {
		s += "  help: " + e.wayBack + "\n"
	}
	return s
}
