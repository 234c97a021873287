package optest

import (
	"bytes"
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
	gpu    *gpu    // nil on the CPU
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

func newMachine(t testing.TB, threads int, size int64) *Machine {
	t.Helper()
	d := cpu.NewWith(cpu.Options{Threads: threads})
	base, err := d.Alloc(device.DeviceMemory, size)
	if err != nil {
		t.Fatal(err)
	}
	m := &Machine{t: t, dev: d, Queue: d.Queue(device.Compute), base: base, size: size}
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
	m.write(m.base.At(m.used), bytes.Repeat([]byte{garbage}, int(guardBytes+size+guardBytes)))
	m.guards = append(m.guards, m.used, at+n)
	m.used = at + size
	return m.base.At(at)
}

// F32 cuts an operand that holds v.
func (m *Machine) F32(v ...float32) device.Ptr {
	p := m.Bytes(int64(len(v)) * 4)
	b := make([]byte, 4*len(v))
	for i, x := range v {
		binary.LittleEndian.PutUint32(b[4*i:], math.Float32bits(x))
	}
	m.write(p, b)
	return p
}

// I32 cuts an operand that holds v.
func (m *Machine) I32(v ...int32) device.Ptr {
	p := m.Bytes(int64(len(v)) * 4)
	b := make([]byte, 4*len(v))
	for i, x := range v {
		binary.LittleEndian.PutUint32(b[4*i:], uint32(x))
	}
	m.write(p, b)
	return p
}

// F64 cuts an operand that holds v.
func (m *Machine) F64(v ...float64) device.Ptr {
	p := m.Bytes(int64(len(v)) * 8)
	b := make([]byte, 8*len(v))
	for i, x := range v {
		binary.LittleEndian.PutUint64(b[8*i:], math.Float64bits(x))
	}
	m.write(p, b)
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
		for i, x := range m.read(m.base.At(off), end-off) {
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
	b, v := m.read(p, 4*n), make([]float32, n)
	for i := range v {
		v[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return v
}

// ReadF64 returns n elements at p.
func (m *Machine) ReadF64(p device.Ptr, n int64) []float64 {
	b, v := m.read(p, 8*n), make([]float64, n)
	for i := range v {
		v[i] = math.Float64frombits(binary.LittleEndian.Uint64(b[8*i:]))
	}
	return v
}

// Act cuts an operand that holds v as the device computes with it: bf16 on a GPU in that
// precision.
func (m *Machine) Act(v ...float32) device.Ptr {
	if m.gpu == nil || m.gpu.f32 {
		return m.F32(v...)
	}
	p := m.Bytes(int64(len(v)) * 2)
	b := make([]byte, 2*len(v))
	for i, x := range RoundBF16(v) {
		binary.LittleEndian.PutUint16(b[2*i:], uint16(math.Float32bits(x)>>16))
	}
	m.write(p, b)
	return p
}

// ReadAct returns n elements at p that are as Act places them.
func (m *Machine) ReadAct(p device.Ptr, n int64) []float32 {
	if m.gpu == nil || m.gpu.f32 {
		return m.ReadF32(p, n)
	}
	b, v := m.read(p, 2*n), make([]float32, n)
	for i := range v {
		v[i] = math.Float32frombits(uint32(binary.LittleEndian.Uint16(b[2*i:])) << 16)
	}
	return v
}

// ActSize is the bytes of an element that Act places.
func (m *Machine) ActSize() int64 {
	if m.gpu == nil || m.gpu.f32 {
		return 4
	}
	return 2
}

// ReadBytes returns n bytes at p.
func (m *Machine) ReadBytes(p device.Ptr, n int64) []byte { return m.read(p, n) }

func (m *Machine) write(p device.Ptr, b []byte) {
	m.t.Helper()
	if err := m.dev.Write(p, b); err != nil {
		m.t.Fatal(err)
	}
}

func (m *Machine) read(p device.Ptr, n int64) []byte {
	m.t.Helper()
	b := make([]byte, n)
	if err := m.dev.Read(b, p); err != nil {
		m.t.Fatal(err)
	}
	return b
}
