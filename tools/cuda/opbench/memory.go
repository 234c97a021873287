//go:build cuda

package main

import (
	"encoding/binary"
	"math"
	"math/rand/v2"

	"github.com/megatrain/mtc/runtime/device"
)

// memory is one arena of numbers between -2 and 2, whether read as bf16 or as f32, from which
// operands are cut.
type memory struct {
	dev   device.Device
	queue device.Queue
	base  device.Ptr
	size  int64
	used  int64
	act   int64 // bytes of an activation
}

// period is after how many bytes the numbers repeat: no power of two, so that a wrapped offset
// finds others.
const period = 1<<26 - 1040

func newMemory(dev device.Device, f32 bool, size int64) (*memory, error) {
	m := &memory{dev: dev, queue: dev.Queue(device.Compute), size: size, act: 2}
	if f32 {
		m.act = 4
	}
	var err error
	if m.base, err = dev.Alloc(device.DeviceMemory, size); err != nil {
		return nil, err
	}
	block := make([]byte, min(period, size))
	r := rand.New(rand.NewPCG(1, 2))
	for i := 0; i+2 <= len(block); i += 2 {
		x := math.Float32bits(float32(4*r.Float64() - 2))
		binary.LittleEndian.PutUint16(block[i:], uint16(x>>16))
	}
	if err := dev.Write(m.base, block); err != nil {
		return nil, err
	}
	m.scatter()
	return m, dev.Sync()
}

// scatter repeats the block over all memory.
func (m *memory) scatter() {
	for at := int64(period); at < m.size; at *= 2 {
		m.queue.Copy(m.base.At(at), m.base, min(at, m.size-at))
	}
}

func (m *memory) reset() { m.used = 0 }

func (m *memory) bytes(n int64) device.Ptr {
	p := m.base.At(m.used)
	m.used += (n + 255) / 256 * 256
	if m.used > m.size {
		panic("more -memory is needed")
	}
	return p
}

// acts, f32 and f64 cut numbers.
func (m *memory) acts(n int) device.Ptr  { return m.bytes(int64(n) * m.act) }
func (m *memory) f32(n int64) device.Ptr { return m.bytes(n * 4) }

func (m *memory) f64(v ...float64) device.Ptr {
	b := make([]byte, 8*len(v))
	for i, x := range v {
		binary.LittleEndian.PutUint64(b[8*i:], math.Float64bits(x))
	}
	return m.put(b)
}

func (m *memory) i32(v []int32) device.Ptr {
	b := make([]byte, 4*len(v))
	for i, x := range v {
		binary.LittleEndian.PutUint32(b[4*i:], uint32(x))
	}
	return m.put(b)
}

func (m *memory) put(b []byte) device.Ptr {
	p := m.bytes(int64(len(b)))
	if err := m.dev.Write(p, b); err != nil {
		panic(err)
	}
	return p
}

// ids are token ids as text has them: few are frequent, most are rare (Zipf).
func ids(n, v int) []int32 {
	z := rand.NewZipf(rand.New(rand.NewPCG(3, 4)), 1.1, 4, uint64(v-1))
	out := make([]int32, n)
	for i := range out {
		out[i] = int32(z.Uint64())
	}
	return out
}

// set is the same cut made several times, for launches that take turns.
type set []device.Ptr

func (s set) at(i int) device.Ptr { return s[i%len(s)] }

// turns cuts so often that the second-level cache holds little of all of it.
func (m *memory) turns(bytes int64) set {
	n := max(1, min(4, (256<<20)/max(bytes, 1)))
	var s set
	for range n {
		s = append(s, m.bytes(bytes))
	}
	return s
}
