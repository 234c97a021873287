package parser

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestReadFile reads no more than a text may have, and nothing that is no regular file.
func TestReadFile(t *testing.T) {
	dir := t.TempDir()
	big, small := filepath.Join(dir, "big.mt"), filepath.Join(dir, "small.mt")
	if err := os.WriteFile(big, bytes.Repeat([]byte("x"), 10*MaxBytes), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(small, []byte("model"), 0o644); err != nil {
		t.Fatal(err)
	}
	if b, err := ReadFile(small); string(b) != "model" || err != nil {
		t.Errorf("%q, %v", b, err)
	}
	if b, err := ReadFile(big); len(b) != MaxBytes+1 || err != nil {
		t.Errorf("%d bytes, %v", len(b), err)
	}
	if b, err := Read(strings.NewReader(strings.Repeat("x", 2*MaxBytes))); len(b) != MaxBytes+1 || err != nil {
		t.Errorf("%d bytes, %v", len(b), err)
	}
	if _, err := ReadFile(filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
	for path, want := range map[string]string{dir: "is a folder", "/dev/zero": "is not a regular file"} {
		if _, err := os.Stat(path); err != nil {
			continue
		}
		done := make(chan error, 1)
		go func() { _, err := ReadFile(path); done <- err }()
		select {
		case err := <-done:
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %q", path, err, want)
			}
		case <-time.After(2 * time.Minute):
			t.Fatalf("%s: still reading", path)
		}
	}
}
