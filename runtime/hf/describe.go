package hf

import (
	"fmt"
	"path/filepath"
	"slices"
	"sort"
	"strings"

	"github.com/megatrain/mtc/runtime/fault"
	"github.com/megatrain/mtc/runtime/plan"
)

// Description is what a configuration says of a model.
type Description struct {
	Arch    string       // "Qwen2ForCausalLM"
	Family  string       // the family's .mt: "llama", "gpt2"
	Values  []plan.Value // its parameters, all of them, in its order
	Context int64        // positions that the model was trained on
	Notes   []string     // what is left out and may be missed
}

// arch is one known architecture.
type arch struct {
	name, kind string // of "architectures" and "model_type"
	family     string
	describe   func(r *reader) []plan.Value
}

// archs are the known architectures.
var archs = []arch{
	{"GPT2LMHeadModel", "gpt2", "gpt2", describeGPT2},
	{"LlamaForCausalLM", "llama", "llama", describeLlama},
	{"MistralForCausalLM", "mistral", "llama", describeMistral},
	{"Qwen2ForCausalLM", "qwen2", "llama", describeQwen2},
	{"Qwen3ForCausalLM", "qwen3", "llama", describeQwen3},
	{"MixtralForCausalLM", "mixtral", "mixtral", describeMixtral},
	{"Qwen3MoeForCausalLM", "qwen3_moe", "qwen3_moe", describeQwen3Moe},
	{"OlmoeForCausalLM", "olmoe", "qwen3_moe", describeOlmoe},
}

// Architectures lists the names of the known architectures.
func Architectures() []string {
	var out []string
	for _, a := range archs {
		out = append(out, a.name)
	}
	return out
}

// Describe reads a folder's configuration. What it has that the family cannot express is an
// error that names all of it.
func (f *Folder) Describe() (*Description, error) {
	return describe(filepath.Join(f.Path, configFile), f.Config)
}

func describe(path string, config object) (*Description, error) {
	a, err := find(path, config)
	if err != nil {
		return nil, err
	}
	r := newReader(config)
	d := &Description{Arch: a.name, Family: a.family, Values: a.describe(r)}
	if a.family == "gpt2" {
		d.Context = r.whole("n_positions", 1024)
	} else {
		d.Context = r.whole("max_position_embeddings", 2048)
	}
	r.finish()
	d.Notes = r.notes
	if len(r.faults) > 0 {
		return nil, fault.New("MT0661", path, "%s cannot be had with this configuration:%s", a.name, lines(r.faults)).
			Help("an import that passed this over would compute something else; take a model without it")
	}
	return d, nil
}

// lines puts each text on a line of its own, indented below a message.
func lines(list []string) string {
	return "\n    " + strings.Join(list, "\n    ")
}

// find returns the architecture that a configuration names.
func find(path string, config object) (*arch, error) {
	kind, _ := config["model_type"].(string)
	var names []string
	switch list := config["architectures"].(type) {
	case nil:
	case []any:
		for _, v := range list {
			s, ok := v.(string)
			if !ok {
				return nil, fault.New("MT0661", path, "architectures has %s, names are wanted", jsonText(v))
			}
			names = append(names, s)
		}
	default:
		return nil, fault.New("MT0661", path, "architectures is %s, a list is wanted", jsonText(list))
	}
	for _, n := range names {
		for i := range archs {
			if archs[i].name == n {
				if kind != "" && kind != archs[i].kind {
					return nil, fault.New("MT0661", path, "the architecture is %s and the model_type %q, not %q", n, kind, archs[i].kind)
				}
				return &archs[i], nil
			}
		}
	}
	// A base model, stored without its head, is named otherwise: LlamaModel.
	for i := range archs {
		base := strings.TrimSuffix(strings.TrimSuffix(archs[i].name, "ForCausalLM"), "LMHeadModel") + "Model"
		if kind == archs[i].kind && (len(names) == 0 || len(names) == 1 && names[0] == base) {
			return &archs[i], nil
		}
	}
	what := strings.Join(names, ", ")
	if what == "" {
		what = "no architecture"
		if kind != "" {
			what = fmt.Sprintf("the model_type %q", kind)
		}
	}
	if hint := ownHint(path, config); hint != "" {
		return nil, fault.New("MT0661", path, "the configuration names %s, which `mtc export` writes and no `mtc import` reads", what).Help("%s", hint)
	}
	known := Architectures()
	sort.Strings(known)
	return nil, fault.New("MT0661", path, "the configuration names %s, which is not known", what).
		Help("known are %s", strings.Join(known, ", "))
}

// value is a parameter of a family.
func value(name string, v any) plan.Value { return plan.Value{Name: name, Text: fmt.Sprint(v)} }

func describeGPT2(r *reader) []plan.Value {
	for key, other := range map[string]string{"n_embd": "hidden_size", "n_positions": "max_position_embeddings",
		"n_head": "num_attention_heads", "n_layer": "num_hidden_layers"} {
		r.alias(key, other)
	}
	d := r.whole("n_embd")
	if act := r.word("activation_function", "gelu_new"); act != "gelu_new" && act != "gelu_pytorch_tanh" {
		r.fault("activation_function is %q; gelu_new is built", act)
	}
	r.only("scale_attn_weights", true, "scores are divided by the root of the head size here")
	r.only("scale_attn_by_inverse_layer_idx", false, "scores are scaled alike in every layer here")
	r.only("add_cross_attention", false, "a decoder alone is built")
	r.boolean("reorder_and_upcast_attn", false) // scores are f32 anyway
	r.dropout("attn_pdrop", "embd_pdrop", "resid_pdrop")
	return []plan.Value{
		value("D", d), value("L", r.whole("n_layer")), value("H", r.whole("n_head")), value("V", r.whole("vocab_size")),
		value("context", r.whole("n_positions", 1024)), value("F", r.whole("n_inner", 4*d)), value("eps", r.number("layer_norm_epsilon", 1e-5)),
		value("tied", r.boolean("tie_word_embeddings", true)),
	}
}

// defaults are what a class of transformers takes for keys that a configuration leaves out.
type defaults struct {
	kv, headDim int64 // 0: heads, width / heads
	theta, eps  float64
	hidden      string // key of the MLP's width
}

// llama reads what the families with Llama's attention share; window is the value of `window`.
func (r *reader) llama(d defaults, window string) []plan.Value {
	if act := r.word("hidden_act", "silu"); act != "silu" && act != "swish" {
		r.fault("hidden_act is %q; silu is built", act)
	}
	r.dropout("attention_dropout", "hidden_dropout", "embedding_dropout")
	width, heads := r.whole("hidden_size"), r.whole("num_attention_heads")
	if d.kv == 0 {
		d.kv = heads
	}
	kv := r.whole("num_key_value_heads", d.kv)
	if heads%kv != 0 {
		r.relation([]string{"num_attention_heads", "num_key_value_heads"}, "num_attention_heads is %d, no multiple of num_key_value_heads, which is %d", heads, kv)
	}
	if d.headDim == 0 {
		d.headDim = width / heads
		if _, given := r.get("head_dim"); !given && width%heads != 0 {
			r.relation([]string{"hidden_size", "num_attention_heads"}, "hidden_size is %d, no multiple of num_attention_heads, which is %d, and there is no head_dim", width, heads)
		}
	}
	theta, scaling := r.rope(d.theta)
	return []plan.Value{
		value("D", width), value("L", r.whole("num_hidden_layers")), value("H", heads), value("KV", kv),
		value("F", r.whole(d.hidden)), value("V", r.whole("vocab_size")), value("hd", r.whole("head_dim", d.headDim)),
		value("theta", theta), value("eps", r.number("rms_norm_eps", d.eps)), value("scaling", scaling),
		value("window", window), value("tied", r.boolean("tie_word_embeddings", false)),
	}
}

// switches are those of the llama's .mt. A window is in layers from on, but for every every-th.
type switches struct {
	qkvBias, outBias, mlpBias, norm bool
	window                          string
	from, every                     int
}

// dense is llama with a dense MLP and the switches of its .mt.
func (r *reader) dense(d defaults, s switches) []plan.Value {
	d.hidden = "intermediate_size"
	if s.every == 0 {
		s.every = int(r.whole("num_hidden_layers")) + 1
	}
	return append(r.llama(d, s.window), value("qkv_bias", s.qkvBias), value("o_bias", s.outBias), value("mlp_bias", s.mlpBias),
		value("qk_norm", s.norm), value("window_from", s.from), value("full_every", s.every))
}

func describeLlama(r *reader) []plan.Value {
	bias := r.boolean("attention_bias", false)
	return r.dense(defaults{theta: 1e4, eps: 1e-6}, switches{window: "none", qkvBias: bias, outBias: bias, mlpBias: r.boolean("mlp_bias", false)})
}

func describeMistral(r *reader) []plan.Value {
	window := "none"
	if _, there := r.keys["sliding_window"]; !there {
		window = "4096"
	} else if w := r.whole("sliding_window", 0); w > 0 {
		window = fmt.Sprint(w)
	}
	if _, ok := r.get("layer_types"); ok {
		r.fault("layer_types: a Mistral has its window in every layer")
	}
	return r.dense(defaults{kv: 8, theta: 1e4, eps: 1e-6}, switches{window: window})
}

func describeQwen2(r *reader) []plan.Value {
	s := r.layeredWindow()
	s.qkvBias = true
	return r.dense(defaults{kv: 32, theta: 1e4, eps: 1e-6}, s)
}

func describeQwen3(r *reader) []plan.Value {
	s := r.layeredWindow()
	s.norm, s.qkvBias = true, r.boolean("attention_bias", false)
	s.outBias = s.qkvBias
	return r.dense(defaults{kv: 32, headDim: 128, theta: 1e4, eps: 1e-6}, s)
}

// layeredWindow reads the sliding window of models that may have one in some of their layers:
// by layer_types, else from max_window_layers on.
func (r *reader) layeredWindow() switches {
	size, given := int64(4096), true
	if _, there := r.keys["sliding_window"]; there {
		size = r.whole("sliding_window", 0) // null is none
		given = size > 0
	}
	on := r.boolean("use_sliding_window", false) && given
	from := int64(28)
	if v, ok := r.get("max_window_layers"); ok {
		n, whole := wholeOf(v)
		if from = n; !whole || n < 0 {
			r.fault("max_window_layers is %s, a whole number is wanted", jsonText(v))
		}
	}
	layers := r.whole("num_hidden_layers")
	if layers > maxLayers {
		return switches{window: "none"} // refused where it is read
	}
	list := make([]bool, layers)
	for i := range list {
		list[i] = int64(i) >= from
	}
	if v, ok := r.get("layer_types"); ok {
		list = r.layerTypes(v, layers)
		if !on && slices.Contains(list, true) {
			r.fault("layer_types has sliding_attention, and there is no window: use_sliding_window is false, or sliding_window null")
		}
	}
	if !on {
		list = make([]bool, layers)
	}
	s := switches{window: "none"}
	s.from, s.every = plan.Windows(list)
	for i, w := range list {
		if w {
			s.window = fmt.Sprint(size)
		}
		if w != (plan.Windowed(i, s.from, s.every) && s.window != "none") {
			r.fault("layer_types has its windows in an order that is not built: from some layer on, and there in all layers but every n-th, is")
			break
		}
	}
	return s
}

// layerTypes reads which layers slide.
func (r *reader) layerTypes(v any, layers int64) []bool {
	list, _ := v.([]any)
	if int64(len(list)) != layers {
		r.relation([]string{"num_hidden_layers"}, "layer_types has %d entries for %d layers", len(list), layers)
	}
	out := make([]bool, layers)
	for i, t := range list {
		switch {
		case t != "full_attention" && t != "sliding_attention":
			r.fault("layer_types has %s; there are full_attention and sliding_attention", jsonText(t))
			return out
		case i < len(out):
			out[i] = t == "sliding_attention"
		}
	}
	return out
}
