// Package device is the small interface between the engine, the ops' launchers and a
// machine: memory, queues, events, launches and copies. Implementations: device/null
// (accepts everything, checks order), device/cpu (a goroutine for each queue) and
// device/cuda (streams). Launchers pass a Kernel value with each launch, so devices never
// import ops.
package device

import "time"

// Ptr is an address in an arena of a device: arena number (from 1) and byte offset. The
// zero Ptr is nil. Ptr is a value; arithmetic on it allocates nothing.
type Ptr struct {
	Arena int32
	Off   int64
}

// Nil reports whether p points nowhere.
func (p Ptr) Nil() bool { return p.Arena == 0 }

// At returns p moved by off bytes; nil stays nil.
func (p Ptr) At(off int64) Ptr {
	if p.Arena == 0 {
		return p
	}
	return Ptr{p.Arena, p.Off + off}
}

// Memory is where an arena lives.
type Memory uint8

// The memories. On the CPU device both are ordinary memory, kept apart, so that a copy
// between them is a copy.
const (
	DeviceMemory Memory = iota
	HostMemory          // reachable by the host optimizer and by copies (pinned on a GPU)
)

func (m Memory) String() string { return [...]string{"device", "host"}[m] }

// Lane numbers a queue. A lane runs its commands in order.
type Lane uint8

// The lanes.
const (
	Compute Lane = iota
	H2D
	D2H
	Host // optimizer workers
	NumLanes
)

func (l Lane) String() string { return [...]string{"compute", "h2d", "d2h", "host"}[l] }

// Limits of one launch.
const (
	MaxPtrs   = 20
	MaxInts   = 16
	MaxFloats = 8
)

// Args are the arguments of one launch, passed by value so that a launch allocates nothing.
// Their meaning is the kernel's; the typed launchers of the rooms fill them.
type Args struct {
	P [MaxPtrs]Ptr
	I [MaxInts]int64
	F [MaxFloats]float32
}

// Kernel is a named piece of work with one implementation for each kind of device.
type Kernel struct {
	Name string
	CPU  func(c CPU, a *Args) // reference or fast CPU code; runs on the lane's goroutine
	CUDA *Source              // nil until the op has a CUDA kernel
	// Matmul describes the launch as a matrix product, which a device with a library for it
	// runs there. CUDA is then not needed, except for an epilogue: it follows the plain product
	// where the library does not do the epilogue.
	Matmul func(a *Args) Matmul
	// Tagged launches get what the queue's Tagger was told last as I[MaxInts-1].
	Tagged bool
	// Report, for debugging, gets what the CUDA code left in the first ReportBytes of scratch
	// memory, as soon as it is done: the caller of Launch waits. An error is the launch's failure.
	Report func(work []byte, a *Args) error
}

// ReportBytes is what Kernel.Report gets.
const ReportBytes = 64

// CPU is what a CPU kernel may use.
type CPU interface {
	// F32 returns n float32 at p, nil for a nil p. It panics when the range is outside the
	// arena.
	F32(p Ptr, n int64) []float32
	// I32 returns n int32 at p.
	I32(p Ptr, n int64) []int32
	// F64 returns n float64 at p (scalar blocks).
	F64(p Ptr, n int64) []float64
	// Parallel calls body for disjoint ranges that cover [0, n), each a multiple of grain
	// long except the last, on up to all cores, and returns when all are done. Results must
	// not depend on how the range was cut.
	Parallel(n, grain int64, body func(lo, hi int64))
}

// Queue runs commands in order, asynchronously to the caller.
type Queue interface {
	// Launch enqueues a kernel.
	Launch(k *Kernel, a Args)
	// Copy enqueues a copy of n bytes; source and target do not overlap.
	Copy(dst, src Ptr, n int64)
	// Record enqueues the completion of e: e is done when all commands before it are done.
	Record(e Event)
	// Wait makes later commands of this queue wait for the latest Record of e that was
	// enqueued, on any queue, before this call. Without one it does nothing.
	Wait(e Event)
}

// Keeper is a Queue that can keep launches, to enqueue them again all at once.
type Keeper interface {
	// Keeps tells whether it does; it may be told not to.
	Keeps() bool
	// Keep calls run, which enqueues launches on this queue and nothing else, with arguments that
	// stay as they are. They do not run: again enqueues them, as often as it is called. It is nil
	// where they cannot be kept, and returns false where that is no longer so.
	Keep(run func()) (again func() bool)
}

// Event orders queues, and queues and the host.
type Event interface {
	// Sync blocks the caller until the latest enqueued Record of the event is done, and
	// returns the device's first failure, if any.
	Sync() error
}

// Warmer is a device that prepares kernels before they are first launched. Warm calls run with
// a queue that executes nothing and takes note of the launches, then makes them ready, all at
// once; they are those of the compute lane.
type Warmer interface {
	Warm(run func(q Queue)) error
}

// Phase is a part of a start-up.
type Phase struct {
	Name   string
	Time   time.Duration
	Beside bool // it went on beside others
}

// Starter is a device whose start takes a while. Settle waits for what Alloc left under way, and
// Phases tells how long each part took.
type Starter interface {
	Settle() error
	Phases() []Phase
}

// Device is a machine that runs a plan.
type Device interface {
	Name() string
	// Alloc makes an arena of zeroed memory; the error says what was asked and what there is.
	Alloc(m Memory, bytes int64) (Ptr, error)
	// Queue returns the queue of a lane.
	Queue(l Lane) Queue
	NewEvent() Event
	// Sync waits for all queues and returns the first failure of a command.
	Sync() error
	// Read and Write copy between Go memory and an arena; the caller has ordered them.
	Read(dst []byte, src Ptr) error
	Write(dst Ptr, src []byte) error
	// View returns the bytes at p when the caller can reach them directly (all arenas of the
	// CPU device, host arenas of a GPU), else nil.
	View(p Ptr, n int64) []byte
	Close() error
}
