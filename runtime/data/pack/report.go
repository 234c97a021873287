package pack

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/megatrain/mtc/runtime/telemetry"
)

// Meter prints a line of progress every two seconds.
func Meter(w io.Writer) func(Progress) {
	began := time.Now()
	last := began
	return func(p Progress) {
		if now := time.Now(); now.Sub(last) >= 2*time.Second {
			last = now
			rate := float64(p.Bytes) / now.Sub(began).Seconds()
			fmt.Fprintf(w, "packed %s of %s, %d documents, %d tokens, %.1f MB/s\n",
				telemetry.Bytes(p.Bytes), telemetry.Bytes(p.Of), p.Documents, p.Tokens, rate/1e6)
		}
	}
}

// Print says what was packed into the folder out, and what was left out and why.
func (r *Result) Print(w io.Writer, out string, took time.Duration) {
	m := &r.Manifest
	kind := "text"
	if m.Apart {
		kind = "documents apart"
	}
	fmt.Fprintf(w, "packed     %s: %d documents, %d tokens (u%d) in %s\n", out, m.Documents, m.Tokens, 8*m.Width, plural(len(m.Shards), "shard"))
	fmt.Fprintf(w, "learned    %d tokens, %.1f %% (loss: %s; %s)\n", m.Learned, 100*float64(m.Learned)/float64(m.Tokens), m.Loss, kind)
	fmt.Fprintf(w, "tokenizer  %s (%s), vocabulary %d\n", m.Tokenizer.Name, m.Tokenizer.Hash, m.Tokenizer.Vocab)
	fmt.Fprintf(w, "longest    %d tokens\n", m.Longest)
	fmt.Fprintf(w, "read       %s of %s in %.1f s\n", plural(int(m.Source.Records), "record"), plural(int(m.Source.Files), "file"), took.Seconds())
	if r.Hidden > 0 || r.Empty > 0 {
		fmt.Fprintf(w, "passed     %d hidden, %d empty\n", r.Hidden, r.Empty)
	}
	left := slices.Clone(r.Left)
	slices.SortStableFunc(left, func(a, b Left) int { return strings.Compare(a.Reason, b.Reason) })
	for _, l := range left {
		fmt.Fprintf(w, "left out   %d: %s\n", l.Count, l.Reason)
		for _, c := range l.Cases {
			fmt.Fprintf(w, "             %s\n", c)
		}
		if more := l.Count - int64(len(l.Cases)); more > 0 {
			fmt.Fprintf(w, "             and %d more\n", more)
		}
	}
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
