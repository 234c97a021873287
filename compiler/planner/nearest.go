package planner

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/megatrain/mtc/lang/diag"
)

// pinnedInTheWay are options whose pin can keep a plan from fitting, the ones that matter least
// first.
var pinnedInTheWay = []string{
	"slots", "grad-slots", "host-slots", "device-weights", "grad-home", "save-values", "save-inputs", "resident", "groups", "order",
	"micro-batch", "input-every", "recompute", "placement", "grad-precision",
}

// leastSeq is the shortest sequence that is offered, and what those offered are multiples of.
const leastSeq = 64

// nearest looks for the nearest change that fits: the one that costs the least. Pins that stand in the way come
// first, since they cost nothing to take back; then clipping, the largest batch, the longest sequence, and these together.
func (e *ShortError) nearest(s *search) {
	pins := s.r.Pinned
	defer func() { e.Cut = e.Change == "" && s.effort.cut }()
	if len(pins) > 0 {
		for _, flag := range pinnedInTheWay {
			if !pins[flag] {
				continue
			}
			x := maps.Clone(pins)
			if delete(x, flag); s.fits(x, nil) {
				e.Change = "leaving `--" + flag + "` out"
				return
			}
		}
		if s.fits(nil, nil) {
			e.Change = "leaving the planner's options open"
			return
		}
	}
	for _, free := range []bool{false, true} {
		if free && len(pins) == 0 {
			break
		}
		open := ""
		if free {
			pins, open = nil, "leaving the planner's options open and "
		}
		all := s.unclipped()
		if !s.fits(pins, s.smallest(pins, all[len(all)-1])) {
			continue // the most thorough of the changes does not
		}
		for _, base := range all {
			if sets, does, ok := s.settings(pins, base); ok {
				e.Change, e.Does = open+"`"+flags(sets)+"`", does
				return
			}
		}
	}
}

// unclipped are the settings to begin with: as they are, and with clipping off where it is on.
func (s *search) unclipped() [][]string {
	out := [][]string{nil}
	if s.first.Model().Train.Run.Clip > 0 {
		out = append(out, []string{"train.clip=none"})
	}
	return out
}

// smallest are the settings that take the least.
func (s *search) smallest(pins map[string]bool, base []string) []string {
	rows := int64(1)
	if pins["micro-batch"] {
		rows = s.first.Program().Rows
	}
	return append(slices.Clone(base), fmt.Sprintf("train.batch=%d rows", rows), fmt.Sprintf("train.seq=%d", min(leastSeq, s.first.Model().Seq)))
}

// settings are the nearest ones that fit beside some others, and what they do.
func (s *search) settings(pins map[string]bool, base []string) (sets []string, does string, ok bool) {
	if len(base) > 0 && s.fits(pins, base) {
		return base, "gradients leave as they arrive", true
	}
	m := s.first.Model()
	if clip := len(base) == 0 && len(s.unclipped()) > 1 && s.fits(pins, s.unclipped()[1]); clip {
		return nil, "", false // that alone is nearer
	}
	unit := int64(1)
	if pins["micro-batch"] {
		unit = s.first.Program().Rows
	}
	batch := func(rows int64) []string {
		return append(slices.Clone(base), fmt.Sprintf("train.batch=%d rows", rows))
	}
	if n := most(m.Batch/unit-1, func(n int64) bool { return s.fits(pins, batch(n*unit)) }); n > 0 {
		return batch(n * unit), fmt.Sprintf("a step of %d tokens", m.Seq*n*unit), true
	}
	for _, rows := range []int64{m.Batch, unit} {
		seq := func(n int64) []string { return append(batch(rows), fmt.Sprintf("train.seq=%d", n*leastSeq)) }
		if n := most((m.Seq-1)/leastSeq, func(n int64) bool { return s.fits(pins, seq(n)) }); n > 0 {
			return seq(n), fmt.Sprintf("a step of %d tokens", rows*n*leastSeq), true
		}
	}
	return nil, "", false
}

// most is the largest number of 1 to n of which something holds that holds of all smaller ones too; 0 where it holds of none.
func most(n int64, holds func(int64) bool) int64 {
	if n < 1 || !holds(1) {
		return 0
	}
	lo, hi := int64(1), n+1
	for hi-lo > 1 {
		if mid := (lo + hi) / 2; holds(mid) {
			lo = mid
		} else {
			hi = mid
		}
	}
	return lo
}

// flags are settings as the command line takes them.
func flags(sets []string) string {
	var out []string
	for _, x := range sets {
		if strings.Contains(x, " ") {
			x = `"` + x + `"`
		}
		out = append(out, "--set "+x)
	}
	return strings.Join(out, " ")
}

// fits reports whether anything fits with these pins and settings besides. It says no to all where so much was tried already
// that there is no end of it.
func (s *search) fits(pins map[string]bool, sets []string) bool {
	if s.effort.spent(8) {
		return false
	}
	s.effort.doing("nothing fits; looking for a change that does: %s", cmp.Or(flags(sets), "other options"))
	r := s.r
	r.Pinned = pins
	r.Options.Set = slices.Concat(r.Options.Set, sets)
	x := start(s.ctx, r)
	x.feasible, x.effort = true, s.effort
	if x.lower(&diag.List{}) != nil {
		return false
	}
	l, err := x.leastHost(x.device, x.host)
	return err == nil && l != nil && l.host <= x.host
}
