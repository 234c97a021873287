package tokenizer

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// An added token that the normalizer leaves nothing of would be found everywhere.
func TestTokenOfNothing(t *testing.T) {
	_, err := Parse([]byte(`{"normalizer": {"type": "Replace", "pattern": {"String": " "}, "content": ""}, "model": {"type": "BPE", "vocab": {"a": 0}, "merges": []},
		"added_tokens": [{"id": 1, "content": "  ", "normalized": true}]}`))
	if err == nil || !strings.Contains(err.Error(), "is nothing in normalized text") {
		t.Errorf("%v", err)
	}
}

// Steps and added tokens that few files have: the ids are those that `tokenizers` 0.23.3 gives.
func TestOddSteps(t *testing.T) {
	const letters = "ab<m> \u200d\u0902\u093f\u0928_"
	var vocab []string
	for i, c := range []rune(letters) {
		vocab = append(vocab, fmt.Sprintf(`"%c": %d`, c, i))
	}
	for _, c := range []struct {
		name, norm, pre, added, text string
		want                         []int32
	}{
		{"marks that take room are accents", `{"type": "StripAccents"}`, "null", "", "\u0928\u093f\u0902a", []int32{9, 0}},
		{"a joiner is of the word", "null", `{"type": "Sequence", "pretokenizers": [{"type": "Whitespace"},
			{"type": "Metaspace", "replacement": "_", "prepend_scheme": "always", "split": false}]}`, "", "a\u200db <\u200d", []int32{10, 0, 6, 1, 10, 2, 10, 6}},
		{"a joiner touches a word", "null", "null", `{"id": 11, "content": "aa", "single_word": true}`, "aa\u200d aa", []int32{0, 0, 6, 5, 11}},
		{"white space taken by the token before", "null", "null", `{"id": 11, "content": "<m>", "rstrip": true}, {"id": 12, "content": "  "}`, "<m>    a", []int32{11, 12, 12, 0}},
		{"white space that takes all", "null", "null", `{"id": 11, "content": "  ", "lstrip": true, "rstrip": true}`, "a      b", []int32{0, 11, 1}},
	} {
		tok, err := Parse([]byte(fmt.Sprintf(`{"normalizer": %s, "pre_tokenizer": %s, "added_tokens": [%s], "model": {"type": "BPE", "vocab": {%s}, "merges": []}}`,
			c.norm, c.pre, c.added, strings.Join(vocab, ", "))))
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		ids, starts := tok.EncodeSpans(c.text)
		if !slices.Equal(ids, c.want) || !slices.Equal(tok.Encode(c.text), c.want) || !slices.IsSorted(starts) {
			t.Errorf("%s: %v from %v, want %v", c.name, ids, starts, c.want)
		}
	}
}
