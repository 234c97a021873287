//go:build cuda

// Package cuda is the device of an NVIDIA GPU, over gorgonia.org/cu. The lanes compute, h2d
// and d2h are streams; the host lane is a goroutine that runs CPU kernels on pinned host
// arenas. Commands go to the driver from the caller's goroutine, as they are enqueued; nothing
// waits for a whole lane but Sync.
//
// Order between lanes: each record on a stream takes an event of the stream's own ring, so a
// wait means the record that was enqueued before it, whatever was enqueued since. Streams wait
// for the host lane on a counter in mapped memory, which that lane raises with each record.
//
// Kernels are CUDA C++ that comes with each launch (device.Source). They are compiled by NVRTC
// for the GPU at hand, and kept on disk by the hash of all that went in. Matrix products run in
// cuBLASLt. NVRTC and cuBLASLt are opened at run time (package libs says where).
//
// MTC_CUDA_SYNC=1 waits after every launch, so that a kernel that fails is named exactly.
// MTC_CUDA_WAIT=host does without streams that wait on memory: the submitting thread waits for
// the host lane in their place, as it does where the driver has no such waits.
// MTC_CUDA_EPILOGUE=0 runs a GELU beside a product as a kernel of its own. MTC_CUDA_TUNE=0 takes
// for each product the algorithm that cuBLASLt names first, in the place of the fastest one.
//
// What the compute lane does between two waits is enqueued as one CUDA graph, from a run's third step
// on; MTC_CUDA_GRAPHS=0 launches kernels one by one.
//
// For tests of whole programs: MTC_CUDA_JITTER=SEED pauses lanes at random (Options.Jitter), and
// MTC_CUDA_FAIL=N makes the GPU fail in the N-th launch of the compute lane.
package cuda

import (
	"fmt"
	"math"
	"os"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"gorgonia.org/cu"

	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/device/cpu"
	"github.com/megatrain/mtc/runtime/device/cuda/kit"
)

// Options of a device. The zero value is a program's in bf16.
type Options struct {
	// F32 makes activations and weights float32, without tensor-core rounding.
	F32 bool
	// Ordinal is the number of the GPU, in the driver's order.
	Ordinal int
	// Threads is how many goroutines the host lane's kernels use; 0: all but one of
	// GOMAXPROCS, since one thread submits.
	Threads int
	// Jitter, when not 0, seeds pauses before commands on all lanes. Tests use it: results must
	// not depend on when something runs.
	Jitter int64
}

// Device is a GPU and its lanes.
type Device struct {
	opt       Options
	name      string
	arch      string // for NVRTC: sm_90a
	major     int
	ctx       contextHandle
	cuctx     cu.CUContext
	total     int64
	maxShared int32
	target    device.Target
	noWaits   bool // the driver has no waits on memory: the submitter waits
	syncAll   bool // MTC_CUDA_SYNC
	// noEpilogues is MTC_CUDA_EPILOGUE=0: what follows a product is a kernel of its own.
	noEpilogues bool
	noTuning    bool  // MTC_CUDA_TUNE=0
	graphs      bool  // not MTC_CUDA_GRAPHS=0
	failAt      int64 // MTC_CUDA_FAIL, 0: never
	backing     *backing
	unsettled   atomic.Bool  // host arenas are still being backed, or kernels made
	warmed      func() error // ends what Warm began
	bounce      bounce
	times       times
	pinLimit    atomic.Int64 // LimitPinned
	pinned      atomic.Int64
	pool        *cpu.Device
	jitter      *jitter // nil: none

	streams [device.Host]*stream
	copies  streamHandle // of Read and Write
	own     cu.Stream    // the same
	host    *hostLane
	lt      *blas
	kernels kernels

	mu     sync.Mutex // Alloc and Close
	closed bool
	n      atomic.Int32
	arenas [maxArenas]arena

	failure atomic.Pointer[device.Failure]
}

// maxArenas bounds the arenas, so that a look-up is one bounds check.
const maxArenas = 1 << 10

var (
	_ device.Device = (*Device)(nil)
	_ device.Warmer = (*Device)(nil)
)

// New opens a GPU. The error is a *fault.Error that says what is missing and what to do.
func New(o Options) (*Device, error) {
	began := time.Now()
	// The set-up is a series of calls that need the same current context.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	info, err := Probe(o.Ordinal)
	if err != nil {
		return nil, err
	}
	d := &Device{opt: o, name: info.Name, arch: kit.Arch(info.Major, info.Minor), major: info.Major, total: info.Memory}
	d.syncAll = os.Getenv("MTC_CUDA_SYNC") == "1"
	d.noTuning = os.Getenv("MTC_CUDA_TUNE") == "0"
	d.noEpilogues = os.Getenv("MTC_CUDA_EPILOGUE") == "0"
	d.noWaits = os.Getenv("MTC_CUDA_WAIT") == "host"
	d.failAt, _ = strconv.ParseInt(os.Getenv("MTC_CUDA_FAIL"), 10, 64)
	d.pinLimit.Store(math.MaxInt64)
	if o.Jitter == 0 {
		o.Jitter, _ = strconv.ParseInt(os.Getenv("MTC_CUDA_JITTER"), 10, 64)
	}
	d.graphs = os.Getenv("MTC_CUDA_GRAPHS") != "0" && d.failAt == 0 && !d.syncAll
	if d.cuctx, err = primary(o.Ordinal); err != nil {
		return nil, cannotUse(info.Name, err)
	}
	d.ctx = handleOfContext(d.cuctx)
	if err := d.bind(); err != nil {
		return nil, cannotUse(info.Name, err)
	}
	dev := cu.Device(o.Ordinal)
	shared, err := dev.Attribute(attrSharedOptin)
	if err != nil {
		return nil, cannotUse(info.Name, called("cuDeviceGetAttribute", err))
	}
	d.maxShared = int32(shared)
	d.target = device.Target{Major: info.Major, Minor: info.Minor, Shared: d.maxShared, F32: o.F32}
	threads := o.Threads
	if threads <= 0 {
		threads = max(1, runtime.GOMAXPROCS(0)-1)
	}
	d.pool = cpu.NewWith(cpu.Options{Threads: threads})
	if o.Jitter != 0 {
		d.jitter = newJitter(o.Jitter)
	}
	d.backing, d.warmed = newBacking(), func() error { return nil }
	d.kernels.modules = map[moduleKey]cu.Module{}
	if d.host, err = newHostLane(d); err != nil {
		return nil, cannotUse(info.Name, err)
	}
	for l := range d.streams {
		if d.streams[l], err = newStream(d, device.Lane(l)); err != nil {
			return nil, cannotUse(info.Name, err)
		}
	}
	if d.own, err = cu.MakeStream(cu.NonBlocking); err != nil {
		return nil, cannotUse(info.Name, called("cuStreamCreate", err))
	}
	d.copies = handleOfStream(d.own)
	// A wait for what has happened shows whether there are waits on memory. The driver's
	// attribute of that name is about an older interface.
	if !d.noWaits {
		err := d.waitValue(d.streams[0].handle, d.host.counterAt, 0)
		if sticky(codeOf(err)) {
			return nil, cannotUse(info.Name, err)
		}
		d.noWaits = err != nil
	}
	d.streams[device.Compute].startTrail()
	d.times.open = time.Since(began)
	return d, nil
}

// attrSharedOptin is CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, for which cu has no
// name.
const attrSharedOptin cu.DeviceAttribute = 97

var contexts struct {
	sync.Mutex
	of map[int]cu.CUContext
}

// primary retains the primary context of a GPU, which libraries share, once in a process: a
// thread may have it current for as long as it likes.
func primary(ordinal int) (cu.CUContext, error) {
	contexts.Lock()
	defer contexts.Unlock()
	if c, ok := contexts.of[ordinal]; ok {
		return c, nil
	}
	dev := cu.Device(ordinal)
	// Where cores are few, waiting must not take one.
	if runtime.NumCPU() <= 4 {
		if err := dev.SetPrimaryCtxFlags(cu.SchedBlockingSync); err != nil {
			return cu.CUContext{}, called("cuDevicePrimaryCtxSetFlags", err)
		}
	}
	c, err := dev.RetainPrimaryCtx()
	if err != nil {
		return cu.CUContext{}, called("cuDevicePrimaryCtxRetain", err)
	}
	if contexts.of == nil {
		contexts.of = map[int]cu.CUContext{}
	}
	contexts.of[ordinal] = c
	return c, nil
}

// Name says what the device is.
func (d *Device) Name() string {
	s := fmt.Sprintf("%s (%s, %d host threads)", d.name, d.arch, d.pool.Threads())
	if d.opt.F32 {
		s += ", f32"
	}
	return s
}

// Threads is how many goroutines the host lane's kernels use.
func (d *Device) Threads() int { return d.pool.Threads() }

// Free is the device memory that is left, and all there is, in bytes. Of a GPU that does not say it is all: what
// is asked of it next tells why.
func (d *Device) Free() (free, total int64) {
	free, total, err := d.memory()
	if err != nil {
		return d.total, d.total
	}
	return free, total
}

func (d *Device) memory() (free, total int64, err error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := d.bind(); err != nil {
		return 0, d.total, err
	}
	free, total, err = cu.MemInfo()
	return free, total, called("cuMemGetInfo", err)
}

// Queue returns the queue of a lane.
func (d *Device) Queue(l device.Lane) device.Queue {
	if l == device.Host {
		return d.host
	}
	return d.streams[l]
}

// Sync waits until every command enqueued before it is done on all lanes.
func (d *Device) Sync() error {
	unready := d.Settle()
	seq := d.host.record()
	for _, s := range d.streams {
		if err := d.syncStream(s.handle); err != nil {
			d.failed(s, "", err)
		}
	}
	d.host.await(seq)
	if unready != nil {
		return unready
	}
	return d.err()
}

func (d *Device) err() error {
	if f := d.failure.Load(); f != nil {
		return f
	}
	return nil
}

// Close waits for the lanes and gives everything back but the primary context.
func (d *Device) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return d.err()
	}
	d.Sync()
	d.closed = true
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	d.host.close()
	d.bind()
	for _, s := range d.streams {
		s.close()
	}
	_ = d.own.Destroy()
	d.bounce.close(d)
	d.lt.close()
	d.kernels.close()
	for i := range d.arenas {
		d.arenas[i].release(d)
	}
	d.pool.Close()
	return d.err()
}
