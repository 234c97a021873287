package data

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/megatrain/mtc/runtime/fault"
	"github.com/megatrain/mtc/runtime/plan"
)

// wantFault checks code, offset (-1: none) and a part of the hint.
func wantFault(t *testing.T, what string, err error, code string, off int64, hint string) {
	t.Helper()
	var f *fault.Error
	if !errors.As(err, &f) {
		t.Errorf("%s: %v is not a fault, wanted %s", what, err, code)
		return
	}
	if f.Code != code || f.Offset != off || !strings.Contains(f.Hint, hint) {
		t.Errorf("%s: %s at %d, hint %q; wanted %s at %d, hint with %q\n%v", what, f.Code, f.Offset, f.Hint, code, off, hint, err)
	}
}

// shard builds a token shard with a header.
func shard(magic, version, count uint32, width int, tokens ...uint32) string {
	var b bytes.Buffer
	head := make([]uint32, 256)
	head[0], head[1], head[2] = magic, version, count
	for _, w := range head {
		b.Write(binary.LittleEndian.AppendUint32(nil, w))
	}
	for _, k := range tokens {
		b.Write(binary.LittleEndian.AppendUint32(nil, k)[:width])
	}
	return b.String()
}

func readAll(t *testing.T, c *Corpus) []int32 {
	t.Helper()
	out := make([]int32, c.Tokens())
	if err := c.Read(out, 0); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestCorpusFormats(t *testing.T) {
	for _, c := range []struct {
		name  string
		files map[string]string
		width int
		want  []int32
	}{
		{"bytes, a separator after each file", map[string]string{"a": "ab", "b": "\xff", "c": "d"}, 0,
			[]int32{'a', 'b', 0, 255, 0, 'd', 0}},
		{"shards of both headers", map[string]string{"a.bin": shard(20240520, 1, 3, 2, 7, 65535, 1), "b.bin": shard(20240801, 7, 2, 4, 70000, 5)}, 0,
			[]int32{7, 65535, 1, 70000, 5}},
		{"an empty shard between others", map[string]string{"a.bin": shard(20240520, 1, 1, 2, 7), "b.bin": shard(20240520, 1, 0, 2), "c.BIN": shard(20240520, 1, 1, 2, 8)}, 0,
			[]int32{7, 8}},
		{"headerless uint16", map[string]string{"a.bin": "\x01\x02\x03\x00"}, 2, []int32{0x201, 3}},
		{"headerless uint32", map[string]string{"a.bin": "\x01\x02\x03\x00"}, 4, []int32{0x30201}},
		{"a shard read as bytes", map[string]string{"a.bin": "\x01\x02"}, 1, []int32{1, 2, 0}},
	} {
		t.Run(c.name, func(t *testing.T) {
			corpus, err := Open([]string{tree(t, c.files)}, Options{Width: c.width})
			if err != nil {
				t.Fatal(err)
			}
			defer corpus.Close()
			if d := cmp.Diff(c.want, readAll(t, corpus)); d != "" {
				t.Error(d)
			}
			// Every piece reads the same as the whole.
			for from := range c.want {
				for to := from + 1; to <= len(c.want); to++ {
					got := make([]int32, to-from)
					if err := corpus.Read(got, int64(from)); err != nil {
						t.Fatal(err)
					}
					if d := cmp.Diff(c.want[from:to], got); d != "" {
						t.Fatalf("[%d, %d): %s", from, to, d)
					}
				}
			}
		})
	}
}

func TestCorpusErrors(t *testing.T) {
	good := shard(20240520, 1, 3, 2, 7, 8, 9)
	for _, c := range []struct {
		name, file, text string
		o                Options
		code             string
		off              int64
		hint             string
	}{
		{"no header", "a.bin", "short", Options{}, "MT0603", -1, "width"},
		{"bad magic", "a.bin", strings.Repeat("\x01", 2000), Options{}, "MT0603", 0, "bytes"},
		{"big endian", "a.bin", "\x01\x34\xd8\x88" + strings.Repeat("\x00", 2000), Options{}, "MT0603", 0, "little-endian"},
		{"bad version", "a.bin", shard(20240520, 2, 0, 2), Options{}, "MT0603", 4, ""},
		{"negative count", "a.bin", shard(20240520, 1, 1<<31, 2), Options{}, "MT0603", 8, ""},
		{"cut short", "a.bin", good[:len(good)-1], Options{}, "MT0604", 1029, "again"},
		{"too long", "a.bin", good + "x", Options{}, "MT0604", 1030, "count"},
		{"odd size", "a.bin", "abc", Options{Width: 2}, "MT0605", 2, "width"},
		{"odd size of four", "a.bin", "abcdef", Options{Width: 4}, "MT0605", 4, "width"},
		{"width", "a.bin", "abc", Options{Width: 3}, "MT0608", -1, "uint16"},
		{"share", "a.bin", good, Options{Part: Train, Holdout: 1}, "MT0608", -1, "0.05"},
		{"one file cannot be split", "a.txt", "abc", Options{Part: HeldOut, Holdout: 0.5}, "MT0608", -1, "whole"},
	} {
		_, err := Open([]string{tree(t, map[string]string{c.file: c.text})}, c.o)
		wantFault(t, c.name, err, c.code, c.off, c.hint)
	}
	_, err := Open([]string{tree(t, map[string]string{"a.bin": good, "b.txt": "x"})}, Options{})
	wantFault(t, "mix", err, "MT0608", -1, "*.bin")
	_, err = Open(nil, Options{})
	wantFault(t, "nothing", err, "MT0601", -1, "--data")
}

func TestTokenOutsideTheVocabularyNamesFileAndByte(t *testing.T) {
	for _, c := range []struct {
		name, file, text string
		width            int
		vocab            int64
		off              int64
	}{
		{"uint16", "a.bin", shard(20240520, 1, 3, 2, 7, 100, 101), 0, 101, 1028},
		{"uint32 beyond int32", "a.bin", shard(20240801, 7, 2, 4, 7, 1<<31), 0, 0, 1028},
		{"bytes", "a.txt", "ab\x80", 0, 128, 2},
		{"headerless", "a.bin", "\x00\x00\xff\x00", 2, 255, 2},
	} {
		corpus, err := Open([]string{tree(t, map[string]string{c.file: c.text})}, Options{Width: c.width, Vocab: c.vocab})
		if err != nil {
			t.Fatal(err)
		}
		err = corpus.Read(make([]int32, corpus.Tokens()), 0)
		wantFault(t, c.name, err, "MT0606", c.off, "tokenizer")
		var f *fault.Error
		if errors.As(err, &f) && filepath.Base(f.Path) != c.file {
			t.Errorf("%s: the error names %s", c.name, f.Path)
		}
	}
}

func TestFileThatShrinksDuringTheRun(t *testing.T) {
	dir := tree(t, map[string]string{"a.txt": "abcdef"})
	corpus, err := Open([]string{dir}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "a.txt"), []byte("abc"), 0o666); err != nil {
		t.Fatal(err)
	}
	wantFault(t, "shrunk", corpus.Read(make([]int32, 5), 0), "MT0609", 3, "leave")
	if err := os.Remove(filepath.Join(dir, "a.txt")); err != nil {
		t.Fatal(err)
	}
	corpus.Close()
	wantFault(t, "gone", corpus.Read(make([]int32, 5), 0), "MT0602", 0, "")
}

// The corpus has more files than it may hold open, and several readers.
func TestManyFilesReadAtOnce(t *testing.T) {
	files := map[string]string{}
	for i := range 3 * maxHandles {
		files[fmt.Sprintf("f%03d", i)] = fmt.Sprintf("%03d", i)
	}
	corpus, err := Open([]string{tree(t, files)}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer corpus.Close()
	want := readAll(t, corpus)
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			got := make([]int32, 7)
			for i := 0; i+7 <= len(want); i++ {
				at := (i*5 + g*31) % (len(want) - 7)
				if err := corpus.Read(got, int64(at)); err != nil {
					t.Error(err)
					return
				}
				if d := cmp.Diff(want[at:at+7], got); d != "" {
					t.Errorf("at %d: %s", at, d)
					return
				}
			}
		})
	}
	wg.Wait()
	if n := len(corpus.open.m); n > maxHandles+8 {
		t.Errorf("%d files are open", n)
	}
}

func TestHoldoutSplitsByNameAlone(t *testing.T) {
	files := map[string]string{}
	for i := range 400 {
		files[fmt.Sprintf("d%d/f%d.go", i%7, i)] = "x"
	}
	part := func(dir string, p Part) map[string]bool {
		c, err := Open([]string{filepath.Join(dir, "**/*.go")}, Options{Part: p, Holdout: 0.1})
		if err != nil {
			t.Fatal(err)
		}
		names := map[string]bool{}
		for _, f := range c.files {
			names[f.name] = true
		}
		return names
	}
	here, there := tree(t, files), tree(t, files)
	train, held := part(here, Train), part(here, HeldOut)
	if len(train)+len(held) != 400 || len(held) < 20 || len(held) > 60 {
		t.Errorf("%d files train and %d are held out of 400 at 0.1", len(train), len(held))
	}
	for n := range held {
		if train[n] {
			t.Errorf("%s is trained on and held out", n)
		}
	}
	if d := cmp.Diff(held, part(there, HeldOut)); d != "" {
		t.Errorf("the split depends on where the folder lies:\n%s", d)
	}
}

func TestSourcesOfATrainBlock(t *testing.T) {
	files := map[string]string{}
	for i := range 100 {
		files[fmt.Sprintf("f%d.txt", i)] = "some text"
	}
	dir := tree(t, files)
	train, eval, err := Sources(plan.Train{Data: []string{dir}, Holdout: 0.2}, 256)
	if err != nil {
		t.Fatal(err)
	}
	if train.Files()+eval.Files() != 100 || eval.Files() == 0 {
		t.Errorf("%d and %d files of 100", train.Files(), eval.Files())
	}
	if train, eval, err = Sources(plan.Train{Data: []string{dir}}, 256); err != nil || eval != nil || train.Files() != 100 {
		t.Errorf("without evaluation: %v, %v", eval, err)
	}
	if _, eval, err = Sources(plan.Train{Data: []string{dir}, EvalData: []string{filepath.Join(dir, "f1*")}}, 256); err != nil || eval.Files() != 11 {
		t.Errorf("with its own data: %v", err)
	}
	_, _, err = Sources(plan.Train{Data: []string{dir}, EvalData: []string{filepath.Join(dir, "none")}}, 256)
	wantFault(t, "missing evaluation data", err, "MT0601", -1, "--eval-data FILES")
	if !strings.Contains(err.Error(), "evaluation data: ") {
		t.Errorf("missing evaluation data: %v", err)
	}
}

// TestUnreadableFileEndsTheStart: a file that cannot be opened is found by Open, in every format,
// and not when a batch comes to it.
func TestUnreadableFileEndsTheStart(t *testing.T) {
	defer func(old func(string) (*os.File, error)) { openFile = old }(openFile)
	openFile = func(path string) (*os.File, error) {
		if strings.HasPrefix(filepath.Base(path), "locked") {
			return nil, &os.PathError{Op: "open", Path: path, Err: os.ErrPermission}
		}
		return os.Open(path)
	}
	for _, width := range []int{0, 1, 2} {
		dir := tree(t, map[string]string{"a.txt": "some text.", "locked.txt": "more text."})
		_, err := Open([]string{dir}, Options{Width: width, Vocab: 1 << 16})
		wantFault(t, fmt.Sprint("width ", width), err, "MT0602", -1, "right to read")
	}
}

// TestFullTableOfOpenFiles: where no more files can be opened, those read longest ago are closed.
func TestFullTableOfOpenFiles(t *testing.T) {
	files := map[string]string{}
	for i := range 12 {
		files[fmt.Sprintf("f%03d", i)] = fmt.Sprintf("%03d", i)
	}
	corpus, err := Open([]string{tree(t, files)}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer corpus.Close()
	defer func(old func(string) (*os.File, error)) { openFile = old }(openFile)
	most := 3
	openFile = func(path string) (*os.File, error) {
		if len(corpus.open.m) >= most {
			return nil, &os.PathError{Op: "open", Path: path, Err: syscall.EMFILE}
		}
		return os.Open(path)
	}
	if got := readAll(t, corpus); len(got) != 48 || len(corpus.open.m) > most {
		t.Errorf("%d tokens, %d open files", len(got), len(corpus.open.m))
	}
	corpus.Close()
	most = 0
	wantFault(t, "none", corpus.Read(make([]int32, 5), 0), "MT0602", 0, "ulimit -n")
}

func TestSummarySaysWhatWasSkipped(t *testing.T) {
	dir := tree(t, map[string]string{"a": strings.Repeat("x", 1999), "b": "y", "c": "", ".d": "z"})
	c, err := Open([]string{dir}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := c.Summary(), "2 files, 2,002 tokens (bytes); skipped: 1 hidden, 1 empty"; got != want {
		t.Errorf("got %q, wanted %q", got, want)
	}
}

// TestIDFollowsNamesSizesAndContents: the same files elsewhere have one ID, and others have others;
// of large files 16 places count.
func TestIDFollowsNamesSizesAndContents(t *testing.T) {
	id := func(files map[string]string) string {
		c, err := Open([]string{tree(t, files)}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		return c.ID()
	}
	base := id(map[string]string{"a": "xx", "b": "y"})
	if base != id(map[string]string{"a": "xx", "b": "y"}) {
		t.Error("the same files elsewhere have another ID")
	}
	for _, other := range []map[string]string{{"a": "x", "b": "yy"}, {"a": "xx", "c": "y"}, {"a": "xz", "b": "y"}, {"a": "xx"}} {
		if base == id(other) {
			t.Errorf("%v has the same ID", other)
		}
	}
	for _, size := range []int{4096, 10_000, 1 << 16, 300_000} {
		text := bytes.Repeat([]byte("x"), size)
		whole := id(map[string]string{"a": string(text)})
		for _, at := range []int{0, 4095, size - 1, size / 3 * 2} {
			text[at] = 'y'
			if found := whole != id(map[string]string{"a": string(text)}); !found && (size <= 1<<16 || at < 4096 || at == size-1) {
				t.Errorf("%d bytes, another one at %d: the same ID", size, at)
			}
			text[at] = 'x'
		}
	}
}

// FuzzShard feeds arbitrary headers, sizes and bodies as a shard: it is refused with a data
// code, or every token of it can be read and the layout fits the file exactly.
func FuzzShard(f *testing.F) {
	f.Add(uint32(20240520), uint32(1), uint32(2), []byte{1, 0, 2, 0}, uint16(0), 0)
	f.Add(uint32(20240801), uint32(7), uint32(1), []byte{0x70, 0x11, 1, 0}, uint16(0), 0)
	f.Add(uint32(20240520), uint32(1), uint32(1<<31-1), []byte{1, 0}, uint16(0), 0)
	f.Add(uint32(20240520), uint32(1), uint32(0), []byte{}, uint16(1000), 0)
	f.Add(uint32(0), uint32(0), uint32(0), []byte{1, 2, 3}, uint16(0), 2)
	f.Fuzz(func(t *testing.T, magic, version, count uint32, body []byte, cut uint16, width int) {
		text := append([]byte(shard(magic, version, count, 2)), body...)
		if width == 2 || width == 4 {
			text = body
		}
		text = text[:max(0, len(text)-int(cut))]
		var l layout
		var err error
		if width == 2 || width == 4 {
			l, err = plainLayout("f", int64(len(text)), int64(width))
		} else {
			l, err = shardLayout("f", bytes.NewReader(text), int64(len(text)))
		}
		if err != nil {
			var fe *fault.Error
			if !errors.As(err, &fe) || !strings.HasPrefix(fe.Code, "MT06") {
				t.Fatalf("not a data fault: %v", err)
			}
			return
		}
		if l.start+l.tokens*l.width != int64(len(text)) {
			t.Fatalf("%+v does not fit %d bytes", l, len(text))
		}
		ids := make([]int32, l.tokens)
		if bad := decode(ids, text[l.start:], l.width, 1000); bad < 0 {
			for _, id := range ids {
				if id < 0 || id >= 1000 {
					t.Fatalf("token %d got through", id)
				}
			}
		}
	})
}
