package tokenizer

// piece is a part of a text on its way through the stages: what it has become, and from where.
type piece struct {
	s    string
	base int     // byte of the text where it begins
	at   []int32 // byte of the text for each byte of s and its end; nil: base + i
}

// from is the byte of the text that byte i of the piece came from.
func (p piece) from(i int) int {
	if p.at == nil {
		return p.base + i
	}
	return int(p.at[i])
}

func (p piece) fromIf(i int, track bool) int {
	if !track {
		return 0
	}
	return p.from(i)
}

// cut is the part [i, j) of a piece.
func (p piece) cut(i, j int) piece {
	q := piece{s: p.s[i:j], base: p.base + i}
	if p.at != nil {
		q.at = p.at[i : j+1]
		q.base = int(p.at[i])
	}
	return q
}

// rewriting builds a changed piece.
type rewriting struct {
	of    piece
	track bool
	s     []byte
	at    []int32
}

func rewrite(p piece, track bool) *rewriting {
	return &rewriting{of: p, track: track, s: make([]byte, 0, len(p.s)+8)}
}

// put adds text that stands for what begins at byte i of the old piece.
func (r *rewriting) put(s string, i int) {
	r.s = append(r.s, s...)
	if r.track {
		from := int32(r.of.from(i))
		for range len(s) {
			r.at = append(r.at, from)
		}
	}
}

// keep adds the bytes [i, j) of the old piece.
func (r *rewriting) keep(i, j int) {
	r.s = append(r.s, r.of.s[i:j]...)
	if r.track {
		for k := i; k < j; k++ {
			r.at = append(r.at, int32(r.of.from(k)))
		}
	}
}

// done is the new piece; without track only its first byte has a place.
func (r *rewriting) done() piece {
	p := piece{s: string(r.s), base: r.of.base}
	if r.track {
		p.at = append(r.at, int32(r.of.from(len(r.of.s))))
	}
	return p
}
