package routers

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestListOfProofs: docs/reference/moe.md says which test shows what; each is there, and each test of whole models
// is in the list.
func TestListOfProofs(t *testing.T) {
	text := mustRead(t, filepath.Join("..", "..", "docs", "reference", "moe.md"))
	_, list, ok := strings.Cut(string(text), "## What holds")
	if !ok {
		t.Fatal("the list is gone")
	}
	here, ops := testsOf(t, "."), testsOf(t, "../../runtime/ops/moe")
	for name := range testsOf(t, "../../runtime/ops/grouped") {
		ops[name] = true
	}
	lines := 0
	for _, line := range strings.Split(list, "\n") {
		cells := strings.Split(line, "|")
		if len(cells) < 6 || !strings.Contains(line, "Test") {
			continue
		}
		lines++
		for i, known := range []map[string]bool{here, ops} {
			for _, name := range testName.FindAllString(cells[3+i], -1) {
				if !known[name] {
					t.Errorf("%s is no test there", name)
				}
			}
		}
	}
	if lines < 12 {
		t.Errorf("the list has %d lines", lines)
	}
	for name := range here {
		if !strings.Contains(list, "`"+name+"`") && name != "TestBuild" && name != "TestListOfProofs" {
			t.Errorf("%s is in no line of the list", name)
		}
	}
}

var testName = regexp.MustCompile(`Test[A-Z]\w+`)

// testsOf are the names of a folder's tests.
func testsOf(t *testing.T, dir string) map[string]bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no tests in %s: %v", dir, err)
	}
	out := map[string]bool{}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`(?m)^func (Test[A-Z]\w+)\(t `).FindAllStringSubmatch(string(text), -1) {
			out[m[1]] = true
		}
	}
	return out
}
