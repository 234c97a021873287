package main

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
)

// TestFailedWriteLeavesNoFile: what cannot be written whole is removed, and a file that was
// there stays as it is.
func TestFailedWriteLeavesNoFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "a.mt")
	full := func(w io.Writer) error {
		if _, err := w.Write([]byte("half")); err != nil {
			return err
		}
		return errors.New("no space left on device")
	}
	var ce *cliError
	if err := createFile(name, full); !errors.As(err, &ce) || ce.code != exitMachine {
		t.Errorf("a full disk: %v", err)
	}
	if _, err := os.Stat(name); err == nil {
		t.Error("half a file is left")
	}
	whole := func(w io.Writer) error { _, err := w.Write([]byte("whole")); return err }
	if err := createFile(name, whole); err != nil {
		t.Fatal(err)
	}
	if err := createFile(name, full); !errors.As(err, &ce) || ce.code != exitInput {
		t.Errorf("a second time: %v", err)
	}
	if text, err := os.ReadFile(name); err != nil || string(text) != "whole" {
		t.Errorf("%q, %v", text, err)
	}
}
