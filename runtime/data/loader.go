package data

import (
	"fmt"

	"github.com/megatrain/mtc/runtime/fault"
	"github.com/megatrain/mtc/runtime/telemetry"
)

// Loader gives the batches of a training run. It has no state: the same step gives the same
// batch, in any order, from any goroutine.
type Loader struct {
	c     stream
	seq   int64 // T
	batch int64 // rows a step
	rows  int64 // rows an epoch
	slack int64 // largest offset of an epoch's first row
	seed  int64
}

// NewLoader prepares batches of `batch` rows of `seq` tokens. The corpus must hold
// (batch + 1) * seq tokens: the rows of one step and the room that lets the epochs' cuts differ.
func NewLoader(c stream, batch, seq, seed int64) (*Loader, error) {
	if batch < 1 || seq < 1 {
		panic(fmt.Sprintf("data: batch of %d rows of %d tokens", batch, seq))
	}
	have, need := c.Tokens(), (batch+1)*seq
	if have < need {
		return nil, fault.New("MT0607", c.source(), "%s tokens are too few: a step of %s of %s tokens needs at least %s",
			telemetry.Group(have), telemetry.Count(batch, "row"), telemetry.Group(seq), telemetry.Group(need)).
			Help("give more data, or a smaller batch or seq in the train block; `mtc run --epochs N` takes parts of batches too")
	}
	l := &Loader{c: c, seq: seq, batch: batch, seed: seed, rows: (have - seq) / seq}
	l.slack = min(seq-1, have-1-l.rows*seq)
	return l, nil
}

// Rows is the number of rows in an epoch.
func (l *Loader) Rows() int64 { return l.rows }

// Epoch is the epoch, with its fraction, that a run is in before a step.
func (l *Loader) Epoch(step int64) float64 { return float64(step) * float64(l.batch) / float64(l.rows) }

// Batch fills the rows of a step (from 0): tokens and targets are [batch * seq]; targets[i] is
// the token after tokens[i], or -1 where that is not learned.
func (l *Loader) Batch(step int64, tokens, targets []int32) error {
	row, learn := make([]int32, l.seq+1), make([]bool, l.seq+1)
	for b := int64(0); b < l.batch; b++ {
		if err := l.c.read(row, learn, l.start(step*l.batch+b)); err != nil {
			return err
		}
		copy(tokens[b*l.seq:(b+1)*l.seq], row)
		learned(targets[b*l.seq:(b+1)*l.seq], row[1:], learn[1:])
	}
	return nil
}

// learned copies targets, -1 for those that are not learned.
func learned(to, from []int32, learn []bool) {
	for i, t := range from {
		if to[i] = -1; learn[i] {
			to[i] = t
		}
	}
}

// start is the first token of row k of the run.
func (l *Loader) start(k int64) int64 {
	epoch, i := uint64(k/l.rows), uint64(k%l.rows)
	offset := int64(key(l.seed, epoch, forOffset) % uint64(l.slack+1))
	return offset + l.seq*int64(permute(i, uint64(l.rows), key(l.seed, epoch, forOrder)))
}
