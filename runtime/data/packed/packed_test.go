package packed

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/megatrain/mtc/runtime/fault"
)

func write(t testing.TB, vocab, shard int64, docs ...[]int32) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "p")
	w, err := Create(dir, Manifest{Loss: "all", Tokenizer: Tokenizer{"t", "0123456789abcdef", vocab}}, shard)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Abort()
	for _, d := range docs {
		learn := make([]bool, len(d))
		for i := range learn {
			learn[i] = d[i]%2 == 1
		}
		if err := w.Add(d, learn); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(Source{}); err != nil {
		t.Fatal(err)
	}
	return dir
}

var some = [][]int32{{1, 2, 3}, {7}, {5, 5, 4, 300, 1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 1, 1}, {9, 9}}

func TestWhatIsWrittenIsRead(t *testing.T) {
	for _, c := range []struct {
		vocab, shard int64
		width        int
	}{{1 << 16, 1000, 2}, {1<<16 + 1, 1000, 4}, {301, 4, 2}} {
		s, err := Open(write(t, c.vocab, c.shard, some...))
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		if s.Manifest.Width != c.width || s.Documents() != 4 || s.Manifest.Tokens != 22 || s.Manifest.Longest != 16 {
			t.Errorf("%+v", s.Manifest)
		}
		for d, want := range some {
			for from := range want {
				got, learn := make([]int32, len(want)-from), make([]bool, len(want)-from)
				if err := s.Read(int64(d), int64(from), got, learn); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(want[from:], got); diff != "" || s.Len(int64(d)) != int64(len(want)) {
					t.Errorf("document %d from %d: %s", d, from, diff)
				}
				for i := range got {
					if learn[i] != (got[i]%2 == 1) {
						t.Errorf("document %d: the mask of token %d is %v", d, from+i, learn[i])
					}
				}
			}
		}
	}
}

// A folder that cannot be finished leaves nothing, and one that is there is not overwritten.
func TestNothingIsHalfWritten(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "p")
	w, err := Create(dir, Manifest{Loss: "all", Tokenizer: Tokenizer{"t", "x", 10}}, 10)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Add([]int32{1, 2}, []bool{true, true}); err != nil {
		t.Fatal(err)
	}
	w.Abort()
	if list, _ := os.ReadDir(filepath.Dir(dir)); len(list) != 0 {
		t.Errorf("left behind: %v", list)
	}
	var f *fault.Error
	if _, err := Create(write(t, 10, 10, []int32{1}), Manifest{}, 10); !errors.As(err, &f) || f.Code != "MT0623" {
		t.Errorf("a folder that is there: %v", err)
	}
}

// TestNothingIsReplaced: what has the name of the folder and is none stays as it is, from the first and where it came
// later; a link to a folder stays a link.
func TestNothingIsReplaced(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("links need rights there")
	}
	m := Manifest{Tokenizer: Tokenizer{Name: "t", Hash: strings.Repeat("a", 16), Vocab: 100}, Loss: "all"}
	file := func(path string) error { return os.WriteFile(path, []byte("mine"), 0o666) }
	link := func(to string) func(string) error {
		return func(path string) error { return os.Symlink(to, path) }
	}
	for name, put := range map[string]func(string) error{"file": file, "dangling": link("nowhere"), "circle": link("out"), "to a file": link(os.Args[0])} {
		for _, late := range []bool{false, true} {
			out := filepath.Join(t.TempDir(), "out")
			var w *Writer
			var err error
			if late {
				if w, err = Create(out, m, 1000); err == nil {
					err = w.Add([]int32{1, 2}, []bool{false, true})
				}
			}
			if err := errors.Join(err, put(out)); err != nil {
				t.Fatal(err)
			}
			was, err := os.Lstat(out)
			if err != nil {
				t.Fatal(err)
			}
			if late {
				err = w.Close(Source{})
				w.Abort()
			} else {
				_, err = Create(out, m, 1000)
			}
			var f *fault.Error
			if !errors.As(err, &f) || f.Hint == "" {
				t.Errorf("%s, late %t: %v", name, late, err)
			}
			if is, err := os.Lstat(out); err != nil || !os.SameFile(was, is) {
				t.Errorf("%s, late %t: it is gone, %v", name, late, err)
			}
		}
	}
	dir := t.TempDir()
	real, out := filepath.Join(dir, "real"), filepath.Join(dir, "out")
	if err := errors.Join(os.Mkdir(real, 0o777), os.Symlink("real", out)); err != nil {
		t.Fatal(err)
	}
	w, err := Create(out, m, 1000)
	if err == nil {
		err = errors.Join(w.Add([]int32{1, 2}, []bool{false, true}), w.Close(Source{}))
	}
	if info, err2 := os.Lstat(out); err != nil || err2 != nil || info.Mode()&os.ModeSymlink == 0 || !Is(real) {
		t.Errorf("a link to an empty folder: %v, %v, %v", err, info, err2)
	}
}

// Every damage is an error that names file and place, before anything is read beyond it.
func TestDamage(t *testing.T) {
	le := binary.LittleEndian
	for _, c := range []struct {
		name string
		edit func(b []byte) []byte
		code string
		off  int64
	}{
		{"empty", func(b []byte) []byte { return nil }, "MT0675", 0},
		{"magic", func(b []byte) []byte { b[0] = 'x'; return b }, "MT0675", 0},
		{"version", func(b []byte) []byte { le.PutUint32(b[8:], 2); return b }, "MT0675", 8},
		{"width", func(b []byte) []byte { le.PutUint32(b[12:], 3); return b }, "MT0675", 12},
		{"cut short", func(b []byte) []byte { return b[:len(b)-1] }, "MT0675", 179},
		{"too long", func(b []byte) []byte { return append(b, 0) }, "MT0675", 181},
		{"a count of 2^63", func(b []byte) []byte { le.PutUint64(b[48:], 1<<63); return b }, "MT0675", 48},
		{"documents of 2^60", func(b []byte) []byte { le.PutUint64(b[40:], 1<<57); return b }, "MT0675", 40},
		{"another tokenizer", func(b []byte) []byte { b[24] = 'z'; return b }, "MT0675", -1},
		{"ends out of order", func(b []byte) []byte { le.PutUint64(b[116:], 99); return b }, "MT0675", 116},
		{"a token outside", func(b []byte) []byte { le.PutUint16(b[64+2*5:], 400); return b }, "MT0606", 74},
	} {
		dir := write(t, 301, 1000, some...)
		path := filepath.Join(dir, shardName(0))
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if len(b) != 64+2*22+8+4*16 {
			t.Fatalf("a shard of %d bytes", len(b))
		}
		if err := os.WriteFile(path, c.edit(b), 0o666); err != nil {
			t.Fatal(err)
		}
		s, err := Open(dir)
		for d := int64(0); err == nil && d < s.Documents(); d++ {
			err = s.Read(d, 0, make([]int32, s.Len(d)), nil)
		}
		var f *fault.Error
		if !errors.As(err, &f) || f.Code != c.code || f.Offset != c.off || f.Path != path {
			t.Errorf("%s: %v, wanted %s at %d", c.name, err, c.code, c.off)
		}
	}
}

func FuzzShard(f *testing.F) {
	dir := write(f, 301, 1000, some...)
	b, err := os.ReadFile(filepath.Join(dir, shardName(0)))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add(b[:70])
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := parseHeader("x", b[:min(len(b), headerBytes)], int64(len(b)))
		if err != nil {
			return
		}
		if h.wanted != int64(len(b)) || h.tokens < 0 || h.docs < 0 || h.tableAt > h.wanted {
			t.Errorf("%+v of %d bytes", h, len(b))
		}
		path := filepath.Join(t.TempDir(), "s")
		if err := os.WriteFile(path, b, 0o666); err != nil {
			t.Fatal(err)
		}
		s, err := openShard(path)
		if err != nil {
			return
		}
		defer s.f.Close()
		_ = s.tokensAt(make([]int32, s.tokens), make([]bool, s.tokens), 0)
	})
}

func TestManifest(t *testing.T) {
	dir := write(t, 301, 1000, some...)
	path := filepath.Join(dir, ManifestFile)
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ from, to string }{
		{`"version": 1`, `"version": 2`}, {`"tokens-00000.tok"`, `"../x"`}, {`"documents": 4`, `"documents": 5`}, {`"loss": "all"`, `"loss": "some"`}, {"{", "["},
	} {
		if !bytes.Contains(good, []byte(c.from)) {
			t.Fatalf("no %s in\n%s", c.from, good)
		}
		if err := os.WriteFile(path, bytes.Replace(good, []byte(c.from), []byte(c.to), 1), 0o666); err != nil {
			t.Fatal(err)
		}
		var f *fault.Error
		if _, err := Open(dir); !errors.As(err, &f) || f.Code != "MT0675" {
			t.Errorf("%s: %v", c.to, err)
		}
	}
}
