package tokenizer

import (
	"testing"
	"time"
	"unicode/utf8"
)

// A tokenizer.json of any content is refused or gives ids of its vocabulary, whose places in
// the text ascend.
func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"model":{"type":"BPE","vocab":{"a":0,"b":1,"ab":2},"merges":["a b"]}}`), "abba")
	f.Add([]byte(`{"added_tokens":[{"id":3,"content":"<s>","special":true,"lstrip":true}],"normalizer":{"type":"Sequence","normalizers":[{"type":"NFC"},{"type":"Prepend","prepend":"b"},{"type":"Replace","pattern":{"Regex":"a+"},"content":"b"}]},
		"pre_tokenizer":{"type":"Sequence","pretokenizers":[{"type":"Split","pattern":{"Regex":"\\s+(?!\\S)|a"},"behavior":"MergedWithNext","invert":true},{"type":"ByteLevel","add_prefix_space":true}]},
		"post_processor":{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"<s>"}},{"Sequence":{"id":"A"}}],"special_tokens":{"<s>":{"ids":[3]}}},
		"decoder":{"type":"Sequence","decoders":[{"type":"ByteFallback"},{"type":"Fuse"},{"type":"Strip","content":" ","start":1,"stop":0}]},
		"model":{"type":"BPE","unk_token":"a","byte_fallback":true,"ignore_merges":true,"vocab":{"a":0,"b":1,"ab":2},"merges":[["a","b"]]}}`), " a<s> ba é\xff")
	f.Fuzz(func(t *testing.T, file []byte, text string) {
		if len(file) > 1<<16 || len(text) > 1<<12 {
			return
		}
		tok, err := Parse(file)
		if err != nil {
			return
		}
		start := time.Now()
		ids, starts := tok.EncodeSpans(text)
		if d := time.Since(start); d > 5*time.Second {
			t.Errorf("%v for %d bytes", d, len(text))
		}
		for i, id := range ids {
			if id < 0 || int64(id) >= tok.Vocab() {
				t.Errorf("the id %d of a vocabulary of %d", id, tok.Vocab())
			}
			if starts[i] < 0 || int(starts[i]) > len(text) {
				t.Errorf("token %d begins at %d of %d", i, starts[i], len(text))
			}
		}
		if s := tok.Decode(tok.Frame(ids), true); !utf8.ValidString(s) {
			t.Errorf("%q is not UTF-8", s)
		}
	})
}
