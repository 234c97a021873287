package tokenizer

import (
	"strings"
	"testing"
)

func BenchmarkEncode(b *testing.B) {
	text := strings.Join(texts(b), "\n")
	for _, name := range styles {
		tok := load(b, name)
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				tok.Encode(text)
			}
		})
	}
}

// BenchmarkLongWord is a word of a megabyte.
func BenchmarkLongWord(b *testing.B) {
	text := strings.Repeat("abcdefghij", 100_000)
	tok := load(b, "llama2")
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		tok.Encode(text)
	}
}
