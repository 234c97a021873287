package data

import "math/bits"

// mix is the finalizer of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014): a bijection of 64-bit
// words in which every input bit affects every output bit.
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// key derives an independent word from a seed, an epoch and a purpose.
func key(seed int64, epoch, purpose uint64) uint64 {
	const golden = 0x9e3779b97f4a7c15
	return mix(mix(mix(uint64(seed)+golden)+epoch*golden+1) + purpose*golden + 2)
}

// Purposes of keys.
const (
	forOrder = iota
	forOffset
)

// rounds of the Feistel network; four are enough for a pseudo-random permutation with a good
// round function (Luby and Rackoff), two more cost nothing here.
const rounds = 6

// permute maps i in [0, n) to [0, n), one to one, differently for each key. It is a Feistel
// network on the smallest even number of bits that holds n, walked along its cycle until it
// falls below n (Black and Rogaway, CT-RSA 2002): under 4 passes on average.
func permute(i, n, key uint64) uint64 {
	half := (bits.Len64(n-1) + 1) / 2
	if half == 0 {
		return 0 // n = 1
	}
	mask := uint64(1)<<half - 1
	for {
		l, r := i>>half, i&mask
		for round := uint64(0); round < rounds; round++ {
			l, r = r, l^mix(r+key+round*0x9e3779b97f4a7c15)&mask
		}
		if i = l<<half | r; i < n {
			return i
		}
	}
}
