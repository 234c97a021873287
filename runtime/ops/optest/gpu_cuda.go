//go:build cuda

package optest

import (
	"os"
	"sync"

	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/device/cuda"
	"github.com/megatrain/mtc/runtime/device/cuda/emu"
)

// gpuBytes holds the operands of one launch and its variants.
const gpuBytes = 256 << 20

// With MTC_CUDA_EMU=1 kernels run on the CPU (package emu), which needs no GPU.
var emulate = os.Getenv("MTC_CUDA_EMU") == "1"

func init() {
	var gpus [2]func() (*gpu, error)
	for i := range gpus {
		gpus[i] = sync.OnceValues(func() (*gpu, error) { return open(i == 1) })
	}
	openGPU = func(f32 bool) (*gpu, error) {
		if f32 {
			return gpus[1]()
		}
		return gpus[0]()
	}
}

func open(f32 bool) (*gpu, error) {
	g := &gpu{f32: f32, bytes: gpuBytes}
	if emulate {
		e, err := emu.New(f32)
		if err != nil {
			return nil, err
		}
		g.dev = e
		g.other = func() { e.Reverse = !e.Reverse }
	} else {
		d, err := cuda.New(cuda.Options{F32: f32})
		if err != nil {
			return nil, err
		}
		g.dev = d
	}
	var err error
	g.arena, err = g.dev.Alloc(device.DeviceMemory, g.bytes)
	return g, err
}
