package program

// window is what a model reads while it generates: at most seq tokens, at the positions from 0
// on, whose keys and values lie in the caches. Positions are part of what lies there, so old
// tokens cannot just be dropped from the front: when no position is left, the last half of the
// tokens is read again from position 0. That costs one prefill of seq/2 tokens for every seq/2
// tokens made, and what is made depends on the tokens alone.
type window struct {
	seq    int
	tokens []int32 // by position
	// infer reads tokens from a position on and returns the logits after the last one
	// (engine.Infer).
	infer func(tokens []int32, pos int) ([]float32, error)
}

// full says that the next token has no position.
func (w *window) full() bool { return len(w.tokens) == w.seq }

// add reads at most seq more tokens and returns the logits after them.
func (w *window) add(tokens ...int32) ([]float32, error) {
	pos := len(w.tokens)
	w.tokens = append(w.tokens, tokens...)
	if len(w.tokens) > w.seq {
		keep := max(1, w.seq/2)
		w.tokens = append([]int32(nil), w.tokens[len(w.tokens)-keep:]...)
		pos = 0
	}
	return w.infer(w.tokens[pos:], pos)
}
