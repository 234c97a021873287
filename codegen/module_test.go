package codegen

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestFindModuleFindsThisCheckout(t *testing.T) {
	t.Setenv("MTC_SOURCE", "")
	m, err := FindModule("")
	if err != nil {
		t.Fatal(err)
	}
	want, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	if m.Dir != want {
		t.Errorf("source in %q, want %q", m.Dir, want)
	}
}

func TestFindModuleSaysWhatToDo(t *testing.T) {
	_, err := FindModule(t.TempDir())
	if e, ok := err.(*ModuleError); !ok || !strings.Contains(e.Message, "--mtc-source") || !strings.Contains(e.Help(), "MTC_SOURCE") {
		t.Errorf("--mtc-source on an empty folder: %v", err)
	}
	t.Setenv("MTC_SOURCE", filepath.Join(t.TempDir(), "nowhere"))
	if _, err := FindModule(""); err == nil || !strings.HasPrefix(err.Error(), "MTC_SOURCE: ") {
		t.Errorf("MTC_SOURCE on a missing folder: %v", err)
	}
}

// TestSourceThatCannotBeRead is told from one that is not there: the former is mended otherwise.
func TestSourceThatCannotBeRead(t *testing.T) {
	module := "module " + modulePath + "\n"
	for name, files := range map[string]map[string]string{
		"go.mod": {"go.mod/is/a/folder": ""},
		"go.sum": {"go.mod": module},
		"parse":  {"go.mod": module, "go.sum": "", "runtime/program/x.go": "not Go"},
	} {
		_, err := FindModule(tree(t, files))
		e, ok := err.(*ModuleError)
		if !ok || e.Err == nil || strings.Contains(e.Message, "does not hold") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// tree writes files under a new folder.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestModuleNeedsOnlyWhatProgramsImport(t *testing.T) {
	dir := tree(t, map[string]string{
		"go.mod": "module " + modulePath + "\n\ngo 1.26\n\nrequire (\n\texample.org/used v1.2.3\n\texample.org/unused v0.1.0 // indirect\n)\n",
		"go.sum": "example.org/used v1.2.3 h1:a=\nexample.org/used v1.2.3/go.mod h1:b=\n" +
			"example.org/used v1.0.0/go.mod h1:c=\nexample.org/unused v0.1.0 h1:d=\n",
		"runtime/program/p.go":      "package program\n\nimport _ \"" + modulePath + "/runtime/x\"\n",
		"runtime/program/p_test.go": "package program\n\nimport _ \"example.org/unused\"\n",
		"runtime/x/x.go":            "package x\n\nimport (\n\t_ \"example.org/used/sub\"\n\t_ \"fmt\"\n)\n",
		"runtime/device/gpu/y.go":   "package gpu\n\nimport _ \"example.org/unused\"\n",
		"lang/y.go":                 "package y\n\nimport _ \"example.org/unused\"\n",
	})
	m, err := FindModule(dir)
	if err != nil {
		t.Fatal(err)
	}
	mod, sum := m.files("Some model!")
	wantMod := "module mtcprogram/somemodel\n\ngo 1.26.0\n\nrequire " + modulePath + " v0.0.0\n\n" +
		"require (\n\texample.org/used v1.2.3 // indirect\n)\n\nreplace " + modulePath + " => " + dir + "\n"
	if string(mod) != wantMod {
		t.Errorf("go.mod\n%s\nwant\n%s", mod, wantMod)
	}
	if want := "example.org/used v1.2.3 h1:a=\nexample.org/used v1.2.3/go.mod h1:b=\n"; string(sum) != want {
		t.Errorf("go.sum\n%s\nwant\n%s", sum, want)
	}
}

func TestReleasedVersionNeedsNoReplace(t *testing.T) {
	mod, _ := (&Module{Version: "v1.2.3", Go: "1.26.0"}).files("nano")
	want := "module mtcprogram/nano\n\ngo 1.26.0\n\nrequire " + modulePath + " v1.2.3\n"
	if string(mod) != want {
		t.Errorf("go.mod\n%s\nwant\n%s", mod, want)
	}
	for v, want := range map[string]bool{"v1.2.3": true, "(devel)": false, "": false, "v0.0.0-20260101000000-abcdefabcdef+dirty": false} {
		if released(v) != want {
			t.Errorf("released(%q) is not %t", v, want)
		}
	}
}
