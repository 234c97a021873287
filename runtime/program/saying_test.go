package program

import "testing"

// What ends a turn is not printed, whatever the tokens it comes in; what only looks like its
// beginning is.
func TestSayingEndsATurn(t *testing.T) {
	for _, c := range []struct {
		until, text, want string
		done              bool
	}{
		{"<|im_end|>", "hello<|im_end|>more", "hello", true},
		{"<|im_end|>", "a <| b <|im_", "a <| b <|im_", false},
		{"aab", "aaab", "a", true},
		{"", "x<|im_end|>", "x<|im_end|>", false},
	} {
		s := &saying{bytes: true, until: c.until}
		got := ""
		for i := 0; i < len(c.text) && !s.done; i++ {
			got += s.push(int32(c.text[i]))
		}
		if got += s.end(); got != c.want || s.done != c.done {
			t.Errorf("%q until %q: %q, %v", c.text, c.until, got, s.done)
		}
	}
}
