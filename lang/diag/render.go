package diag

import (
	"bytes"
	"io"
)

// Style is how diagnostics are printed.
type Style string

// The styles.
const (
	Text  Style = "text"  // with the source lines and carets
	Short Style = "short" // one line each, file:line:col: error[CODE]: message
	JSON  Style = "json"  // one object a line
)

// Render prints the list, sorted, in a style.
func Render(w io.Writer, l *List, style Style) {
	var b bytes.Buffer
	for i, d := range l.Sorted() {
		switch style {
		case JSON:
			writeJSON(&b, d)
		case Short:
			writeShort(&b, d)
		default:
			if i > 0 {
				b.WriteByte('\n')
			}
			writeText(&b, d)
		}
	}
	_, _ = w.Write(b.Bytes()) // an output that is gone cannot be told so
}
