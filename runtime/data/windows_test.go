package data

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/megatrain/mtc/runtime/data/packed"
	"github.com/megatrain/mtc/runtime/fault"
	"github.com/megatrain/mtc/runtime/plan"
)

// rowAt is row k of a run.
func rowAt(r *Rows, k int64) int64 {
	row, _ := r.row(0, k)
	return row
}

// epochOf collects what a loader's epoch teaches, target by target ("input>target"), and how many
// rows of its last step have any.
func epochOf(t *testing.T, l Training, first, steps, batch, seq int64) (pairs []string, last int) {
	t.Helper()
	for s := first; s < first+steps; s++ {
		// Garbage, as what the step before has left.
		tokens, targets := slices.Repeat([]int32{7}, int(batch*seq)), slices.Repeat([]int32{7}, int(batch*seq))
		if err := l.Batch(s, tokens, targets); err != nil {
			t.Fatal(err)
		}
		last = 0
		for b := range batch {
			any := false
			for i := b * seq; i < (b+1)*seq; i++ {
				if targets[i] >= 0 {
					pairs = append(pairs, fmt.Sprintf("%d>%d", tokens[i], targets[i]))
					any = true
				}
			}
			if any {
				last++
			}
		}
	}
	slices.Sort(pairs)
	return pairs, last
}

// A run by epochs learns every target once in each, whatever the batch, and the last step of an
// epoch has the rows that are left and no others.
func TestEpochsAreWhole(t *testing.T) {
	const seq = 16
	var lengths []int
	for i := range 23 {
		lengths = append(lengths, 2+(i*7)%16)
	}
	for _, apart := range []bool{true, false} {
		set, err := packed.Open(folder(t, apart, lengths...))
		if err != nil {
			t.Fatal(err)
		}
		defer set.Close()
		docs, _ := parts(set, 0)
		var want []string
		for _, batch := range []int64{1, 2, 3, 5, 22, 23, 24, 100} {
			for _, shared := range []bool{false, true} {
				what := fmt.Sprintf("apart %v, %d rows, shared %v", apart, batch, shared)
				var l interface {
					Training
					Steps() int64
				}
				rows := int64(0)
				if apart {
					r, err := NewRows(set, docs, batch, seq, 5, shared)
					if err != nil {
						t.Fatal(err)
					}
					l, rows = r.ByEpochs(), r.Rows()
				} else {
					e, err := NewEpochLoader(join(set, docs), batch, seq, 5)
					if err != nil {
						t.Fatal(err)
					}
					l, rows = e, e.w.rows
				}
				steps := l.Steps()
				if steps != (rows+batch-1)/batch {
					t.Fatalf("%s: %d steps of %d rows", what, steps, rows)
				}
				var orders []string
				for epoch := range int64(3) {
					got, last := epochOf(t, l, epoch*steps, steps, batch, seq)
					if want == nil {
						want = got
					}
					if !slices.Equal(got, want) {
						t.Errorf("%s: epoch %d teaches %d targets, wanted %d", what, epoch, len(got), len(want))
					}
					if left := int(rows - (steps-1)*batch); last > left || last == 0 {
						t.Errorf("%s: the last step of epoch %d has %d rows, %d are left", what, epoch, last, left)
					}
					tokens, targets := make([]int32, batch*seq), make([]int32, batch*seq)
					if err := l.Batch(epoch*steps, tokens, targets); err != nil {
						t.Fatal(err)
					}
					orders = append(orders, fmt.Sprint(tokens))
					if at := l.Epoch(epoch * steps); at != float64(epoch) {
						t.Errorf("%s: epoch %v begins at step %d", what, at, epoch*steps)
					}
				}
				if batch == 5 && orders[0] == orders[1] && orders[1] == orders[2] {
					t.Errorf("%s: every epoch has the same order", what)
				}
			}
		}
	}
}

// A stream of text is whole in an epoch too, where every token is a target.
func TestEpochsOfTextAreWhole(t *testing.T) {
	for _, n := range []int{2, 3, 16, 17, 18, 31, 100} {
		c := corpusOf(t, n)
		l, err := NewEpochLoader(c, 3, 16, 9)
		if err != nil {
			t.Fatal(err)
		}
		all := make([]int32, c.Tokens())
		if err := c.Read(all, 0); err != nil {
			t.Fatal(err)
		}
		var want []string
		for i := range all[1:] {
			want = append(want, fmt.Sprintf("%d>%d", all[i], all[i+1]))
		}
		slices.Sort(want)
		for epoch := range int64(4) {
			if got, _ := epochOf(t, l, epoch*l.Steps(), l.Steps(), 3, 16); !slices.Equal(got, want) {
				t.Errorf("%d tokens: epoch %d has %d targets, wanted %d", n, epoch, len(got), len(want))
			}
		}
	}
}

// The feed of a run by epochs says how many steps one has.
func TestFeedByEpochs(t *testing.T) {
	dir := folder(t, true, 5, 6, 7, 8, 9)
	for _, c := range []struct{ batch, epochs, steps int64 }{{2, 1, 3}, {2, 4, 3}, {5, 1, 1}, {8, 1, 1}, {2, 0, 0}} {
		f, err := OpenFeed(plan.Train{Data: []string{dir}, Epochs: c.epochs}, Shape{Vocab: 1000, Batch: c.batch, Seq: 16})
		if err != nil {
			t.Fatal(err)
		}
		if f.Steps != c.steps {
			t.Errorf("%+v: %d steps", c, f.Steps)
		}
		f.Close()
	}
	set, err := packed.Open(folder(t, false, 1))
	if err != nil {
		t.Fatal(err)
	}
	defer set.Close()
	var e *fault.Error
	if _, err := NewEpochLoader(join(set, []int64{0}), 1, 4, 1); !errors.As(err, &e) || e.Code != "MT0607" {
		t.Errorf("one token: %v", err)
	}
}
