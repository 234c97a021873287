package routers

import (
	"bytes"
	"testing"
)

// TestLaterTokensChangeNothing: in training, with the cutoffs frozen, other tokens behind a
// position leave everything before them the same bits; where experts choose from a sequence or a
// step they do not, and other rows see it too where the pool is the step.
func TestLaterTokensChangeNothing(t *testing.T) {
	onEach(t, func(t *testing.T, precision string) {
		const from = 11 // the first position with another token
		for _, kind := range kinds {
			in := drawn(t, kind, 1, 3)
			before := try(t, kind, precision, in)
			for i := from; i <= seq; i++ {
				in.row(2)[i] = (in.row(2)[i] + 100) % vocab
			}
			after := try(t, kind, precision, in)
			same := func(row, lo, hi int) bool {
				n := len(before.bytes("hidden")) / (rows * seq)
				at := func(r *result) []byte { return r.bytes("hidden")[(row*seq+lo)*n : (row*seq+hi)*n] }
				return bytes.Equal(at(before), at(after))
			}
			if same(2, from, seq) {
				t.Fatalf("%s: the other tokens have no effect", kind)
			}
			earlier, others := same(2, 0, from), true
			for row := range rows {
				others = others && (row == 2 || same(row, 0, seq))
			}
			if causal := kind != "choice"; earlier != causal || others != causal {
				t.Errorf("%s: earlier positions the same: %v, other rows: %v", kind, earlier, others)
			}
			for i := range rows * seq {
				if i/seq == 2 && i%seq >= from {
					continue
				}
				if !bytes.Equal(before.cut("logits", i, rows*seq), after.cut("logits", i, rows*seq)) {
					t.Fatalf("%s: in generation position %d of row %d sees later tokens, or other rows", kind, i%seq, i/seq)
				}
			}
		}
	})
}

// TestPrefillEqualsDecode: the same bits in one piece, in chunks that do not divide the prompt,
// and token by token; the tokens pass 0 to all experts.
func TestPrefillEqualsDecode(t *testing.T) {
	onEach(t, func(t *testing.T, precision string) {
		in := drawn(t, "threshold", 1, 4)
		want := try(t, "threshold", precision, in).bytes("logits")
		for _, name := range []string{"threshold-chunk", "threshold-whole"} {
			if got := try(t, name, precision, in).bytes("logits"); !bytes.Equal(got, want) {
				t.Errorf("%s gives other logits than token by token", name)
			}
		}
	})
}

// TestRowsOfABatchAreApart: rows in another order, or beside others, have the bits that they had.
func TestRowsOfABatchAreApart(t *testing.T) {
	onEach(t, func(t *testing.T, precision string) {
		for _, kind := range []string{"threshold", "topk"} {
			in := drawn(t, kind, 1, 5)
			before := try(t, kind, precision, in)
			order := [rows]int{3, 0, 7, 1, 6, 2, 5, 4}
			moved := *in
			moved.tokens = nil
			for i, from := range order {
				row := append([]int32{}, in.row(from)...)
				if i >= 6 { // two rows of others
					for j := range row {
						row[j] = (row[j] + 77) % vocab
					}
				}
				moved.tokens = append(moved.tokens, row...)
			}
			after := try(t, kind, precision, &moved)
			for i, from := range order[:6] {
				if !bytes.Equal(after.cut("hidden", i, rows), before.cut("hidden", from, rows)) {
					t.Errorf("%s: row %d has other bits as row %d", kind, from, i)
				}
			}
		}
	})
}
