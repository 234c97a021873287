package main

import (
	"context"
	"strings"
	"testing"

	"github.com/megatrain/mtc/compiler"
	"github.com/megatrain/mtc/lang/diag"
	"github.com/megatrain/mtc/runtime/program"
)

// What a running program takes by --set without compiling again, the language takes too: a value that is
// refused in a file is refused everywhere.
func TestProgramsTakeWhatTheLanguageTakes(t *testing.T) {
	const text = `model m(D = 8, V = 16) {
  init normal(0.02)
  block layer(x) { x += up: linear(x, D) }
  forward(tokens) {
    x = wte: embed(tokens, V, D)
    layer(x)
    return head: linear(x, V)
  }
}
train { seq = 8; batch = 2 rows; clip = 1.0 }
`
	numbers := []string{"0", "-0", "1", "2", "3", "-1", "0.5", "1.5", ".5", "1.", "+5", "1_0", "1e3", "1e-3", "1E2", "1e40", "1e-50", "1e400", "0.9999999999", "nan", "inf", "true", "none", "0x10",
		"9007199254740993", "9223372036854775807", "9223372036854775808", "1 steps", "1 bytes", "1 epochs", "1 tokens", "1steps", "1 2", "(1)", "1 + 1", "\"1\"", "1K", ""}
	var settings []string
	for _, field := range []string{"steps", "epochs", "seed", "width", "clip", "lr", "data", "eval", "save", "optimizer", "nothing"} {
		for _, n := range numbers {
			settings = append(settings, field+"="+n)
		}
	}
	for _, call := range []string{"lr=constant(N)", "lr=linear(1e-3, N)", "lr=cosine(1e-3, 1, N)", "lr=cosine(peak = N)", "lr=cosine(peak = 1e-3, warmup = N)", "lr=wsd(1e-3, decay = N)",
		"lr=wsd(N)", "eval=every(N)", "eval=every(1, batches = N)", "eval=every(1, data = N)", "save=every(N)", "save=every(1, N)", "save=every(1, keep = N)",
		"optimizer=adamw(N)", "optimizer=adamw(beta2 = N)", "optimizer=adamw(eps = N)", "optimizer=adamw(decay = N)", "optimizer=adamw(0.9, decay = N)", "optimizer=N(0.9)"} {
		for _, n := range numbers {
			settings = append(settings, strings.ReplaceAll(call, "N", n))
		}
	}
	taken := 0
	for _, s := range settings {
		if !program.Settable("train."+s, true) || s == "steps=9223372036854775807" {
			continue // such steps are more tokens than can be counted, which the program's own batch decides
		}
		taken++
		l := &diag.List{}
		if _, err := compiler.Check(context.Background(), compiler.Options{Path: "m.mt", Text: []byte(text), Set: []string{"train." + s}}, l); err != nil {
			t.Errorf("a program takes `--set train.%s`, and the language does not: %v", s, err)
		}
	}
	if taken < 50 {
		t.Errorf("programs take %d of %d settings", taken, len(settings))
	}
}
