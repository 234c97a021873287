// Package data turns files into batches of token ids.
//
// Sources. A corpus is a list of files, given by path, folder or glob (see find), read in a
// fixed order: patterns as given, the files of one pattern by path. Three formats:
//
//   - bytes: every byte is a token. Each file is one document; after its last byte stands one
//     Separator (0), a value that text does not contain, so a model can learn where a document
//     begins and ends, and generation can start from it.
//   - shards with a header: 256 little-endian int32 (magic, version, number of tokens, zeros),
//     then the tokens. Magic 20240520 with version 1 has uint16 tokens, 20240801 with version 7
//     has uint32 tokens. These are the token files of llm.c and what grew from it.
//   - headerless shards: little-endian uint16 or uint32 from the first byte on; the width is
//     given by the user.
//
// The format follows from Options.Width: 1 is bytes, 2 and 4 are headerless, and 0 looks at
// the names: ".bin" files are shards with a header, all others bytes; one corpus has one format.
//
// Windows. A training row is T+1 consecutive tokens: T inputs and, one later, T targets. Rows
// of an epoch start every T tokens from an offset in [0, T) that depends on the epoch, so a
// target is used once an epoch and the cuts move between epochs. Rows cross file borders.
//
// Epochs. A run by epochs (EpochLoader, Rows.ByEpochs) learns every target once in each: an epoch
// begins a step of its own, and its last step has the rows that are left.
//
// Order. Row k of a run is a pure function of (seed, k): epoch e = k / rows, place k % rows,
// mapped by a keyed permutation that needs no storage. A loader has no position, so resuming
// at step s is asking for Batch(s).
//
// Memory. Files are read at the moment they are asked for (pread); a corpus keeps about 100
// bytes a file, and a small number of open files, whatever its size.
//
// All errors are *fault.Error with a code, the file, the byte and what to do.
package data

import (
	"errors"
	"strings"

	"github.com/megatrain/mtc/runtime/fault"
	"github.com/megatrain/mtc/runtime/plan"
)

// Separator is the token after each file of a byte corpus.
const Separator = 0

// Part chooses files by the held-out split.
type Part uint8

// The parts of a corpus.
const (
	All     Part = iota // every file
	Train               // files that are not held out
	HeldOut             // files that are held out
)

func (p Part) String() string { return [...]string{"all", "train", "held out"}[p] }

// Options say how to read a corpus.
type Options struct {
	Width   int     // bytes a token: 0 by name and header, 1 bytes, 2 or 4 headerless
	Vocab   int64   // token ids must be below it; 0: not checked
	Part    Part    // which files
	Holdout float64 // share of files that are held out, by a hash of their name; used unless Part is All
}

// Sources opens the training corpus of a train block and its evaluation corpus, which is nil
// when the block has none. With a Holdout both come from Data, by file; otherwise evaluation
// reads EvalData.
func Sources(t plan.Train, vocab int64) (train, eval *Corpus, err error) {
	o := Options{Width: t.Width, Vocab: vocab}
	if t.Holdout > 0 {
		o.Holdout, o.Part = t.Holdout, Train
	}
	if train, err = Open(t.Data, o); err != nil {
		return nil, nil, err
	}
	patterns := t.EvalData
	if t.Holdout > 0 {
		patterns, o.Part = t.Data, HeldOut
	}
	if len(patterns) > 0 {
		if eval, err = Open(patterns, o); err != nil {
			train.Close()
			return nil, nil, OfEvaluation(err, t)
		}
	}
	return train, eval, nil
}

// OfEvaluation says of an error that the data is for evaluation, which a user who gave only
// training data may not know of.
func OfEvaluation(err error, t plan.Train) error {
	var f *fault.Error
	if t.Holdout > 0 || !errors.As(err, &f) {
		return err
	}
	f.Message = "evaluation data: " + f.Message
	f.Hint = strings.TrimPrefix(f.Hint+"; ", "; ") +
		"`--eval-data FILES` gives other files, `--holdout 0.05` takes some of the training files, `--set train.eval=none` leaves evaluation out"
	return f
}
