package tokenizer

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Added tokens of tokenizer_config.json that would change ids, as transformers puts both files
// together, are refused; what says the same is taken.
func TestTwoFilesOfOneTokenizer(t *testing.T) {
	const file = `{"added_tokens": [{"id": 2, "content": "<m>", "rstrip": true}, {"id": 3, "content": "<n>", "normalized": true}],
		"normalizer": NORM, "model": {"type": "BPE", "vocab": {"a": 0, "b": 1}, "merges": []}}`
	for _, c := range []struct{ name, norm, config, err string }{
		{"nothing", "null", `{}`, ""},
		{"the same", `{"type": "NFC"}`, `{"eos_token": "<m>", "bos_token": "<n>", "added_tokens_decoder": {"2": {"content": "<m>", "rstrip": true, "normalized": false, "special": true}, "3": {"content": "<n>"}}}`, ""},
		{"special is not found otherwise", "null", `{"added_tokens_decoder": {"3": {"content": "<n>", "special": true}}}`, ""},
		{"one more", "null", `{"added_tokens_decoder": {"4": {"content": "<o>"}}}`, `the added token "<o>"`},
		{"a letter", "null", `{"added_tokens_decoder": {"0": {"content": "a"}}}`, `the added token "a"`},
		{"white space", "null", `{"added_tokens_decoder": {"2": {"content": "<m>", "special": true}}}`, `the added token "<m>"`},
		{"a word", "null", `{"added_tokens_decoder": {"3": {"content": "<n>", "single_word": true}}}`, `the added token "<n>"`},
		{"normalized text", `{"type": "NFC"}`, `{"added_tokens_decoder": {"3": {"content": "<n>", "normalized": false}}}`, `the added token "<n>"`},
		{"a BOS of its own", "null", `{"bos_token": "<s>"}`, `the added token "<s>"`},
		{"an EOS that is a letter", "null", `{"eos_token": {"content": "b"}}`, `the added token "b"`},
	} {
		dir := t.TempDir()
		for name, text := range map[string]string{"tokenizer.json": strings.ReplaceAll(file, "NORM", c.norm), "tokenizer_config.json": c.config} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		_, err := Open(dir)
		if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}
