// Package known has the tokenizers that come with mtc, gpt2 and o200k, as the text of a
// tokenizer.json. The vocabularies are those that github.com/tiktoken-go/tokenizer carries.
// They take megabytes, so only mtc links this package: what a run needs of a tokenizer lies as
// a file beside its data.
package known

import (
	"encoding/json"
	"fmt"
	"sync"

	tiktoken "github.com/tiktoken-go/tokenizer"
)

// Names are the tokenizers there are.
var Names = []string{"gpt2", "o200k"}

type source struct {
	encoding tiktoken.Encoding
	tokens   int            // ranks 0..tokens-1
	special  map[string]int // with their ids
	pattern  string         // "": byte-level's own
}

var sources = map[string]source{
	"gpt2": {tiktoken.R50kBase, 50256, map[string]int{EndOfText: 50256}, ""},
	"o200k": {tiktoken.O200kBase, 199998, map[string]int{EndOfText: 199999, "<|endofprompt|>": 200018},
		`[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?` +
			`|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?` +
			`|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+`},
}

// EndOfText separates documents in both.
const EndOfText = "<|endoftext|>"

// JSON is the text of the tokenizer.json of a name, made once.
func JSON(name string) ([]byte, error) {
	s, ok := sources[name]
	if !ok {
		return nil, fmt.Errorf("there is no tokenizer %q", name)
	}
	return made[name](s)
}

var made = func() map[string]func(source) ([]byte, error) {
	m := map[string]func(source) ([]byte, error){}
	for _, n := range Names {
		var once sync.Once
		var text []byte
		var err error
		m[n] = func(s source) ([]byte, error) {
			once.Do(func() { text, err = build(s) })
			return text, err
		}
	}
	return m
}()

// build writes the file: the vocabulary in the byte-level spelling, and for each token of more
// than a byte the merge that makes it.
func build(s source) ([]byte, error) {
	codec, err := tiktoken.Get(s.encoding)
	if err != nil {
		return nil, err
	}
	tokens := make([]string, s.tokens)
	ranks := make(map[string]int, s.tokens)
	for i := range tokens {
		if tokens[i], err = codec.Decode([]uint{uint(i)}); err != nil {
			return nil, fmt.Errorf("token %d: %w", i, err)
		}
		if _, twice := ranks[tokens[i]]; twice || tokens[i] == "" {
			return nil, fmt.Errorf("token %d is %q, which is not new", i, tokens[i])
		}
		ranks[tokens[i]] = i
	}
	vocab := make(map[string]int, s.tokens)
	merges := make([][2]string, 0, s.tokens)
	for i, t := range tokens {
		vocab[spell(t)] = i
		if len(t) > 1 {
			a, b, ok := split(t, i, ranks)
			if !ok {
				return nil, fmt.Errorf("token %d, %q, is made by no merge", i, t)
			}
			merges = append(merges, [2]string{spell(a), spell(b)})
		}
	}
	type added struct {
		ID         int    `json:"id"`
		Content    string `json:"content"`
		SingleWord bool   `json:"single_word"`
		LStrip     bool   `json:"lstrip"`
		RStrip     bool   `json:"rstrip"`
		Normalized bool   `json:"normalized"`
		Special    bool   `json:"special"`
	}
	var special []added
	for id := s.tokens; id < s.tokens+100; id++ {
		for content, at := range s.special {
			if at == id {
				special = append(special, added{ID: id, Content: content, Special: true})
			}
		}
	}
	bytes := map[string]any{"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": false, "use_regex": s.pattern == ""}
	var pre any = bytes
	if s.pattern != "" {
		pre = map[string]any{"type": "Sequence", "pretokenizers": []any{
			map[string]any{"type": "Split", "pattern": map[string]any{"Regex": s.pattern}, "behavior": "Isolated", "invert": false}, bytes}}
	}
	return json.Marshal(map[string]any{
		"version": "1.0", "truncation": nil, "padding": nil, "added_tokens": special, "normalizer": nil,
		"pre_tokenizer": pre, "post_processor": nil, "decoder": map[string]any{"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true},
		"model": map[string]any{"type": "BPE", "dropout": nil, "unk_token": nil, "continuing_subword_prefix": nil, "end_of_word_suffix": nil,
			"fuse_unk": false, "byte_fallback": false, "ignore_merges": s.pattern != "", "vocab": vocab, "merges": merges},
	})
}

// split merges the bytes of a token with the pairs of a lower rank; two parts are left, which
// its own merge joins.
func split(t string, rank int, ranks map[string]int) (a, b string, ok bool) {
	parts := make([]string, len(t))
	for i := range parts {
		parts[i] = t[i : i+1]
	}
	for len(parts) > 2 {
		best, at := rank, -1
		for i := 1; i < len(parts); i++ {
			if r, ok := ranks[parts[i-1]+parts[i]]; ok && r < best {
				best, at = r, i-1
			}
		}
		if at < 0 {
			return "", "", false
		}
		parts[at] += parts[at+1]
		parts = append(parts[:at+1], parts[at+2:]...)
	}
	if len(parts) != 2 {
		return "", "", false
	}
	return parts[0], parts[1], true
}

// spell writes bytes as characters that can be seen, as byte-level vocabularies do: printable
// ones by themselves, the others by the characters from U+0100 on.
func spell(s string) string {
	out := make([]rune, 0, len(s))
	for i := range len(s) {
		out = append(out, alphabet[s[i]])
	}
	return string(out)
}

var alphabet = func() (to [256]rune) {
	next := rune(256)
	for b := range 256 {
		to[b] = rune(b)
		if !(b >= '!' && b <= '~' || b >= 0xa1 && b <= 0xac || b >= 0xae) {
			to[b] = next
			next++
		}
	}
	return to
}()
