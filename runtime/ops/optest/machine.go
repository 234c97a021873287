package optest

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/device/cpu"
)

// Machine is a device with one arena from which operands are cut, each behind a guard band.
// All of it starts as NaN.
type Machine struct {
	t      testing.TB
	dev    device.Device
	Queue  device.Queue
	base   device.Ptr
	size   int64
	used   int64
	guards []int64 // offsets
	failed bool    // Err returned a failure, so Close may too
}

const (
	machineBytes = 16 << 20
	guardBytes   = 64
	garbage      = 0xff // bytes of a NaN, in float32 and float64
)

// NewMachine makes a CPU device with a number of threads; it is closed when the test ends.
func NewMachine(t testing.TB, threads int) *Machine {
	t.Helper()
	return newMachine(t, threads, machineBytes)
}

func newMachine(t testing.TB, threads int, bytes int64) *Machine {
	t.Helper()
	d := cpu.NewWith(cpu.Options{Threads: threads})
	base, err := d.Alloc(device.DeviceMemory, bytes)
	if err != nil {
		t.Fatal(err)
	}
	m := &Machine{t: t, dev: d, Queue: d.Queue(device.Compute), base: base, size: bytes}
	t.Cleanup(func() {
		if err := d.Close(); err != nil && !m.failed {
			t.Error(err)
		}
	})
	return m
}

// Bytes cuts n bytes of garbage, with guard bands around.
func (m *Machine) Bytes(n int64) device.Ptr {
	m.t.Helper()
	at := m.used + guardBytes
	size := (n + 63) / 64 * 64
	if at+size+guardBytes > m.size {
		m.t.Fatalf("the test needs more than %d bytes", m.size)
	}
	b := m.view(m.base.At(m.used), guardBytes+size+guardBytes)
	for i := range b {
		b[i] = garbage
	}
	m.guards = append(m.guards, m.used, at+n)
	m.used = at + size
	return m.base.At(at)
}

// F32 cuts an operand that holds v.
func (m *Machine) F32(v ...float32) device.Ptr {
	p := m.Bytes(int64(len(v)) * 4)
	b := m.view(p, int64(len(v))*4)
	for i, x := range v {
		binary.LittleEndian.PutUint32(b[4*i:], math.Float32bits(x))
	}
	return p
}

// I32 cuts an operand that holds v.
func (m *Machine) I32(v ...int32) device.Ptr {
	p := m.Bytes(int64(len(v)) * 4)
	b := m.view(p, int64(len(v))*4)
	for i, x := range v {
		binary.LittleEndian.PutUint32(b[4*i:], uint32(x))
	}
	return p
}

// F64 cuts an operand that holds v.
func (m *Machine) F64(v ...float64) device.Ptr {
	p := m.Bytes(int64(len(v)) * 8)
	b := m.view(p, int64(len(v))*8)
	for i, x := range v {
		binary.LittleEndian.PutUint64(b[8*i:], math.Float64bits(x))
	}
	return p
}

// Sync waits for what was launched and looks at the guard bands.
func (m *Machine) Sync() {
	m.t.Helper()
	if err := m.dev.Sync(); err != nil {
		m.t.Fatal(err)
	}
	for _, off := range m.guards {
		end := (off + 63) / 64 * 64
		if off%64 == 0 {
			end = off + guardBytes
		}
		for i, x := range m.view(m.base.At(off), end-off) {
			if x != garbage {
				m.t.Fatalf("a kernel wrote outside of its operands, %d bytes after offset %d", i, off)
			}
		}
	}
}

// Err waits for what was launched and returns the device's failure, for tests that want one.
func (m *Machine) Err() error {
	err := m.dev.Sync()
	m.failed = err != nil
	return err
}

// ReadF32 returns n elements at p.
func (m *Machine) ReadF32(p device.Ptr, n int64) []float32 {
	b, v := m.view(p, 4*n), make([]float32, n)
	for i := range v {
		v[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return v
}

// ReadF64 returns n elements at p.
func (m *Machine) ReadF64(p device.Ptr, n int64) []float64 {
	b, v := m.view(p, 8*n), make([]float64, n)
	for i := range v {
		v[i] = math.Float64frombits(binary.LittleEndian.Uint64(b[8*i:]))
	}
	return v
}

func (m *Machine) view(p device.Ptr, n int64) []byte {
	b := m.dev.View(p, n)
	if b == nil && n > 0 {
		m.t.Fatalf("no memory at %v", p)
	}
	return b
}
