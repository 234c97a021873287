//go:build cuda

package cuda

// What gorgonia.org/cu lacks, or what has to happen on one thread: calls that make sure of the
// thread's context first (goroutines change threads between two calls), launches from a
// prepared block of arguments, and registration of host memory.

/*
#include <cuda.h>
#include <stdint.h>
#include <stdlib.h>

extern int mtc_cuda_driver(const char** why) __attribute__((weak));

static int driver_status(const char** why) {
	*why = "";
	return mtc_cuda_driver ? mtc_cuda_driver(why) : (int)cuInit(0);
}

typedef struct {
	uint64_t p[20];
	int64_t i[16];
	float f[8];
	uint64_t work;
} block_t;

static __thread CUcontext bound;

static inline int bind(CUcontext c) {
	if (bound == c) return 0;
	int rc = cuCtxSetCurrent(c);
	if (rc == 0) bound = c;
	return rc;
}

static int launch(CUcontext c, CUstream s, CUfunction f, unsigned x, unsigned y, unsigned z,
		unsigned threads, unsigned shared, block_t* args) {
	int rc = bind(c);
	if (rc) return rc;
	void* params[1] = {args};
	return cuLaunchKernel(f, x, y, z, threads, 1, 1, shared, s, params, 0);
}

static int capture(CUcontext c, CUstream s) {
	int rc = bind(c);
	return rc ? rc : cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_RELAXED);
}

// captured ends a capture and makes its graph ready; with drop it only ends it.
static int captured(CUcontext c, CUstream s, int drop, CUgraphExec* out) {
	CUgraph g = 0;
	int rc = bind(c);
	if (rc) return rc;
	rc = cuStreamEndCapture(s, &g);
	if (rc == 0 && !drop) rc = cuGraphInstantiateWithFlags(out, g, 0);
	if (rc == 0 && *out && (rc = cuGraphUpload(*out, s))) cuGraphExecDestroy(*out); // its memory is taken now
	if (g) cuGraphDestroy(g);
	return rc;
}

static int graph_launch(CUcontext c, CUgraphExec g, CUstream s) {
	int rc = bind(c);
	return rc ? rc : cuGraphLaunch(g, s);
}

static void graph_free(CUgraphExec g) { cuGraphExecDestroy(g); }

static int record(CUcontext c, CUstream s, CUevent e) {
	int rc = bind(c);
	return rc ? rc : cuEventRecord(e, s);
}

static int wait_event(CUcontext c, CUstream s, CUevent e) {
	int rc = bind(c);
	return rc ? rc : cuStreamWaitEvent(s, e, 0);
}

static int wait_value(CUcontext c, CUstream s, uint64_t addr, unsigned value) {
	int rc = bind(c);
	return rc ? rc : cuStreamWaitValue32(s, addr, value, CU_STREAM_WAIT_VALUE_GEQ);
}

static int write_value(CUcontext c, CUstream s, uint64_t addr, unsigned value, unsigned flags) {
	int rc = bind(c);
	return rc ? rc : cuStreamWriteValue32(s, addr, value, flags);
}

static int sync_event(CUcontext c, CUevent e) {
	int rc = bind(c);
	return rc ? rc : cuEventSynchronize(e);
}

static int sync_stream(CUcontext c, CUstream s) {
	int rc = bind(c);
	return rc ? rc : cuStreamSynchronize(s);
}

// copy moves n bytes: kind 0 host to device, 1 device to host, 2 within the device, 3 within
// the host.
static int copy(CUcontext c, CUstream s, int kind, uint64_t dst, uint64_t src, size_t n) {
	int rc = bind(c);
	if (rc) return rc;
	switch (kind) {
	case 0: return cuMemcpyHtoDAsync(dst, (void*)(uintptr_t)src, n, s);
	case 1: return cuMemcpyDtoHAsync((void*)(uintptr_t)dst, src, n, s);
	case 2: return cuMemcpyDtoDAsync(dst, src, n, s);
	}
	return cuMemcpyAsync(dst, src, n, s);
}

// copy_now returns when the bytes are where they go. cuMemcpyHtoD does not do that: from
// pageable memory it returns when the source has been read, and streams that do not wait for
// the default one could then read device memory before the bytes arrive.
static int copy_now(CUcontext c, CUstream s, int kind, uint64_t dev, void* host, size_t n) {
	int rc = bind(c);
	if (rc) return rc;
	rc = kind == 0 ? cuMemcpyHtoDAsync(dev, host, n, s) : cuMemcpyDtoHAsync(host, dev, n, s);
	return rc ? rc : cuStreamSynchronize(s);
}

static int host_register(CUcontext c, uint64_t p, size_t n) {
	int rc = bind(c);
	return rc ? rc : cuMemHostRegister((void*)(uintptr_t)p, n, CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP);
}

static int host_unregister(CUcontext c, uint64_t p) {
	int rc = bind(c);
	return rc ? rc : cuMemHostUnregister((void*)(uintptr_t)p);
}

static int host_device_ptr(CUcontext c, uint64_t p, uint64_t* out) {
	CUdeviceptr d = 0;
	int rc = bind(c);
	if (rc == 0) rc = cuMemHostGetDevicePointer(&d, (void*)(uintptr_t)p, 0);
	*out = d;
	return rc;
}

static int bind_only(CUcontext c) { return bind(c); }

static int allow_shared(CUcontext c, CUfunction f, int bytes) {
	int rc = bind(c);
	return rc ? rc : cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, bytes);
}

static int module_load(CUcontext c, const void* image, CUmodule* m) {
	int rc = bind(c);
	return rc ? rc : cuModuleLoadData(m, image);
}

static const char* error_name(int code) {
	const char* s = 0;
	return cuGetErrorName(code, &s) == 0 ? s : 0;
}

static const char* error_text(int code) {
	const char* s = 0;
	return cuGetErrorString(code, &s) == 0 ? s : 0;
}

#cgo noescape launch
#cgo nocallback launch
#cgo nocallback record
#cgo nocallback graph_launch
#cgo nocallback wait_event
#cgo nocallback wait_value
#cgo nocallback write_value
#cgo nocallback copy
*/
import "C"

import (
	"errors"
	"fmt"
	"reflect"
	"unsafe"

	"gorgonia.org/cu"

	"github.com/megatrain/mtc/runtime/device"
)

// Handles of the driver, without Go's pointer rules: they point to nothing of Go's.
type (
	streamHandle   = C.CUstream
	eventHandle    = C.CUevent
	functionHandle = C.CUfunction
	graphHandle    = C.CUgraphExec
	contextHandle  = C.CUcontext
)

// cu keeps its handles in structs of one unexported field.
func handleOfContext(c cu.CUContext) contextHandle { return *(*contextHandle)(unsafe.Pointer(&c)) }
func handleOfStream(s cu.Stream) streamHandle      { return *(*streamHandle)(unsafe.Pointer(&s)) }
func handleOfEvent(e cu.Event) eventHandle         { return *(*eventHandle)(unsafe.Pointer(&e)) }
func handleOfFunction(f cu.Function) functionHandle {
	return *(*functionHandle)(unsafe.Pointer(&f))
}

var (
	_ [unsafe.Sizeof(cu.Stream{}) - unsafe.Sizeof(streamHandle(nil))]struct{}   = [0]struct{}{}
	_ [unsafe.Sizeof(cu.Event{}) - unsafe.Sizeof(eventHandle(nil))]struct{}     = [0]struct{}{}
	_ [unsafe.Sizeof(cu.Module{}) - unsafe.Sizeof(unsafe.Pointer(nil))]struct{} = [0]struct{}{}
)

// block is the argument of a launch, in C's memory; struct Args of mtc.cuh.
type block struct {
	p    [device.MaxPtrs]uint64
	i    [device.MaxInts]int64
	f    [device.MaxFloats]float32
	work uint64
}

var _ [unsafe.Sizeof(block{}) - C.sizeof_block_t]struct{} = [0]struct{}{}

func newBlock() *block { return (*block)(C.calloc(1, C.sizeof_block_t)) }

func (b *block) free() { C.free(unsafe.Pointer(b)) }

// driverStatus is cuInit's result, -1 with a reason when there is no driver.
func driverStatus() (code int, why string) {
	var c *C.char
	code = int(C.driver_status(&c))
	return code, C.GoString(c)
}

// driverError is a result of the driver that is not success, and the call that gave it.
type driverError struct {
	call string
	code int
}

func (e driverError) Error() string {
	name, text := C.error_name(C.int(e.code)), C.error_text(C.int(e.code))
	if name == nil || text == nil {
		return fmt.Sprintf("%s: CUDA error %d", e.call, e.code)
	}
	return fmt.Sprintf("%s: %s (%s)", e.call, C.GoString(text), C.GoString(name))
}

// Results that are told apart.
const (
	codeOutOfMemory = 2
	codeNoDevice    = 100
)

func result(call string, rc C.int) error {
	if rc == 0 {
		return nil
	}
	return driverError{call, int(rc)}
}

// called names the call of an error of cu, which does not.
func called(call string, err error) error {
	if code := codeOf(err); code != 0 {
		return driverError{call, code}
	}
	return err
}

// codeOf is the driver's code of an error of cu or of this package, 0 for others.
func codeOf(err error) int {
	var e driverError
	if errors.As(err, &e) {
		return e.code
	}
	var lt blasError
	if errors.As(err, &lt) {
		return 0 // numbers of its own
	}
	for ; err != nil; err = errors.Unwrap(err) {
		// cu's results are of an unexported type of ints.
		if v := reflect.ValueOf(err); v.Kind() == reflect.Int {
			return int(v.Int())
		}
	}
	return 0
}

func (d *Device) launchNow(s *stream, f functionHandle, x, y, z, threads, shared int32, b *block) error {
	return result("cuLaunchKernel", C.launch(d.ctx, s.handle, f, C.uint(x), C.uint(y), C.uint(z), C.uint(threads), C.uint(shared), (*C.block_t)(unsafe.Pointer(b))))
}

// capture has a stream take launches up instead of running them, until captured.
func (d *Device) capture(s streamHandle) error {
	return result("cuStreamBeginCapture", C.capture(d.ctx, s))
}

// captured returns what a stream took up, nil with drop.
func (d *Device) captured(s streamHandle, drop bool) (graphHandle, error) {
	var g graphHandle
	err := result("cuStreamEndCapture", C.captured(d.ctx, s, flag(drop), &g))
	return g, err
}

func (d *Device) launchGraph(g graphHandle, s streamHandle) error {
	return result("cuGraphLaunch", C.graph_launch(d.ctx, g, s))
}

func freeGraph(g graphHandle) { C.graph_free(g) }

func (d *Device) recordNow(s streamHandle, e eventHandle) error {
	return result("cuEventRecord", C.record(d.ctx, s, e))
}

func (d *Device) waitEvent(s streamHandle, e eventHandle) error {
	return result("cuStreamWaitEvent", C.wait_event(d.ctx, s, e))
}

func (d *Device) waitValue(s streamHandle, addr uint64, value uint32) error {
	return result("cuStreamWaitValue32", C.wait_value(d.ctx, s, C.uint64_t(addr), C.uint(value)))
}

func (d *Device) writeValue(s streamHandle, addr uint64, value uint32, flags uint32) error {
	return result("cuStreamWriteValue32", C.write_value(d.ctx, s, C.uint64_t(addr), C.uint(value), C.uint(flags)))
}

func (d *Device) syncEvent(e eventHandle) error {
	return result("cuEventSynchronize", C.sync_event(d.ctx, e))
}

func (d *Device) syncStream(s streamHandle) error {
	return result("cuStreamSynchronize", C.sync_stream(d.ctx, s))
}

// copyKind says which memories a copy joins.
type copyKind int32

const (
	hostToDevice copyKind = iota
	deviceToHost
	deviceToDevice
	hostToHost
)

func (d *Device) copyAsync(s streamHandle, k copyKind, dst, src uint64, n int64) error {
	return result("cuMemcpyAsync", C.copy(d.ctx, s, C.int(k), C.uint64_t(dst), C.uint64_t(src), C.size_t(n)))
}

// copyNow blocks until the bytes are there; the host side is Go memory.
func (d *Device) copyNow(k copyKind, dev uint64, host []byte) error {
	if len(host) == 0 {
		return nil
	}
	return result("cuMemcpyAsync", C.copy_now(d.ctx, d.copies, C.int(k), C.uint64_t(dev), unsafe.Pointer(unsafe.SliceData(host)), C.size_t(len(host))))
}

// errPinLimit is what LimitPinned says.
var errPinLimit = errors.New("more locked memory than --pinned-memory allows")

// LimitPinned bounds the host memory that is locked from now on; of what was locked before, a page,
// nothing counts. Arenas that lie beyond it are copied through a small ring.
func (d *Device) LimitPinned(bytes int64) {
	d.pinned.Store(0)
	d.pinLimit.Store(bytes)
}

// hostRegister locks host memory and makes it known to the GPU.
func (d *Device) hostRegister(p uintptr, n int64) error {
	if d.pinned.Add(n) > d.pinLimit.Load() {
		d.pinned.Add(-n)
		return errPinLimit
	}
	err := result("cuMemHostRegister", C.host_register(d.ctx, C.uint64_t(p), C.size_t(n)))
	if err != nil {
		d.pinned.Add(-n)
	}
	return err
}

func (d *Device) hostUnregister(p uintptr, n int64) error {
	d.pinned.Add(-n)
	return result("cuMemHostUnregister", C.host_unregister(d.ctx, C.uint64_t(p)))
}

func (d *Device) hostDevicePtr(p uintptr) (uint64, error) {
	var out C.uint64_t
	rc := C.host_device_ptr(d.ctx, C.uint64_t(p), &out)
	return uint64(out), result("cuMemHostGetDevicePointer", rc)
}

func (d *Device) bind() error { return result("cuCtxSetCurrent", C.bind_only(d.ctx)) }

func (d *Device) allowShared(f functionHandle, bytes int32) error {
	return result("cuFuncSetAttribute", C.allow_shared(d.ctx, f, C.int(bytes)))
}

// loadModule loads machine code.
func (d *Device) loadModule(cubin []byte) (cu.Module, error) {
	var m C.CUmodule
	rc := C.module_load(d.ctx, unsafe.Pointer(unsafe.SliceData(cubin)), &m)
	return *(*cu.Module)(unsafe.Pointer(&m)), result("cuModuleLoadData", rc)
}
