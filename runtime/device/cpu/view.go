package cpu

import (
	"fmt"
	"unsafe"

	"github.com/megatrain/mtc/runtime/device"
)

// F32 returns n float32 at p; nil for a nil p (an absent operand). It panics, which fails
// the device with the kernel's name, when the range is outside the arena or misaligned.
func (d *Device) F32(p device.Ptr, n int64) []float32 { return view[float32](d, p, n) }

// I32 returns n int32 at p.
func (d *Device) I32(p device.Ptr, n int64) []int32 { return view[int32](d, p, n) }

// F64 returns n float64 at p.
func (d *Device) F64(p device.Ptr, n int64) []float64 { return view[float64](d, p, n) }

func view[E float32 | int32 | float64](d *Device, p device.Ptr, n int64) []E {
	if p.Nil() {
		return nil
	}
	var e E
	size := int64(unsafe.Sizeof(e))
	if n < 0 || n > (1<<62)/size {
		panic(fmt.Errorf("%d elements at offset %d of arena %d", n, p.Off, p.Arena))
	}
	b, err := d.bytes(p, n*size)
	if err != nil {
		panic(err)
	}
	if p.Off%size != 0 {
		panic(fmt.Errorf("offset %d of arena %d is not a multiple of %d", p.Off, p.Arena, size))
	}
	return unsafe.Slice((*E)(unsafe.Pointer(unsafe.SliceData(b))), n)
}
