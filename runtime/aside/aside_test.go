package aside

import (
	"os"
	"path/filepath"
	"testing"
)

// What is being written stays, what was left is removed, and nothing else is touched.
func TestOnlyWhatNobodyWritesIsRemoved(t *testing.T) {
	dir := t.TempDir()
	put := func(path string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	put(filepath.Join(dir, ".half-1-0", "x"))
	put(filepath.Join(dir, ".other-1-0", "x"))
	a, err := Make(dir, ".half-")
	if err != nil {
		t.Fatal(err)
	}
	put(filepath.Join(a.Path, "x"))
	b, err := Make(dir, ".half-")
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]bool{".half-1-0": false, ".other-1-0/x": true, filepath.Base(a.Path) + "/x": true, filepath.Base(b.Path): true} {
		if _, err := os.Stat(filepath.Join(dir, path)); (err == nil) != want {
			t.Errorf("%s: %v, wanted there %t", path, err, want)
		}
	}
	if err := a.Move(filepath.Join(dir, "place")); err != nil {
		t.Fatal(err)
	}
	a.Remove()
	b.Remove()
	if list, err := os.ReadDir(dir); err != nil || len(list) != 2 {
		t.Errorf("%v, %v", list, err)
	}
}
