package hf

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/megatrain/mtc/runtime/aside"
	"github.com/megatrain/mtc/runtime/checkpoint"
	"github.com/megatrain/mtc/runtime/checkpoint/safetensors"
	"github.com/megatrain/mtc/runtime/fault"
)

// Files of a PEFT adapter.
const (
	adapterConfig  = "adapter_config.json"
	adapterWeights = "adapter_model.safetensors"
)

// module is a linear of the other program, with its adapter.
type module struct {
	name string // "model.layers.3.self_attn.q_proj"
	a, b []float32
	rank int64
	n    int64 // adapters of ours in it
	in   int64
	out  int64
}

// ExportPEFT writes the adapters of a checkpoint as the folder of a PEFT adapter, which must not be
// there or be empty. Where the other program keeps several of the model's linears in one (GPT-2's
// q, k and v), their adapters become one of the sum of their ranks.
func ExportPEFT(dir string, r *Request) (*Result, error) {
	place, err := placeOf(dir)
	if err != nil {
		return nil, err
	}
	if !r.Plan.LoRA.On() {
		return nil, fault.New("MT0664", r.Checkpoint.Path, "the run has no adapters: everything of it learns").
			Help("`--hf DIR` writes the whole model; adapters come with `lora(rank, alpha, targets)` in the train block")
	}
	if err := r.Checkpoint.Verify(); err != nil {
		return nil, err
	}
	weights, err := safetensors.Open(filepath.Join(r.Checkpoint.Path, checkpoint.WeightsFile))
	if err != nil {
		return nil, err
	}
	defer weights.Close()
	x := &exporter{Request: r, weights: weights, res: &Result{Dir: dir, Arch: "a PEFT adapter"}}
	list, transposed, err := x.modules()
	if err != nil {
		return nil, err
	}
	config, err := json.MarshalIndent(x.adapterConfig(list, transposed), "", "  ")
	if err != nil {
		return nil, err
	}
	parent := filepath.Dir(place)
	if err := os.MkdirAll(parent, 0o777); err != nil {
		return nil, cannotWrite(parent, err)
	}
	tmp, err := aside.Make(parent, ".export-")
	if err != nil {
		return nil, cannotWrite(parent, err)
	}
	defer tmp.Remove()
	x.tmp = tmp.Path
	err = x.put(adapterConfig, append(config, '\n'))
	if err == nil {
		err = x.putAdapters(list)
	}
	if err == nil {
		err = tmp.Move(place)
	}
	if err != nil {
		return nil, x.cannotWrite(err)
	}
	return x.res, nil
}

// modules lists the linears of the other program that have an adapter.
func (x *exporter) modules() (list []module, fanIn bool, err error) {
	shapes := ShapesOf(x.Plan)
	for i := range x.Plan.Foreign {
		e := &x.Plan.Foreign[i]
		for k, name := range e.Names {
			own, err := x.adaptersOf(e, k)
			if err != nil {
				return nil, false, err
			}
			if len(own) == 0 {
				continue
			}
			all := parts(e, k, shapes)
			m := module{name: x.moduleName(name), n: int64(len(own)), in: own[0].in, out: all[len(all)-1].to}
			m.a, m.b, m.rank = stacked(own, m.out)
			list = append(list, m)
			fanIn = fanIn || transposed(e)
		}
	}
	if len(list) == 0 {
		return nil, false, fault.New("MT0664", x.Plan.Source, "the model does not say how its linears are called in other programs").
			Help("give it a map, `weights hf { ... }`")
	}
	return list, fanIn, nil
}

// moduleName is the name of a linear in the whole model: GPT-2's files leave out the first part.
func (x *exporter) moduleName(tensor string) string {
	name := strings.TrimSuffix(tensor, ".weight")
	if x.Plan.Family.Name == "gpt2" && name != "lm_head" {
		name = "transformer." + strings.TrimPrefix(name, "transformer.")
	}
	return name
}

// loraConfig is adapter_config.json.
type loraConfig struct {
	AlphaPattern  map[string]float64 `json:"alpha_pattern"`
	Base          string             `json:"base_model_name_or_path"`
	Bias          string             `json:"bias"`
	FanInFanOut   bool               `json:"fan_in_fan_out"`
	InferenceMode bool               `json:"inference_mode"`
	Init          bool               `json:"init_lora_weights"`
	Alpha         float64            `json:"lora_alpha"`
	Dropout       float64            `json:"lora_dropout"`
	Type          string             `json:"peft_type"`
	Rank          int64              `json:"r"`
	RankPattern   map[string]int64   `json:"rank_pattern"`
	Targets       []string           `json:"target_modules"`
	Task          string             `json:"task_type"`
	DoRA          bool               `json:"use_dora"`
	RSLoRA        bool               `json:"use_rslora"`
}

func (x *exporter) adapterConfig(list []module, transposed bool) *loraConfig {
	l := &x.Plan.LoRA
	c := &loraConfig{
		AlphaPattern: map[string]float64{}, RankPattern: map[string]int64{}, Bias: "none", FanInFanOut: transposed, InferenceMode: true,
		Init: true, Alpha: l.Alpha, Type: "LORA", Rank: l.Rank, Task: "CAUSAL_LM", Base: x.Checkpoint.State.Base.Path,
	}
	names := x.targetNames(list)
	for i := range list {
		name := names[i]
		if !slices.Contains(c.Targets, name) {
			c.Targets = append(c.Targets, name)
		}
		if m := &list[i]; m.rank != l.Rank {
			c.RankPattern[name], c.AlphaPattern[name] = m.rank, l.Alpha*float64(m.n)
		}
	}
	slices.Sort(c.Targets)
	return c
}

var inLayer = regexp.MustCompile(`^.*\.\d+\.(.+)$`)

// targetNames are what the configuration calls each module: by what follows the number of the layer
// where all modules that end so have adapters of one rank, else by its whole name.
func (x *exporter) targetNames(list []module) []string {
	rank := map[string]int64{}
	for i := range list {
		rank[list[i].name] = list[i].rank
	}
	out := make([]string, len(list))
	for i := range list {
		out[i] = list[i].name
		m := inLayer.FindStringSubmatch(list[i].name)
		if m == nil {
			continue
		}
		alike := true
		for k := range x.Plan.Foreign {
			for _, tensor := range x.Plan.Foreign[k].Names {
				name := x.moduleName(tensor)
				if strings.HasSuffix(name, "."+m[1]) && rank[name] != list[i].rank {
					alike = false
				}
			}
		}
		if alike {
			out[i] = m[1]
		}
	}
	return out
}

func (x *exporter) putAdapters(list []module) error {
	var entries []safetensors.Entry
	for i := range list {
		m := &list[i]
		prefix := "base_model.model." + m.name
		entries = append(entries, f32(prefix+".lora_A.weight", m.rank, m.in, m.a), f32(prefix+".lora_B.weight", m.out, m.rank, m.b))
	}
	out, err := os.Create(filepath.Join(x.tmp, adapterWeights))
	if err != nil {
		return err
	}
	defer out.Close()
	w := bufio.NewWriterSize(out, 1<<20)
	if err := safetensors.Write(w, map[string]string{"format": "pt"}, entries); err != nil {
		return err
	}
	if err := w.Flush(); err != nil {
		return err
	}
	info, err := out.Stat()
	if err != nil {
		return err
	}
	x.res.Bytes, x.res.Tensors = info.Size(), len(entries)
	x.res.Files = append(x.res.Files, adapterWeights)
	return out.Close()
}
