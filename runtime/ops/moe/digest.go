package moe

import "math"

// Digest is what people want to know of a report. Shares of tokens are of those with a target.
type Digest struct {
	Usage    []float64 // by expert: share of the tokens that it got
	Mean     float64   // experts a token
	Target   float64   // and what the router aims at
	MaxVio   float64   // the most used expert's usage over the mean usage, less 1
	CV       float64   // standard deviation of usage over its mean
	None     float64   // share of tokens without any expert
	Fan      []float64 // shares of tokens by their number of experts, the last: as many or more
	Drift    float64   // the largest distance from a cutoff to the quantile of the last step
	Dead     []int     // experts without a token
	Starved  []int     // those with less than a tenth of their share, dead ones included
	Dropped  float64   // share of pairs beyond what memory is made for
	Position []float64 // experts a token by sixteenths of the sequence
}

// starving is the part of its share below which an expert starves.
const starving = 0.1

// Digest sums up a report of a router that aims at so many experts a token.
func (r *Report) Digest(target float64) Digest {
	n := float64(len(r.Count))
	d := Digest{Target: target, Usage: make([]float64, len(r.Count)), Fan: make([]float64, len(r.Fan)), Position: make([]float64, len(r.Pairs))}
	if r.Tokens == 0 {
		return d
	}
	pairs, most, square := 0.0, 0.0, 0.0
	for e, c := range r.Count {
		u := c / r.Tokens
		d.Usage[e] = u
		pairs += c
		most = max(most, u)
		square += u * u
		if c == 0 {
			d.Dead = append(d.Dead, e)
		}
		if u < starving*target/n {
			d.Starved = append(d.Starved, e)
		}
		if len(r.Threshold) > e && len(r.Quantile) > e {
			d.Drift = max(d.Drift, math.Abs(r.Threshold[e]-r.Quantile[e]))
		}
	}
	d.Mean = pairs / r.Tokens
	if mean := d.Mean / n; mean > 0 {
		d.MaxVio = most/mean - 1
		d.CV = math.Sqrt(max(0, square/n-mean*mean)) / mean
	}
	for i, t := range r.Fan {
		d.Fan[i] = t / r.Tokens
	}
	if len(d.Fan) > 0 {
		d.None = d.Fan[0]
	}
	if all := pairs + r.Dropped; all > 0 {
		d.Dropped = r.Dropped / all
	}
	for i, p := range r.Pairs {
		if r.Places[i] > 0 {
			d.Position[i] = p / r.Places[i]
		}
	}
	return d
}
