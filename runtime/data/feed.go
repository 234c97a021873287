package data

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"os"
	"path/filepath"
	"strings"

	"github.com/megatrain/mtc/runtime/data/packed"
	"github.com/megatrain/mtc/runtime/fault"
	"github.com/megatrain/mtc/runtime/plan"
	"github.com/megatrain/mtc/runtime/telemetry"
)

// Training gives the batches of a run: Loader and Rows.
type Training interface {
	// Batch fills the rows of a step (from 0): tokens and targets are [batch * seq]; a target
	// of -1 is not learned.
	Batch(step int64, tokens, targets []int32) error
	// Epoch is the epoch, with its fraction, before a step.
	Epoch(step int64) float64
}

// Held gives the batches of an evaluation: Evaluation and RowEvaluation.
type Held interface {
	Batches() int64
	Targets() int64
	Batch(i int64, tokens, targets []int32) error
}

// Shape is what a program takes.
type Shape struct {
	Vocab, Batch, Seq int64
	Shared            bool // it keeps the documents of a row apart
	Evaluates         bool
}

// Feed is opened data: a corpus or a packed folder.
type Feed struct {
	Train Training
	Eval  Held // nil: none
	// Documents is the number of documents that are evaluated on, 0 where files are counted.
	Documents int64
	// Tokenizer is the folder of the tokenizer, "" where there is none, and Hash its hash.
	Tokenizer, Hash string
	Bytes           bool // tokens are bytes
	// Starts and EvalStarts say where the documents of rows begin, where they share rows; else nil.
	Starts, EvalStarts func(i int64, starts []int32)
	// Steps is the number of steps of an epoch, where the run goes by epochs; else 0.
	Steps   int64
	Summary string
	ID      string
	EvalID  string // of what Eval reads
	close   []func() error
}

// Close closes the files.
func (f *Feed) Close() error {
	var errs []error
	for _, c := range f.close {
		errs = append(errs, c())
	}
	return errors.Join(errs...)
}

// OpenFeed opens the data of a train block for a program.
func OpenFeed(t plan.Train, s Shape) (*Feed, error) {
	n := 0
	for _, p := range t.Data {
		if packed.Is(p) {
			n++
		}
	}
	switch {
	case n == 0:
		return openCorpora(t, s)
	case len(t.Data) > 1:
		return nil, fault.New("MT0608", strings.Join(t.Data, ", "), "a packed folder stands alone").
			Help("pack all inputs into one folder: `mtc data pack A B -o DIR`")
	}
	return openPacked(t, s)
}

func openCorpora(t plan.Train, s Shape) (*Feed, error) {
	train, eval, err := Sources(t, s.Vocab)
	if err != nil {
		return nil, err
	}
	f := &Feed{Bytes: train.Bytes(), Summary: train.Summary(), ID: train.ID(), close: []func() error{train.Close}}
	if eval != nil {
		f.close, f.EvalID = append(f.close, eval.Close), eval.ID()
	}
	if err = f.flow(train, t, s); err == nil && eval != nil && s.Evaluates {
		f.Eval, err = NewEvaluation(eval, s.Batch, s.Seq, t.EvalSteps)
	}
	return f.or(err)
}

// flow takes the tokens of a stream, one after another.
func (f *Feed) flow(c stream, t plan.Train, s Shape) error {
	if t.Epochs == 0 {
		l, err := NewLoader(c, s.Batch, s.Seq, t.Seed)
		f.Train = l
		return err
	}
	l, err := NewEpochLoader(c, s.Batch, s.Seq, t.Seed)
	if err == nil {
		f.Train, f.Steps = l, l.Steps()
	}
	return err
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// or is the feed, or the error, with its files closed.
func (f *Feed) or(err error) (*Feed, error) {
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// openPacked opens a packed folder. Documents are held out by their tokens, so that equal ones
// stand on one side.
func openPacked(t plan.Train, s Shape) (*Feed, error) {
	set, err := packed.Open(t.Data[0])
	if err != nil {
		return nil, err
	}
	m := set.Manifest
	f := &Feed{Hash: m.Tokenizer.Hash, ID: m.ID(), Bytes: m.Tokenizer.Hash == "bytes", close: []func() error{set.Close}}
	if dir := filepath.Join(set.Dir, packed.TokenizerDir); isDir(dir) {
		f.Tokenizer = dir
	}
	if m.Tokenizer.Vocab > s.Vocab {
		return f.or(fault.New("MT0606", set.Dir, "the data has ids up to %s, and the model's vocabulary is %s", telemetry.Group(m.Tokenizer.Vocab-1), telemetry.Group(s.Vocab)).
			Help("pack with the model's own tokenizer, or compile with V = %d or more", m.Tokenizer.Vocab))
	}
	train, held := parts(set, t.Holdout)
	from := set
	if t.Holdout == 0 && len(t.EvalData) > 0 && s.Evaluates {
		if len(t.EvalData) != 1 || !packed.Is(t.EvalData[0]) {
			return f.or(fault.New("MT0608", strings.Join(t.EvalData, ", "), "the evaluation data is not packed, and the training data is").
				Help("pack it with the same tokenizer, or hold out a part: `--holdout 0.05`"))
		}
		if from, err = packed.Open(t.EvalData[0]); err != nil {
			return f.or(err)
		}
		f.close = append(f.close, from.Close)
		if from.Manifest.Tokenizer.Hash != m.Tokenizer.Hash || from.Manifest.Apart != m.Apart {
			return f.or(fault.New("MT0674", from.Dir, "the evaluation data was packed with another tokenizer, or in another way, than %s", set.Dir).
				Help("pack both in the same way"))
		}
		held, _ = parts(from, 0)
	}
	if t.Holdout > 0 && (len(train) == 0 || len(held) == 0) {
		return f.or(fault.New("MT0608", set.Dir, "a held-out share of %v puts %d documents in training and %d in evaluation", t.Holdout, len(train), len(held)).
			Help("give more documents or another share, or evaluate on data of its own"))
	}
	if s.Evaluates {
		f.Documents = int64(len(held))
		f.EvalID = fmt.Sprintf("%s %g", from.Manifest.ID(), t.Holdout)
	}
	how := "one after another"
	if m.Apart {
		rows, err := NewRows(set, train, s.Batch, s.Seq, t.Seed, s.Shared)
		if err != nil {
			return f.or(err)
		}
		if f.Train = rows; t.Epochs > 0 {
			f.Steps = rows.ByEpochs().Steps()
		}
		if s.Shared {
			f.Starts = rows.Starts
		}
		how = fmt.Sprintf("one a row, %.0f %% of positions used", 100*rows.Used())
		if s.Shared {
			how = fmt.Sprintf("packed into %s, %.0f %% of positions used", telemetry.Count(rows.Rows(), "row"), 100*rows.Used())
		}
		if !s.Shared && rows.Used() < 0.5 {
			how += " (documents = packed in the train block puts several into one)"
		}
		if len(held) > 0 && s.Evaluates {
			kept, err := NewRows(from, held, s.Batch, s.Seq, t.Seed, s.Shared)
			if err != nil {
				return f.or(err)
			}
			eval, err := NewRowEvaluation(kept, t.EvalSteps)
			if err != nil {
				return f.or(err)
			}
			if f.Eval = eval; s.Shared {
				f.EvalStarts = eval.Starts
			}
		}
	} else {
		if err = f.flow(join(set, train), t, s); err == nil && len(held) > 0 && s.Evaluates {
			f.Eval, err = NewEvaluation(join(from, held), s.Batch, s.Seq, t.EvalSteps)
		}
		if err != nil {
			return f.or(err)
		}
	}
	tokens := int64(0)
	for _, d := range train {
		tokens += set.Len(d)
	}
	f.Summary = fmt.Sprintf("%s, %s tokens, loss on %s (%s); %s", telemetry.Count(int64(len(train)), "document"), telemetry.Group(tokens), m.Loss, m.Tokenizer.Name, how)
	return f, nil
}

// parts splits the documents of a folder by their hashes, so that equal ones stand on one side. In a
// small folder a share may be less than a document: then the one nearest to it changes sides, so that
// neither is empty.
func parts(set *packed.Set, holdout float64) (train, held []int64) {
	limit, lowest, highest := holdout, 2.0, -1.0
	for d := range set.Documents() {
		s := shareOf(set.Hash(d))
		lowest, highest = min(lowest, s), max(highest, s)
	}
	switch {
	case holdout == 0 || lowest == highest: // everything, or nothing to part
	case lowest >= holdout:
		limit = math.Nextafter(lowest, 2)
	case highest < holdout:
		limit = highest
	}
	for d := range set.Documents() {
		if shareOf(set.Hash(d)) < limit {
			held = append(held, d)
		} else {
			train = append(train, d)
		}
	}
	return train, held
}

// shareOf maps a hash to [0, 1), evenly.
func shareOf(h uint64) float64 { return float64(mix(bits.RotateLeft64(h, 17))>>11) / (1 << 53) }
