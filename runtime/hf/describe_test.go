package hf

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/megatrain/mtc/runtime/fault"
	"github.com/megatrain/mtc/runtime/plan"
)

// config is a small configuration of an architecture; more are keys laid over it, `key: null`
// among them; "" takes a key out.
func config(t *testing.T, arch string, more ...string) object {
	t.Helper()
	base := map[string]string{
		"hidden_size": "32", "num_hidden_layers": "2", "num_attention_heads": "4", "num_key_value_heads": "2",
		"intermediate_size": "40", "vocab_size": "48", "max_position_embeddings": "64",
	}
	if arch == "GPT2LMHeadModel" {
		base = map[string]string{"n_embd": "24", "n_layer": "2", "n_head": "3", "vocab_size": "48", "n_positions": "16"}
	}
	base["architectures"] = fmt.Sprintf("[%q]", arch)
	for i := 0; i < len(more); i += 2 {
		if base[more[i]] = more[i+1]; more[i+1] == "" {
			delete(base, more[i])
		}
	}
	var parts []string
	for k, v := range base {
		parts = append(parts, fmt.Sprintf("%q: %s", k, v))
	}
	o, err := parseObject([]byte("{" + strings.Join(parts, ", ") + "}"))
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func TestConfigurationsOfTheFamilies(t *testing.T) {
	for _, c := range []struct {
		name, arch string
		more       []string
		want       string // values, some of them
		note       string
	}{
		{"llama's defaults", "LlamaForCausalLM", []string{"num_key_value_heads", ""}, "KV=4 hd=8 theta=10000 eps=1e-06 tied=false qkv_bias=false window=none scaling=none", ""},
		{"a head size of its own", "LlamaForCausalLM", []string{"head_dim", "16"}, "hd=16", ""},
		{"null head size", "LlamaForCausalLM", []string{"head_dim", "null"}, "hd=8", ""},
		{"whole numbers with a point", "LlamaForCausalLM", []string{"vocab_size", "48.0"}, "V=48", ""},
		{"mistral without a window", "MistralForCausalLM", []string{"sliding_window", "null"}, "window=none", ""},
		{"mistral with a window", "MistralForCausalLM", []string{"sliding_window", "7"}, "window=7", ""},
		{"mistral's own window", "MistralForCausalLM", nil, "window=4096", ""},
		{"qwen2", "Qwen2ForCausalLM", []string{"tie_word_embeddings", "true", "sliding_window", "9", "use_sliding_window", "false"}, "qkv_bias=true tied=true window=none", ""},
		{"qwen2, all layers slide", "Qwen2ForCausalLM", []string{"sliding_window", "9", "use_sliding_window", "true", "max_window_layers", "0"}, "window=9", ""},
		{"qwen2, layers beyond the model slide", "Qwen2ForCausalLM", []string{"sliding_window", "9", "use_sliding_window", "true", "max_window_layers", "2"}, "window=none", ""},
		{"qwen2, the last layer slides", "Qwen2ForCausalLM", []string{"sliding_window", "9", "use_sliding_window", "true", "max_window_layers", "1"}, "window=9 window_from=1 full_every=3", ""},
		{"qwen2's own window", "Qwen2ForCausalLM", []string{"use_sliding_window", "true", "max_window_layers", "0"}, "window=4096", ""},
		{"qwen2, layers take turns", "Qwen2ForCausalLM", []string{"sliding_window", "9", "use_sliding_window", "true", "num_hidden_layers", "5",
			"layer_types", `["full_attention", "sliding_attention", "full_attention", "sliding_attention", "full_attention"]`}, "window=9 window_from=1 full_every=2", ""},
		{"llama with biases", "LlamaForCausalLM", []string{"attention_bias", "true", "mlp_bias", "true"}, "qkv_bias=true o_bias=true mlp_bias=true", ""},
		{"qwen3 with biases", "Qwen3ForCausalLM", []string{"attention_bias", "true"}, "qkv_bias=true o_bias=true mlp_bias=false", ""},
		{"olmoe with biases", "OlmoeForCausalLM", []string{"attention_bias", "true", "output_router_logits", "true", "router_aux_loss_coef", "0"}, "attn_bias=true", "by layer here"},
		{"an untied GPT-2", "GPT2LMHeadModel", []string{"tie_word_embeddings", "false"}, "tied=false", ""},
		{"qwen3", "Qwen3ForCausalLM", []string{"attention_bias", "false"}, "hd=128 qk_norm=true qkv_bias=false", ""},
		{"mixtral", "MixtralForCausalLM", []string{"router_aux_loss_coef", "0"}, "E=8 K=2 theta=1e+06 eps=1e-05 alpha=0 window=none", ""},
		{"qwen3 moe", "Qwen3MoeForCausalLM", []string{"num_experts", "6", "num_experts_per_tok", "3", "moe_intermediate_size", "24", "norm_topk_prob", "true", "router_aux_loss_coef", "0",
			"use_sliding_window", "false", "mlp_only_layers", "[]", "decoder_sparse_step", "1", "sliding_window", "null", "max_window_layers", "48"}, "E=6 K=3 F=24 renorm=true head_norm=true", ""},
		{"olmoe", "OlmoeForCausalLM", []string{"num_local_experts", "4", "num_experts", "4", "num_experts_per_tok", "3", "clip_qkv", "null", "router_aux_loss_coef", "0.5", "output_router_logits", "true"}, "E=4 K=3 alpha=0.5 renorm=false head_norm=false", "by layer here"},
		{"no balance loss", "MixtralForCausalLM", nil, "alpha=0", "output_router_logits is false"},
		{"gpt2", "GPT2LMHeadModel", nil, "D=24 F=96 context=16 eps=1e-05", ""},
		{"gpt2, inner width", "GPT2LMHeadModel", []string{"n_inner", "40", "layer_norm_epsilon", "1e-6"}, "F=40 eps=1e-06", ""},
		{"dropout is noted", "GPT2LMHeadModel", []string{"attn_pdrop", "0.1"}, "", "attn_pdrop is 0.1"},
		{"an unknown key is noted", "LlamaForCausalLM", []string{"frobnicate", "3"}, "", "not read: frobnicate"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d, err := describe("config.json", config(t, c.arch, c.more...))
			if err != nil {
				t.Fatal(err)
			}
			have := values(d.Values)
			for _, w := range strings.Fields(c.want) {
				if name, text, _ := strings.Cut(w, "="); have[name] != text {
					t.Errorf("%s is %s, not %s", name, have[name], text)
				}
			}
			if notes := strings.Join(d.Notes, "\n"); !strings.Contains(notes, c.note) || c.note == "" && notes != "" {
				t.Errorf("notes: %q", notes)
			}
		})
	}
}

// The three spellings of one setting give one value.
func TestSpellingsOfRopeSettings(t *testing.T) {
	for name, c := range map[string]struct {
		want  string
		theta string
		forms [][]string
	}{
		"llama3": {"llama3(8, 1, 4, 8192)", "500000", [][]string{
			{"rope_theta", "500000.0", "rope_scaling", `{"type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}`},
			{"rope_theta", "5e5", "rope_scaling", `{"rope_type": "llama3", "factor": 8, "low_freq_factor": 1, "high_freq_factor": 4, "original_max_position_embeddings": 8192}`},
			{"rope_parameters", `{"rope_type": "llama3", "rope_theta": 500000, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}`},
			{"rope_theta", "500000", "rope_parameters", `{"rope_type": "llama3", "type": "llama3", "rope_theta": 500000, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}`},
		}},
		"none": {"none", "1e+06", [][]string{
			{"rope_theta", "1e6"}, {"rope_theta", "1000000", "rope_scaling", "null"}, {"rope_parameters", `{"rope_theta": 1e6}`},
			{"rope_parameters", `{"rope_theta": 1e6, "rope_type": "default", "factor": 1.0}`}, {"rope_scaling", `{"rope_theta": 1e6, "rope_type": "default"}`},
		}},
		"linear": {"linear(2.5)", "10000", [][]string{
			{"rope_scaling", `{"type": "linear", "factor": 2.5}`}, {"rope_parameters", `{"rope_type": "linear", "factor": 2.5, "rope_theta": 10000.0}`},
		}},
		"yarn with an amplitude": {"yarn(4, 32, 32, 1, 0.5)", "10000", [][]string{
			{"rope_scaling", `{"type": "yarn", "factor": 4.0, "attention_factor": 0.5, "original_max_position_embeddings": 32}`},
			{"original_max_position_embeddings", "32", "rope_parameters", `{"rope_type": "yarn", "factor": 4.0, "attention_factor": 0.5, "mscale": 0.7}`},
		}},
		"yarn": {"yarn(4, 64, 32, 1)", "10000", [][]string{
			{"rope_scaling", `{"type": "yarn", "factor": 4.0, "mscale": 0.7}`},
			{"rope_scaling", `{"type": "yarn", "factor": 4.0}`},
			{"rope_parameters", `{"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64, "beta_fast": 32, "beta_slow": 1, "rope_theta": 10000.0}`},
		}},
	} {
		for _, form := range c.forms {
			d, err := describe("config.json", config(t, "LlamaForCausalLM", form...))
			if err != nil {
				t.Errorf("%s: %v: %v", name, form, err)
				continue
			}
			if v := values(d.Values); v["scaling"] != c.want || v["theta"] != fmt.Sprint(numberText(c.theta)) {
				t.Errorf("%s: %v gives %s, theta %s", name, form, v["scaling"], v["theta"])
			}
		}
	}
}

func numberText(s string) float64 {
	var x float64
	fmt.Sscan(s, &x)
	return x
}

// What a family cannot express is refused, all of it at once.
func TestConfigurationsThatAreRefused(t *testing.T) {
	for _, c := range []struct {
		name, arch string
		more       []string
		want       []string
	}{
		{"unknown architecture", "BertForMaskedLM", nil, []string{"BertForMaskedLM", "LlamaForCausalLM", "Qwen3ForCausalLM"}},
		{"another type than its architecture", "LlamaForCausalLM", []string{"model_type", `"gemma"`}, []string{"gemma"}},
		{"biases, activation and a missing size together", "LlamaForCausalLM", []string{"qkv_bias", "true", "use_bias", "true", "hidden_act", `"gelu"`, "hidden_size", ""},
			[]string{"qkv_bias is true", "use_bias is true", `"gelu"`, "hidden_size is missing"}},
		{"biases where there are none", "MistralForCausalLM", []string{"attention_bias", "true", "mlp_bias", "true"}, []string{"attention_bias is true", "mlp_bias is true"}},
		{"biases of a Mixtral", "MixtralForCausalLM", []string{"attention_bias", "true"}, []string{"attention_bias is true"}},
		{"quantized", "Qwen2ForCausalLM", []string{"quantization_config", `{"bits": 4}`}, []string{"quantization_config"}},
		{"mixed windows", "Qwen2ForCausalLM", []string{"sliding_window", "9", "use_sliding_window", "true", "num_hidden_layers", "5", "layer_types", `["sliding_attention", "full_attention", "sliding_attention", "sliding_attention", "full_attention"]`}, []string{"an order that is not built"}},
		{"layers of another kind", "Qwen3ForCausalLM", []string{"layer_types", `["full_attention", "linear_attention"]`}, []string{"linear_attention"}},
		{"a Mistral by layers", "MistralForCausalLM", []string{"layer_types", `["full_attention", "sliding_attention"]`}, []string{"layer_types"}},
		{"windows that are off", "Qwen3ForCausalLM", []string{"layer_types", `["sliding_attention", "sliding_attention"]`}, []string{"use_sliding_window is false"}},
		{"layer types of another length", "Qwen3ForCausalLM", []string{"layer_types", `["full_attention"]`}, []string{"1 entries for 2 layers"}},
		{"heads that are no multiple", "LlamaForCausalLM", []string{"num_key_value_heads", "3"}, []string{"no multiple"}},
		{"rope of two minds", "LlamaForCausalLM", []string{"rope_theta", "1e4", "rope_parameters", `{"rope_theta": 1e6}`}, []string{"rope_theta is 10000 and in rope_parameters 1e+06"}},
		{"type of two minds", "LlamaForCausalLM", []string{"rope_scaling", `{"type": "linear", "rope_type": "yarn", "factor": 2}`}, []string{`"yarn"`, `"linear"`}},
		{"scalings of two minds", "LlamaForCausalLM", []string{"rope_scaling", `{"type": "linear", "factor": 2}`, "rope_parameters", `{"rope_type": "linear", "factor": 4}`}, []string{"linear(2)", "linear(4)"}},
		{"a scaling that is not built", "LlamaForCausalLM", []string{"rope_scaling", `{"type": "dynamic", "factor": 2}`}, []string{"dynamic", "yarn"}},
		{"a scaling without its numbers", "LlamaForCausalLM", []string{"rope_scaling", `{"type": "llama3"}`}, []string{"lacks factor", "lacks low_freq_factor"}},
		{"yarn without whole pairs", "LlamaForCausalLM", []string{"rope_scaling", `{"type": "yarn", "factor": 4, "truncate": false}`}, []string{"truncate is false"}},
		{"a long rope", "LlamaForCausalLM", []string{"rope_scaling", `{"type": "longrope", "long_factor": [1], "short_factor": [1]}`}, []string{`rope_scaling has the type "longrope"`}},
		{"theta of two minds", "LlamaForCausalLM", []string{"rope_theta", "1e4", "rope_scaling", `{"type": "linear", "factor": 2, "rope_theta": 500}`}, []string{"rope_theta is 10000 and in rope_scaling 500"}},
		{"theta in one of two", "LlamaForCausalLM", []string{"rope_scaling", `{"type": "linear", "factor": 2}`, "rope_parameters", `{"rope_type": "linear", "factor": 2, "rope_theta": 500}`}, []string{"rope_scaling says linear(2) with theta 10000, and rope_parameters linear(2) with 500"}},
		{"a part of each head", "LlamaForCausalLM", []string{"rope_parameters", `{"rope_theta": 1e4, "partial_rotary_factor": 0.5}`}, []string{"partial_rotary_factor"}},
		{"rope by kind of layer", "LlamaForCausalLM", []string{"rope_parameters", `{"full_attention": {"rope_theta": 1e4}}`}, []string{"full_attention is not known"}},
		{"another activation", "GPT2LMHeadModel", []string{"activation_function", `"relu"`, "scale_attn_by_inverse_layer_idx", "true"}, []string{"relu", "scale_attn_by_inverse_layer_idx"}},
		{"layers without experts", "Qwen3MoeForCausalLM", []string{"moe_intermediate_size", "8", "decoder_sparse_step", "2", "mlp_only_layers", "[0]"}, []string{"decoder_sparse_step is 2", "mlp_only_layers is [0]"}},
		{"experts of two minds", "OlmoeForCausalLM", []string{"num_experts", "4", "num_local_experts", "8", "num_experts_per_tok", "9", "clip_qkv", "8.0"}, []string{"num_experts is 4 and num_local_experts 8", "num_experts_per_tok is 9", "clip_qkv is 8.0"}},
		{"numbers that are none", "LlamaForCausalLM", []string{"hidden_size", `"32"`, "num_hidden_layers", "0", "rms_norm_eps", "-1", "vocab_size", "1e99", "tie_word_embeddings", "1"},
			[]string{`hidden_size is "32"`, "num_hidden_layers is 0", "rms_norm_eps is -1", "vocab_size is 1e99", "tie_word_embeddings is 1"}},
		{"numbers that are too large", "LlamaForCausalLM", []string{"hidden_size", "9223372036854775808", "vocab_size", "4611686018427387904", "intermediate_size", "1e30"},
			[]string{"hidden_size is 9223372036854775808; more than 1099511627776 is too large", "vocab_size is 4611686018427387904; more than", "intermediate_size is 1e30; more than"}},
		{"architectures that are no list", "LlamaForCausalLM", []string{"architectures", `"LlamaForCausalLM"`}, []string{"a list is wanted"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := describe("config.json", config(t, c.arch, c.more...))
			var f *fault.Error
			if !errors.As(err, &f) || f.Code != "MT0661" {
				t.Fatalf("%v", err)
			}
			for _, w := range c.want {
				if !strings.Contains(fault.Text(err), w) {
					t.Errorf("no %q in:\n%s", w, fault.Text(err))
				}
			}
		})
	}
}

// TestOneFaultIsToldOnce: a value that cannot be has no faults in its wake, of the values that it goes with.
func TestOneFaultIsToldOnce(t *testing.T) {
	for _, c := range []struct {
		arch       string
		key, value string
	}{
		{"LlamaForCausalLM", "hidden_size", "0"},
		{"LlamaForCausalLM", "hidden_size", `"32"`},
		{"LlamaForCausalLM", "hidden_size", ""},
		{"LlamaForCausalLM", "hidden_size", "1e30"},
		{"LlamaForCausalLM", "num_attention_heads", "0"},
		{"LlamaForCausalLM", "num_attention_heads", "2.5"},
		{"LlamaForCausalLM", "num_key_value_heads", "-1"},
		{"LlamaForCausalLM", "rope_scaling", `{"type": "linear"}`},
		{"LlamaForCausalLM", "rope_scaling", `{"type": "linear", "factor": 0}`},
		{"LlamaForCausalLM", "rope_scaling", `{"type": "ntk", "factor": 2}`},
		{"GPT2LMHeadModel", "n_head", "0"},
		{"Qwen3ForCausalLM", "num_hidden_layers", "-1"},
		{"MixtralForCausalLM", "num_local_experts", "-8"},
		{"OlmoeForCausalLM", "num_experts_per_tok", "0.5"},
	} {
		_, err := describe("config.json", config(t, c.arch, c.key, c.value))
		var f *fault.Error
		if !errors.As(err, &f) || f.Code != "MT0661" || strings.Count(f.Message, "\n") != 1 {
			t.Errorf("%s with %s %s: %v", c.arch, c.key, c.value, err)
		}
	}
}

// A configuration that is written reads back as what it was made from.
func TestWrittenConfigurationsReadBack(t *testing.T) {
	for _, c := range [][]string{
		{"GPT2LMHeadModel"}, {"LlamaForCausalLM", "head_dim", "16"}, {"MistralForCausalLM", "sliding_window", "7"}, {"MixtralForCausalLM", "sliding_window", "9"}, {"OlmoeForCausalLM"},
		{"Qwen3MoeForCausalLM", "moe_intermediate_size", "24", "norm_topk_prob", "true", "head_dim", "16"},
		{"Qwen2ForCausalLM", "tie_word_embeddings", "true", "rope_theta", "1e6"}, {"Qwen3ForCausalLM", "sliding_window", "9", "use_sliding_window", "true", "max_window_layers", "0"},
		{"LlamaForCausalLM", "rope_scaling", `{"type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}`},
		{"LlamaForCausalLM", "rope_scaling", `{"type": "yarn", "factor": 4.0}`},
		{"LlamaForCausalLM", "attention_bias", "true", "mlp_bias", "true", "rope_scaling", `{"type": "yarn", "factor": 4.0, "attention_factor": 0.5}`},
		{"LlamaForCausalLM", "attention_bias", "true"}, {"LlamaForCausalLM", "mlp_bias", "true"}, {"Qwen3ForCausalLM", "attention_bias", "true"},
		{"OlmoeForCausalLM", "attention_bias", "true"}, {"Qwen3MoeForCausalLM", "attention_bias", "true", "moe_intermediate_size", "24"}, {"GPT2LMHeadModel", "tie_word_embeddings", "false"},
		{"Qwen2ForCausalLM", "sliding_window", "9", "use_sliding_window", "true", "max_window_layers", "1"},
		{"Qwen3ForCausalLM", "sliding_window", "9", "use_sliding_window", "true", "layer_types", `["sliding_attention", "full_attention"]`},
		{"LlamaForCausalLM", "rope_scaling", `{"type": "linear", "factor": 2.5}`},
	} {
		d, err := describe("config.json", config(t, c[0], c[1:]...))
		if err != nil {
			t.Fatal(err)
		}
		text, why := configOf(family(d), "BF16", d.Context)
		if why != "" {
			t.Fatalf("%s: %s", c, why)
		}
		o, err := parseObject(text)
		if err != nil {
			t.Fatal(err)
		}
		back, err := describe("config.json", o)
		if err != nil {
			t.Fatalf("%s: %v\n%s", c, err, text)
		}
		if diff := Differences(back, family(d)); len(diff) > 0 || back.Arch != d.Arch {
			t.Errorf("%s comes back as %s: %v", c, back.Arch, diff)
		}
	}
}

func TestDuplicateKeysAreRefused(t *testing.T) {
	for _, text := range []string{
		`{"a": 1, "a": 2}`, `{"a": {"b": 1, "b": 1}}`, `[]`, `{"a": 1} {}`, `{"a": `, "{\"a\": \"\xff\"}", strings.Repeat(`{"a":`, 100) + "1" + strings.Repeat("}", 100), ``,
	} {
		if o, err := parseObject([]byte(text)); err == nil {
			t.Errorf("%q reads as %v", text, o)
		}
	}
}

func FuzzConfig(f *testing.F) {
	f.Add([]byte(`{"architectures": ["LlamaForCausalLM"], "hidden_size": 32, "rope_scaling": {"type": "llama3"}}`))
	f.Add([]byte(`{"model_type": "gpt2", "n_embd": 1e9}`))
	f.Add([]byte(`{"architectures": ["Qwen2ForCausalLM"], "layer_types": [1, null], "sliding_window": -1}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		o, err := parseObject(text)
		if err != nil {
			return
		}
		d, err := describe("config.json", o)
		if err == nil && (d.Arch == "" || len(d.Values) == 0) {
			t.Errorf("%q is described as nothing", text)
		}
	})
}

// family is the one of a program with a description's values.
func family(d *Description) plan.Family { return plan.Family{Name: d.Family, Values: d.Values} }
