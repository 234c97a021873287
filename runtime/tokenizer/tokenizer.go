// Package tokenizer turns text into token ids and back, with the rules of a tokenizer.json:
// byte-level BPE (GPT-2, Llama 3, Qwen) and BPE over characters with a fallback to bytes
// (Llama 2, Mistral, Gemma). It gives the ids that the `tokenizers` library gives, and refuses
// a file that asks for what it does not know rather than giving others.
//
// A text goes through five stages: added tokens are cut out of it (added.go); what lies
// between is normalized (normalize.go), split into words (split.go) and merged (bpe.go); a
// frame such as a first BOS is put around the result (Frame). Every id knows the byte of the
// text where it begins, so that what is learned can be said by position.
package tokenizer

import (
	"sync"
)

// Tokenizer is a loaded tokenizer. Its methods may be called from several goroutines.
type Tokenizer struct {
	name   string // of the file, for messages
	hash   string
	ids    map[string]int32 // by the file's spelling
	most   int32            // ids are below it
	tokens []string         // the file's spelling, "" where there is no token
	add    []added          // by id, zero where the token is an ordinary one
	raw    matcher          // added tokens that stand in the text as it is
	normal matcher          // added tokens that stand in normalized text
	norm   []normalizer
	split  []splitter
	model  *bpe // nil: tokens are bytes
	prefix []int32
	suffix []int32
	dec    decoder
	pool   sync.Pool
}

// ByteVocab is the vocabulary of the tokenizer Bytes.
const ByteVocab = 256

// Bytes is the tokenizer whose tokens are the bytes of a text.
func Bytes() *Tokenizer { return &Tokenizer{name: "bytes", hash: "bytes"} }

// Name is what the tokenizer was loaded from.
func (t *Tokenizer) Name() string { return t.name }

// Hash names the tokenizer: equal hashes give equal ids.
func (t *Tokenizer) Hash() string { return t.hash }

// IsBytes says whether tokens are bytes.
func (t *Tokenizer) IsBytes() bool { return t.model == nil }

// Vocab is one more than the largest id.
func (t *Tokenizer) Vocab() int64 {
	if t.IsBytes() {
		return ByteVocab
	}
	return int64(len(t.tokens))
}

// ID is the id of a token in the file's spelling, -1 when there is none.
func (t *Tokenizer) ID(token string) int32 {
	if id, ok := t.ids[token]; ok {
		return id
	}
	return -1
}

// Special says whether an id is a special token, such as one that ends a turn.
func (t *Tokenizer) Special(id int32) bool {
	return id >= 0 && int(id) < len(t.add) && t.add[id].special
}

// Token is the spelling of an id in the file, "" when there is none.
func (t *Tokenizer) Token(id int32) string {
	if id < 0 || int(id) >= len(t.tokens) {
		return ""
	}
	return t.tokens[id]
}

// Encode gives the ids of a text, without a frame.
func (t *Tokenizer) Encode(text string) []int32 {
	ids, _ := t.run(text, false)
	return ids
}

// EncodeSpans gives the ids of a text and the byte where each begins. A token that a
// normalizer made out of nothing begins where the next character does.
func (t *Tokenizer) EncodeSpans(text string) (ids, starts []int32) { return t.run(text, true) }

// Frame puts around ids what the tokenizer puts around a text, such as a BOS. A prefix that
// is already there is not put a second time.
func (t *Tokenizer) Frame(ids []int32) []int32 {
	out := make([]int32, 0, len(t.prefix)+len(ids)+len(t.suffix))
	if !begins(ids, t.prefix) {
		out = append(out, t.prefix...)
	}
	out = append(out, ids...)
	if !ends(ids, t.suffix) {
		out = append(out, t.suffix...)
	}
	return out
}

// Prefix is the number of ids that Frame puts before these.
func (t *Tokenizer) Prefix(ids []int32) int {
	if begins(ids, t.prefix) {
		return 0
	}
	return len(t.prefix)
}

func begins(ids, with []int32) bool {
	return len(ids) >= len(with) && equal(ids[:len(with)], with)
}

func ends(ids, with []int32) bool {
	return len(ids) >= len(with) && equal(ids[len(ids)-len(with):], with)
}

func equal(a, b []int32) bool {
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

func (t *Tokenizer) run(text string, track bool) (ids, starts []int32) {
	if t.IsBytes() {
		ids = make([]int32, len(text))
		for i := range ids {
			ids[i] = int32(text[i])
		}
		if track {
			starts = make([]int32, len(text))
			for i := range starts {
				starts[i] = int32(i)
			}
		}
		return ids, starts
	}
	e, _ := t.pool.Get().(*encoder)
	if e == nil {
		e = &encoder{t: t, cache: map[string][]sym{}}
	}
	e.track, e.ids, e.starts = track, make([]int32, 0, len(text)/3+8), nil
	e.text(text)
	ids, starts = e.ids, e.starts
	e.ids, e.starts = nil, nil
	t.pool.Put(e)
	return ids, starts
}

// encoder is the work memory of one text at a time.
type encoder struct {
	t      *Tokenizer
	track  bool
	ids    []int32
	starts []int32
	cache  map[string][]sym // words and their symbols
	work   merger
}

// text cuts out added tokens, before and after normalizing.
func (e *encoder) text(text string) {
	t := e.t
	t.raw.each(piece{s: text}, func(p piece, id int32) {
		if id >= 0 {
			e.put(id, p.from(0))
			return
		}
		for _, n := range t.norm {
			p = n.apply(p, e.track)
		}
		t.normal.each(p, func(p piece, id int32) {
			if id >= 0 {
				e.put(id, p.from(0))
				return
			}
			e.words(p, t.split)
		})
	})
}

// words splits a piece by the remaining steps and merges what they give.
func (e *encoder) words(p piece, steps []splitter) {
	if p.s == "" {
		return
	}
	if len(steps) == 0 {
		e.word(p)
		return
	}
	steps[0].split(p, e.track, func(p piece) { e.words(p, steps[1:]) })
}

// cacheWord is the longest word that is worth remembering, cacheSize how many are.
const (
	cacheWord = 64
	cacheSize = 1 << 15
)

func (e *encoder) word(p piece) {
	syms, ok := e.cache[p.s]
	if !ok {
		syms = e.t.model.word(p.s, &e.work)
		if len(p.s) <= cacheWord {
			if len(e.cache) >= cacheSize {
				clear(e.cache)
			}
			syms = append([]sym(nil), syms...)
			// The key must not keep a whole text alive.
			e.cache[string(append([]byte(nil), p.s...))] = syms
		}
	}
	at := 0
	for _, s := range syms {
		e.put(s.id, p.fromIf(at, e.track))
		at += int(s.len)
	}
}

func (e *encoder) put(id int32, from int) {
	e.ids = append(e.ids, id)
	if e.track {
		if n := len(e.starts); n > 0 {
			from = max(from, int(e.starts[n-1])) // two added tokens may take the same white space
		}
		e.starts = append(e.starts, int32(from))
	}
}
