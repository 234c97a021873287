package main

import (
	"context"
	"io"
	"strings"

	"github.com/spf13/pflag"

	"github.com/megatrain/mtc/compiler"
	"github.com/megatrain/mtc/lang/diag"
)

// compileOptions are the choices that `mtc compile` and `mtc run` take; a build's record keeps
// them, so that a build that is out of date is made again as it was.
type compileOptions struct {
	Preset     string   `json:"preset,omitempty"`
	Set        []string `json:"set,omitempty"`
	Model      string   `json:"model,omitempty"`
	Target     string   `json:"target,omitempty"`
	Placement  string   `json:"placement,omitempty"`
	Memory     int64    `json:"device_memory,omitempty"`
	Slots      int64    `json:"slots,omitempty"`
	GradSlots  int64    `json:"grad_slots,omitempty"`
	MicroBatch int64    `json:"micro_batch,omitempty"`
	Groups     int64    `json:"groups,omitempty"`
	Recompute  string   `json:"recompute,omitempty"`
	CheckNaN   bool     `json:"check_nan,omitempty"`

	Order         string `json:"order,omitempty"`
	Resident      string `json:"resident,omitempty"`
	DeviceWeights int64  `json:"device_weights,omitempty"`
	GradHome      string `json:"grad_home,omitempty"`
	GradPrecision string `json:"grad_precision,omitempty"`
	SaveInputs    string `json:"save_inputs,omitempty"`
	SaveValues    string `json:"save_values,omitempty"`
	HostSlots     int64  `json:"host_slots,omitempty"`
	InputEvery    int64  `json:"input_every,omitempty"`

	// What the planner is asked, where it chooses: for which machine, within which host memory,
	// and which flags it leaves as they are.
	Planned    bool     `json:"planned,omitempty"`
	Machine    string   `json:"machine,omitempty"`
	HostMemory int64    `json:"host_memory,omitempty"`
	Pinned     []string `json:"pinned,omitempty"`

	tell io.Writer // is told how far planning is; nil: nobody
}

// bind adds the flags.
func (o *compileOptions) bind(fs *pflag.FlagSet) {
	fs.StringVar(&o.Preset, "preset", "", "a preset of the model, by `NAME`")
	fs.StringArrayVar(&o.Set, "set", nil, "a value, `K=V`: a parameter of the model (D=512) or a field of the train block (train.steps=100); repeat it for more")
	fs.StringVar(&o.Model, "model", "", "`NAME` of the model, where a file has several")
	enumFlag(fs, &o.Target, "target", "", "what it runs on", "cpu", "cuda")
	enumFlag(fs, &o.Placement, "placement", "", "where weights and optimizer state live: in device memory, or on the host, streaming through", "resident", "stream", "auto")
	fs.Var((*byteSize)(&o.Memory), "device-memory", "`SIZE` that the plan may take on the device, such as 24GiB; a stream fills it (default: any)")
	fs.Int64Var(&o.Slots, "slots", 0, "`N` device slots that layer weights stream through; 0: one more than --input-every")
	fs.Int64Var(&o.GradSlots, "grad-slots", 0, "`N` device slots that layer gradients leave through; 0: one more than --input-every")
	fs.Int64Var(&o.MicroBatch, "micro-batch", 0, "`ROWS` of a micro-batch; 0: as many as make up to 8192 tokens, on a GPU up to 65536")
	fs.Int64Var(&o.Groups, "groups", 0, "`N` groups of micro-batches a step; weights cross once a group and pass; 0: one in a stream, a micro-batch each where all is resident")
	enumFlag(fs, &o.Order, "order", "", "whether a layer takes all micro-batches of a group before the next layer, or each micro-batch is a group", "auto", "layer", "batch")
	fs.StringVar(&o.Resident, "resident", "auto", "what a stream keeps on the device with gradient and state: the first `N|NAMES` slabs, or those named, with commas, such as wte,layer[0..3]; auto: as many as fit --device-memory")
	fs.Int64Var(&o.DeviceWeights, "device-weights", 0, "the first `N` layers that stream have a slot of their own for weights")
	fs.StringVar(&o.GradHome, "grad-home", "auto", "`WHERE` whole gradients of a stream wait for their update: host, device, auto, or a number: those of the last slabs on the device")
	enumFlag(fs, &o.GradPrecision, "grad-precision", "", "what gradients cross the link in", "f32", "bf16")
	fs.StringVar(&o.SaveInputs, "save-inputs", "auto", "`N|none|all` inputs of layers, the first ones, that wait for backward on the host; auto: as many as it takes to fit")
	fs.StringVar(&o.SaveValues, "save-values", "auto", "`N|none|all` layers that do not recompute, the first ones, whose saved activations wait for backward on the host")
	fs.Int64Var(&o.InputEvery, "input-every", 1, "`K`: of layers that recompute, keep the input of every K-th; backward visits K layers together")
	fs.Int64Var(&o.HostSlots, "host-slots", 4, "`N` host slots for layer gradients on their way to an update")
	fs.StringVar(&o.Recompute, "recompute", "auto", "what runs forward again in backward: all, none, a number of first layers, or `NAMES` with commas, layer or layer[0..3,7]; auto: none, where that fits --device-memory")
	fs.BoolVar(&o.CheckNaN, "check-nan", false, "check every value, and stop at the first that is not finite with its layer, op and line")
}

// over returns the options with those of other whose flags were given.
func (o compileOptions) over(other compileOptions, given func(flag string) bool) compileOptions {
	if given("preset") {
		o.Preset = other.Preset
	}
	if given("model") {
		o.Model = other.Model
	}
	if given("target") {
		o.Target = other.Target
	}
	if given("placement") {
		o.Placement = other.Placement
	}
	if given("device-memory") {
		o.Memory = other.Memory
	}
	if given("slots") {
		o.Slots = other.Slots
	}
	if given("grad-slots") {
		o.GradSlots = other.GradSlots
	}
	if given("micro-batch") {
		o.MicroBatch = other.MicroBatch
	}
	if given("groups") {
		o.Groups = other.Groups
	}
	if given("check-nan") {
		o.CheckNaN = other.CheckNaN
	}
	if given("recompute") {
		o.Recompute = other.Recompute
	}
	for _, f := range []struct {
		flag     string
		to, from *string
	}{
		{"order", &o.Order, &other.Order}, {"resident", &o.Resident, &other.Resident}, {"grad-home", &o.GradHome, &other.GradHome},
		{"grad-precision", &o.GradPrecision, &other.GradPrecision}, {"save-inputs", &o.SaveInputs, &other.SaveInputs}, {"save-values", &o.SaveValues, &other.SaveValues},
	} {
		if given(f.flag) {
			*f.to = *f.from
		}
	}
	if given("device-weights") {
		o.DeviceWeights = other.DeviceWeights
	}
	if given("host-slots") {
		o.HostSlots = other.HostSlots
	}
	if given("input-every") {
		o.InputEvery = other.InputEvery
	}
	if given("machine") {
		o.Machine = other.Machine
	}
	if given("host-memory") {
		o.HostMemory = other.HostMemory
	}
	o.decide(given)
	o.Set = mergeSets(o.Set, other.Set)
	return o
}

// decide says who fills in what was not given: the planner, where choose says so, else the compiler. On a
// processor a cap of device memory alone is the compiler's: it is a cap of the plan's own device arenas there, as with a placement
// that was given, where the planner would count the whole process.
func (o *compileOptions) decide(given func(flag string) bool) {
	if o.Memory == 0 || o.Target != "cpu" || o.Machine != "" || o.HostMemory != 0 || o.Planned {
		o.choose(given)
		return
	}
	if !given("placement") && o.Placement == "resident" {
		o.Placement = "auto"
	}
}

// mergeSets lays later settings over earlier ones of the same key.
func mergeSets(a, b []string) []string {
	var out []string
	for _, s := range append(append([]string{}, a...), b...) {
		key, _, _ := strings.Cut(s, "=")
		replaced := false
		for j := range out {
			if k, _, _ := strings.Cut(out[j], "="); strings.TrimSpace(k) == strings.TrimSpace(key) {
				out[j], replaced = s, true
			}
		}
		if !replaced {
			out = append(out, s)
		}
	}
	return out
}

// mostOfAFlag bounds counts, above what any model has.
const mostOfAFlag = 1 << 20

// unused names flags that a resident placement has no use for.
func (o *compileOptions) unused(given func(flag string) bool) string {
	if o.Placement != "resident" {
		return ""
	}
	var names []string
	for _, name := range []string{"slots", "grad-slots", "host-slots", "resident", "device-weights", "grad-home", "grad-precision"} {
		if given(name) {
			names = append(names, "`--"+name+"`")
		}
	}
	return strings.Join(names, " and ")
}

// check refuses numbers that no schedule has.
func (o *compileOptions) check() error {
	for _, c := range []struct {
		flag       string
		value, low int64
	}{{"slots", o.Slots, 0}, {"grad-slots", o.GradSlots, 0}, {"micro-batch", o.MicroBatch, 0}, {"groups", o.Groups, 0},
		{"host-slots", o.HostSlots, 1}, {"input-every", o.InputEvery, 0}, {"device-weights", o.DeviceWeights, 0}} {
		if c.value < c.low {
			return usageErrorf("`--%s` is at least %d, not %d", c.flag, c.low, c.value)
		}
		if c.value > mostOfAFlag {
			return usageErrorf("`--%s` is at most %d, not %d", c.flag, mostOfAFlag, c.value)
		}
	}
	return nil
}

// compile runs the compiler on a file.
func (o *compileOptions) compile(ctx context.Context, path, dumpAfter string, l *diag.List) (*compiler.Result, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	c := o.compiler(path)
	c.DumpAfter = dumpAfter
	if o.Planned {
		choice, err := o.plan(ctx, path, l)
		if err != nil {
			return &compiler.Result{}, err
		}
		c = pin(c, choice, o.Memory)
	}
	return compiler.Compile(ctx, c, l)
}

// compiler are the compiler's options.
func (o *compileOptions) compiler(path string) compiler.Options {
	return compiler.Options{
		Path: path, Preset: o.Preset, Set: o.Set, Model: o.Model, Target: o.Target,
		Placement: o.Placement, Slots: o.Slots, GradSlots: o.GradSlots, MicroBatch: o.MicroBatch,
		Groups: o.Groups, Recompute: o.Recompute, DeviceMemory: o.Memory, CheckNaN: o.CheckNaN,
		Order: o.Order, Resident: o.Resident, DeviceWeights: o.DeviceWeights, GradHome: o.GradHome,
		GradPrecision: o.GradPrecision, SaveInputs: o.SaveInputs, SaveValues: o.SaveValues, HostSlots: o.HostSlots, InputEvery: o.InputEvery, Version: version(),
	}
}

// settled are the options with all that a planner chose, which chooses nothing more.
func (o compileOptions) settled(c *compiler.Options) compileOptions {
	o.Planned, o.Pinned = false, nil
	o.Placement, o.Slots, o.GradSlots, o.MicroBatch, o.Groups = c.Placement, c.Slots, c.GradSlots, c.MicroBatch, c.Groups
	o.Recompute, o.Order, o.Resident, o.DeviceWeights, o.GradHome = c.Recompute, c.Order, c.Resident, c.DeviceWeights, c.GradHome
	o.GradPrecision, o.SaveInputs, o.SaveValues, o.HostSlots, o.InputEvery = c.GradPrecision, c.SaveInputs, c.SaveValues, c.HostSlots, c.InputEvery
	return o
}

// bind adds the flags about building.
func (b *builder) bind(fs *pflag.FlagSet) {
	fs.StringVar(&b.source, "mtc-source", "", "`DIR` of the source of mtc that programs are built from (default: found by itself)")
}
