package hf

import (
	"os"
	"path/filepath"
	"testing"
)

// What is kept can be forgotten and kept again; files of somebody else in a folder of such a name
// are neither overwritten nor removed.
func TestForgettingLeavesWhatIsNotOurs(t *testing.T) {
	dir := tiny(t)
	put(t, dir, "tokenizer.json", "{}")
	f, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	m := &Matching{folder: f}
	run := t.TempDir()
	if err := os.MkdirAll(filepath.Join(run, tokenizerFolder), 0o777); err != nil {
		t.Fatal(err)
	}
	put(t, run, tokenizerFolder+"/notes.txt", "mine")
	for range 2 {
		if err := m.Keep(run); err != nil {
			t.Fatal(err)
		}
	}
	if !Kept(run) || !exists(filepath.Join(run, tokenizerFolder, "tokenizer.json")) || !exists(filepath.Join(run, keepFolder, "model-00002-of-00002.safetensors.header")) {
		t.Error("something is not kept")
	}
	if err := Forget(run); err != nil {
		t.Fatal(err)
	}
	if exists(filepath.Join(run, keepFolder)) || exists(filepath.Join(run, tokenizerFolder, "tokenizer.json")) || !exists(filepath.Join(run, tokenizerFolder, "notes.txt")) {
		t.Error("too little or too much was removed")
	}
	if err := Forget(run); err != nil {
		t.Error(err)
	}
	put(t, run, tokenizerFolder+"/tokenizer.json", "somebody's")
	wantFault(t, m.Keep(run), "MT0626", "not of a run")
	if text, _ := os.ReadFile(filepath.Join(run, tokenizerFolder, "tokenizer.json")); string(text) != "somebody's" {
		t.Error("a file of somebody else was overwritten")
	}
}
