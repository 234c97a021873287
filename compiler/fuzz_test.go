package compiler

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// FuzzCheck shows that no text makes a pass of the front half panic: a fault of the compiler
// would be a diagnostic of the group MT00.
func FuzzCheck(f *testing.F) {
	for _, pattern := range []string{"../models/*.mt", "testdata/*.mt", "testdata/errors/*.mt"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			f.Fatal(err)
		}
		for _, path := range files {
			text, err := os.ReadFile(path)
			if err != nil {
				f.Fatal(err)
			}
			if len(text) < 8<<10 {
				f.Add(string(text))
			}
		}
	}
	family, err := os.ReadFile("../models/llama.mt")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		o := Options{Path: "m.mt", Text: []byte(text), ReadFile: func(path string) ([]byte, error) {
			if path == "llama.mt" {
				return family, nil
			}
			return nil, fs.ErrNotExist
		}}
		for _, d := range checkOptions(o).Sorted() {
			if strings.HasPrefix(d.Code, "MT00") {
				t.Fatalf("%s %q\n%s", d.Message, d.Notes, text)
			}
		}
	})
}
