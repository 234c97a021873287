package compiler

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/megatrain/mtc/lang/diag"
)

// What the kernels of a GPU do not take is refused at its line; a CPU takes it.
func TestGPULimits(t *testing.T) {
	text := func(vocab, heads, slots, seq, rows int64) string {
		return fmt.Sprintf(`model m(D = 1024, V = %d) {
  init normal(0.02)
  block mlp(x) { return down: linear(relu2(up: linear(x, 8)), D) }
  block layer(x) {
    x += o: linear(attention(q: linear(x, D), k: linear(x, D), v: linear(x, D), heads = %d, causal), D)
    x += moe: moe(x, experts = 1024, expert = mlp(), router = topk(%d))
  }
  forward(tokens) {
    x = wte: embed(tokens, V, D)
    layer(x)
    return head: linear(x, V)
  }
}
train { seq = %d; batch = %d rows; steps = 10; lr = 1e-3 }
`, vocab, heads, slots, seq, rows)
	}
	for _, c := range []struct {
		name, text string
		micro      int64
		line, want string
	}{
		{"at the limit", text(64, 4, 1, 1024, 1<<14), 1 << 14, "", ""},
		{"a long sequence", text(64, 4, 1, 1<<22, 1), 1, "m.mt:14", "at most 4194240 tokens, and `seq` is 4194304"},
		{"a large micro-batch", text(64, 4, 1, 1024, 1<<15), 1 << 15, "m.mt:14", "this one has 32768 rows of 1024"},
		{"many heads", text(64, 512, 1, 1024, 1<<14), 1 << 14, "m.mt:5", "at most 255 heads of 16777216 tokens"},
		{"many rows of experts", text(64, 4, 200, 1024, 1<<14), 1 << 14, "m.mt:6", "16777216 tokens of 200"},
		{"a long table", text(1<<27+1, 4, 1, 1024, 8), 8, "m.mt:9", "at most 134217728 rows, and this one has 134217729"},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := &diag.List{}
			_, err := Compile(context.Background(), Options{Path: "m.mt", Text: []byte(c.text), Target: "cuda", MicroBatch: c.micro}, l)
			if c.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			d := l.Sorted()
			if len(d) == 0 || d[0].Code != "MT0405" || !strings.Contains(d[0].Message, c.want) || !strings.HasPrefix(fmt.Sprint(d[0].Span()), c.line) {
				t.Errorf("%v, want %q at %s", err, c.want, c.line)
			}
			l = &diag.List{}
			if _, err := Compile(context.Background(), Options{Path: "m.mt", Text: []byte(c.text), MicroBatch: c.micro}, l); err != nil && strings.Contains(l.Error(), "on a GPU") {
				t.Errorf("on a CPU: %v", err)
			}
		})
	}
}
