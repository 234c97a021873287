package moe

import (
	"unsafe"

	"github.com/megatrain/mtc/runtime/device"
)

// A routing says which token goes to which expert, for one micro-batch. It is i32 words:
//
//	Offsets  [E+1]  Offsets[e] is the first row of expert e; its rows follow one another in
//	                ascending order of token; Offsets[E] is how many rows there are, at most M
//	First    [N+1]  First[t] is where the rows of token t begin in Rows
//	Rows     [M]    rows of each token, in ascending order of expert
//	Token    [M]    by row: its token
//	Expert   [M]    by row: its expert
//
// Words behind the last row in use are undefined. A value has RoutingWords words a token, of
// which a micro-batch of one token needs all.
type Routing struct {
	Offsets, First, Rows, Token, Expert int64 // first word of each
	Words                               int64 // in use at most
}

// RoutingWords is how many words a token a routing takes.
func RoutingWords(experts, slots int64) int64 { return roundUp(experts+1, 16) + 2 + 3*slots }

// RoutingOf lays a routing out.
func RoutingOf(tokens, experts, slots int64) Routing {
	m := tokens * slots
	var r Routing
	r.First = roundUp(experts+1, 16)
	r.Rows = r.First + tokens + 1
	r.Token = r.Rows + m
	r.Expert = r.Token + m
	r.Words = r.Expert + m
	return r
}

func roundUp(n, m int64) int64 { return (n + m - 1) / m * m }

// State is where the parts of a router's state lie, in bytes from its start. Everything before
// Persistent is kept in checkpoints; the rest is counted anew in every step.
type State struct {
	Control    int64 // f64 [Controls]
	Average    int64 // f64 [E]: the weighted sum of quantiles that Threshold is made of
	Threshold  int64 // f32 [E]: cutoffs of the logits
	Bias       int64 // f32 [E]: added to scores before the choice (lossfree, quantile)
	Quantile   int64 // f32 [E]: quantile of the last step
	Persistent int64

	Counters int64 // i32 [Counters]
	Losses   int64 // i64 [NumLosses]: sums over tokens, in whole parts, which add up exactly
	Count    int64 // i32 [E]: pairs of each expert
	Fan      int64 // i32 [FanOuts(E)]: tokens by their number of experts, the last for as many or more
	Place    int64 // i32 [2, Places]: pairs, then tokens, by sixteenths of the sequence: position * Places / Seq
	Hist     int64 // i32 [E, Buckets], only where the router has a quantile
	Report   int64 // f64 [ReportLen(E)]: what Advance says of the last step
	Bytes    int64
}

// Numbers of the control block.
const (
	ControlUpdates   = iota // steps that moved the state
	ControlWeight           // sum of the weights in Average
	ControlNonCausal        // tokens that were routed by an expert's choice, in all
	Controls         = 16
)

// Counters of the step. Tokens without a target count for nothing here.
const (
	CountTokens    = iota // tokens
	CountDropped          // pairs dropped because a micro-batch had more than M
	CountFlooded          // micro-batches in which that happened
	CountNonCausal        // tokens that were routed by an expert's choice, padding too
	NumCounters    = 16
)

// Sums that a step's losses of the router are made of.
const (
	LossBalance = iota // over experts of f_e u[t,e] (gate.go), in parts of LossPart
	LossZ              // logsumexp(logits[t])^2, in parts of LossPart
	NumLosses   = 8
)

// LossPart is the size of the parts.
const LossPart = 1.0 / (1 << 20)

// Places of a report: numbers, then four lists of E and the fan-outs.
const (
	ReportTokens    = iota // counted tokens
	ReportDropped          // pairs dropped
	ReportFlooded          // micro-batches that dropped some
	ReportUpdates          // steps that moved the state, this one included
	ReportNonCausal        // tokens of the run that were routed by an expert's choice
	ReportChoice           // 1: so was this step
	ReportSkipped          // 1: the state did not move
	ReportBalance          // what the balance adds to the loss
	ReportZ                // what the z-loss does
	ReportFrozen           // pairs that evaluation dropped since the last step: it leaves all else as it is
	ReportLists     = 16   // count [E], threshold [E] (the step's), quantile [E], bias [E], fan [FanOuts(E)], place [2, Places]
)

// Places is how many parts of a sequence are told apart.
const Places = 16

// FanOuts is how many numbers of experts a token are told apart.
func FanOuts(experts int64) int64 { return min(experts, 15) + 1 }

// ReportLen is the length of a report.
func ReportLen(experts int64) int64 { return ReportLists + 4*experts + FanOuts(experts) + 2*Places }

// StateOf lays a state out.
func StateOf(experts int64, hist bool) State {
	var s State
	at := int64(0)
	take := func(n int64) int64 {
		o := at
		at = roundUp(at+n, 64)
		return o
	}
	s.Control = take(8 * Controls)
	s.Average = take(8 * experts)
	s.Threshold = take(4 * experts)
	s.Bias = take(4 * experts)
	s.Quantile = take(4 * experts)
	s.Persistent = at
	s.Counters = take(4 * NumCounters)
	s.Losses = take(8 * NumLosses)
	s.Count = take(4 * experts)
	s.Fan = take(4 * FanOuts(experts))
	s.Place = take(4 * 2 * Places)
	s.Hist = at
	if hist {
		take(4 * experts * Buckets)
	}
	s.Report = take(8 * ReportLen(experts))
	s.Bytes = at
	return s
}

// state is a router's state as a CPU kernel sees it.
type state struct {
	control, average          []float64
	threshold, bias, quantile []float32
	counters, count, fan      []int32
	place                     []int32
	losses                    []int64
	hist                      []int32
	report                    []float64
}

func stateAt(c device.CPU, p device.Ptr, experts int64, hist bool) *state {
	if p.Nil() {
		return nil
	}
	l := StateOf(experts, hist)
	s := &state{
		control: c.F64(p.At(l.Control), Controls), average: c.F64(p.At(l.Average), experts),
		threshold: c.F32(p.At(l.Threshold), experts), bias: c.F32(p.At(l.Bias), experts), quantile: c.F32(p.At(l.Quantile), experts),
		counters: c.I32(p.At(l.Counters), NumCounters), count: c.I32(p.At(l.Count), experts), fan: c.I32(p.At(l.Fan), FanOuts(experts)),
		place:  c.I32(p.At(l.Place), 2*Places),
		losses: wholes(c.F64(p.At(l.Losses), NumLosses)),
		report: c.F64(p.At(l.Report), ReportLen(experts)),
	}
	if hist {
		s.hist = c.I32(p.At(l.Hist), experts*Buckets)
	}
	return s
}

// wholes are 8-byte places as whole numbers.
func wholes(f []float64) []int64 {
	return unsafe.Slice((*int64)(unsafe.Pointer(unsafe.SliceData(f))), len(f))
}
