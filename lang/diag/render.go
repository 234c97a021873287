package diag

import "io"

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
	for _, d := range l.Sorted() {
		switch style {
		case JSON:
			writeJSON(w, d)
		case Short:
			writeShort(w, d)
		default:
			writeText(w, d)
		}
	}
}
