package finite

import (
	"errors"
	"math"
	"testing"

	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/device/cpu"
)

// The first value in order is named, however the range is cut, and finite ones pass.
func TestCheckFindsTheFirst(t *testing.T) {
	const rows, width = 50, 999
	for name, bad := range map[string]map[int]float32{
		"none": {}, "the last": {rows*width - 1: float32(math.Inf(-1))},
		"several": {7000: float32(math.NaN()), 30000: float32(math.Inf(1)), 6999: float32(math.Inf(1))},
	} {
		t.Run(name, func(t *testing.T) {
			d := cpu.New()
			defer d.Close()
			x, err := d.Alloc(device.DeviceMemory, 4*rows*width)
			if err != nil {
				t.Fatal(err)
			}
			raw := d.View(x, 4*rows*width)
			first := -1
			for i, v := range bad {
				bits := math.Float32bits(v)
				raw[4*i], raw[4*i+1], raw[4*i+2], raw[4*i+3] = byte(bits), byte(bits>>8), byte(bits>>16), byte(bits>>24)
				if first < 0 || i < first {
					first = i
				}
			}
			Check(d.Queue(device.Compute), CheckArgs{X: x, Rows: rows, D: width, Op: "silu", Value: "h", Line: "m.mt:3"})
			err = d.Sync()
			var f *NonFinite
			switch {
			case first < 0 && err != nil:
				t.Error(err)
			case first >= 0 && (!errors.As(err, &f) || f.Row != int64(first/width) || f.Column != int64(first%width) || f.Op != "silu" || f.Line != "m.mt:3"):
				t.Errorf("%v, wanted element %d", err, first)
			}
		})
	}
}
