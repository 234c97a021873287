package vec

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestGenerated: the AVX2 files are what `go generate` makes of the AVX-512 ones.
func TestGenerated(t *testing.T) {
	files, err := filepath.Glob("avx512*.go")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, f := range append(files, "gen_avx2.go") {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, f), text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("go", "run", "gen_avx2.go")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, f := range []string{"avx2.go", "avx2_act.go", "avx2_row.go"} {
		have, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		want, err := os.ReadFile(filepath.Join(dir, f))
		if err != nil {
			t.Fatal(err)
		}
		if string(have) != string(want) {
			t.Errorf("%s is out of date: run go generate", f)
		}
	}
}
