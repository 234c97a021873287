package hf

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestVocabularyIsWhatTheTokenizerHas(t *testing.T) {
	for text, want := range map[string][]int{
		`{"model": {"vocab": {"a": 0, "b": 2}}, "added_tokens": [{"id": 4, "content": "<s>"}]}`: {0, 2, 4},
		`{"model": {"vocab": [["a", -1.0], ["b", -2.0]]}}`:                                      {0, 1},
		`{"model": {"vocab": {"a": 0, "beyond": 6, "negative": -1}}}`:                           {0},
		`{"model": {}}`: nil,
	} {
		run := t.TempDir()
		if err := os.Mkdir(filepath.Join(run, tokenizerFolder), 0o777); err != nil {
			t.Fatal(err)
		}
		put(t, filepath.Join(run, tokenizerFolder), "tokenizer.json", text)
		known, err := Vocabulary(run, 6)
		if err != nil {
			t.Fatal(err)
		}
		var got []int
		for i, k := range known {
			if k {
				got = append(got, i)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v", text, got)
		}
	}
	if known, err := Vocabulary(t.TempDir(), 6); known != nil || err != nil {
		t.Errorf("without a tokenizer: %v, %v", known, err)
	}
}
