package optim

import (
	_ "embed"

	"github.com/megatrain/mtc/runtime/device"
)

//go:embed optim.cu
var text string

// Elements of one block, as optim.cu has them.
const (
	cudaMapBlock  = 2 * 256 * 8
	cudaAdamBlock = 4096
)

var (
	reduceCUDA     = &device.Source{Text: text, Func: "optim_reduce", Grid: single(1)}
	accumulateCUDA = &device.Source{Text: text, Func: "optim_accumulate", Grid: blocks(cudaMapBlock)}
	adamwCUDA      = &device.Source{Text: text, Func: "optim_adamw", Grid: blocks(cudaAdamBlock)}
	splitCUDA      = &device.Source{Text: text, Func: "optim_adamw_split", Grid: blocks(cudaAdamBlock)}
)

// blocks is a launch over I[0] elements, n a block of 256 threads.
func blocks(n int64) func(a *device.Args) device.Grid {
	return func(a *device.Args) device.Grid {
		return device.Grid{X: int32(max(1, (a.I[0]+n-1)/n)), Y: 1, Z: 1, Threads: 256}
	}
}

func single(threads int32) func(a *device.Args) device.Grid {
	return func(*device.Args) device.Grid { return device.Grid{X: 1, Y: 1, Z: 1, Threads: threads} }
}
