package pack

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/megatrain/mtc/runtime/data/packed"
	"github.com/megatrain/mtc/runtime/fault"
)

// What a run has packed is taken again exactly when nothing that it was made from has changed.
func TestKeptIsNeverStale(t *testing.T) {
	chats := `{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"}]}` + "\n"
	base := options(t, map[string]string{"c.jsonl": chats + chats})
	run := func(o Options) bool { // packed anew
		t.Helper()
		r, err := Kept(o)
		if err != nil {
			t.Fatal(err)
		}
		return r != nil
	}
	if !run(base) {
		t.Fatal("there was nothing to take")
	}
	if run(base) {
		t.Error("the same was packed twice")
	}
	file := filepath.Join(base.In[0], "c.jsonl")
	put := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		what   string
		change func(o *Options)
		anew   bool
	}{
		{"another seq", func(o *Options) { o.Seq = 100 }, true},
		{"what is learned", func(o *Options) { o.Loss = "all" }, true},
		{"what is overlong", func(o *Options) { o.Overlong = "drop" }, true},
		{"strict", func(o *Options) { o.Strict = true }, true},
		{"the template", func(o *Options) { o.TemplateHash = "x" }, true},
		{"a file of the tokenizer", func(o *Options) { o.Files = map[string][]byte{"x": []byte("y")} }, true},
		{"the number of workers", func(o *Options) { o.Workers = 1 }, false},
		{"the name of the tokenizer", func(o *Options) { o.Name = "other" }, false},
		{"a text of the same length", func(o *Options) {
			put(chats + `{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"c"}]}` + "\n")
		}, true},
		{"a hidden file", func(o *Options) { os.WriteFile(filepath.Join(o.In[0], ".x.jsonl"), []byte("z"), 0o666) }, false},
		{"a shard cut short", func(o *Options) { os.Truncate(filepath.Join(o.Out, "tokens-00000.tok"), 70) }, true},
		{"a list that is not JSON", func(o *Options) { os.WriteFile(filepath.Join(o.Out, packed.ManifestFile), []byte("{"), 0o666) }, true},
		{"the folder, gone", func(o *Options) { os.RemoveAll(o.Out) }, true},
	} {
		put(chats + chats)
		o := base
		run(o)
		c.change(&o)
		if got := run(o); got != c.anew {
			t.Errorf("%s: packed anew %v, want %v", c.what, got, c.anew)
		}
		if set, err := packed.Open(o.Out); err != nil {
			t.Errorf("%s: %v", c.what, err)
		} else {
			set.Close()
		}
		os.RemoveAll(o.Out)
		os.Remove(filepath.Join(o.In[0], ".x.jsonl"))
	}
}

// What a packing that was ended by force has left is removed; what somebody else put into the
// place is not; and an input that cannot be packed leaves what was there.
func TestKeptIsNeverHalf(t *testing.T) {
	o := options(t, map[string]string{"a.txt": "hello"})
	half := filepath.Join(filepath.Dir(o.Out), packed.Temporary+"1")
	for _, dir := range []string{half, o.Out + ".new"} {
		if err := os.MkdirAll(filepath.Join(dir, "x"), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Kept(o); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{half, o.Out + ".new"} {
		if _, err := os.Stat(dir); err == nil {
			t.Errorf("%s is still there", dir)
		}
	}
	bad := o
	bad.In = []string{filepath.Join(o.In[0], "none")}
	if _, err := Kept(bad); err == nil {
		t.Error("no input, no error")
	}
	if got := texts(t, o.Out); len(got) != 1 || got[0] != "[hello$]" {
		t.Errorf("what was there is now %q", got)
	}
	o.Out = t.TempDir()
	if err := os.WriteFile(filepath.Join(o.Out, "thesis.txt"), []byte("x"), 0o666); err != nil {
		t.Fatal(err)
	}
	var f *fault.Error
	if _, err := Kept(o); !errors.As(err, &f) || f.Code != "MT0623" {
		t.Errorf("a folder of somebody else: %v", err)
	}
	if _, err := os.Stat(filepath.Join(o.Out, "thesis.txt")); err != nil {
		t.Error("somebody else's file is gone")
	}
}

// TestKeptTakesNoFilesPlace: a file that somebody put where the packed data is kept stays.
func TestKeptTakesNoFilesPlace(t *testing.T) {
	o := options(t, map[string]string{"a.txt": "hello"})
	if err := os.WriteFile(o.Out, []byte("mine"), 0o666); err != nil {
		t.Fatal(err)
	}
	_, err := Kept(o)
	if text, err2 := os.ReadFile(o.Out); err == nil || err2 != nil || string(text) != "mine" {
		t.Errorf("%v; holds %q, %v", err, text, err2)
	}
}
