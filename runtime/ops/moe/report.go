package moe

// Report is what a router did in one step, or in several added up.
type Report struct {
	Tokens    float64   // that have a target
	Dropped   float64   // pairs beyond what memory is made for
	Flooded   float64   // micro-batches in which some were
	Updates   float64   // steps that moved the state so far
	NonCausal float64   // tokens of the run that experts chose
	Choice    bool      // experts chose in this step
	Balance   float64   // what the balance adds to the loss
	Z         float64   // and the z-loss
	Count     []float64 // by expert: pairs
	Threshold []float64 // by expert: the cutoff that routed
	Quantile  []float64 // by expert: that of the step's logits
	Bias      []float64
	Fan       []float64 // by number of experts: tokens; the last: as many or more
	Pairs     []float64 // by sixteenth of the sequence: pairs
	Places    []float64 // and tokens
}

// ReportOf reads the report of a router with so many experts.
func ReportOf(f []float64, experts int64) Report {
	take := func(n int64) []float64 {
		out := f[:n:n]
		f = f[n:]
		return out
	}
	head := take(ReportLists)
	r := Report{
		Tokens: head[ReportTokens], Dropped: head[ReportDropped], Flooded: head[ReportFlooded],
		Updates: head[ReportUpdates], NonCausal: head[ReportNonCausal], Choice: head[ReportChoice] != 0,
		Balance: head[ReportBalance], Z: head[ReportZ],
	}
	for _, to := range []*[]float64{&r.Count, &r.Threshold, &r.Quantile, &r.Bias} {
		*to = take(experts)
	}
	r.Fan = take(FanOuts(experts))
	r.Pairs, r.Places = take(Places), take(Places)
	return r
}

// Add adds a later step's counts and takes its other values.
func (r *Report) Add(s Report) {
	if r.Count == nil {
		r.Count, r.Fan = make([]float64, len(s.Count)), make([]float64, len(s.Fan))
		r.Pairs, r.Places = make([]float64, Places), make([]float64, Places)
	}
	if all := r.Tokens + s.Tokens; all > 0 { // means over tokens
		r.Balance = (r.Balance*r.Tokens + s.Balance*s.Tokens) / all
		r.Z = (r.Z*r.Tokens + s.Z*s.Tokens) / all
	}
	r.Tokens += s.Tokens
	r.Dropped += s.Dropped
	r.Flooded += s.Flooded
	r.Updates, r.NonCausal, r.Choice = s.Updates, s.NonCausal, s.Choice
	r.Threshold, r.Quantile, r.Bias = append([]float64(nil), s.Threshold...), append([]float64(nil), s.Quantile...), append([]float64(nil), s.Bias...)
	for _, p := range [][2][]float64{{r.Count, s.Count}, {r.Fan, s.Fan}, {r.Pairs, s.Pairs}, {r.Places, s.Places}} {
		for i, x := range p[1] {
			p[0][i] += x
		}
	}
}
