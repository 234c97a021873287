//go:build cuda

package cuda

import (
	"errors"
	"fmt"
	"os"

	"gorgonia.org/cu"

	"github.com/megatrain/mtc/runtime/device/cuda/libs"
)

// Info is what a GPU is.
type Info struct {
	Name         string
	Major, Minor int   // compute capability
	Memory       int64 // bytes
	Driver       int   // the CUDA version of the driver: 13000
}

// minDriver is the oldest driver that is known to do: CUDA 12.4, R550.
const minDriver = 12040

// Probe looks at the driver and a GPU and touches neither. The error is a *fault.Error.
func Probe(ordinal int) (Info, error) {
	code, why := driverStatus()
	switch code {
	case 0:
	case -1:
		return Info{}, newFault(codeNoDriver, "there is no NVIDIA driver: libcuda.so.1 cannot be opened (%s)", why).
			Help("install the driver (version 550 or newer); in a container, run it with the GPUs passed through (--gpus all)")
	case codeNoDevice:
		return Info{}, newFault(codeNoGPU, "there is a driver but no GPU that it can use").Wrap(driverError{"cuInit", code}).Help("%s", hidden())
	case 803, 804, 36, 35: // driver mismatch, too old, stub, insufficient
		return Info{}, newFault(codeOldDriver, "the driver does not fit").Wrap(driverError{"cuInit", code}).
			Help("install one driver of version 550 or newer, and restart the machine after a change of driver")
	default:
		return Info{}, cannotUse("the NVIDIA driver", driverError{"cuInit", code})
	}
	i := Info{Driver: cu.Version()}
	if i.Driver <= 0 {
		return i, cannotUse("the NVIDIA driver", errors.New("cuDriverGetVersion: the driver does not tell its version"))
	}
	if i.Driver < minDriver {
		return i, newFault(codeOldDriver, "the driver is of CUDA %s, and 12.4 or newer is needed", versionText(i.Driver)).
			Help("install driver 550 or newer")
	}
	libs.For(i.Driver)
	n, err := cu.NumDevices()
	if err != nil {
		return i, cannotUse("the GPU", called("cuDeviceGetCount", err))
	}
	if ordinal >= n {
		return i, newFault(codeNoGPU, "there is no GPU %d: the driver sees %d", ordinal, n).Help("%s", hidden())
	}
	dev := cu.Device(ordinal)
	if i.Name, err = dev.Name(); err != nil {
		return i, cannotUse("the GPU", called("cuDeviceGetName", err))
	}
	if i.Memory, err = dev.TotalMem(); err != nil {
		return i, cannotUse(i.Name, called("cuDeviceTotalMem", err))
	}
	if i.Major, i.Minor, err = dev.ComputeCapability(); err != nil {
		return i, cannotUse(i.Name, called("cuDeviceGetAttribute", err))
	}
	if i.Major < 8 {
		return i, newFault(codeOldGPU, "%s has compute capability %d.%d, and bf16 needs 8.0 (Ampere) or newer", i.Name, i.Major, i.Minor).
			Help("`mtc compile --target cpu` makes a program for this machine's processors")
	}
	return i, nil
}

// hidden says where GPUs may be.
func hidden() string {
	const list = "`nvidia-smi -L` lists the GPUs"
	if v, set := os.LookupEnv("CUDA_VISIBLE_DEVICES"); set {
		return fmt.Sprintf("CUDA_VISIBLE_DEVICES is %q here, and a GPU that it does not name is hidden, with all behind a wrong name; unset it, or name one: %s", v, list)
	}
	return list
}

func versionText(v int) string { return fmt.Sprintf("%d.%d", v/1000, v%1000/10) }
