package data

// roomy is a set of numbers below n that finds the smallest one not below another.
type roomy struct {
	n   int // a power of two
	has []int32
}

func newRoomy(n int) *roomy {
	p := 1
	for p < n {
		p *= 2
	}
	return &roomy{n: p, has: make([]int32, 2*p)}
}

// set enters or removes a number; entering it twice is as once.
func (t *roomy) set(i int, in bool) {
	v := int32(0)
	if in {
		v = 1
	}
	i += t.n
	if t.has[i] == v {
		return
	}
	t.has[i] = v
	for i /= 2; i > 0; i /= 2 {
		t.has[i] = t.has[2*i] + t.has[2*i+1]
	}
}

// atLeast is the smallest number of at least i, -1: none.
func (t *roomy) atLeast(i int) int {
	if i >= t.n {
		return -1
	}
	if at := i + t.n; t.has[at] > 0 {
		return i
	}
	// Up to the first subtree to the right that has one, then down to its smallest.
	at := i + t.n
	for at > 1 {
		if at%2 == 0 && t.has[at+1] > 0 {
			at++
			for at < t.n {
				if at *= 2; t.has[at] == 0 {
					at++
				}
			}
			return at - t.n
		}
		at /= 2
	}
	return -1
}
