package diag

import (
	"fmt"
	"io"
)

func writeText(w io.Writer, d *Diagnostic) {
	fmt.Fprintf(w, "%s[%s]: %s\n", d.Severity, d.Code, d.Message)
	if at := d.Span().String(); at != "" {
		fmt.Fprintf(w, "  --> %s\n", at)
	}
	for _, n := range d.Notes {
		fmt.Fprintf(w, "  note: %s\n", n)
	}
	for _, h := range d.Help {
		fmt.Fprintf(w, "  help: %s\n", h)
	}
}
