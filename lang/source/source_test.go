package source

import "testing"

func TestPosition(t *testing.T) {
	f := New("m.mt", []byte("ab\r\nä日c\n\nd"))
	for _, c := range []struct{ off, line, col int }{
		{-5, 1, 1}, {0, 1, 1}, {2, 1, 3}, {4, 2, 1}, {6, 2, 2}, {9, 2, 3}, {10, 2, 4}, {11, 3, 1}, {12, 4, 1}, {13, 4, 2}, {99, 4, 2},
	} {
		if line, col := f.Position(c.off); line != c.line || col != c.col {
			t.Errorf("Position(%d) = %d:%d, want %d:%d", c.off, line, col, c.line, c.col)
		}
	}
	for n, want := range []string{"", "ab", "ä日c", "", "d", ""} {
		if got := f.Line(n); got != want {
			t.Errorf("Line(%d) = %q, want %q", n, got, want)
		}
	}
	if f.Lines() != 4 {
		t.Errorf("%d lines, want 4", f.Lines())
	}
}

func TestSpan(t *testing.T) {
	f, g := New("f.mt", []byte("x += y\n")), New("g.mt", []byte("z"))
	a, b := Span{f, 0, 1}, Span{f, 5, 6}
	for _, c := range []struct {
		got, want Span
	}{
		{a.To(b), Span{f, 0, 6}}, {b.To(a), Span{f, 0, 6}}, {a.To(Span{}), a}, {Span{}.To(b), b}, {a.To(Span{g, 0, 1}), a},
	} {
		if c.got != c.want {
			t.Errorf("got %v, want %v", c.got, c.want)
		}
	}
	if got := a.To(b).Text(); got != "x += y" {
		t.Errorf("text %q", got)
	}
	if b.String() != "f.mt:1:6" || b.Line() != "f.mt:1" || (Span{}).String() != "" {
		t.Errorf("%s %s", b, b.Line())
	}
}
