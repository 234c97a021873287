package bench

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/megatrain/mtc/runtime/device"
)

// memory is one arena of numbers between -2 and 2, whether they are read as bf16 or as f32,
// from which operands are cut. With a far part, operands that a step comes back to late are cut
// from there, one case after another, so that no cache has them.
type memory struct {
	far *memory

	dev  device.Device
	base device.Ptr
	size int64
	used int64
	act  int64 // bytes of an activation

	text  []byte // what is drawn
	dirty int64  // bytes from the start that hold something else
}

// block is how many bytes are drawn; they repeat.
const block = 1<<22 - 1040

func newMemory(dev device.Device, where device.Memory, size, act int64) (*memory, error) {
	m := &memory{dev: dev, size: size, act: act}
	var err error
	if m.base, err = dev.Alloc(where, size); err != nil {
		return nil, err
	}
	text := make([]byte, min(block, size)/2*2)
	r := rand.New(rand.NewPCG(1, 2))
	for i := 0; i < len(text); i += 2 {
		binary.LittleEndian.PutUint16(text[i:], uint16(math.Float32bits(float32(4*r.Float64()-2))>>16))
	}
	m.text, m.dirty = text, size
	if err := m.refresh(); err != nil {
		return nil, err
	}
	return m, dev.Sync()
}

// reset gives all memory back.
func (m *memory) reset() {
	m.again()
	if m.far != nil {
		m.far.again()
	}
}

// again gives back what a launch finds where the one before it left it.
func (m *memory) again() {
	m.dirty = max(m.dirty, min(m.used, m.size))
	m.used = 0
}

// refresh draws anew what cases have used. What one leaves is no data for the next: token ids are
// denormal numbers to it, which a CPU takes a hundred times as long for.
func (m *memory) refresh() error {
	for at := int64(0); at < m.dirty; at += int64(len(m.text)) {
		if err := m.dev.Write(m.base.At(at), m.text[:min(int64(len(m.text)), m.dirty-at)]); err != nil {
			return err
		}
	}
	m.dirty = 0
	if m.far != nil {
		return m.far.refresh()
	}
	return nil
}

// bytes cuts n bytes; nil once the memory is too small, which used then says.
func (m *memory) bytes(n int64) device.Ptr {
	at := m.used
	m.used += (n + 255) / 256 * 256
	if m.used > m.size {
		return m.base
	}
	return m.base.At(at)
}

// old and oldF32 cut what was written or read last long ago, in a step: weights and their gradients,
// state, values kept for backward.
func (m *memory) old(n int) device.Ptr { return m.away(int64(n) * m.act) }

func (m *memory) oldF32(n int) device.Ptr { return m.away(int64(n) * 4) }

func (m *memory) away(n int64) device.Ptr {
	if m.far == nil {
		return m.bytes(n)
	}
	return m.far.bytes(n)
}

// acts, f32, f64 and i32 cut numbers that the launch before has just made, or that the next is to read.
func (m *memory) acts(n int) device.Ptr { return m.bytes(int64(n) * m.act) }
func (m *memory) f32(n int) device.Ptr  { return m.bytes(int64(n) * 4) }

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
	if m.used <= m.size {
		if err := m.dev.Write(p, b); err != nil {
			panic(fmt.Sprintf("bench: %v", err)) // within the arena
		}
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
