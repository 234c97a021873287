package optim

import (
	"fmt"
	"math"

	"github.com/megatrain/mtc/runtime/plan"
)

// Kinds are the learning-rate schedules, as written in a train block.
var Kinds = []string{"constant", "linear", "cosine", "wsd"}

// LR is the learning rate of training step k (from 0) of n. With w = Warmup:
//
//	k < w     Peak * (k + 1) / w                  linear warm-up; its last step has Peak
//
// and after it, with p = (k - w) / (n - w) in [0, 1]:
//
//	constant  Peak
//	linear    Peak + (Final - Peak) * p
//	cosine    Final + (Peak - Final) * (1 + cos(pi p)) / 2         (SGDR, arXiv 1608.03983, eq. 5)
//	wsd       Peak until k = n - Decay, then
//	          Peak + (Final - Peak) * (k - (n - Decay)) / Decay    (MiniCPM, arXiv 2404.06395, 4.2, linear decay)
//
// A step at or past n has the value that p = 1 gives. Final is a learning rate, not a share.
func LR(s plan.Schedule, k, n int64) float64 {
	if k < s.Warmup {
		return s.Peak * float64(k+1) / float64(s.Warmup)
	}
	switch s.Kind {
	case "linear":
		return s.Peak + (s.Final-s.Peak)*part(k-s.Warmup, n-s.Warmup)
	case "cosine":
		return s.Final + (s.Peak-s.Final)*0.5*(1+math.Cos(math.Pi*part(k-s.Warmup, n-s.Warmup)))
	case "wsd":
		return s.Peak + (s.Final-s.Peak)*part(k-(n-s.Decay), s.Decay)
	}
	return s.Peak
}

// part is a / b held in [0, 1]; an empty stretch (b <= 0) is over once it began.
func part(a, b int64) float64 {
	switch {
	case a < 0:
		return 0
	case a >= b:
		return 1
	}
	return float64(a) / float64(b)
}

// CheckSchedule says what is wrong with a schedule, or nil. A run that ends before its warm-up
// or in the middle of its decay is a fine thing to try.
func CheckSchedule(s plan.Schedule) error {
	known := false
	for _, k := range Kinds {
		known = known || k == s.Kind
	}
	switch {
	case !known:
		return fmt.Errorf("learning-rate schedule %q is not one of %v", s.Kind, Kinds)
	case !(s.Peak >= 0) || math.IsInf(s.Peak, 0):
		return fmt.Errorf("peak learning rate %v is not a finite number of 0 or more", s.Peak)
	case !(s.Final >= 0) || math.IsInf(s.Final, 0):
		return fmt.Errorf("final learning rate %v is not a finite number of 0 or more", s.Final)
	case s.Warmup < 0:
		return fmt.Errorf("warm-up of %d steps is negative", s.Warmup)
	case s.Kind == "wsd" && s.Decay < 0:
		return fmt.Errorf("decay of %d steps is negative", s.Decay)
	}
	return nil
}
