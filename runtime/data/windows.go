package data

import (
	"github.com/megatrain/mtc/runtime/fault"
	"github.com/megatrain/mtc/runtime/telemetry"
)

// windows cuts epochs into steps: every epoch begins a step of its own, and its last step has the
// rows that are left. Without epochs (0 rows) the rows of a run flow from one into the next.
type windows struct{ rows, batch int64 }

// steps is the number of steps of an epoch.
func (w windows) steps() int64 { return (w.rows + w.batch - 1) / w.batch }

// place is the number, in the run, of row b of a step; ok is false where the epoch has none left.
func (w windows) place(step, b int64) (k int64, ok bool) {
	epoch, i := step/w.steps(), step%w.steps()*w.batch+b
	return epoch*w.rows + i, i < w.rows
}

// epoch is the epoch, with its fraction, before a step.
func (w windows) epoch(step int64) float64 {
	return float64(step/w.steps()) + min(1, float64(step%w.steps()*w.batch)/float64(w.rows))
}

// EpochLoader gives the batches of a run that goes by epochs: each target of the stream stands
// once in every epoch. The cuts move from epoch to epoch, and the first and the last row of one
// may be shorter; what is left of them has no targets, as the rows that the last step of an
// epoch is short of.
type EpochLoader struct {
	c    stream
	seq  int64
	seed int64
	n    int64 // targets
	w    windows
}

// NewEpochLoader prepares batches of `batch` rows of `seq` tokens.
func NewEpochLoader(c stream, batch, seq, seed int64) (*EpochLoader, error) {
	n := c.Tokens() - 1
	if n < 1 {
		return nil, fault.New("MT0607", c.source(), "%s to train on is too few: it takes 2", telemetry.Count(c.Tokens(), "token")).Help("give more data")
	}
	return &EpochLoader{c: c, seq: seq, seed: seed, n: n, w: windows{(n + seq - 1) / seq, batch}}, nil
}

// Steps is the number of steps of an epoch.
func (l *EpochLoader) Steps() int64 { return l.w.steps() }

// Epoch is the epoch, with its fraction, before a step.
func (l *EpochLoader) Epoch(step int64) float64 { return l.w.epoch(step) }

// Batch is as Loader.Batch.
func (l *EpochLoader) Batch(step int64, tokens, targets []int32) error {
	row, learn := make([]int32, l.seq+1), make([]bool, l.seq+1)
	for b := range l.w.batch {
		in, out := tokens[b*l.seq:(b+1)*l.seq], targets[b*l.seq:(b+1)*l.seq]
		blank(in, out)
		k, ok := l.w.place(step, b)
		if !ok {
			continue
		}
		from, to := l.cut(k)
		n := to - from
		if err := l.c.read(row[:n+1], learn[:n+1], from); err != nil {
			return err
		}
		copy(in, row[:n])
		learned(out, row[1:n+1], learn[1:n+1])
	}
	return nil
}

// cut is the inputs [from, to) of row k of the run. The first row of an epoch is shorter by what
// the rows have more than the targets, or by a part of that.
func (l *EpochLoader) cut(k int64) (from, to int64) {
	epoch, i := uint64(k/l.w.rows), uint64(k%l.w.rows)
	shift := int64(key(l.seed, epoch, forOffset) % uint64(l.w.rows*l.seq-l.n+1))
	at := int64(permute(i, uint64(l.w.rows), key(l.seed, epoch, forOrder)))*l.seq - shift
	return max(0, at), min(l.n, at+l.seq)
}

// blank makes rows of nothing to learn.
func blank(tokens, targets []int32) {
	clear(tokens)
	for i := range targets {
		targets[i] = -1
	}
}
