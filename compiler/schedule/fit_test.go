package schedule

import (
	"errors"
	"testing"

	"github.com/megatrain/mtc/compiler/memplan"
	"github.com/megatrain/mtc/runtime/plan"
)

// kept counts the slabs that live on the device, which must be the first ones.
func kept(t *testing.T, p *plan.Plan) int {
	t.Helper()
	n := 0
	for i, s := range p.Slabs {
		if !s.Resident {
			continue
		}
		if n++; n != i+1 {
			t.Errorf("slab %s is resident and one before it is not", s.Name)
		}
	}
	return n
}

// TestStreamFillsTheMemory: with each limit between what a bare stream needs and what all
// needs, the plan fits, verifies, and one slab more would not fit.
func TestStreamFillsTheMemory(t *testing.T) {
	for _, noClip := range []bool{false, true} {
		y := toy{layers: 6, micros: 2, noClip: noClip}
		size := func(o Options) int64 {
			n, _ := memplan.Peak(mustBuild(t, y, o))
			return n
		}
		bare := size(Options{Placement: Stream})
		all := size(Options{Placement: Stream, Keep: 8})
		seen := map[int]bool{}
		for limit := bare; limit <= all+4096; limit += 2048 {
			o := Options{Placement: Stream, DeviceMemory: limit}
			p := mustBuild(t, y, o)
			if err := Verify(p); err != nil {
				t.Fatal(err)
			}
			n, _ := memplan.Peak(p)
			k := kept(t, p)
			seen[k] = true
			if n > limit {
				t.Errorf("no clip %t, limit %d: the plan takes %d", noClip, limit, n)
			}
			if k < 8 {
				if more := size(Options{Placement: Stream, Keep: int64(k) + 1}); more <= limit {
					t.Errorf("no clip %t, limit %d: %d slabs stay, and one more takes %d", noClip, limit, k, more)
				}
			}
		}
		if !seen[0] || !seen[8] || len(seen) < 5 {
			t.Errorf("no clip %t: numbers of resident slabs seen: %v", noClip, seen)
		}
		var short *ShortError
		if _, err := Build(y.program(), Options{Placement: Stream, DeviceMemory: bare - 1}); !errors.As(err, &short) || short.Need != bare || short.Have != bare-1 {
			t.Errorf("one byte less: %v", err)
		}
		if _, err := Build(y.program(), Options{DeviceMemory: bare}); !errors.As(err, &short) || short.Placement != Resident {
			t.Errorf("resident in the memory of a stream: %v", err)
		}
		for limit, want := range map[int64]string{0: Resident, bare: Stream, size(Options{}): Resident, size(Options{}) - 1: Stream} {
			if p := mustBuild(t, y, Options{Placement: Auto, DeviceMemory: limit}); p.Placement != want {
				t.Errorf("auto in %d bytes: %s, want %s", limit, p.Placement, want)
			}
		}
	}
}

// TestInputsAreSavedToFit: left open, as few inputs as it takes go to the host, and pinned ones
// are as many as they are.
func TestInputsAreSavedToFit(t *testing.T) {
	y := toy{layers: 6, micros: 4, recompute: true, width: 256}
	size := func(n int64) int64 {
		b, _ := memplan.Peak(mustBuild(t, y, Options{Placement: Stream, SaveInputs: n}))
		return b
	}
	none, all := size(0), size(All)
	if all >= none {
		t.Fatalf("saving all inputs takes %d bytes, none %d", all, none)
	}
	seen := map[int64]bool{}
	for limit := all; limit <= none; limit += (none - all) / 12 {
		p := mustBuild(t, y, Options{Placement: Stream, DeviceMemory: limit, SaveAuto: true})
		if err := Verify(p); err != nil {
			t.Fatal(err)
		}
		n, _ := memplan.Peak(p)
		if n > limit {
			t.Errorf("limit %d: the plan takes %d", limit, n)
		}
		if k := p.SavedInputs; k > 0 && size(k-1) <= limit {
			t.Errorf("limit %d: %d inputs are saved, and one less fits", limit, k)
		}
		seen[p.SavedInputs] = true
		if _, err := Build(y.program(), Options{Placement: Stream, DeviceMemory: limit}); limit < none && err == nil {
			t.Errorf("limit %d: it fits without saving", limit)
		}
	}
	if !seen[0] && !seen[1] || len(seen) < 4 {
		t.Errorf("numbers of saved inputs seen: %v", seen)
	}
	var short *ShortError
	if _, err := Build(y.program(), Options{Placement: Stream, DeviceMemory: all - 1, SaveAuto: true}); !errors.As(err, &short) || short.Need != all {
		t.Errorf("one byte less: %v", err)
	}
}
