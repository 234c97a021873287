package moe

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestBuckets: edges ascend, every float lies between the edges of its bucket, and buckets ascend
// with it.
func TestBuckets(t *testing.T) {
	for b := range Buckets {
		if !(Edge(b) < Edge(b+1)) {
			t.Fatalf("bucket %d is from %v to %v", b, Edge(b), Edge(b+1))
		}
		if x := float32(Edge(b)); float64(x) != Edge(b) {
			t.Errorf("edge %d, %v, is no float", b, Edge(b))
		}
	}
	if Edge(half) != 0 || Edge(0) != -Edge(Buckets) {
		t.Errorf("the edges are not even: %v, %v, %v", Edge(0), Edge(half), Edge(Buckets))
	}
	r := rand.New(rand.NewPCG(1, 2))
	last, at := float32(math.Inf(-1)), -1
	var xs []float32
	for range 200_000 {
		x := math.Float32frombits(r.Uint32())
		if x == x {
			xs = append(xs, x)
		}
	}
	xs = append(xs, 0, float32(math.Copysign(0, -1)), 1, -1, 128, -128, 1.0/128, -1.0/128, float32(math.Inf(1)), float32(math.Inf(-1)))
	slices.Sort(xs)
	for _, x := range xs {
		b := Bucket(x)
		if b < at {
			t.Fatalf("%v is in bucket %d, and the smaller %v in %d", x, b, last, at)
		}
		if math.Abs(float64(x)) < 128 && x != 0 && (float64(x) < Edge(b) || float64(x) > Edge(b+1)) {
			t.Fatalf("%v is in bucket %d from %v to %v", x, b, Edge(b), Edge(b+1))
		}
		last, at = x, b
	}
	if Bucket(float32(math.NaN())) != -1 {
		t.Error("NaN has a bucket")
	}
	if Bucket(float32(math.Inf(1))) != Buckets-1 || Bucket(float32(math.Inf(-1))) != 0 {
		t.Error("an infinity is not in the outermost bucket")
	}
}

// TestQuantile holds the quantile against the exact order statistic: in its bucket for any
// number of values and any share.
func TestQuantile(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 300 {
		n := 1 + r.IntN(500)
		scale := math.Exp(4 * (r.Float64() - 0.5))
		xs := make([]float32, n)
		hist := make([]int32, Buckets)
		for i := range xs {
			xs[i] = float32(scale * r.NormFloat64())
			hist[Bucket(xs[i])]++
		}
		slices.Sort(xs)
		k := 1 + r.IntN(n)
		exact := xs[n-k]
		got, ok := TopQuantile(hist, float64(k))
		if b := Bucket(exact); !ok || got < Edge(b) || got > Edge(b+1) {
			t.Fatalf("%d of %d: %v, and the exact value is %v", k, n, got, exact)
		}
	}
	if _, ok := TopQuantile(make([]int32, Buckets), 3); ok {
		t.Error("nothing has a quantile")
	}
	one := make([]int32, Buckets)
	one[Bucket(2)] = 1
	if x, ok := TopQuantile(one, 50); !ok || x != 2 {
		t.Errorf("more than there are: %v", x)
	}
}

// TestKth holds the k-th highest key against sorting, with many equal ones.
func TestKth(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for range 300 {
		n := 1 + r.IntN(100)
		keys := make([]uint32, n)
		for i := range keys {
			keys[i] = orderKey(float32(r.IntN(12)-6) / 4)
		}
		k := 1 + r.IntN(n+3)
		sorted := slices.Clone(keys)
		slices.Sort(sorted)
		slices.Reverse(sorted)
		want := sorted[min(k, n)-1]
		ties := int64(0)
		for _, x := range sorted[:min(k, n)] {
			if x == want {
				ties++
			}
		}
		if key, got := kth(keys, int64(k)); key != want || got != ties {
			t.Fatalf("%d of %v: %d with %d equal, want %d with %d", k, sorted, key, got, want, ties)
		}
	}
	if orderKey(float32(math.Copysign(0, -1))) != orderKey(0) || orderKey(float32(math.NaN())) >= orderKey(float32(math.Inf(-1))) {
		t.Error("0 or NaN is out of order")
	}
}
