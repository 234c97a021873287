package lower

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/megatrain/mtc/compiler/ir"
)

// TestReadyBlocks: by hand.
func TestReadyBlocks(t *testing.T) {
	// Blocks are complete behind these launches, as backward goes from the last weight to the first.
	done := []int{5, 5, 3, 3, 3, 1, 1, 6}
	for i, want := range [][][2]int64{nil, {{5, 7}}, nil, {{2, 5}}, nil, {{0, 2}}, {{7, 8}}, nil} {
		if got := readyBlocks(done, 8, 2)[i]; !slices.Equal(got, want) {
			t.Errorf("behind launch %d: %v, want %v", i, got, want)
		}
	}
	for i, want := range [][][2]int64{nil, nil, nil, {{2, 7}}, nil, nil, {{0, 2}, {7, 8}}} {
		if got := readyBlocks(done, 8, 4)[i]; !slices.Equal(got, want) {
			t.Errorf("of 4, behind launch %d: %v, want %v", i, got, want)
		}
	}
}

// TestReadyBlocksOnce: whatever the order, each block is in one range, and complete by then.
func TestReadyBlocksOnce(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 300 {
		done := make([]int, 1+r.IntN(20))
		for x := range done {
			done[x] = r.IntN(12)
		}
		seen, enough := make([]int, len(done)), int64(1+r.IntN(6))
		for i := range 12 {
			for _, span := range readyBlocks(done, 12, enough)[i] {
				for x := span[0]; x < span[1]; x++ {
					if seen[x]++; done[x] > i {
						t.Fatalf("%v: block %d behind launch %d", done, x, i)
					}
				}
			}
		}
		for x, n := range seen {
			if n != 1 {
				t.Fatalf("%v: block %d is summed %d times", done, x, n)
			}
		}
	}
}

// TestSquaresFollowTheLastContribution: in every function that makes gradients, for each slab that
// learns, behind all launches that write to it.
func TestSquaresFollowTheLastContribution(t *testing.T) {
	eachModel(t, func(t *testing.T, build func() *ir.Model) {
		for _, tmpl := range mustLower(t, build(), small).Templates {
			for _, f := range tmpl.Funcs {
				if f == nil {
					continue
				}
				written, summed := map[int]bool{}, map[int]int{}
				var walk func(body []ir.Stmt)
				walk = func(body []ir.Stmt) {
					for _, s := range body {
						switch s := s.(type) {
						case *ir.Loop:
							walk(s.Body)
						case *ir.IfFirst:
							walk(s.Body)
						case *ir.IfWhole:
							summed[s.Slab]++
						case *ir.Call:
							for _, a := range s.Args {
								if a.Place.Region == ir.RGrad {
									if written[a.Place.Index] = true; summed[a.Place.Index] > 0 {
										t.Errorf("%s.%s: %s.%s writes to slab %d behind the sums of its squares", tmpl.Name, f.Func, s.Op.Def.Name, s.Launch.Func, a.Place.Index)
									}
								}
							}
						}
					}
				}
				walk(f.Body)
				for slab := range written {
					if summed[slab] != 1 {
						t.Errorf("%s.%s: squares of slab %d are summed %d times", tmpl.Name, f.Func, slab, summed[slab])
					}
				}
			}
		}
	})
}
