package suggest

import "testing"

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"", "", 0},
		{"", "abc", 3},
		{"rmsnorm", "rmsnorm", 0},
		{"rmsnrom", "rmsnorm", 1}, // neighbours swapped
		{"kitten", "sitting", 3},
		{"flaw", "lawn", 2},
		{"größe", "grösse", 2},
	} {
		if got := Distance(c.a, c.b); got != c.want {
			t.Errorf("Distance(%q, %q) = %d, want %d", c.a, c.b, got, c.want)
		}
		if got := Distance(c.b, c.a); got != c.want {
			t.Errorf("Distance(%q, %q) = %d, want %d", c.b, c.a, got, c.want)
		}
	}
}

func TestNearest(t *testing.T) {
	ops := []string{"linear", "rmsnorm", "layernorm", "gelu", "relu", "relu2", "rope", "silu"}
	for _, c := range []struct{ word, want string }{
		{"linaer", "linear"},
		{"RMSNorm", "rmsnorm"},
		{"rms", "rmsnorm"},
		{"glu", "gelu"},
		{"softmax", ""},
		{"x", ""},
		{"ro", ""},
		{"rop", "rope"},
	} {
		if got := Nearest(c.word, ops); got != c.want {
			t.Errorf("Nearest(%q) = %q, want %q", c.word, got, c.want)
		}
	}
}

// TestNearestOfSeveral: an abbreviation is meant before a slip of several letters, and a
// letter left out before one that was mistaken.
func TestNearestOfSeveral(t *testing.T) {
	for _, c := range []struct {
		word, want string
		candidates []string
	}{
		{"--tok", "--tokens", []string{"--top-k", "--top-p", "--tokens", "--temperature"}},
		{"sed", "seed", []string{"seq", "seed", "save"}},
		{"sed", "seed", []string{"seed", "seq", "save"}},
		{"--to", "", []string{"--tokens", "--temperature"}},
		{"gelo", "gelu", []string{"gelu", "gelology"}},
		{"\xffab", "", []string{"tokens"}},
	} {
		if got := Nearest(c.word, c.candidates); got != c.want {
			t.Errorf("Nearest(%q, %q) = %q, want %q", c.word, c.candidates, got, c.want)
		}
	}
}

func TestHints(t *testing.T) {
	if got, want := Hint("steam", []string{"resident", "stream"}), "did you mean `stream`?"; got != want {
		t.Errorf("Hint = %q, want %q", got, want)
	}
	if got, want := HintOr("zz", []string{"stream", "resident"}), "one of `resident` and `stream`"; got != want {
		t.Errorf("HintOr = %q, want %q", got, want)
	}
	if got, want := List([]string{"c", "a", "b"}), "`a`, `b` and `c`"; got != want {
		t.Errorf("List = %q, want %q", got, want)
	}
}
