package data

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/megatrain/mtc/runtime/data/packed"
	"github.com/megatrain/mtc/runtime/plan"
)

// folder packs documents of given lengths: document d holds the tokens 10d, 10d + 1, ... mod
// 1000, of which the first, and every one that 4 divides, is not learned.
func folder(t *testing.T, apart bool, lengths ...int) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "p")
	w, err := packed.Create(dir, packed.Manifest{Apart: apart, Loss: "all", Tokenizer: packed.Tokenizer{Name: "t", Hash: "h", Vocab: 1000}}, 50)
	if err != nil {
		t.Fatal(err)
	}
	for d, n := range lengths {
		ids, learn := make([]int32, n), make([]bool, n)
		for i := range ids {
			ids[i] = int32((10*d + i) % 1000)
			learn[i] = i > 0 && ids[i]%4 != 0
		}
		if err := w.Add(ids, learn); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(packed.Source{}); err != nil {
		t.Fatal(err)
	}
	return dir
}

// Every document stands once in an epoch's rows, whole, with its targets and its start; nothing
// else is a target.
func TestRowsHoldEveryDocumentOnce(t *testing.T) {
	const seq, batch = 16, 3
	var lengths []int
	for i := range 60 {
		lengths = append(lengths, 1+(i*7)%17)
	}
	set, err := packed.Open(folder(t, true, lengths...))
	if err != nil {
		t.Fatal(err)
	}
	defer set.Close()
	train, _ := parts(set, 0)
	for _, shared := range []bool{false, true} {
		r, err := NewRows(set, train, batch, seq, 5, shared)
		if err != nil {
			t.Fatal(err)
		}
		if shared && r.Used() < 0.9 || !shared && r.Rows() != 60 {
			t.Errorf("shared %v: %d rows, %.2f used", shared, r.Rows(), r.Used())
		}
		seen := map[string]int{}
		for k := range r.Rows() {
			tokens, targets, starts := make([]int32, seq), make([]int32, seq), make([]int32, seq)
			if err := r.put(rowAt(r, k), tokens, targets); err != nil {
				t.Fatal(err)
			}
			r.starts(rowAt(r, k), starts)
			for i := 0; i < seq; {
				end := i
				for end < seq && starts[end] == int32(i) {
					end++
				}
				if end == i {
					t.Fatalf("position %d starts at %d", i, starts[i])
				}
				// A document of n tokens has n - 1 positions; the rest of a row has no targets.
				for j := i; j < end; j++ {
					want := int32((int(tokens[i]) + j - i + 1) % 1000)
					if targets[j] >= 0 && (targets[j] != want || want%4 == 0) {
						t.Fatalf("target %d behind token %d", targets[j], tokens[j])
					}
					if targets[j] >= 0 {
						seen[fmt.Sprint(tokens[i])]++
					}
				}
				i = end
			}
		}
		for d, n := range lengths {
			want := 0
			for i := 1; i < n; i++ {
				if (10*d+i)%1000%4 != 0 {
					want++
				}
			}
			if got := seen[fmt.Sprint(10*d%1000)]; got != want {
				t.Errorf("shared %v: document %d has %d targets, wanted %d", shared, d, got, want)
			}
		}
		seenRows := map[int64]bool{}
		for k := range r.Rows() {
			seenRows[rowAt(r, k+r.Rows())] = true
		}
		if int64(len(seenRows)) != r.Rows() {
			t.Errorf("shared %v: %d of %d rows in an epoch", shared, len(seenRows), r.Rows())
		}
	}
}

// An evaluation shows every held-out document once; training none of them.
func TestFeedHoldsOutDocuments(t *testing.T) {
	var lengths []int
	for range 200 {
		lengths = append(lengths, 9)
	}
	for _, apart := range []bool{true, false} {
		dir := folder(t, apart, lengths...)
		f, err := OpenFeed(plan.Train{Data: []string{dir}, Holdout: 0.2}, Shape{Vocab: 1000, Batch: 4, Seq: 8, Evaluates: true, Shared: apart})
		if err != nil {
			t.Fatal(err)
		}
		first := map[int32]bool{}
		tokens, targets := make([]int32, 32), make([]int32, 32)
		var counted int64
		for i := range f.Eval.Batches() {
			if err := f.Eval.Batch(i, tokens, targets); err != nil {
				t.Fatal(err)
			}
			for j, x := range targets {
				if x >= 0 {
					counted++
					if tokens[j]%10 == 1 && apart {
						first[tokens[j]] = true
					}
				}
			}
		}
		if apart && counted != f.Eval.Targets() || counted == 0 {
			t.Errorf("apart %v: %d targets, said %d", apart, counted, f.Eval.Targets())
		}
		for s := range int64(60) {
			if err := f.Train.Batch(s, tokens, targets); err != nil {
				t.Fatal(err)
			}
			for j, x := range tokens {
				if apart && first[x] && targets[j] >= 0 && x%10 == 1 {
					t.Fatalf("document with %d is held out and trained on", x)
				}
			}
		}
		f.Close()
	}
}

func TestFeedErrors(t *testing.T) {
	dir := folder(t, true, 9, 40)
	s := Shape{Vocab: 1000, Batch: 1, Seq: 8}
	_, err := OpenFeed(plan.Train{Data: []string{dir}}, s)
	wantFault(t, "a long document", err, "MT0677", -1, "--overlong")
	s.Vocab = 999
	_, err = OpenFeed(plan.Train{Data: []string{dir}}, s)
	wantFault(t, "a small vocabulary", err, "MT0606", -1, "V = 1000")
	_, err = OpenFeed(plan.Train{Data: []string{dir, dir}}, s)
	wantFault(t, "two folders", err, "MT0608", -1, "one folder")
}

// A share holds out at least one document and leaves at least one, and otherwise goes by each
// document's hash alone; equal documents stand on one side.
func TestHeldOutShareOfAFewDocuments(t *testing.T) {
	for n := 2; n < 40; n++ {
		var lengths []int
		for i := range n {
			lengths = append(lengths, 2+i)
		}
		set, err := packed.Open(folder(t, true, lengths...))
		if err != nil {
			t.Fatal(err)
		}
		for _, holdout := range []float64{1e-9, 0.05, 0.5, 0.999999} {
			train, held := parts(set, holdout)
			if len(train) == 0 || len(held) == 0 || len(train)+len(held) != n {
				t.Errorf("%v of %d: %d and %d", holdout, n, len(train), len(held))
			}
			plain := 0
			for d := range set.Documents() {
				if shareOf(set.Hash(d)) < holdout {
					plain++
				}
			}
			if plain > 0 && plain < n && len(held) != plain {
				t.Errorf("%v of %d: %d held out, and %d hashes are below", holdout, n, len(held), plain)
			}
		}
		if train, held := parts(set, 0); len(train) != n || len(held) != 0 {
			t.Errorf("without a share %d of %d are held out", len(held), n)
		}
		set.Close()
	}
	dir := filepath.Join(t.TempDir(), "p")
	w, err := packed.Create(dir, packed.Manifest{Apart: true, Loss: "all", Tokenizer: packed.Tokenizer{Name: "t", Hash: "h", Vocab: 1000}}, 50)
	if err != nil {
		t.Fatal(err)
	}
	for range 4 {
		if err := w.Add([]int32{1, 2, 3}, []bool{false, true, true}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(packed.Source{}); err != nil {
		t.Fatal(err)
	}
	set, err := packed.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer set.Close()
	if train, held := parts(set, 0.5); len(train) != 4 && len(held) != 4 {
		t.Errorf("equal documents stand on both sides: %d and %d", len(train), len(held))
	}
}
