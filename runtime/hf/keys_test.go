package hf

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Every key that a configuration class of transformers has, or that its modelling code reads, is
// read here, known to say nothing of the mathematics, or refused: none is only noted.
func TestEveryKeyOfTheClassesIsKnown(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("testdata", "keys.json"))
	if err != nil {
		t.Fatal(err)
	}
	var keys map[string][]string
	if err := json.Unmarshal(text, &keys); err != nil {
		t.Fatal(err)
	}
	for _, a := range archs {
		if len(keys[a.name]) < 20 {
			t.Errorf("%s has %d keys", a.name, len(keys[a.name]))
		}
		for _, key := range keys[a.name] {
			c := config(t, a.name)
			c[key] = object{"strange": true}
			r := newReader(c)
			a.describe(r)
			r.whole("max_position_embeddings", 1)
			r.finish()
			if notes := strings.Join(r.notes, " "); strings.Contains(notes, "not read") {
				t.Errorf("%s: %s", a.name, notes)
			}
		}
	}
}

// What changes the mathematics and is not built is refused, by name.
func TestKeysThatChangeTheMathematics(t *testing.T) {
	for _, c := range []struct{ arch, key, value string }{
		{"LlamaForCausalLM", "is_causal", "false"}, {"LlamaForCausalLM", "is_causal", "null"}, {"GPT2LMHeadModel", "is_causal", "false"}, {"Qwen3MoeForCausalLM", "is_causal", "false"},
		{"LlamaForCausalLM", "sliding_window", "4096"}, {"OlmoeForCausalLM", "sliding_window", "4096"}, {"GPT2LMHeadModel", "attention_chunk_size", "64"},
		{"MixtralForCausalLM", "layer_types", `["full_attention", "full_attention"]`}, {"Qwen3MoeForCausalLM", "layer_types", `["full_attention", "full_attention"]`},
		{"LlamaForCausalLM", "pruned_heads", `{"0": [1]}`}, {"GPT2LMHeadModel", "add_cross_attention", "true"},
		{"GPT2LMHeadModel", "num_hidden_layers", "7"}, {"GPT2LMHeadModel", "hidden_size", "7"}, {"OlmoeForCausalLM", "clip_qkv", "8.0"},
		{"LlamaForCausalLM", "partial_rotary_factor", "0.5"}, {"MixtralForCausalLM", "mlp_bias", "true"}, {"Qwen2ForCausalLM", "attention_bias", "true"},
		{"LlamaForCausalLM", "hidden_act", `"relu"`}, {"GPT2LMHeadModel", "activation_function", `"relu"`}, {"Qwen3MoeForCausalLM", "mlp_only_layers", "[1]"},
	} {
		_, err := describe("config.json", config(t, c.arch, c.key, c.value))
		if err == nil || !strings.Contains(err.Error(), c.key) {
			t.Errorf("%s with %s = %s: %v", c.arch, c.key, c.value, err)
		}
	}
	for _, c := range []struct{ arch, key, value string }{
		{"LlamaForCausalLM", "is_causal", "true"}, {"LlamaForCausalLM", "sliding_window", "null"}, {"LlamaForCausalLM", "pruned_heads", "{}"},
		{"GPT2LMHeadModel", "num_hidden_layers", "2"}, {"LlamaForCausalLM", "partial_rotary_factor", "1.0"},
	} {
		if _, err := describe("config.json", config(t, c.arch, c.key, c.value)); err != nil {
			t.Errorf("%s with %s = %s: %v", c.arch, c.key, c.value, err)
		}
	}
}
