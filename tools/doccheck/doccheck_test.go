// Package doccheck holds the documents to the files they show and link to.
package doccheck

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const root = "../.."

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestReadmeShowsNanoWhole(t *testing.T) {
	if !strings.Contains(read(t, "README.md"), strings.TrimSpace(read(t, "models/nano.mt"))) {
		t.Error("README.md does not show models/nano.mt as it is")
	}
}

func TestReadmeShowsGeneratedLines(t *testing.T) {
	generated := read(t, "codegen/testdata/golden/nano/template_layer_gen.go")
	shown := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(read(t, "README.md"), -1)
	if len(shown) == 0 {
		t.Fatal("README.md shows no generated Go")
	}
	for _, block := range shown {
		for _, line := range strings.Split(strings.TrimSpace(block[1]), "\n") {
			if !strings.Contains(generated, strings.TrimSpace(line)) {
				t.Errorf("README.md shows %q, which is not in the generated layer", line)
			}
		}
	}
}

var link = regexp.MustCompile(`\]\(([^)#]+)(#[^)]*)?\)`)

func TestLinksLeadSomewhere(t *testing.T) {
	var docs []string
	err := filepath.WalkDir(filepath.Join(root, "docs"), func(path string, _ os.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, ".md") {
			docs = append(docs, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, doc := range append(docs, filepath.Join(root, "README.md")) {
		text, err := os.ReadFile(doc)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range link.FindAllStringSubmatch(string(text), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			if _, err := os.Stat(filepath.Join(filepath.Dir(doc), m[1])); err != nil {
				t.Errorf("%s links to %s, which is not there", doc, m[1])
			}
		}
	}
}
