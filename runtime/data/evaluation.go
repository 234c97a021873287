package data

import (
	"github.com/megatrain/mtc/runtime/fault"
	"github.com/megatrain/mtc/runtime/telemetry"
)

// Evaluation gives the batches of one evaluation: rows that cover the corpus from its start,
// each target once. Rows past the end, and the rest of the last row, have targets of -1,
// which the loss ignores; so the mean over targets weights every token alike.
type Evaluation struct {
	c       stream
	seq     int64
	batch   int64
	rows    int64 // rows of the corpus
	used    int64 // rows of the evaluation, spread evenly over the corpus
	targets int64
}

// NewEvaluation prepares batches of `batch` rows of `seq` tokens. With limit > 0 at most that
// many batches are used; their rows are spread evenly over the corpus, always the same ones.
func NewEvaluation(c stream, batch, seq, limit int64) (*Evaluation, error) {
	targets := c.Tokens() - 1
	if targets < 1 {
		return nil, fault.New("MT0607", c.source(), "%s to evaluate on is too few: it takes 2", telemetry.Count(c.Tokens(), "token")).
			Help("give more evaluation data")
	}
	e := &Evaluation{c: c, seq: seq, batch: batch, rows: (targets + seq - 1) / seq}
	e.used = e.rows
	if limit > 0 && limit < e.Batches() {
		e.used = limit * batch
	}
	for r := int64(0); r < e.used; r++ {
		e.targets += min(seq, targets-e.row(r)*seq)
	}
	return e, nil
}

// Batches is the number of batches.
func (e *Evaluation) Batches() int64 { return (e.used + e.batch - 1) / e.batch }

// Targets is the number of targets in all batches.
func (e *Evaluation) Targets() int64 { return e.targets }

// row is the corpus row that row r of the evaluation shows.
func (e *Evaluation) row(r int64) int64 {
	if e.used == e.rows {
		return r
	}
	return r * e.rows / e.used // row 0 is the corpus' first
}

// Batch fills batch i: tokens and targets are [batch * seq].
func (e *Evaluation) Batch(i int64, tokens, targets []int32) error {
	buf, learn := make([]int32, e.seq+1), make([]bool, e.seq+1)
	for b := int64(0); b < e.batch; b++ {
		in, out := tokens[b*e.seq:(b+1)*e.seq], targets[b*e.seq:(b+1)*e.seq]
		blank(in, out)
		r := i*e.batch + b
		if r >= e.used {
			continue
		}
		start := e.row(r) * e.seq
		n := min(e.seq+1, e.c.Tokens()-start)
		if err := e.c.read(buf[:n], learn[:n], start); err != nil {
			return err
		}
		copy(in, buf[:min(n, e.seq)])
		learned(out, buf[1:n], learn[1:n])
	}
	return nil
}
