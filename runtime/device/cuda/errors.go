//go:build cuda

package cuda

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"syscall"

	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/device/cuda/libs"
	"github.com/megatrain/mtc/runtime/fault"
	"github.com/megatrain/mtc/runtime/hostmem"
)

// Codes of this package; `mtc explain CODE` has a page for each.
const (
	codeCannotUse    = "MT0501"
	codeNoDriver     = "MT0502"
	codeNoGPU        = "MT0503"
	codeOldDriver    = "MT0504"
	codeNoLibrary    = "MT0505"
	codeDeviceMemory = "MT0506"
	codeOldGPU       = "MT0508"
	codeKernel       = "MT0509"
	codeLost         = "MT0510"
)

func newFault(code, format string, args ...any) *fault.Error {
	return fault.New(code, "", format, args...).OnMachine()
}

func cannotUse(name string, err error) error {
	return newFault(codeCannotUse, "%s cannot be used", name).Wrap(err).
		Help("%s", cmp.Or(limits(), "`nvidia-smi` shows whether another process holds it or its driver is out of order"))
}

// limits says which limit of this process a driver and its libraries do not get along with, "" if there is none.
func limits() string {
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_AS, &limit) == nil && limit.Cur < wantedAddresses {
		return fmt.Sprintf("the address space of this process is limited to %d KiB, and a driver maps the memory of its GPUs and of the machine: `ulimit -v unlimited`", limit.Cur>>10)
	}
	if n := hostmem.OpenFiles(); n < wantedFiles {
		return fmt.Sprintf("this process may have %d files open, and a driver opens dozens: `ulimit -n 1024`", n)
	}
	return ""
}

// wantedAddresses is less than what a driver takes of the address space.
const wantedAddresses = 1 << 40

// wantedFiles is less than what a driver has open.
const wantedFiles = 64

// missing names a library that is not there and the packages that bring it.
func missing(l libs.Lib, err error) error {
	return newFault(codeNoLibrary, "%s (%s) is not found", l.Name, l.Names()[0]).Wrap(err).
		Help("%s", cmp.Or(limits(), l.Missing()+"; `mtc doctor` looks for it too"))
}

// told is an error of the driver or of cuBLASLt as a fault of the machine that says what it was during, and what to
// do; others are what they are. Whatever leaves the device passes through it.
func (d *Device) told(during string, err error) error {
	var known *fault.Error
	var lt blasError
	code := codeOf(err)
	switch library := errors.As(err, &lt); {
	case errors.As(err, &known), code == 0 && !library:
		return err
	case sticky(code):
		return newFault(codeLost, "the GPU failed during %s", during).Wrap(err).Help("%s", lostHelp)
	case code == codeOutOfMemory, lt == blasNoMemory:
		free, total, err2 := d.memory()
		if err2 != nil {
			free = 0
		}
		return newFault(codeDeviceMemory, "%s has no memory left for %s: %d bytes of %d are free", d.name, during, free, total).Wrap(err).
			Help("`nvidia-smi` shows what else takes it; else compile with a smaller --micro-batch, or a smaller --device-memory")
	case library:
		return newFault(codeCannotUse, "%s failed", during).Wrap(err).
			Help("cuBLASLt may not fit the driver or the GPU: `mtc doctor` says which is found, and `nvidia-smi` what else takes memory there")
	}
	return cannotUse(d.name, fmt.Errorf("%s: %w", during, err))
}

// lostHelp is where to look when a GPU fails.
const lostHelp = "`nvidia-smi` and the system's log (dmesg, Xid) say more about the GPU"

// failed keeps a stream's failure, the first one only. kernel is "" when no launch or copy of
// this call is to blame.
func (d *Device) failed(s *stream, kernel string, err error) {
	during := kernel
	if kernel == "" {
		during = "synchronisation"
	}
	f := &device.Failure{Kernel: during, Lane: s.lane, Tag: int(s.tag), Err: d.told(during, err)}
	if code := codeOf(err); sticky(code) {
		// The driver reports a failure in the GPU at some later call. What was running is
		// among the last launches.
		text := "the GPU failed"
		if f.Kernel, f.Tag = "a kernel", d.streams[device.Compute].reached(); f.Tag < 0 {
			if last := s.last(); len(last) > 0 {
				text = "the GPU failed in or before: " + strings.Join(last, ", ")
			}
		}
		if kernel != "" && d.syncAll {
			f.Kernel, f.Tag, text = kernel, int(s.tag), "the GPU failed in "+kernel
		}
		e := newFault(codeLost, "%s", text).Wrap(err)
		if d.syncAll {
			e.Help("%s", lostHelp)
		} else {
			e.Help("run again with MTC_CUDA_SYNC=1 to name the kernel; %s", lostHelp)
		}
		f.Err = e
	}
	d.failure.CompareAndSwap(nil, f)
}

// sticky tells the results after which a context is of no more use.
func sticky(code int) bool {
	switch code {
	case 214, 220, 226, // ECC, NVLink, contained
		46, 100, 101, 709, 999,
		700, 702, 710, 714, 715, 716, 717, 718, 719, 720, 721:
		return true
	}
	return false
}

// rangeError is an access outside of memory.
type rangeError struct {
	p    device.Ptr
	n    int64
	size int64 // of the arena, -1: no such arena
	kind device.Memory
}

func (e *rangeError) Error() string {
	switch {
	case e.p.Nil():
		return fmt.Sprintf("%d bytes at a nil pointer", e.n)
	case e.size < 0:
		return fmt.Sprintf("no arena %d", e.p.Arena)
	}
	return fmt.Sprintf("%d bytes at offset %d are outside arena %d (%s), which has %d",
		e.n, e.p.Off, e.p.Arena, e.kind, e.size)
}
