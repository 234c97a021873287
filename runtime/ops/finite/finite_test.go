package finite

import (
	"errors"
	"math"
	"testing"

	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/device/cpu"
	"github.com/megatrain/mtc/runtime/ops/optest"
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

// A value has one hash on every device, whatever lies between its rows; one bit changes it.
func TestWatchOnGPU(t *testing.T) {
	optest.OnGPU(t, func(t *testing.T, f32 bool) {
		m := optest.GPU(t, f32)
		var seen []Seen
		Watch(func(s Seen) { seen = append(seen, s) })
		defer Watch(nil)
		const rows, width, pitch = 70, 999, 1001
		v := make([]float32, rows*pitch)
		for i := range v {
			v[i] = float32(math.Sin(float64(i)))
		}
		want := func() (sum uint64) {
			for i := range uint64(rows * width) {
				bits := uint64(math.Float32bits(v[i/width*pitch+i%width]))
				if !f32 {
					bits >>= 16
				}
				sum += mix(bits, i)
			}
			return sum
		}
		for k := range 3 {
			switch k {
			case 1:
				v[width] = 7 // between rows
			case 2:
				v[pitch] += 0.5
			}
			if !f32 {
				v = optest.RoundBF16(v)
			}
			Check(m.Queue, CheckArgs{X: m.Act(v...), Rows: rows, D: width, Pitch: pitch, Half: !f32, Op: "silu", Value: "h", Line: "m.mt:3"})
			m.Sync()
			if len(seen) != k+1 || seen[k].Hash != want() || !seen[k].Finite || seen[k].Value != "h" {
				t.Fatalf("%d: %+v, want the hash %d", k, seen, want())
			}
		}
		if seen[0].Hash != seen[1].Hash || seen[1].Hash == seen[2].Hash {
			t.Errorf("hashes %d, %d, %d", seen[0].Hash, seen[1].Hash, seen[2].Hash)
		}
	})
}

// What the kernel left names the element.
func TestReport(t *testing.T) {
	a := &device.Args{I: [device.MaxInts]int64{4, 10, place(CheckArgs{Op: "linear", Value: "q", Line: "m.mt:1"}), 10, 1}}
	work := make([]byte, device.ReportBytes)
	work[8], work[16], work[17] = 23, 0x80, 0xff // element 23, -Inf
	var f *NonFinite
	if err := report(work, a); !errors.As(err, &f) || f.Row != 2 || f.Column != 3 || !math.IsInf(float64(f.Number), -1) || f.Value != "q" {
		t.Errorf("%v", err)
	}
	if work[8] = 40; report(work, a) != nil {
		t.Error("all are finite")
	}
}
