package fault

import "testing"

func TestShell(t *testing.T) {
	for _, c := range []struct{ word, want string }{
		{"runs/nano-2", "runs/nano-2"},
		{"../ä.mt", "../ä.mt"},
		{"my runs/a", "'my runs/a'"},
		{"it's", `'it'\''s'`},
		{"$HOME", "'$HOME'"},
		{"~", "'~'"},
		{"", "''"},
	} {
		if got := Shell(c.word); got != c.want {
			t.Errorf("%q: %s, want %s", c.word, got, c.want)
		}
	}
}
