package diag

import (
	"encoding/json"
	"fmt"
	"io"
)

// jsonDiag is one diagnostic as data. Lines and columns are 1-based, columns count runes;
// endLine and endCol are the place just after the span. They are 0 without a span.
type jsonDiag struct {
	Severity string      `json:"severity"`
	Code     string      `json:"code"`
	Message  string      `json:"message"`
	File     string      `json:"file"`
	Line     int         `json:"line"`
	Col      int         `json:"col"`
	EndLine  int         `json:"endLine"`
	EndCol   int         `json:"endCol"`
	Label    string      `json:"label,omitempty"`
	Related  []jsonLabel `json:"related,omitempty"`
	Notes    []string    `json:"notes"`
	Help     []string    `json:"help"`
}

// jsonLabel is a secondary span.
type jsonLabel struct {
	File    string `json:"file"`
	Line    int    `json:"line"`
	Col     int    `json:"col"`
	EndLine int    `json:"endLine"`
	EndCol  int    `json:"endCol"`
	Text    string `json:"text"`
}

func writeJSON(w io.Writer, d *Diagnostic) {
	j := jsonDiag{
		Severity: d.Severity.String(), Code: d.Code, Message: d.Message,
		Notes: append([]string{}, d.Notes...), Help: append([]string{}, d.Help...),
	}
	for i, l := range d.Labels {
		p := jsonLabel{Text: l.Text}
		if l.Span.Valid() {
			p.File = l.Span.File.Name
			p.Line, p.Col = l.Span.File.Position(l.Span.Start)
			p.EndLine, p.EndCol = l.Span.File.Position(l.Span.End)
		}
		if i == 0 {
			j.File, j.Line, j.Col, j.EndLine, j.EndCol, j.Label = p.File, p.Line, p.Col, p.EndLine, p.EndCol, p.Text
		} else {
			j.Related = append(j.Related, p)
		}
	}
	if j.File == "" {
		j.File = d.Path
	}
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(&j); err != nil {
		fmt.Fprintf(w, "{\"severity\":\"error\",\"code\":\"MT0000\",\"message\":%q}\n", err.Error())
	}
}

func writeShort(w io.Writer, d *Diagnostic) {
	at := d.Span().String()
	if at == "" {
		at = d.Path
	}
	if at != "" {
		at += ": "
	}
	fmt.Fprintf(w, "%s%s[%s]: %s\n", at, d.Severity, d.Code, d.Message)
}
