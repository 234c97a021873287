package moe

import "math"

// The histogram of an expert's logits counts them in buckets whose edges are exact floats and
// whose number follows from the bits of a logit alone, so that counts of micro-batches add up
// to those of the step whatever device makes them. An octave of |x| from 2^-7 to 2^7 has 64
// buckets; below it buckets are 2^-13 wide, above it everything is one bucket. A quantile read
// off it is off by less than a bucket: about one part in a hundred of the logit.
const (
	octaves   = 14
	perOctave = 64
	half      = (octaves + 1) * perOctave // buckets of one sign
	// Buckets is the number of buckets of one expert; they ascend with the logit.
	Buckets = 2 * half
)

// Bucket is the number of the bucket of x; -1 for NaN.
func Bucket(x float32) int {
	bits := math.Float32bits(x)
	a := bits &^ (1 << 31)
	if a > 0x7f800000 {
		return -1
	}
	const low = (127 - 7) << 23 // 2^-7
	var i int
	if a < low {
		i = int(math.Float32frombits(a) * (1 << 13))
	} else {
		i = min(perOctave+int((a-low)>>(23-6)), half-1)
	}
	if bits>>31 != 0 {
		return half - 1 - i
	}
	return half + i
}

// Edge is the lower edge of bucket b; that of Buckets is the upper edge of the last one.
func Edge(b int) float64 {
	if b < half {
		return -edge(half - b)
	}
	return edge(b - half)
}

// edge is the i-th edge from 0 upwards.
func edge(i int) float64 {
	if i < perOctave {
		return math.Ldexp(float64(i), -13)
	}
	i -= perOctave
	return math.Ldexp(1+float64(i%perOctave)/perOctave, i/perOctave-7)
}

// TopQuantile is the value above which k of the counted ones lie, read off a histogram with
// interpolation inside its bucket; ok is false when nothing was counted.
func TopQuantile(hist []int32, k float64) (x float64, ok bool) {
	above := 0.0
	last := -1
	for b := len(hist) - 1; b >= 0; b-- {
		n := float64(hist[b])
		if n == 0 {
			continue
		}
		last = b
		if above+n >= k {
			hi, lo := Edge(b+1), Edge(b)
			return hi - (hi-lo)*max(0, k-above)/n, true
		}
		above += n
	}
	if last < 0 {
		return 0, false
	}
	return Edge(last), true
}
