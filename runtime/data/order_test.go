package data

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/megatrain/mtc/runtime/fault"
)

func TestPermuteIsOneToOne(t *testing.T) {
	for _, n := range []uint64{1, 2, 3, 4, 5, 7, 16, 17, 63, 64, 65, 255, 1000, 4097, 65536} {
		for k := range uint64(4) {
			seen := make([]bool, n)
			for i := range n {
				j := permute(i, n, mix(k))
				if j >= n || seen[j] {
					t.Fatalf("n = %d, key %d: %d maps to %d, outside or taken", n, k, i, j)
				}
				seen[j] = true
			}
		}
	}
}

// A shuffled order has as many neighbours in sequence, and as small a shift, as chance gives.
func TestPermuteLooksRandom(t *testing.T) {
	const n = 20000
	for k := range uint64(3) {
		fixed, follow, early := 0, 0, 0
		for i := range uint64(n) {
			j := permute(i, n, mix(k+100))
			if j == i {
				fixed++
			}
			if i > 0 && j == permute(i-1, n, mix(k+100))+1 {
				follow++
			}
			if i < n/2 && j < n/2 {
				early++
			}
		}
		// Fixed points and successions are near Poisson(1); the halves near n/4 with deviation sqrt(n)/4.
		if fixed > 8 || follow > 8 || early < n/4-180 || early > n/4+180 {
			t.Errorf("key %d: %d fixed points, %d successions, %d of %d stay in the first half", k, fixed, follow, early, n/2)
		}
	}
}

// The order of a run is part of what a checkpoint resumes: it must not change between versions.
func TestOrderIsStable(t *testing.T) {
	l := &Loader{seq: 10, batch: 1, rows: 1000, slack: 9, seed: 1337}
	var got []int64
	for _, k := range []int64{0, 1, 2, 999, 1000, 1001, 123456789} {
		got = append(got, l.start(k))
	}
	if d := cmp.Diff([]int64{7047, 5727, 7117, 7867, 1795, 2945, 8919}, got); d != "" {
		t.Errorf("rows start elsewhere (-before +now):\n%s", d)
	}
}

func corpusOf(t *testing.T, n int) *Corpus {
	t.Helper()
	var b strings.Builder
	for i := range n - 1 {
		b.WriteByte(byte(1 + i%251))
	}
	c, err := Open([]string{tree(t, map[string]string{"f": b.String()})}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func TestEpochUsesEveryRowOnce(t *testing.T) {
	const seq, batch = 8, 3
	for _, n := range []int{32, 33, 39, 40, 41, 100, 1003} {
		l, err := NewLoader(corpusOf(t, n), batch, seq, 7)
		if err != nil {
			t.Fatal(err)
		}
		offsets := map[int64]bool{}
		for epoch := range int64(20) {
			seen := map[int64]bool{}
			for i := range l.Rows() {
				s := l.start(epoch*l.Rows() + i)
				if s < 0 || s+seq+1 > int64(n) {
					t.Fatalf("n = %d: a row reads [%d, %d)", n, s, s+seq+1)
				}
				if seen[s] {
					t.Fatalf("n = %d, epoch %d: row at %d twice", n, epoch, s)
				}
				seen[s] = true
				offsets[s%seq] = true
			}
			// Rows are seq apart, so distinct starts with one remainder cover disjoint targets.
			if want := (int64(n) - seq) / seq; l.Rows() != want {
				t.Fatalf("n = %d: %d rows, wanted %d", n, l.Rows(), want)
			}
		}
		if len(offsets) < 4 {
			t.Errorf("n = %d: the cuts of 20 epochs have only %d offsets", n, len(offsets))
		}
	}
}

func TestBatchIsAFunctionOfTheStep(t *testing.T) {
	const seq, batch = 8, 4
	c := corpusOf(t, 500)
	l, err := NewLoader(c, batch, seq, 7)
	if err != nil {
		t.Fatal(err)
	}
	get := func(l *Loader, step int64) ([]int32, []int32) {
		in, out := make([]int32, batch*seq), make([]int32, batch*seq)
		if err := l.Batch(step, in, out); err != nil {
			t.Fatal(err)
		}
		return in, out
	}
	again, err := NewLoader(c, batch, seq, 7)
	if err != nil {
		t.Fatal(err)
	}
	other, err := NewLoader(c, batch, seq, 8)
	if err != nil {
		t.Fatal(err)
	}
	same := true
	for _, step := range []int64{40, 3, 0, 17, 1000000} {
		in, out := get(l, step)
		for r := range batch {
			row, next := in[r*seq:(r+1)*seq], out[r*seq:(r+1)*seq]
			if d := cmp.Diff(row[1:], next[:seq-1]); d != "" {
				t.Fatalf("targets are not the tokens one later: %s", d)
			}
		}
		in2, out2 := get(again, step)
		if !cmp.Equal(in, in2) || !cmp.Equal(out, out2) {
			t.Errorf("step %d differs when asked in another order", step)
		}
		in3, _ := get(other, step)
		same = same && cmp.Equal(in, in3)
	}
	if same {
		t.Error("another seed gives the same rows")
	}
}

func TestTooShortACorpusSaysBothNumbers(t *testing.T) {
	_, err := NewLoader(corpusOf(t, 1000), 16, 64, 1)
	var f *fault.Error
	if !errors.As(err, &f) || f.Code != "MT0607" || !strings.Contains(f.Message, "1,000 tokens") || !strings.Contains(f.Message, "at least 1,088") {
		t.Errorf("got %v", err)
	}
	if _, err := NewLoader(corpusOf(t, 1088), 16, 64, 1); err != nil {
		t.Errorf("the number that the error names is not enough: %v", err)
	}
}

func TestEvaluationCoversEveryTargetOnce(t *testing.T) {
	const seq, batch = 8, 3
	for _, n := range []int{2, 8, 9, 10, 24, 25, 26, 101, 500} {
		c := corpusOf(t, n)
		e, err := NewEvaluation(c, batch, seq, 0)
		if err != nil {
			t.Fatal(err)
		}
		want := readAll(t, c)
		var got []int32
		counted := int64(0)
		for i := range e.Batches() {
			in, out := make([]int32, batch*seq), make([]int32, batch*seq)
			in[0], out[0] = 99, 99
			if err := e.Batch(i, in, out); err != nil {
				t.Fatal(err)
			}
			for j, target := range out {
				if target < 0 {
					continue
				}
				if at := len(got); in[j] != want[at] {
					t.Fatalf("n = %d: input %d is %d, wanted %d", n, at, in[j], want[at])
				}
				got = append(got, target)
				counted++
			}
		}
		if d := cmp.Diff(want[1:], got); d != "" {
			t.Errorf("n = %d: targets (-wanted +got):\n%s", n, d)
		}
		if counted != e.Targets() {
			t.Errorf("n = %d: %d targets, said %d", n, counted, e.Targets())
		}
	}
	_, err := NewEvaluation(corpusOf(t, 2), 1, 8, 0)
	if err != nil {
		t.Error(err)
	}
}

func TestEvaluationLimitSpreadsItsRows(t *testing.T) {
	const seq, batch = 8, 2
	e, err := NewEvaluation(corpusOf(t, 1000), batch, seq, 5)
	if err != nil {
		t.Fatal(err)
	}
	if e.Batches() != 5 || e.Targets() != 5*batch*seq {
		t.Errorf("%d batches, %d targets", e.Batches(), e.Targets())
	}
	last := int64(-1)
	for r := range e.used {
		if row := e.row(r); row <= last || row >= e.rows {
			t.Errorf("row %d after row %d of %d", row, last, e.rows)
		} else {
			last = row
		}
	}
	if last < e.rows*8/10 {
		t.Errorf("the last row shown is %d of %d", last, e.rows)
	}
}
