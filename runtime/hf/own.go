package hf

import (
	"encoding/binary"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/megatrain/mtc/runtime/checkpoint"
	"github.com/megatrain/mtc/runtime/checkpoint/safetensors"
	"github.com/megatrain/mtc/runtime/fault"
	"github.com/megatrain/mtc/runtime/plan"
)

// A mixture of experts whose router no known architecture has, because it goes by cutoffs or by biases
// of its own, is exported under an architecture of this project:
//
//	config.json          "architectures": ["MtcForCausalLM"], "model_type": "mtc"; mtc_model,
//	                     mtc_parameters, mtc_routers
//	model*.safetensors   weights, by the model's map or under its own names
//	router.safetensors   the routers' states, bit for bit as in a checkpoint
//	NAME.mt              the model's text
const (
	ownArch = "MtcForCausalLM"
	ownKind = "mtc"
)

// Entries say how a folder names a plan's weights: as the model's map says, and where a mixture of
// experts has none, as the model itself does, but for adapters.
func Entries(p *plan.Plan) []plan.Foreign {
	if len(p.Foreign) > 0 || len(p.Routers) == 0 {
		return p.Foreign
	}
	var out []plan.Foreign
	seen := map[string]bool{}
	for i := range p.Slabs {
		if p.LoRA.On() && !p.Slabs[i].Frozen {
			continue // adapters, which the folder has none of
		}
		for _, x := range p.Slabs[i].Params {
			if !seen[x.Name] {
				seen[x.Name] = true
				out = append(out, plan.Foreign{Names: []string{x.Name}, Params: []string{x.Name}})
			}
		}
	}
	return out
}

// owned tells whether a plan's model is exported as this project's architecture.
func owned(p *plan.Plan) bool { return p.Family.Name == "" && len(p.Routers) > 0 }

// RouterStates is the path of a folder's states of routers, "" where it has none.
func (f *Folder) RouterStates() string {
	if path := filepath.Join(f.Path, checkpoint.RouterFile); exists(path) {
		return path
	}
	return ""
}

// RouterKinds compares the routers that a folder's configuration lists with a plan's: states of one kind
// (cutoffs, biases) would be taken for another's. Experts that choose and thresholds have the same cutoffs.
func (f *Folder) RouterKinds(p *plan.Plan) error {
	list, _ := f.Config["mtc_routers"].([]any)
	kinds := map[string]string{}
	for _, x := range list {
		if o, ok := x.(object); ok {
			name, _ := o["name"].(string)
			kinds[name], _ = o["kind"].(string)
		}
	}
	for i := range p.Routers {
		r := &p.Routers[i]
		if kind := kinds[r.Name]; kind != "" && (kind == "topk") != (r.Kind == "topk") {
			return fault.New("MT0663", f.Path, "%s is %s there and %s in this model: what one has learned says nothing to the other", r.Name, kind, r.Kind).
				Help("give the router that config.json names, or take %s out of a copy of the folder for routers that begin anew", checkpoint.RouterFile)
		}
	}
	return nil
}

// ownConfig writes the configuration: what the model is called, its parameters, and of each router how it
// chooses and by what.
func (x *exporter) ownConfig(dtype string) ([]byte, error) {
	p := x.Plan
	c := ordered{}
	c.add("architectures", []string{ownArch})
	c.add("model_type", ownKind)
	c.add("mtc_model", p.Model)
	params := ordered{}
	for _, v := range p.Values {
		if settable(v.Name) {
			params.add(v.Name, v.Text)
		}
	}
	c.add("mtc_parameters", &params)
	states, err := safetensors.Open(filepath.Join(x.Checkpoint.Path, checkpoint.RouterFile))
	if err != nil {
		return nil, err
	}
	defer states.Close()
	var routers []*ordered
	for i := range p.Routers {
		r := &p.Routers[i]
		o := &ordered{}
		o.add("name", r.Name)
		o.add("kind", r.Kind)
		o.add("num_experts", r.Experts)
		o.add("experts_per_token", r.Mean)
		list := "bias"
		if r.Kind != "topk" {
			list = "threshold"
		}
		v, err := floats(states, r.Name+".router."+list)
		if err != nil {
			return nil, err
		}
		o.add(list, v)
		routers = append(routers, o)
	}
	c.add("mtc_routers", routers)
	c.add("vocab_size", p.Vocab)
	c.add("max_position_embeddings", p.Seq)
	c.add("bos_token_id", nil)
	c.add("eos_token_id", nil)
	c.add("torch_dtype", dtypeNames[dtype])
	return c.text(), nil
}

// floats are the numbers of an f32 tensor.
func floats(f *safetensors.File, name string) ([]any, error) {
	t := f.Lookup(name)
	if t == nil || t.DType != "F32" {
		return nil, fault.New("MT0625", f.Path, "there is no tensor %s of f32", name)
	}
	raw, err := io.ReadAll(f.Data(t))
	if err != nil {
		return nil, err
	}
	out := make([]any, len(raw)/4)
	for i := range out {
		out[i] = float32Of(math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:])))
	}
	return out, nil
}

// float32Of is a number as JSON has it: the shortest that reads back as it; null where it is none.
func float32Of(x float32) any {
	if math.IsNaN(float64(x)) || math.IsInf(float64(x), 0) {
		return nil
	}
	return x
}

// ownFiles adds the states of the routers and the model's text.
func (x *exporter) ownFiles() error {
	if err := x.copied(filepath.Join(x.Checkpoint.Path, checkpoint.RouterFile)); err != nil {
		return err
	}
	texts, err := filepath.Glob(filepath.Join(x.Run, "*.mt"))
	if err != nil {
		return err
	}
	for _, path := range texts {
		if err := x.copied(path); err != nil {
			return err
		}
	}
	return nil
}

func (x *exporter) copied(path string) error {
	name := filepath.Base(path)
	if exists(filepath.Join(x.tmp, name)) {
		return nil
	}
	x.res.Files = append(x.res.Files, name)
	return copyFile(path, filepath.Join(x.tmp, name))
}

// ownHint says how to go on with a folder of this project's architecture, which holds its model; "" for
// others.
func ownHint(path string, config object) string {
	if kind, _ := config["model_type"].(string); kind != ownKind {
		return ""
	}
	dir := filepath.Dir(path)
	file := "FILE.mt"
	if texts, err := filepath.Glob(filepath.Join(dir, "*.mt")); err == nil && len(texts) == 1 {
		file = fault.Shell(texts[0])
	}
	return "the folder's model is a .mt file: `mtc run " + file + " --from " + fault.Shell(dir) + ownSettings(config) + "`"
}

// settable says whether a value is a parameter of the model, not a constant of one of its routers.
func settable(name string) bool { return !strings.Contains(name, ".") }

// ownSettings are the parameters with which the model of a folder was trained, as options.
func ownSettings(config object) string {
	params, _ := config["mtc_parameters"].(object)
	var names []string
	for name := range params {
		if settable(name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	var b strings.Builder
	for _, name := range names {
		if text, ok := params[name].(string); ok {
			b.WriteString(" --set " + fault.Shell(name+"="+text))
		}
	}
	return b.String()
}
