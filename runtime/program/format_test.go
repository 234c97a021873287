package program

import (
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/megatrain/mtc/runtime/engine"
	"github.com/megatrain/mtc/runtime/plan"
)

// TestFormatFollowsTheTypes: the fields of plans, and of what is bound with their tasks, are those that
// plan.Format numbers. Where they change, raise it, then run with MTC_UPDATE=1.
func TestFormatFollowsTheTypes(t *testing.T) {
	var out strings.Builder
	fmt.Fprintf(&out, "format %d\n", plan.Format)
	seen := map[reflect.Type]bool{}
	for _, v := range []any{plan.Plan{}, engine.Template{}, engine.Binding{}} {
		fields(&out, reflect.TypeOf(v), seen)
	}
	const file = "testdata/format.txt"
	had, err := os.ReadFile(file)
	if err == nil && string(had) == out.String() {
		return
	}
	first, _, _ := strings.Cut(string(had), "\n")
	raised := first != fmt.Sprintf("format %d", plan.Format)
	if os.Getenv("MTC_UPDATE") == "" || !raised {
		t.Fatalf("%s is of %q: plans are others than before, so raise plan.Format, then run with MTC_UPDATE=1; now they are\n%s", file, first, out.String())
	}
	if err := os.WriteFile(file, []byte(out.String()), 0o666); err != nil {
		t.Fatal(err)
	}
}

// fields writes a struct type of this module, and those it holds, a field a line.
func fields(out *strings.Builder, typ reflect.Type, seen map[reflect.Type]bool) {
	for typ.Kind() == reflect.Slice || typ.Kind() == reflect.Array || typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
	}
	if typ.Kind() != reflect.Struct || seen[typ] || !strings.Contains(typ.PkgPath(), "/runtime/") {
		return
	}
	seen[typ] = true
	fmt.Fprintf(out, "\n%s\n", typ)
	for i := range typ.NumField() {
		if f := typ.Field(i); f.IsExported() {
			fmt.Fprintf(out, "  %s %s\n", f.Name, f.Type)
		}
	}
	for i := range typ.NumField() {
		fields(out, typ.Field(i).Type, seen)
	}
}

// TestAnotherFormatIsRefused: whatever is asked of the program.
func TestAnotherFormatIsRefused(t *testing.T) {
	for _, args := range [][]string{nil, {"generate"}, {"info"}, {"--steps", "1"}} {
		var out, errw strings.Builder
		p := &Program{Plan: &plan.Plan{Source: "nano.mt", Format: plan.Format - 1}}
		if code := p.Run(args, &out, &errw); code != exitInput || out.Len() > 0 || !strings.Contains(errw.String(), "MT0632") {
			t.Errorf("%v: exit %d, %q, %q", args, code, out.String(), errw.String())
		}
	}
}
