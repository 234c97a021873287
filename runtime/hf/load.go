package hf

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/bits"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/megatrain/mtc/runtime/checkpoint"
	"github.com/megatrain/mtc/runtime/fault"
	"github.com/megatrain/mtc/runtime/plan"
)

// Load fills the weights of a plan, slab by slab, each on all cores; after calls done once a slab
// is whole (it may be nil). Beside the plan's memory it takes that of the largest tensor that is
// transposed, and of a block for each core. When it fails, the memory holds nothing that may be used.
func (m *Matching) Load(p *plan.Plan, view checkpoint.View, done func() error) error {
	if err := m.Twins(); err != nil {
		return err
	}
	l := &loading{odd: &m.Odd, sums: map[*located][]span{}}
	m.Odd, m.sums = Odd{}, nil
	at := map[string][]use{}
	for i := range m.entries {
		e := &m.entries[i]
		for j, path := range e.Params {
			at[path] = append(at[path], use{e, j})
		}
		if !transposed(e.Foreign) {
			continue
		}
		for _, t := range e.from {
			l.largest = max(l.largest, t.Bytes)
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
				if err := l.fill(u, &masters, x.Off); err != nil {
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
	m.sums = l.sums
	return nil
}

// loading is what a Load has on its way.
type loading struct {
	odd     *Odd
	sums    map[*located][]span
	largest int64 // bytes of the largest tensor that is transposed
	matrix  []byte
}

// whole is room for a tensor as it is stored, taken once: the garbage of many would be in memory
// at a time.
func (l *loading) whole(n int64) []byte {
	if l.matrix == nil {
		l.matrix = make([]byte, l.largest)
	}
	return l.matrix[:n]
}

// use is a parameter of an entry.
type use struct {
	*entry
	param int
}

// transposed says whether tensors are transposed on the way to their parameters.
func transposed(e *plan.Foreign) bool { return strings.Contains(e.Op, "transpose") }

// fill writes the parameter into its slab from off on.
func (l *loading) fill(u use, to *checkpoint.Masters, off int64) error {
	for _, t := range u.from {
		from, n := int64(0), t.Elems() // of the tensor, or columns of one that is transposed
		if transposed(u.Foreign) {
			n = t.Shape[1]
		}
		if u.rows != nil && len(u.Params) > 1 {
			from, n = u.rows[u.param], u.rows[u.param+1]-u.rows[u.param]
			if !transposed(u.Foreign) {
				per := t.Elems() / max(1, u.rows[len(u.rows)-1])
				from, n = from*per, n*per
			}
		}
		var odd atomic.Int64
		put := func(at int64, v []float32) {
			to.Write(off+at, v)
			if k := notFinite(v); k > 0 {
				odd.Add(k)
			}
		}
		var err error
		if transposed(u.Foreign) {
			n *= t.Shape[0]
			err = l.columns(t, from, n, put)
		} else if same := to.Rounded(off, n); same != nil && t.DType == "BF16" {
			err = l.halves(t, from, same, &odd)
		} else {
			err = l.elements(t, from, n, put)
		}
		if err != nil {
			return t.failed(err)
		}
		if l.odd.Values += odd.Load(); l.odd.Values > 0 && l.odd.Tensor == "" {
			l.odd.Tensor = t.Name
		}
		off += n
	}
	return nil
}

// Odd counts values that are not finite, and names the first tensor that has some.
type Odd struct {
	Values int64
	Tensor string
}

// notFinite counts them. A product with 0 is 0 exactly where a value is finite.
func notFinite(v []float32) (n int64) {
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
		return 0
	}
	for _, x := range v {
		if x*0 != 0 {
			n++
		}
	}
	return n
}

// notFiniteHalves counts among bf16: those whose exponent is all ones, four at a time.
func notFiniteHalves(raw []byte) (n int64) {
	const exponents, ones, carries = 0x7f80_7f80_7f80_7f80, 0x0080_0080_0080_0080, 0x8000_8000_8000_8000
	for ; len(raw) >= 8; raw = raw[8:] {
		if hit := (binary.LittleEndian.Uint64(raw)&exponents + ones) & carries; hit != 0 {
			n += int64(bits.OnesCount64(hit))
		}
	}
	for ; len(raw) >= 2; raw = raw[2:] {
		if binary.LittleEndian.Uint16(raw)&0x7f80 == 0x7f80 {
			n++
		}
	}
	return n
}

// elements reads n elements from one on.
func (l *loading) elements(t *located, from, n int64, put func(at int64, v []float32)) error {
	crc, err := t.elements(from, n, put)
	w := width(t.DType)
	l.sums[t] = append(l.sums[t], span{from * w, n * w, crc})
	return err
}

// halves reads bf16 from an element on to where the memory has bf16 too.
func (l *loading) halves(t *located, from int64, to []uint16, odd *atomic.Int64) error {
	crc, err := t.shard.Range(t.Tensor, 2*from, 2*int64(len(to)), func(at int64, raw []byte) {
		copy(unsafe.Slice((*byte)(unsafe.Pointer(&to[at/2])), len(raw)), raw)
		odd.Add(notFiniteHalves(raw))
	})
	l.sums[t] = append(l.sums[t], span{2 * from, 2 * int64(len(to)), crc})
	return err
}

// columns reads columns of a matrix from one on, as rows: n elements in all.
func (l *loading) columns(t *located, from, n int64, put func(at int64, v []float32)) error {
	raw := l.whole(t.Bytes)
	crc, err := t.bytes(0, raw)
	if err != nil || n == 0 {
		return err
	}
	l.sums[t] = []span{{0, t.Bytes, crc}}
	columns(raw, t.DType, t.Shape[0], t.Shape[1], from, n/t.Shape[0], put)
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

// equal compares two tensors of one shape by value, or by bytes where they are of one dtype.
func (t *located) equal(o *located) (bool, error) {
	var differ atomic.Bool
	var mu sync.Mutex
	var failed error
	_, err := t.shard.Range(t.Tensor, 0, t.Bytes, func(at int64, x []byte) {
		n, w, v := int64(len(x))/width(t.DType), width(t.DType), width(o.DType)
		y := make([]byte, n*v)
		if got, err := o.shard.DataAt(o.Tensor).ReadAt(y, at/w*v); got < len(y) {
			mu.Lock()
			defer mu.Unlock()
			failed = err
			return
		}
		if t.DType == o.DType {
			if !bytes.Equal(x, y) {
				differ.Store(true)
			}
			return
		}
		a, b := make([]float32, n), make([]float32, n)
		decode(a, x, t.DType)
		decode(b, y, o.DType)
		if !slices.Equal(a, b) {
			differ.Store(true)
		}
	})
	switch {
	case err != nil:
		return false, t.failed(err)
	case failed != nil:
		return false, o.failed(failed)
	}
	return !differ.Load(), nil
}
