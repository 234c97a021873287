package kit

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestEntered: every kernel there is begins with entered(), on its own line; a function of a device
// does not.
func TestEntered(t *testing.T) {
	text := "__device__ void f(const Args& a) {\n}\nextern \"C\" __global__ void __launch_bounds__(256, A ? 2 : 1) k(Args a) {\n    g();\n}\n"
	want := strings.Replace(text, "k(Args a) {", "k(Args a) { entered();", 1)
	if got := Entered(text); got != want {
		t.Errorf("%s", got)
	}
	seen := 0
	err := filepath.WalkDir("../../../ops", func(path string, e fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".cu" {
			return err
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		n := strings.Count(string(b), "__global__")
		seen += n
		if got := strings.Count(Entered(string(b)), "{ entered();"); got != n {
			t.Errorf("%s: %d of %d kernels begin with entered()", path, got, n)
		}
		return nil
	})
	if err != nil || seen < 50 {
		t.Errorf("%d kernels, %v", seen, err)
	}
}
