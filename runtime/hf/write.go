package hf

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/megatrain/mtc/runtime/plan"
)

// configOf writes the configuration of a family's model. Why says what stands against it when
// there is no architecture for it. dtype is one of ours, context the positions it was trained
// on.
func configOf(family plan.Family, dtype string, context int64) (text []byte, why string) {
	v := values(family.Values)
	c := ordered{}
	switch family.Name {
	case "gpt2":
		c.add("architectures", []string{"GPT2LMHeadModel"})
		c.add("model_type", "gpt2")
		c.add("activation_function", "gelu_new")
		c.add("n_embd", v.whole("D"))
		c.add("n_layer", v.whole("L"))
		c.add("n_head", v.whole("H"))
		c.add("n_inner", v.whole("F"))
		c.add("n_positions", v.whole("context"))
		c.add("n_ctx", v.whole("context"))
		c.add("vocab_size", v.whole("V"))
		c.add("layer_norm_epsilon", v.number("eps"))
		for _, key := range []string{"attn_pdrop", "embd_pdrop", "resid_pdrop"} {
			c.add(key, 0.0)
		}
		c.add("scale_attn_weights", true)
		c.add("tie_word_embeddings", v["tied"] == "true")
	case "llama", "mixtral", "qwen3_moe":
		if why := llamaConfig(&c, family.Name, v, context); why != "" {
			return nil, why
		}
	default:
		return nil, family.Why
	}
	// Ids of the tokenizer are not a model's to know; without them the library has its own.
	c.add("bos_token_id", nil)
	c.add("eos_token_id", nil)
	c.add("torch_dtype", dtypeNames[dtype])
	return c.text(), ""
}

// dtypeNames are our dtypes as torch calls them.
var dtypeNames = map[string]string{"F32": "float32", "F16": "float16", "BF16": "bfloat16"}

// llamaConfig chooses the architecture with the switches that the model has.
func llamaConfig(c *ordered, family string, v valueMap, context int64) (why string) {
	bias, outBias, mlpBias := v["qkv_bias"] == "true", v["o_bias"] == "true", v["mlp_bias"] == "true"
	norm, window := v["qk_norm"] == "true", v["window"]
	full := v.fullLayers() // of a model with a window those that have none
	arch, kind := "LlamaForCausalLM", "llama"
	switch {
	case family == "mixtral":
		arch, kind = "MixtralForCausalLM", "mixtral"
	case family == "qwen3_moe" && v["head_norm"] == "true":
		arch, kind = "Qwen3MoeForCausalLM", "qwen3_moe"
	case family == "qwen3_moe" && (window != "none" || v.whole("hd")*v.whole("H") != v.whole("D")):
		return "with norms over the whole of q and k there is OLMoE, which has no window and heads of hidden_size / heads"
	case family == "qwen3_moe":
		arch, kind = "OlmoeForCausalLM", "olmoe"
	case mlpBias && (norm || window != "none" || bias != outBias):
		return "with biases in the MLP there is Llama, which has neither norms of heads nor a window, and biases of q, k, v and o or none"
	case norm && bias != outBias:
		return "with norms of the heads of q and k there is Qwen3, which has biases of q, k, v and o or none"
	case norm:
		arch, kind = "Qwen3ForCausalLM", "qwen3"
	case outBias && (window != "none" || !bias):
		return "with a bias of o there is Llama, which has biases of q, k and v too, and no window"
	case bias && !outBias:
		arch, kind = "Qwen2ForCausalLM", "qwen2"
	case window != "none" && full:
		return "without biases or norms of heads there is Mistral, which has its window in every layer"
	case window != "none":
		arch, kind = "MistralForCausalLM", "mistral"
	}
	c.add("architectures", []string{arch})
	c.add("model_type", kind)
	c.add("hidden_act", "silu")
	c.add("hidden_size", v.whole("D"))
	c.add("num_hidden_layers", v.whole("L"))
	c.add("num_attention_heads", v.whole("H"))
	c.add("num_key_value_heads", v.whole("KV"))
	c.add("head_dim", v.whole("hd"))
	if kind == "qwen3_moe" {
		c.add("moe_intermediate_size", v.whole("F"))
		c.add("decoder_sparse_step", 1)
		c.add("mlp_only_layers", []int64{})
	}
	c.add("intermediate_size", v.whole("F"))
	if family != "llama" {
		name := "num_experts"
		if kind == "mixtral" {
			name = "num_local_experts"
		} else {
			c.add("norm_topk_prob", v["renorm"] == "true")
		}
		c.add(name, v.whole("E"))
		c.add("num_experts_per_tok", v.whole("K"))
		c.add("router_aux_loss_coef", v.number("alpha"))
		c.add("output_router_logits", false)
	}
	c.add("vocab_size", v.whole("V"))
	c.add("max_position_embeddings", context)
	c.add("rms_norm_eps", v.number("eps"))
	c.add("rope_theta", v.number("theta"))
	scaling, why := ropeScaling(v["scaling"])
	if why != "" {
		return why
	}
	c.add("rope_scaling", scaling)
	c.add("attention_bias", kind == "llama" && bias || kind == "qwen3" && bias || v["attn_bias"] == "true")
	c.add("attention_dropout", 0.0)
	switch kind {
	case "llama":
		c.add("mlp_bias", mlpBias)
	case "olmoe":
	case "mixtral":
		c.add("sliding_window", nil)
		if window != "none" {
			c.values[len(c.values)-1] = v.whole("window")
		}
	case "mistral":
		c.add("sliding_window", v.whole("window"))
	default:
		c.add("use_sliding_window", window != "none")
		if window != "none" {
			c.add("sliding_window", v.whole("window"))
			c.add("max_window_layers", v.whole("window_from"))
			if full {
				c.add("layer_types", v.layerTypes())
			}
		}
	}
	c.add("tie_word_embeddings", v["tied"] == "true")
	return ""
}

// ropeScaling writes the value of `scaling` as rope_scaling.
func ropeScaling(text string) (*ordered, string) {
	name, rest, _ := strings.Cut(text, "(")
	var args []float64
	for _, a := range strings.Split(strings.TrimSuffix(rest, ")"), ",") {
		if x, err := strconv.ParseFloat(strings.TrimSpace(a), 64); err == nil {
			args = append(args, x)
		}
	}
	c := &ordered{}
	switch {
	case text == "none":
		return nil, ""
	case name == "linear" && len(args) == 1:
		c.add("rope_type", "linear")
		c.add("factor", args[0])
	case name == "llama3" && len(args) == 4:
		c.add("rope_type", "llama3")
		c.add("factor", args[0])
		c.add("low_freq_factor", args[1])
		c.add("high_freq_factor", args[2])
		c.add("original_max_position_embeddings", int64(args[3]))
	case name == "yarn" && len(args) >= 2 && len(args) <= 5:
		c.add("rope_type", "yarn")
		c.add("factor", args[0])
		c.add("original_max_position_embeddings", int64(args[1]))
		for i, key := range []string{"beta_fast", "beta_slow", "attention_factor"} {
			if len(args) > 2+i {
				c.add(key, args[2+i])
			}
		}
	default:
		return nil, "no architecture has the rope scaling " + text
	}
	return c, ""
}

// valueMap are a family's values by name.
type valueMap map[string]string

func values(list []plan.Value) valueMap {
	out := valueMap{}
	for _, v := range list {
		out[v.Name] = v.Text
	}
	return out
}

func (v valueMap) whole(name string) int64 {
	n, _ := strconv.ParseInt(v[name], 10, 64)
	return n
}

func (v valueMap) number(name string) float64 {
	x, _ := strconv.ParseFloat(v[name], 64)
	return x
}

// windowed says whether a layer of a model with a window has it.
func (v valueMap) windowed(i int) bool {
	every := int(v.whole("full_every"))
	return every < 1 || plan.Windowed(i, int(v.whole("window_from")), every)
}

func (v valueMap) fullLayers() bool {
	for i := range int(v.whole("L")) {
		if !v.windowed(i) {
			return true
		}
	}
	return false
}

func (v valueMap) layerTypes() (out []string) {
	for i := range int(v.whole("L")) {
		out = append(out, map[bool]string{true: "sliding_attention", false: "full_attention"}[v.windowed(i)])
	}
	return out
}

// ordered is a JSON object whose keys stay in order.
type ordered struct {
	keys   []string
	values []any
}

func (o *ordered) add(key string, v any) {
	if x, ok := v.(float64); ok {
		v = real(x)
	}
	o.keys, o.values = append(o.keys, key), append(o.values, v)
}

// real is a number that stays one with a point, 8.0: readers tell it from a whole one.
type real float64

// MarshalJSON writes the shortest text that reads back as the number.
func (x real) MarshalJSON() ([]byte, error) {
	text := strconv.FormatFloat(float64(x), 'g', -1, 64)
	if !strings.ContainsAny(text, ".e") {
		text += ".0"
	}
	return []byte(text), nil
}

// MarshalJSON writes the keys in the order of add.
func (o *ordered) MarshalJSON() ([]byte, error) {
	out := []byte{'{'}
	for i, key := range o.keys {
		v, err := json.Marshal(o.values[i])
		if err != nil {
			return nil, err
		}
		if i > 0 {
			out = append(out, ',')
		}
		out = append(append(strconv.AppendQuote(out, key), ':'), v...)
	}
	return append(out, '}'), nil
}

// text is the object as a file.
func (o *ordered) text() []byte {
	text, err := json.MarshalIndent(o, "", "  ")
	if err != nil {
		panic(err) // plain data
	}
	return append(text, '\n')
}
