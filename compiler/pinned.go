package compiler

import (
	"strconv"
	"strings"

	"github.com/megatrain/mtc/compiler/ir"
	"github.com/megatrain/mtc/compiler/passes/front"
	"github.com/megatrain/mtc/compiler/schedule"
	"github.com/megatrain/mtc/lang/source"
)

// count is a number of things, or one of a few words for one: "none", "all".
type count struct {
	n    int64 // schedule.All: as many as there are
	auto bool  // left open
}

// counted reads an option that is a number or a word; words maps those to numbers.
func counted(s *state, flag, text string, words map[string]int64) count {
	if text == "" || text == "auto" {
		return count{auto: true}
	}
	if n, ok := words[text]; ok {
		return count{n: n}
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		known := []string{"auto"}
		for _, w := range []string{"none", "all", "host", "device"} {
			if _, ok := words[w]; ok {
				known = append(known, w)
			}
		}
		s.diags.Errorf("MT0403", source.Span{}, "`--%s %s` is not a number, nor one of %s", flag, text, strings.Join(known, ", ")).
			Hint("%s", front.DidYouMean(text, known))
	}
	return count{n: n}
}

// savedInputs is how many layer inputs wait for backward on the host.
func savedInputs(s *state) count {
	return counted(s, "save-inputs", s.opts.SaveInputs, map[string]int64{"none": 0, "all": schedule.All})
}

// savedValues is of how many layers what backward reads waits on the host.
func savedValues(s *state) count {
	return counted(s, "save-values", s.opts.SaveValues, map[string]int64{"none": 0, "all": schedule.All})
}

// deviceGrads is how many slabs that stream keep their gradient on the device.
func deviceGrads(s *state) count {
	return counted(s, "grad-home", s.opts.GradHome, map[string]int64{"host": 0, "device": schedule.All})
}

// kept reads which slabs stay on the device: a number of first ones, or names.
func kept(s *state) (n int64, names []string, pinned bool) {
	text := s.opts.Resident
	if text == "" || text == "auto" {
		return 0, nil, false
	}
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		if n < 0 {
			s.diags.Errorf("MT0403", source.Span{}, "`--resident %d` is negative", n).Hint("leave it out for as many as fit")
		}
		return n, nil, true
	}
	return 0, ir.ExpandNames(text), true
}

// readyPlacement checks the options about what is where, before anything is made.
func readyPlacement(s *state) {
	savedInputs(s)
	savedValues(s)
	deviceGrads(s)
	kept(s)
}

// recompute is what is recomputed where nothing has to fit: nothing, when left open.
func recompute(o Options) string {
	if o.Recompute == "auto" {
		return ""
	}
	return o.Recompute
}

// order is the order of a step where it is pinned.
func order(s *state) string {
	if s.opts.Order == "auto" {
		return ""
	}
	return s.opts.Order
}
