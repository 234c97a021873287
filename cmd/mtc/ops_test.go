package main

import (
	"context"
	"strings"
	"testing"

	"github.com/megatrain/mtc/compiler"
	"github.com/megatrain/mtc/lang/diag"
	"github.com/megatrain/mtc/runtime/ops/all"
)

// TestOpExamplesCompile: the example of each op that can be called checks without findings, and `mtc
// ops` shows its signature, every parameter and what the example gives.
func TestOpExamplesCompile(t *testing.T) {
	for _, d := range all.All() {
		if d.Hidden {
			continue
		}
		var l diag.List
		text := exampleText(d)
		if _, err := compiler.Check(context.Background(), compiler.Options{Path: "example.mt", Text: []byte(text)}, &l); err != nil || l.Len() > 0 {
			var b strings.Builder
			diag.Render(&b, &l, diag.Text)
			t.Errorf("%s: the example does not check: %v\n%s", d.Name, err, b.String())
			continue
		}
		code, out, _ := call("ops", d.Name)
		if code != exitOK || !strings.Contains(out, signature(d)) || !strings.Contains(out, d.Example) || !strings.Contains(out, "gives [B, T") {
			t.Errorf("mtc ops %s: exit %d\n%s", d.Name, code, out)
		}
		for _, p := range d.Params {
			if !strings.Contains(out, "\n  "+p.Name+" ") {
				t.Errorf("mtc ops %s does not show `%s`", d.Name, p.Name)
			}
		}
	}
}
