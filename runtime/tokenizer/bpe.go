package tokenizer

import "unicode/utf8"

// bpe merges the symbols of a word pair by pair, the pair of the lowest rank first and of
// equal ones the leftmost (Sennrich, Haddow, Birch, arXiv 1508.07909).
type bpe struct {
	byteLevel bool
	first     [256]int32       // id of a byte (byteLevel) or of an ASCII character; -1: none
	chars     map[rune]int32   // id of another character
	merges    map[uint64]merge // by pair
	whole     map[string]int32 // words that are tokens are not merged: ignore_merges; else nil
	unk       int32            // for characters without a token; -1: they are left out
	fuse      bool             // of neighbouring unknown characters one is kept
	bytes     [256]int32       // tokens of bytes, for characters without a token
	fallback  bool
}

type merge struct{ rank, id int32 }

// sym is a symbol of a word: a token, and how many bytes of the word it stands for.
type sym struct{ id, len int32 }

func pair(a, b int32) uint64 { return uint64(uint32(a))<<32 | uint64(uint32(b)) }

// shortWord is up to how many symbols a plain scan for the next merge is quicker than a heap.
const shortWord = 48

// word gives the symbols of a word; they are valid until the next call with the same merger.
func (b *bpe) word(s string, w *merger) []sym {
	if id, ok := b.whole[s]; ok {
		w.syms = append(w.syms[:0], sym{id, int32(len(s))})
		return w.syms
	}
	b.symbols(s, w)
	if len(w.syms) <= shortWord {
		w.scan(b.merges)
	} else {
		w.heap(b.merges)
	}
	return w.syms
}

// symbols are the characters, or bytes, of a word.
func (b *bpe) symbols(s string, w *merger) {
	w.syms = w.syms[:0]
	unk := int32(0) // bytes of unknown characters that wait
	flush := func() {
		if unk > 0 {
			w.syms = append(w.syms, sym{b.unk, unk})
			unk = 0
		}
	}
	for i := 0; i < len(s); {
		id, n := int32(-1), 1
		if b.byteLevel || s[i] < utf8.RuneSelf {
			id = b.first[s[i]]
		} else {
			var r rune
			r, n = utf8.DecodeRuneInString(s[i:])
			if c, ok := b.chars[r]; ok && !(r == utf8.RuneError && n == 1) {
				id = c
			}
		}
		switch {
		case id >= 0:
			flush()
			w.syms = append(w.syms, sym{id, int32(n)})
		case b.fallback && !b.byteLevel:
			flush()
			for _, c := range []byte(s[i : i+n]) {
				w.syms = append(w.syms, sym{b.bytes[c], 1})
			}
		case b.unk >= 0:
			if !b.fuse {
				flush()
			}
			unk += int32(n)
		}
		i += n
	}
	flush()
}

// merger is the work memory of a word.
type merger struct {
	syms  []sym
	ranks []merge
	links []link
	queue queue
}

// none is a pair that does not merge.
var none = merge{rank: 1<<31 - 1, id: -1}

func find(merges map[uint64]merge, a, b int32) merge {
	if m, ok := merges[pair(a, b)]; ok {
		return m
	}
	return none
}

// scan merges a short word.
func (w *merger) scan(merges map[uint64]merge) {
	w.ranks = w.ranks[:0]
	for i := 1; i < len(w.syms); i++ {
		w.ranks = append(w.ranks, find(merges, w.syms[i-1].id, w.syms[i].id))
	}
	for {
		best, at := none.rank, -1
		for i, m := range w.ranks {
			if m.rank < best {
				best, at = m.rank, i
			}
		}
		if at < 0 {
			return
		}
		w.syms[at] = sym{w.ranks[at].id, w.syms[at].len + w.syms[at+1].len}
		w.syms = append(w.syms[:at+1], w.syms[at+2:]...)
		w.ranks = append(w.ranks[:at], w.ranks[at+1:]...)
		if at < len(w.ranks) {
			w.ranks[at] = find(merges, w.syms[at].id, w.syms[at+1].id)
		}
		if at > 0 {
			w.ranks[at-1] = find(merges, w.syms[at-1].id, w.syms[at].id)
		}
	}
}

// link joins a symbol to the ones beside it; -1: none.
type link struct{ prev, next int32 }

// waiting is a pair that may merge, if it is still there when its turn comes.
type waiting struct {
	merge
	at int32
}

// queue is a binary heap of pairs, the next to merge first.
type queue []waiting

func (q queue) less(i, j int) bool {
	return q[i].rank < q[j].rank || q[i].rank == q[j].rank && q[i].at < q[j].at
}

func (q queue) down(i int) {
	for {
		c := 2*i + 1
		if c >= len(q) {
			return
		}
		if c+1 < len(q) && q.less(c+1, c) {
			c++
		}
		if !q.less(c, i) {
			return
		}
		q[i], q[c] = q[c], q[i]
		i = c
	}
}

func (q *queue) push(x waiting) {
	*q = append(*q, x)
	h := *q
	for i := len(h) - 1; i > 0 && h.less(i, (i-1)/2); i = (i - 1) / 2 {
		h[i], h[(i-1)/2] = h[(i-1)/2], h[i]
	}
}

func (q *queue) pop() waiting {
	h := *q
	top := h[0]
	h[0] = h[len(h)-1]
	*q = h[:len(h)-1]
	q.down(0)
	return top
}

// heap merges a long word in n log n steps.
func (w *merger) heap(merges map[uint64]merge) {
	n := len(w.syms)
	w.links = w.links[:0]
	w.queue = w.queue[:0]
	for i := range n {
		w.links = append(w.links, link{int32(i) - 1, int32(i) + 1})
		if i > 0 {
			if m := find(merges, w.syms[i-1].id, w.syms[i].id); m.id >= 0 {
				w.queue = append(w.queue, waiting{m, int32(i) - 1})
			}
		}
	}
	w.links[n-1].next = -1
	for i := len(w.queue)/2 - 1; i >= 0; i-- {
		w.queue.down(i)
	}
	for len(w.queue) > 0 {
		top := w.queue.pop()
		at := top.at
		next := w.links[at].next
		if w.syms[at].len == 0 || next < 0 || find(merges, w.syms[at].id, w.syms[next].id) != top.merge {
			continue // merged in the meantime
		}
		w.syms[at] = sym{top.id, w.syms[at].len + w.syms[next].len}
		w.syms[next].len = 0
		after := w.links[next].next
		w.links[at].next = after
		if after >= 0 {
			w.links[after].prev = at
			if m := find(merges, top.id, w.syms[after].id); m.id >= 0 {
				w.queue.push(waiting{m, at})
			}
		}
		if prev := w.links[at].prev; prev >= 0 {
			if m := find(merges, w.syms[prev].id, top.id); m.id >= 0 {
				w.queue.push(waiting{m, prev})
			}
		}
	}
	keep := w.syms[:0]
	for _, s := range w.syms {
		if s.len > 0 {
			keep = append(keep, s)
		}
	}
	w.syms = keep
}
