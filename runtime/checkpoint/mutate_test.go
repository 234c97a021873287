package checkpoint

import (
	"errors"
	"math/rand"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/megatrain/mtc/runtime/fault"
	"github.com/megatrain/mtc/runtime/plan"
)

// withRouter is newMemory with a router, whose state is the last of a checkpoint's files.
func withRouter(fill byte) *memory {
	m := newMemory(fill)
	m.plan.Routers = []plan.Router{{Name: "layer[0].moe", State: 9, Kept: []plan.RouterPart{{Name: "bias", Off: 8, Elems: 4, Bytes: 4}}}}
	m.bufs[9] = make([]byte, 64)
	for i := range 4 {
		m.bufs[9][8+4*i] = fill
	}
	return m
}

// TestEveryChangeOfAFileIsFound: bits that turn, bytes that are cut off, put in or swapped anywhere in
// any file of a checkpoint are found before a run goes on, and the error names a file. Of the
// manifest some bytes say nothing: then all that is loaded is what was saved.
func TestEveryChangeOfAFileIsFound(t *testing.T) {
	dir := t.TempDir()
	m := withRouter(7)
	path, err := Save(dir, state(3), FromSlabs(m.plan, m.view), 0)
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewSource(1))
	changes := []struct {
		name string
		do   func(b []byte) []byte
	}{
		{"one bit", func(b []byte) []byte { b[rng.Intn(len(b))] ^= 1 << rng.Intn(8); return b }},
		{"a byte", func(b []byte) []byte { b[rng.Intn(len(b))] = byte(rng.Intn(256)); return b }},
		{"cut short", func(b []byte) []byte { return b[:rng.Intn(len(b))] }},
		{"cut in front", func(b []byte) []byte { return b[1+rng.Intn(len(b)-1):] }},
		{"a byte put in", func(b []byte) []byte {
			k := rng.Intn(len(b) + 1)
			return append(b[:k:k], append([]byte{byte(rng.Intn(256))}, b[k:]...)...)
		}},
		{"a stretch of zeros", func(b []byte) []byte { k := rng.Intn(len(b)); clear(b[k:min(len(b), k+1+rng.Intn(64))]); return b }},
		{"two stretches swapped", func(b []byte) []byte {
			n := min(16, len(b)/2)
			x, y := b[:n], b[len(b)-n:]
			for i := range x {
				x[i], y[i] = y[i], x[i]
			}
			return b
		}},
	}
	for _, name := range []string{WeightsFile, OptimizerFile, RouterFile, stateFile, manifestFile} {
		file := filepath.Join(path, name)
		whole, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range changes {
			for range 25 {
				text := c.do(append([]byte(nil), whole...))
				if string(text) == string(whole) {
					continue
				}
				if err := os.WriteFile(file, text, 0o666); err != nil {
					t.Fatal(err)
				}
				to := withRouter(99)
				got, err := Latest(dir)
				if err == nil && (!got.Whole() || got.State.Step != 3) {
					err = fault.New("MT0621", file, "refused as it is no whole one")
				}
				if err == nil {
					err = got.LoadSlabs(to.plan, to.view, true)
				}
				if err == nil {
					same := name == manifestFile
					for id := range m.bufs {
						same = same && string(to.bufs[id]) == string(m.bufs[id])
					}
					if !same {
						t.Errorf("%s, %s: nothing is said", name, c.name)
					}
					continue
				}
				var f *fault.Error
				if !errors.As(err, &f) || f.Code != "MT0621" || name != manifestFile && !strings.Contains(err.Error(), name) {
					t.Errorf("%s, %s: %v", name, c.name, err)
				}
			}
		}
		if err := os.WriteFile(file, whole, 0o666); err != nil {
			t.Fatal(err)
		}
	}
}
