// Package devtest helps tests to put values into a device's memory and to read them back.
// Its functions end the test when the device refuses.
package devtest

import (
	"testing"
	"unsafe"

	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/device/cpu"
)

// Number is an element that lies in device memory.
type Number interface{ float32 | float64 | int32 }

// CPU returns a CPU device that is closed when the test ends.
func CPU(t testing.TB) *cpu.Device {
	t.Helper()
	d := cpu.New()
	t.Cleanup(func() { d.Close() })
	return d
}

// Put makes an arena of device memory that holds values.
func Put[E Number](t testing.TB, d device.Device, values []E) device.Ptr {
	t.Helper()
	p := Zeros[E](t, d, len(values))
	Set(t, d, p, values)
	return p
}

// Zeros makes an arena of n zeroed elements.
func Zeros[E Number](t testing.TB, d device.Device, n int) device.Ptr {
	t.Helper()
	var e E
	p, err := d.Alloc(device.DeviceMemory, int64(n)*int64(unsafe.Sizeof(e)))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Set writes values at p. The caller has ordered it with the lanes.
func Set[E Number](t testing.TB, d device.Device, p device.Ptr, values []E) {
	t.Helper()
	if err := d.Write(p, bytesOf(values)); err != nil {
		t.Fatal(err)
	}
}

// Get waits for all lanes and returns n elements at p.
func Get[E Number](t testing.TB, d device.Device, p device.Ptr, n int) []E {
	t.Helper()
	if err := d.Sync(); err != nil {
		t.Fatal(err)
	}
	values := make([]E, n)
	if err := d.Read(bytesOf(values), p); err != nil {
		t.Fatal(err)
	}
	return values
}

func bytesOf[E Number](v []E) []byte {
	var e E
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(v))), len(v)*int(unsafe.Sizeof(e)))
}
