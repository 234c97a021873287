//go:build cuda

package emu

import (
	"encoding/binary"
	"math"

	"github.com/megatrain/mtc/runtime/device"
)

// matrix reads and writes elements of an operand.
type matrix struct {
	b    []byte
	wide bool // float32, else bf16
}

func (d *Device) matrix(p device.Ptr, t device.Dtype, n int64) matrix {
	wide := d.F32 || t == device.GradDtype
	size := int64(2)
	if wide {
		size = 4
	}
	return matrix{d.View(p, n*size), wide}
}

func (m matrix) at(i int64) float64 {
	if m.wide {
		return float64(math.Float32frombits(binary.LittleEndian.Uint32(m.b[4*i:])))
	}
	return float64(math.Float32frombits(uint32(binary.LittleEndian.Uint16(m.b[2*i:])) << 16))
}

func (m matrix) set(i int64, x float64) {
	b := math.Float32bits(float32(x))
	if m.wide {
		binary.LittleEndian.PutUint32(m.b[4*i:], b)
		return
	}
	if x != x {
		b = 0x7fff << 16
	} else {
		b += 0x7fff + b>>16&1
	}
	binary.LittleEndian.PutUint16(m.b[2*i:], uint16(b>>16))
}

// matmul is the product in float64, one rounding at the end.
func (d *Device) matmul(m device.Matmul) error {
	lda, ldd := m.K, m.N
	rows := m.M
	if m.TransA {
		lda, rows = m.M, m.K
	}
	last := lda // elements of the last row
	if m.LDA > 0 {
		lda = m.LDA
	}
	if m.LDD > 0 {
		ldd = m.LDD
	}
	a, b := d.matrix(m.A, m.DA, max(0, rows-1)*lda+last), d.matrix(m.B, m.DB, m.K*m.N)
	out := d.matrix(m.D, m.DD, max(0, m.M-1)*ldd+m.N)
	var add, bias matrix
	if !m.C.Nil() {
		add = d.matrix(m.C, m.DD, max(0, m.M-1)*ldd+m.N)
	}
	if !m.Bias.Nil() {
		bias = d.matrix(m.Bias, m.DB, m.N)
	}
	// Strides of k and of the other index.
	am, ak := lda, int64(1)
	if m.TransA {
		am, ak = 1, lda
	}
	bn, bk := int64(1), m.N
	if m.TransB {
		bn, bk = m.K, 1
	}
	for i := range m.M {
		for j := range m.N {
			var s float64
			for k := range m.K {
				s += a.at(i*am+k*ak) * b.at(j*bn+k*bk)
			}
			if add.b != nil {
				s += add.at(i*ldd + j)
			}
			if bias.b != nil {
				s += bias.at(j)
			}
			out.set(i*ldd+j, s)
		}
	}
	return nil
}
