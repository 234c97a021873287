package moe

import "math"

// orderKey is a number that ascends with x; that of NaN is the lowest. -0 equals 0.
func orderKey(x float32) uint32 {
	if x != x {
		return 0
	}
	bits := math.Float32bits(x + 0)
	if x == 0 {
		bits = 0
	}
	if bits>>31 != 0 {
		return ^bits
	}
	return bits | 1<<31
}

// kth is the k-th highest key, k from 1, and how many of those equal to it belong to the k
// highest. With fewer than k keys it is the lowest there is and all of its equals.
func kth(keys []uint32, k int64) (key uint32, ties int64) {
	if int64(len(keys)) < k {
		k = int64(len(keys))
	}
	var prefix, mask uint32
	left := k
	for shift := 24; shift >= 0; shift -= 8 {
		var count [256]int64
		for _, x := range keys {
			if x&mask == prefix {
				count[x>>shift&255]++
			}
		}
		for d := 255; d >= 0; d-- {
			if left <= count[d] {
				prefix |= uint32(d) << shift
				break
			}
			left -= count[d]
		}
		mask |= 255 << shift
	}
	return prefix, left
}
