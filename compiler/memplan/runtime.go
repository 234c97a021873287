package memplan

import (
	"slices"

	"github.com/megatrain/mtc/runtime/plan"
)

// Need is the memory that a run of a plan takes, with what libraries and the process itself need. On
// a CPU all of it is the host's.
func Need(p *plan.Plan) (deviceBytes, hostBytes int64) {
	d, h := Peak(p)
	h += RuntimeBytes(p)
	if p.Target == "cpu" {
		return 0, d + h
	}
	return d + Reserve(p), h
}

// RuntimeBytes is what a process of the plan needs besides its arenas: the program itself,
// the Go runtime, packing buffers of the matrix products, the prepared tasks and the window
// of the data it reads. Measured on programs of several sizes, on two threads.
func RuntimeBytes(p *plan.Plan) int64 {
	const base = 17 << 20
	return base + PerTask(p)*int64(len(p.Tasks)) + readBytes(p) + gpuBytes(p)
}

// readBytes is what is left behind of reading the frozen weights of adapters from a folder: the blocks
// that go through memory and what headers are read into, collected no sooner than needed. Measured on CPUs
// of 2 and of 8 threads, 4 to 7 MB; on a GPU it is within what libraries take.
func readBytes(p *plan.Plan) int64 {
	if p.Target == "cpu" && slices.ContainsFunc(p.Slabs, func(s plan.Slab) bool { return s.Frozen }) {
		return 6 << 20
	}
	return 0
}

// ThreadBytes is the scratch memory that kernels on a CPU take by thread, measured with 2 and with 8.
const ThreadBytes = 3 << 19

// Threads is what a process of the plan needs on so many threads more than RuntimeBytes.
func Threads(p *plan.Plan, n int64) int64 {
	if p.Target != "cpu" {
		return 0
	}
	return ThreadBytes * (max(1, n) - 2)
}

// What driver and libraries take of a GPU's process on the host, in bytes, measured on an H200 with nine programs: before
// the first step (443 to 543 MiB), while kernels are compiled for a cache that is cold (798 to 830), and between steps
// (660 to 714).
const (
	startingBytes  = 490 << 20
	compilingBytes = 800 << 20
	runningBytes   = 690 << 20
)

// gpuBytes is what a GPU's process takes on the host besides: driver and libraries, and room for the state that
// passes through to be saved (plan.Staged).
func gpuBytes(p *plan.Plan) int64 { return gpuPeak(p, runningBytes) }

// Unsaved is what a run of the plan that saves no checkpoint takes less of the host's memory than Need says: state
// passes through before the first step alone.
func Unsaved(p *plan.Plan) int64 { return gpuPeak(p, runningBytes) - gpuPeak(p, startingBytes) }

func gpuPeak(p *plan.Plan, beside int64) int64 {
	if p.Target != "cuda" {
		return 0
	}
	var routed int64 // what a mixture's kernels and products take more; measured on one, of 16 experts
	if len(p.Routers) > 0 {
		routed = 32 << 20
	}
	return routed + max(compilingBytes, beside+p.Staged())
}

// StateBytes is what passes through host memory at a time of a parameter on a GPU: its weight,
// in two halves or not, or a moment. Measured on a stream of 7B.
const StateBytes = 4

// TaskBytes is what a task takes of the process: both parities of its prepared command and
// binding.
const TaskBytes = 1200

// PerTask is TaskBytes, and on a CPU what the heap grows by until it is collected: measured with programs of 61 to 7,000
// tasks. On a GPU that is within what libraries take.
func PerTask(p *plan.Plan) int64 {
	if p.Target == "cpu" {
		return 5400
	}
	return TaskBytes
}

// Reserve is the device memory that a plan cannot use: a GPU's context, its libraries and
// their workspaces, and what kernels take beyond that while they run. Measured on resident programs (0.55 GiB) and
// on streams (0.75 GiB).
func Reserve(p *plan.Plan) int64 {
	if p.Target == "cuda" {
		return 768<<20 + p.Scratch
	}
	return 0
}

// ScratchWithin is how much of what kernels take while they run is within what was measured.
const ScratchWithin = 64 << 20
