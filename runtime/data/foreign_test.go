package data

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestFilesOfAnotherKind: what would be read as bytes and is packed or another program's is refused
// before a run begins; text of any kind, and bytes that are asked for, are not.
func TestFilesOfAnotherKind(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       string // "": it is taken
	}{
		{"text", "a text", ""},
		{"one byte", "\x1f", ""},
		{"no UTF-8", "\xff\xfe\xfa\x80", ""},
		{"a byte order mark", "\xef\xbb\xbftext", ""},
		{"carriage returns", "a\r\nb\r\n", ""},
		{"zeros", "\x00\x00\x00", ""},
		{"a word like a mark", "BZhang wrote this", ""},
		{"another", "PAR1 is a word here", ""},
		{"gzip", "\x1f\x8b\x08\x00", "it is gzip"},
		{"zstd", "\x28\xb5\x2f\xfd\x04", "it is zstd"},
		{"xz", "\xfd7zXZ\x00\x00", "it is xz"},
		{"bzip2", "BZh91AY&SYxx", "it is bzip2"},
		{"zip", "PK\x03\x04xx", "it is zip"},
		{"Parquet", "PAR1\x15\x04", "it is Parquet"},
		{"Git LFS", "version https://git-lfs.example/spec/v1\noid sha256:4d\nsize 9\n", "Git LFS has not fetched"},
		{"words like those of Git LFS", "version https://git", ""},
		{"NumPy", "\x93NUMPY\x01\x00", "it is NumPy"},
	} {
		dir := tree(t, map[string]string{"a.txt": c.text})
		_, err := Open([]string{dir}, Options{Vocab: 256})
		if c.want == "" && err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if c.want != "" {
			hint := "width = 1 bytes"
			if strings.Contains(c.want, "LFS") {
				hint = "git lfs pull"
			}
			wantFault(t, c.name, err, "MT0608", -1, hint)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v", c.name, err)
			}
		}
		if _, err := Open([]string{dir}, Options{Vocab: 256, Width: 1}); err != nil {
			t.Errorf("%s, asked for: %v", c.name, err)
		}
	}
}

// TestFilesThatChangeDuringTheRun: what was written over or exchanged is told; what was added to,
// or removed while it is open, reads as before.
func TestFilesThatChangeDuringTheRun(t *testing.T) {
	later := time.Now().Add(time.Hour)
	write := func(path, text string) error {
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			return err
		}
		return os.Chtimes(path, later, later)
	}
	for _, c := range []struct {
		name string
		do   func(path string) error
		code string // "": it reads as before
	}{
		{"left alone", func(string) error { return nil }, ""},
		{"added to", func(path string) error { return write(path, "abcdefgh") }, ""},
		{"written over", func(path string) error { return write(path, "ABCDEF") }, "MT0609"},
		{"exchanged", func(path string) error { return first(write(path+"2", "ABCDEF"), os.Rename(path+"2", path)) }, "MT0609"},
		{"removed", os.Remove, "MT0602"},
		{"a folder now", func(path string) error { return first(os.Remove(path), os.Mkdir(path, 0o777)) }, "MT0602"},
	} {
		for _, opened := range []bool{false, true} {
			path := filepath.Join(tree(t, map[string]string{"a.txt": "abcdef"}), "a.txt")
			corpus, err := Open([]string{path}, Options{})
			if err != nil {
				t.Fatal(err)
			}
			dst := make([]int32, 5)
			if opened {
				if err := corpus.Read(dst, 0); err != nil {
					t.Fatal(err)
				}
			}
			if err := c.do(path); err != nil {
				t.Fatal(err)
			}
			err = corpus.Read(dst, 1)
			switch {
			case c.code == "" || opened && c.name != "written over": // what is open is what it was
				if err != nil || string(rune(dst[0])) != "b" {
					t.Errorf("%s, open %t: %v, %v", c.name, opened, dst, err)
				}
			case c.code == "MT0609":
				wantFault(t, c.name, err, c.code, -1, "leave the data alone")
			case err == nil || !strings.Contains(err.Error(), c.code):
				t.Errorf("%s, open %t: %v", c.name, opened, err)
			}
			corpus.Close()
		}
	}
}

func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
