package hf

import (
	"errors"
	"os"
	"path/filepath"
)

// Vocabulary says which of a model's ids the tokenizer of a run folder has, nil when the folder
// keeps none in a form that is read here. A model may have more rows than there are tokens: the
// table is padded to a round number. They are trained like any other and must never be sampled,
// since no text belongs to them.
func Vocabulary(run string, rows int64) ([]bool, error) {
	path := filepath.Join(run, tokenizerFolder, "tokenizer.json")
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	o, _, err := readObject(path)
	if err != nil {
		return nil, err
	}
	known := make([]bool, rows)
	found := false
	mark := func(v int64, ok bool) {
		if ok && v >= 0 && v < rows {
			known[v], found = true, true
		}
	}
	if model, ok := o["model"].(object); ok {
		switch vocab := model["vocab"].(type) {
		case object: // token: id
			for _, v := range vocab {
				mark(wholeOf(v))
			}
		case []any: // [token, score], by id
			for i := range vocab {
				mark(int64(i), true)
			}
		}
	}
	if list, ok := o["added_tokens"].([]any); ok {
		for _, v := range list {
			if t, ok := v.(object); ok {
				mark(wholeOf(t["id"]))
			}
		}
	}
	if !found {
		return nil, nil
	}
	return known, nil
}
