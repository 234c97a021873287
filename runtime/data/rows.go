package data

import (
	"sort"

	"github.com/megatrain/mtc/runtime/data/packed"
	"github.com/megatrain/mtc/runtime/fault"
	"github.com/megatrain/mtc/runtime/telemetry"
)

// Rows gives rows of documents that are kept apart: a document of n tokens takes n - 1
// positions, from 0 on, and is never continued into another. Where the program keeps the
// documents of a row apart, several share one; else a row has one document, and what is left
// of it has no targets.
//
// Which documents share a row is fixed: the longest first, each into the fullest row that
// still has room. The order of the rows is a function of seed and epoch, as for a Loader.
type Rows struct {
	set   *packed.Set
	seq   int64
	batch int64
	seed  int64
	docs  []int64 // of all rows, one row after another
	first []int   // first[r]: place in docs of row r; one more at the end
	used  int64   // positions with a document
	w     windows // where the run goes by epochs, else zero
}

// NewRows makes rows of seq positions. shared says that the program keeps documents of one
// row apart.
func NewRows(set *packed.Set, docs []int64, batch, seq, seed int64, shared bool) (*Rows, error) {
	r := &Rows{set: set, seq: seq, batch: batch, seed: seed}
	for _, d := range docs {
		n := set.Len(d)
		if n > seq+1 {
			return nil, fault.New("MT0677", set.Dir, "document %d has %s tokens, and a row of seq = %s holds %s", d, telemetry.Group(n), telemetry.Group(seq), telemetry.Group(seq+1)).
				Help("pack again with `--seq %d` and `--overlong drop`, `split` or `cut`, or compile with a larger seq", seq)
		}
		r.used += n - 1
	}
	if len(docs) == 0 {
		return nil, fault.New("MT0607", set.Dir, "there are no documents").Help("give more data, or another held-out share")
	}
	if !shared {
		r.docs = docs
		for i := range len(docs) + 1 {
			r.first = append(r.first, i)
		}
		return r, nil
	}
	r.fill(docs)
	return r, nil
}

// fill packs documents into rows, best fit, longest first: at most 11/9 of the fewest rows.
func (r *Rows) fill(docs []int64) {
	order := append([]int64(nil), docs...)
	sort.SliceStable(order, func(i, j int) bool { return r.set.Len(order[i]) > r.set.Len(order[j]) })
	var rows [][]int64
	room := make([][]int, r.seq+1) // rows by how many positions are free
	most := newRoomy(int(r.seq) + 1)
	for _, d := range order {
		n := int(r.set.Len(d)) - 1
		at := most.atLeast(n)
		row := 0
		if at < 0 {
			row, at = len(rows), int(r.seq)
			rows = append(rows, nil)
		} else {
			l := room[at]
			row = l[len(l)-1]
			if room[at] = l[:len(l)-1]; len(room[at]) == 0 {
				most.set(at, false)
			}
		}
		rows[row] = append(rows[row], d)
		left := at - n
		room[left] = append(room[left], row)
		most.set(left, true)
	}
	for _, row := range rows {
		r.first = append(r.first, len(r.docs))
		r.docs = append(r.docs, row...)
	}
	r.first = append(r.first, len(r.docs))
}

// Rows is the number of rows of an epoch.
func (r *Rows) Rows() int64 { return int64(len(r.first) - 1) }

// ByEpochs makes every epoch begin a step of its own, whose last one has the rows that are left.
func (r *Rows) ByEpochs() *Rows {
	r.w = windows{r.Rows(), r.batch}
	return r
}

// Steps is the number of steps of an epoch, for a run that goes by epochs.
func (r *Rows) Steps() int64 { return r.w.steps() }

// Epoch is the epoch, with its fraction, that a run is in before a step.
func (r *Rows) Epoch(step int64) float64 {
	if r.w.rows > 0 {
		return r.w.epoch(step)
	}
	return float64(step) * float64(r.batch) / float64(r.Rows())
}

// Used is the share of positions that hold a document.
func (r *Rows) Used() float64 { return float64(r.used) / float64(r.Rows()*r.seq) }

// row is row b of a step; ok is false where the step has none.
func (r *Rows) row(step, b int64) (row int64, ok bool) {
	k := step*r.batch + b
	if r.w.rows > 0 {
		if k, ok = r.w.place(step, b); !ok {
			return 0, false
		}
	}
	epoch, i := uint64(k/r.Rows()), uint64(k%r.Rows())
	return int64(permute(i, uint64(r.Rows()), key(r.seed, epoch, forOrder))), true
}

// Batch fills the rows of a step. A target that is not learned is -1.
func (r *Rows) Batch(step int64, tokens, targets []int32) error {
	for b := int64(0); b < r.batch; b++ {
		in, out := tokens[b*r.seq:(b+1)*r.seq], targets[b*r.seq:(b+1)*r.seq]
		row, ok := r.row(step, b)
		if !ok {
			blank(in, out)
			continue
		}
		if err := r.put(row, in, out); err != nil {
			return err
		}
	}
	return nil
}

// Starts gives, for each position of a step's rows, the place in its row where its document
// begins.
func (r *Rows) Starts(step int64, starts []int32) {
	for b := int64(0); b < r.batch; b++ {
		if row, ok := r.row(step, b); ok {
			r.starts(row, starts[b*r.seq:(b+1)*r.seq])
		} else {
			clear(starts[b*r.seq : (b+1)*r.seq])
		}
	}
}

func (r *Rows) starts(row int64, starts []int32) {
	at := 0
	mark := func(n int) {
		for i := range n {
			starts[at+i] = int32(at)
		}
		at += n
	}
	for _, d := range r.docs[r.first[row]:r.first[row+1]] {
		mark(int(r.set.Len(d)) - 1)
	}
	mark(int(r.seq) - at)
}

func (r *Rows) put(row int64, tokens, targets []int32) error {
	blank(tokens, targets)
	at := int64(0)
	for _, d := range r.docs[r.first[row]:r.first[row+1]] {
		n := r.set.Len(d)
		buf, learn := make([]int32, n), make([]bool, n)
		if err := r.set.Read(d, 0, buf, learn); err != nil {
			return err
		}
		copy(tokens[at:], buf[:n-1])
		for i := int64(1); i < n; i++ {
			if learn[i] {
				targets[at+i-1] = buf[i]
			}
		}
		at += n - 1
	}
	return nil
}

// RowEvaluation shows every row once, in order.
type RowEvaluation struct {
	r       *Rows
	used    int64
	targets int64
}

// NewRowEvaluation prepares an evaluation of at most limit batches, 0: all; their rows are
// spread evenly.
func NewRowEvaluation(r *Rows, limit int64) (*RowEvaluation, error) {
	e := &RowEvaluation{r: r, used: r.Rows()}
	if limit > 0 && limit < e.Batches() {
		e.used = limit * r.batch
	}
	tokens, targets := make([]int32, r.seq), make([]int32, r.seq)
	for i := range e.used {
		if err := r.put(e.row(i), tokens, targets); err != nil {
			return nil, err
		}
		for _, t := range targets {
			if t >= 0 {
				e.targets++
			}
		}
	}
	return e, nil
}

// Batches is the number of batches.
func (e *RowEvaluation) Batches() int64 { return (e.used + e.r.batch - 1) / e.r.batch }

// Targets is the number of targets in all batches.
func (e *RowEvaluation) Targets() int64 { return e.targets }

func (e *RowEvaluation) row(i int64) int64 {
	if e.used == e.r.Rows() {
		return i
	}
	return i * e.r.Rows() / e.used
}

// Batch fills batch i; rows past the end have no targets.
func (e *RowEvaluation) Batch(i int64, tokens, targets []int32) error {
	for b := int64(0); b < e.r.batch; b++ {
		in, out := tokens[b*e.r.seq:(b+1)*e.r.seq], targets[b*e.r.seq:(b+1)*e.r.seq]
		if k := i*e.r.batch + b; k < e.used {
			if err := e.r.put(e.row(k), in, out); err != nil {
				return err
			}
			continue
		}
		blank(in, out)
	}
	return nil
}

// Starts is as Rows.Starts, of batch i.
func (e *RowEvaluation) Starts(i int64, starts []int32) {
	for b := int64(0); b < e.r.batch; b++ {
		row := starts[b*e.r.seq : (b+1)*e.r.seq]
		if k := i*e.r.batch + b; k < e.used {
			e.r.starts(e.row(k), row)
			continue
		}
		clear(row)
	}
}
