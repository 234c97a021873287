package routers

import (
	"bytes"
	"math"
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

// TestPrefillEqualsDecode: logits in one piece, in chunks that do not divide the prompt, and token
// by token. On a CPU they are the same bits. On a GPU a product of other size may round otherwise;
// where that moves a logit of the router over its cutoff, the position has other experts.
func TestPrefillEqualsDecode(t *testing.T) {
	onEach(t, func(t *testing.T, precision string) {
		for name, one := range map[string]string{"threshold-chunk": "threshold", "threshold-whole": "threshold", "biased-whole": "biased"} {
			in := drawn(t, one, 1, 4)
			want, got := try(t, one, precision, in), try(t, name, precision, in)
			if bytes.Equal(got.bytes("logits"), want.bytes("logits")) {
				continue
			}
			if len(precisions()) == 1 {
				t.Errorf("%s gives other logits than token by token", name)
				continue
			}
			limit, allowed := 1e-4, 2
			if precision == "bf16" {
				limit, allowed = 0.08, rows*seq/4
			}
			a, b := got.f32("logits"), want.f32("logits")
			far := 0
			for i := 0; i < len(a); i += vocab {
				d, top := 0.0, 0.0
				for j := i; j < i+vocab; j++ {
					d, top = max(d, math.Abs(a[j]-b[j])), max(top, math.Abs(b[j]))
				}
				if !(d <= limit*top) {
					far++
				}
			}
			if far > allowed {
				t.Errorf("%s: at %d of %d positions logits differ by more than %g of the largest", name, far, rows*seq, limit)
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
