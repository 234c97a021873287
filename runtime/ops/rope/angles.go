package rope

import "math"

// Scaling numbers of AnglesArgs.
const (
	NoScaling = iota
	Linear
	Llama3
	Yarn
)

var scalingNumber = map[string]int{"linear": Linear, "llama3": Llama3, "yarn": Yarn}

// AnglesArgs are the constants of the table of angles.
type AnglesArgs struct {
	HD       int     // elements of a head
	Theta    float32 // base of the wavelengths
	Scaling  int     // NoScaling, Linear, Llama3 or Yarn; it decides which fields below count
	Factor   float32
	Original float32 // context length before stretching
	Low      float32 // llama3
	High     float32 // llama3
	Fast     float32 // yarn
	Slow     float32 // yarn
	// Amplitude is yarn's factor on cosine and sine; 0: 0.1 ln(factor) + 1.
	Amplitude float32
}

// Angles fills cs [T, 2, hd/2]: for every position the cosines of all pairs, then their
// sines. T is len(dst) / hd. Angles are computed in float64.
func Angles(dst []float32, a AnglesArgs) {
	freq, amplitude := frequencies(a)
	for i := range len(dst) / a.HD {
		row := dst[i*a.HD : (i+1)*a.HD]
		for j, f := range freq {
			sin, cos := math.Sincos(float64(i) * f)
			row[j], row[a.HD/2+j] = float32(amplitude*cos), float32(amplitude*sin)
		}
	}
}

// frequencies returns the angle of one position for each pair, and the factor on cosine and
// sine (1 except for yarn).
func frequencies(a AnglesArgs) (freq []float64, amplitude float64) {
	freq = make([]float64, a.HD/2)
	for j := range freq {
		freq[j] = math.Pow(float64(a.Theta), -2*float64(j)/float64(a.HD))
	}
	factor, original := float64(a.Factor), float64(a.Original)
	switch a.Scaling {
	case Linear: // position interpolation, Chen et al., arXiv 2306.15595
		for j := range freq {
			freq[j] /= factor
		}
	case Llama3:
		for j, f := range freq {
			freq[j] = f * llama3Factor(2*math.Pi/f, factor, float64(a.Low), float64(a.High), original)
		}
	case Yarn:
		return yarn(freq, a)
	}
	return freq, 1
}

// llama3Factor is the scaling of Llama 3.1 (Meta's reference code): wavelengths below
// original/high keep their frequency, those above original/low have it divided by factor,
// and between them it is interpolated.
func llama3Factor(wavelength, factor, low, high, original float64) float64 {
	switch {
	case wavelength < original/high:
		return 1
	case wavelength > original/low:
		return 1 / factor
	}
	smooth := (original/wavelength - low) / (high - low)
	return (1-smooth)/factor + smooth
}

// yarn is Peng et al., arXiv 2309.00071: pairs that turn at least `fast` times over the
// original context keep their frequency, those that turn at most `slow` times have it
// divided by factor, with a linear ramp over the pair index between them (equations 17 to
// 23); cosine and sine grow by 0.1 ln(factor) + 1 (equation 22's temperature), unless they are
// given a factor of their own.
func yarn(freq []float64, a AnglesArgs) (scaled []float64, amplitude float64) {
	factor := float64(a.Factor)
	pairTurning := func(times float64) float64 {
		return float64(a.HD) * math.Log(float64(a.Original)/(times*2*math.Pi)) / (2 * math.Log(float64(a.Theta)))
	}
	first := math.Max(math.Floor(pairTurning(float64(a.Fast))), 0)
	last := math.Min(math.Ceil(pairTurning(float64(a.Slow))), float64(a.HD-1))
	if first == last {
		last += 0.001 // a ramp needs a width
	}
	for j, f := range freq {
		ramp := math.Min(math.Max((float64(j)-first)/(last-first), 0), 1)
		freq[j] = f/factor*ramp + f*(1-ramp)
	}
	amplitude = 1
	switch {
	case a.Amplitude > 0:
		amplitude = float64(a.Amplitude)
	case factor > 1:
		amplitude = 0.1*math.Log(factor) + 1
	}
	return freq, amplitude
}
