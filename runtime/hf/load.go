package hf

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/megatrain/mtc/runtime/checkpoint"
	"github.com/megatrain/mtc/runtime/fault"
	"github.com/megatrain/mtc/runtime/plan"
)

// block is how many numbers are converted at a time.
const block = 1 << 15

// Load fills the weights of a plan, slab by slab; after calls done once a slab is whole (it
// may be nil). Beside the plan's memory it takes that of one tensor where the tensor is
// transposed, else that of a block. When it fails, the memory holds nothing that may be used.
func (m *Matching) Load(p *plan.Plan, view checkpoint.View, done func() error) error {
	if err := m.Twins(); err != nil {
		return err
	}
	m.Odd = Odd{}
	b := &buffers{}
	for i := range m.entries {
		if e := &m.entries[i]; strings.Contains(e.Op, "transpose") {
			for _, t := range e.from {
				b.largest = max(b.largest, t.Bytes)
			}
		}
	}
	at := map[string][]use{}
	for i := range m.entries {
		for j, path := range m.entries[i].Params {
			at[path] = append(at[path], use{&m.entries[i], j, &m.Odd})
		}
	}
	for i := range p.Slabs {
		s := &p.Slabs[i]
		if p.LoRA.On() && !s.Frozen {
			continue // adapters, which the folder has none of
		}
		masters := checkpoint.MastersOf(s, view)
		for _, x := range s.Params {
			for _, u := range at[x.Name] {
				if err := u.fill(&masters, x.Off, b); err != nil {
					return err
				}
			}
		}
		if done == nil {
			continue
		}
		if err := done(); err != nil {
			return err
		}
	}
	return nil
}

// buffers are the memory of reading, taken once: the garbage of many tensors would be in
// memory at a time.
type buffers struct {
	largest int64 // bytes of the largest tensor that is transposed
	matrix  []byte
	raw     []byte
	values  []float32
}

// whole is room for a tensor as it is stored.
func (b *buffers) whole(n int64) []byte {
	if n > int64(len(b.matrix)) {
		b.matrix = make([]byte, max(n, b.largest))
	}
	return b.matrix[:n]
}

// block is room for n numbers, as they are stored and as f32.
func (b *buffers) block(n, width int64) ([]byte, []float32) {
	if int64(len(b.values)) < n {
		b.raw, b.values = make([]byte, 4*n), make([]float32, n)
	}
	return b.raw[:n*width], b.values[:n]
}

// use is a parameter of an entry.
type use struct {
	*entry
	param int
	odd   *Odd
}

// Odd counts values that are not finite, and names the first tensor that has some.
type Odd struct {
	Values int64
	Tensor string
}

// look counts in values of a tensor. A product with 0 is 0 exactly where a value is finite.
func (o *Odd) look(v []float32, tensor string) {
	var a, b, c, d float32
	i := 0
	for ; i+4 <= len(v); i += 4 {
		a += v[i] * 0
		b += v[i+1] * 0
		c += v[i+2] * 0
		d += v[i+3] * 0
	}
	for ; i < len(v); i++ {
		a += v[i] * 0
	}
	if a+b+c+d == 0 {
		return
	}
	if o.Tensor == "" {
		o.Tensor = tensor
	}
	for _, x := range v {
		if x*0 != 0 {
			o.Values++
		}
	}
}

// fill writes the parameter into its slab from off on.
func (u use) fill(to *checkpoint.Masters, off int64, b *buffers) error {
	name := ""
	put := func(v []float32) error {
		to.Write(off, v)
		u.odd.look(v, name)
		off += int64(len(v))
		return nil
	}
	transposed := strings.Contains(u.Op, "transpose")
	for _, t := range u.from {
		name = t.Name
		from, n := int64(0), t.Elems()
		if u.rows != nil && len(u.Params) > 1 {
			from, n = u.rows[u.param], u.rows[u.param+1]-u.rows[u.param]
			if !transposed {
				per := t.Elems() / max(1, u.rows[len(u.rows)-1])
				from, n = from*per, n*per
			}
		} else if transposed {
			n = t.Shape[1]
		}
		var err error
		if transposed {
			err = t.columns(from, n, b, put)
		} else {
			err = t.elements(from, n, b, put)
		}
		if err != nil {
			return t.failed(err)
		}
	}
	return nil
}

// elements reads n elements from one on, in blocks.
func (t *located) elements(from, n int64, b *buffers, put func([]float32) error) error {
	w := width(t.DType)
	in := io.NewSectionReader(t.shard.DataAt(t.Tensor), from*w, n*w)
	raw, out := b.block(min(n, block), w)
	for n > 0 {
		k := min(n, block)
		if _, err := io.ReadFull(in, raw[:k*w]); err != nil {
			return err
		}
		decode(out[:k], raw, t.DType)
		if err := put(out[:k]); err != nil {
			return err
		}
		n -= k
	}
	return nil
}

// columns reads n columns of a matrix from one on, as rows: the matrix is in memory as it is
// stored, and a few rows of the result beside it.
func (t *located) columns(from, n int64, b *buffers, put func([]float32) error) error {
	raw := b.whole(t.Bytes)
	if _, err := io.ReadFull(t.shard.Data(t.Tensor), raw); err != nil {
		return err
	}
	return columns(raw, t.DType, t.Shape[0], t.Shape[1], from, n, b, put)
}

// columns hands out columns of a matrix [rows, cols] as rows, some at a time.
func columns(raw []byte, dtype string, rows, cols, from, n int64, b *buffers, put func([]float32) error) error {
	const strip = 32 // columns gathered in one pass over the rows
	w := width(dtype)
	_, out := b.block(strip*(rows+1), 0)
	part, out := out[:strip], out[strip:]
	for at := from; at < from+n; at += strip {
		k := min(strip, from+n-at)
		for r := range rows {
			decode(part[:k], raw[(r*cols+at)*w:], dtype)
			for j := range k {
				out[j*rows+r] = part[j]
			}
		}
		if err := put(out[:k*rows]); err != nil {
			return err
		}
	}
	return nil
}

func (t *located) failed(err error) error {
	return fault.New("MT0602", t.shard.Path, "tensor %s cannot be read", t.Name).Wrap(err)
}

// Twins compares tensors that are stored twice, as a tied head can be. Two that differ are no
// one tensor, whatever the configuration says.
func (m *Matching) Twins() error {
	var faults []string
	for i := range m.entries {
		e := &m.entries[i]
		for _, t := range e.also {
			same, err := e.from[0].equal(t)
			if err != nil {
				return err
			}
			if !same {
				faults = append(faults, fmt.Sprintf("%s differs from %s, and the model has one tensor for both", t.Name, e.from[0].Name))
			}
		}
	}
	if len(faults) == 0 {
		return nil
	}
	return fault.New("MT0663", m.folder.Path, "the weights contradict the configuration:%s", lines(faults)).
		Help("where the head is one of its own, say \"tie_word_embeddings\": false in config.json and import again; where it is not, remove the copy")
}

// equal compares two tensors of one shape by value.
func (t *located) equal(o *located) (bool, error) {
	if t.DType != o.DType {
		return t.equalValues(o)
	}
	a, b := t.shard.Data(t.Tensor), o.shard.Data(o.Tensor)
	x, y := make([]byte, 1<<16), make([]byte, 1<<16)
	for left := t.Bytes; left > 0; {
		k := min(left, int64(len(x)))
		if _, err := io.ReadFull(a, x[:k]); err != nil {
			return false, t.failed(err)
		}
		if _, err := io.ReadFull(b, y[:k]); err != nil {
			return false, o.failed(err)
		}
		if !bytes.Equal(x[:k], y[:k]) {
			return false, nil
		}
		left -= k
	}
	return true, nil
}

// equalValues compares tensors of two dtypes.
func (t *located) equalValues(o *located) (bool, error) {
	same := true
	at := int64(0)
	var a, b buffers
	err := t.elements(0, t.Elems(), &a, func(v []float32) error {
		i := 0
		err := o.elements(at, int64(len(v)), &b, func(w []float32) error {
			for _, x := range w {
				same = same && x == v[i]
				i++
			}
			return nil
		})
		at += int64(len(v))
		return err
	})
	if err != nil {
		return false, t.failed(err)
	}
	return same, nil
}
