package hf

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"sort"
	"strconv"
	"strings"
)

// reader reads keys of a configuration, notes which it has read, and gathers what is wrong.
type reader struct {
	keys   object
	used   map[string]bool
	faults []string
	wrong  map[string]bool // keys whose value is one of the faults
	notes  []string
}

func newReader(o object) *reader {
	return &reader{keys: maps.Clone(o), used: map[string]bool{}, wrong: map[string]bool{}}
}

func (r *reader) fault(format string, args ...any) {
	// A key that is read twice is told of once.
	if text := fmt.Sprintf(format, args...); !slices.Contains(r.faults, text) {
		r.faults = append(r.faults, text)
	}
}

// relation is a fault in how keys go together: where one of them is a fault by itself, nothing is known of that.
func (r *reader) relation(keys []string, format string, args ...any) {
	if !slices.ContainsFunc(keys, func(key string) bool { return r.wrong[key] }) {
		r.fault(format, args...)
	}
}

func (r *reader) note(format string, args ...any) {
	r.notes = append(r.notes, fmt.Sprintf(format, args...))
}

// get returns a key's value; null counts as absent.
func (r *reader) get(key string) (any, bool) {
	r.used[key] = true
	v, ok := r.keys[key]
	return v, ok && v != nil
}

// maxLayers bounds what is made for each layer before a model is.
const maxLayers = 1 << 16

// whole reads a whole number above 0. Without def it has to be there.
func (r *reader) whole(key string, def ...int64) int64 {
	v, ok := r.get(key)
	if !ok {
		if len(def) == 0 {
			r.wrong[key] = true
			r.fault("%s is missing", key)
			return 1
		}
		return def[0]
	}
	n, ok := wholeOf(v)
	if x, err := strconv.ParseFloat(fmt.Sprint(v), 64); err == nil && x > 1<<40 {
		r.wrong[key] = true
		r.fault("%s is %s; more than %d is too large", key, jsonText(v), int64(1)<<40)
		return 1
	}
	if !ok || n < 1 {
		r.wrong[key] = true
		r.fault("%s is %s, a whole number above 0 is wanted", key, jsonText(v))
		return 1
	}
	return n
}

// wholeOf takes 8 and 8.0.
func wholeOf(v any) (int64, bool) {
	num, ok := v.(json.Number)
	if !ok {
		return 0, false
	}
	if n, err := strconv.ParseInt(string(num), 10, 64); err == nil {
		return n, true
	}
	x, err := strconv.ParseFloat(string(num), 64)
	if err != nil || x != math.Trunc(x) || math.Abs(x) > 1<<53 {
		return 0, false
	}
	return int64(x), true
}

// alias reads another name that a class has for a key: where both are there, they must agree.
func (r *reader) alias(key, other string) {
	v, ok := r.get(other)
	if !ok {
		return
	}
	if mine, ok := r.keys[key]; !ok || mine == nil {
		r.keys[key] = v
	} else if jsonText(mine) != jsonText(v) {
		r.fault("%s is %s, and %s, which is the same, %s", key, jsonText(mine), other, jsonText(v))
	}
}

// number reads a number above 0.
func (r *reader) number(key string, def float64) float64 {
	v, ok := r.get(key)
	if !ok {
		return def
	}
	x, ok := numberOf(v)
	if !ok || !(x > 0) {
		r.fault("%s is %s, a number above 0 is wanted", key, jsonText(v))
		return def
	}
	return x
}

func numberOf(v any) (float64, bool) {
	num, ok := v.(json.Number)
	if !ok {
		return 0, false
	}
	x, err := strconv.ParseFloat(string(num), 64)
	return x, err == nil && !math.IsInf(x, 0)
}

// boolean reads true or false.
func (r *reader) boolean(key string, def bool) bool {
	v, ok := r.get(key)
	if !ok {
		return def
	}
	b, ok := v.(bool)
	if !ok {
		r.fault("%s is %s, true or false is wanted", key, jsonText(v))
		return def
	}
	return b
}

// word reads a string.
func (r *reader) word(key, def string) string {
	v, ok := r.get(key)
	if !ok {
		return def
	}
	s, ok := v.(string)
	if !ok {
		r.fault("%s is %s, a string is wanted", key, jsonText(v))
		return def
	}
	return s
}

// only refuses every value of a key but one, for what is not built.
func (r *reader) only(key string, want bool, what string) {
	if got := r.boolean(key, want); got != want {
		r.fault("%s is %t: %s", key, got, what)
	}
}

// dropout notes a dropout, which training here has none of.
func (r *reader) dropout(keys ...string) {
	for _, key := range keys {
		v, ok := r.get(key)
		if !ok {
			continue
		}
		if x, ok := numberOf(v); !ok || x < 0 || x >= 1 {
			r.fault("%s is %s, a share below 1 is wanted", key, jsonText(v))
		} else if x > 0 {
			r.note("%s is %s: training here has no dropout", key, jsonText(v))
		}
	}
}

// silent are keys that say nothing of the mathematics of forward and loss.
var silent = map[string]bool{
	"architectures": true, "model_type": true, "torch_dtype": true, "dtype": true, "transformers_version": true,
	"bos_token_id": true, "eos_token_id": true, "pad_token_id": true, "sep_token_id": true, "cls_token_id": true,
	"unk_token_id": true, "mask_token_id": true, "decoder_start_token_id": true, "use_cache": true, "initializer_range": true,
	"pretraining_tp": true, "_name_or_path": true, "return_dict": true, "return_dict_in_generate": true, "id2label": true,
	"label2id": true, "num_labels": true, "output_attentions": true, "output_hidden_states": true,
	"chunk_size_feed_forward": true, "is_encoder_decoder": true, "is_decoder": true, "problem_type": true,
	"task_specific_params": true, "max_position_embeddings": true, "n_ctx": true, "n_positions": true, "gradient_checkpointing": true,
	"attn_implementation": true, "_attn_implementation": true, "_attn_implementation_autoset": true, "torchscript": true,
	"finetuning_task": true, "prefix": true, "tokenizer_class": true, "max_length": true, "min_length": true, "do_sample": true,
	"temperature": true, "top_k": true, "top_p": true, "num_beams": true, "repetition_penalty": true, "no_repeat_ngram_size": true,
	"summary_activation": true, "summary_first_dropout": true, "summary_proj_to_labels": true, "summary_type": true,
	"summary_use_proj": true, "model_max_length": true, "pad_to_multiple_of": true,
}

// finish gathers the keys that nothing has read: some are known to change the mathematics,
// the others are named, so that nothing is passed over in silence.
func (r *reader) finish() {
	var unread []string
	for key, v := range r.keys {
		if r.used[key] || silent[key] || v == nil && key != "is_causal" { // which counts as false where it is null
			continue
		}
		switch key {
		case "quantization_config":
			r.fault("quantization_config: the weights are quantized; take the folder of the model that was quantized")
		case "attention_bias", "mlp_bias", "qkv_bias", "use_bias":
			if v != false {
				r.fault("%s is %s: this family is built without", key, jsonText(v))
			}
		case "is_causal":
			if v != true {
				r.fault("is_causal is %s: a token sees what stands before it, here", jsonText(v))
			}
		case "sliding_window", "attention_chunk_size", "layer_types":
			r.fault("%s is %s: in this architecture transformers passes it over, and other programs do not; take it out of a copy of the file, if that is what is meant", key, jsonText(v))
		case "pruned_heads":
			if o, ok := v.(object); !ok || len(o) > 0 {
				r.fault("pruned_heads is %s: all heads are there, here", jsonText(v))
			}
		case "rope_interleaved", "alibi", "parallel_residual", "use_parallel_residual", "layer_norm_bias", "use_qk_norm", "no_rope_layers":
			if list, ok := v.([]any); v != false && (!ok || len(list) > 0) {
				r.fault("%s is %s: this family is built without", key, jsonText(v))
			}
		case "partial_rotary_factor":
			if x, ok := numberOf(v); !ok || x != 1 {
				r.fault("%s is %s: only whole heads are turned here", key, jsonText(v))
			}
		case "logits_soft_cap", "final_logit_softcapping", "attn_logit_softcapping", "logit_scale", "embedding_multiplier",
			"residual_multiplier", "attention_multiplier", "logits_scaling", "clip_qkv", "query_pre_attn_scalar":
			r.fault("%s is %s: this family is built without", key, jsonText(v))
		default:
			unread = append(unread, key)
		}
	}
	sort.Strings(unread)
	sort.Strings(r.faults)
	if len(unread) > 0 {
		r.note("not read: %s; if one of them changes what the model computes, results will differ", strings.Join(unread, ", "))
	}
}

// jsonText writes a value as it stands in JSON, cut where it is long.
func jsonText(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	if len(text) > 60 {
		return string(text[:57]) + "..."
	}
	return string(text)
}
