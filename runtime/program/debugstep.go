package program

import (
	"io"
	"os"
	"slices"
	"unsafe"

	"github.com/megatrain/mtc/runtime/checkpoint"
	"github.com/megatrain/mtc/runtime/checkpoint/safetensors"
	"github.com/megatrain/mtc/runtime/engine"
	"github.com/megatrain/mtc/runtime/fault"
	"github.com/megatrain/mtc/runtime/optim"
	"github.com/megatrain/mtc/runtime/plan"
)

var debugFlags = []Flag{
	{Name: "fixture", Arg: "FILE", Doc: "safetensors: init.<path> F32 of every parameter, tokens I32 [steps, rows, seq + 1]"},
	{Name: "from", Arg: "DIR", Doc: "Hugging Face folder with the weights, in place of init.<path>; adapters are taken from there"},
	{Name: "dump", Arg: "FILE", Doc: "safetensors to write"},
	{Name: "threads", Arg: "N", Doc: "processors to use (default: all)"},
}

// debugStep trains on given weights and tokens and writes what came of it, for comparing a
// program with another implementation number by number: `debug-step --fixture F --dump F`.
// It is not among the commands that a user is told about. The dump holds
//
//	grad.<path>    gradient of the first step, before clipping (plans with clipping keep it)
//	final.<path>   weights after all steps
//	loss, norm, lr [steps] F64
//	logits         [rows, seq, vocab] of the first batch, token by token, if the plan can generate
//
// and of a model with a mixture of experts what debugrouters.go says.
func (p *Program) debugStep(args []string, out io.Writer) error {
	var from, to, weights string
	var threads int64
	fs := newFlagSet("debug-step", debugFlags)
	fs.bind("fixture", &from)
	fs.bind("dump", &to)
	fs.bind("from", &weights)
	fs.bind("threads", &threads)
	_, err := fs.parse(args, out)
	if err != nil {
		return err
	}
	f, err := safetensors.Open(from)
	if err != nil {
		return err
	}
	defer f.Close()
	e, err := p.open(threads, false)
	if err != nil {
		return err
	}
	defer e.Device().Close()
	d := &debugRun{prog: p, engine: e, in: f, from: weights}
	if err := d.run(); err != nil {
		return err
	}
	w, err := os.Create(to)
	if err != nil {
		return fault.New("MT0623", to, "the dump cannot be written").Wrap(err)
	}
	return first(safetensors.Write(w, nil, d.out), w.Close())
}

type debugRun struct {
	prog   *Program
	engine *engine.Engine
	in     *safetensors.File
	from   string // folder of the weights, "": in
	out    []safetensors.Entry
}

func (d *debugRun) run() error {
	p := d.prog.Plan
	if err := d.load(); err != nil {
		return err
	}
	tokens, err := d.in.I32("tokens")
	if err != nil {
		return err
	}
	batch := p.Batch * (p.Seq + 1)
	steps := int64(len(tokens)) / batch
	if steps == 0 || int64(len(tokens))%batch != 0 {
		return fault.New("MT0625", d.in.Path, "tokens are %d, a batch has %d rows of %d", len(tokens), p.Batch, p.Seq+1)
	}
	for i, id := range tokens {
		if id < 0 || int64(id) >= p.Vocab {
			return fault.New("MT0606", d.in.Path, "token %d is id %d, outside the model's vocabulary of %d", i, id, p.Vocab)
		}
	}
	if err := d.cutoffs(); err != nil {
		return err
	}
	if err := d.logits(tokens[:batch]); err != nil {
		return err
	}
	masked, err := d.targets(steps)
	if err != nil {
		return err
	}
	var loss, norm, lr []float64
	routers := newRouterDump(p)
	t := &engine.Training{
		Clip: p.Train.Clip,
		LR:   func(k int64) float64 { return optim.LR(p.Train.LR, k, p.Train.Steps) },
		Batch: func(step int64, in, targets []int32) error {
			for r := range p.Batch {
				row := tokens[step*batch+r*(p.Seq+1):][:p.Seq+1]
				copy(in[r*p.Seq:(r+1)*p.Seq], row)
				copy(targets[r*p.Seq:(r+1)*p.Seq], row[1:])
			}
			if masked != nil {
				copy(targets, masked[step*p.Batch*p.Seq:])
			}
			return nil
		},
		Hooks: []engine.Hook{{Name: "record", OnStep: func(m *engine.Metrics) error {
			loss, norm, lr = append(loss, m.Loss), append(norm, m.GradNorm), append(lr, m.LR)
			routers.step(m)
			return nil
		}}},
	}
	if err := d.hidden(t.Batch); err != nil {
		return err
	}
	// One step alone, so that it is drained and its gradients lie in their slabs.
	for t.Steps = 1; ; t.Steps = steps {
		if err := d.engine.Train(t); err != nil {
			return err
		}
		if t.Steps == 1 && p.Clip {
			d.dump("grad.", func(s *plan.Slab, view checkpoint.View) checkpoint.Masters {
				return checkpoint.MastersOf(&plan.Slab{Weight: s.Grad}, view)
			})
		}
		if t.Steps == steps {
			break
		}
	}
	d.dump("final.", checkpoint.MastersOf)
	d.out = append(d.out, routers.entries(d.engine)...)
	for _, v := range []struct {
		name   string
		values []float64
	}{{"loss", loss}, {"norm", norm}, {"lr", lr}} {
		raw := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(v.values))), 8*len(v.values))
		d.out = append(d.out, safetensors.Entry{Name: v.name, DType: "F64", Shape: []int64{int64(len(v.values))}, Data: raw})
	}
	return nil
}

// load sets every weight.
func (d *debugRun) load() error {
	state := slabs{e: d.engine}
	if d.from != "" {
		w, err := d.prog.openForeign(d.from)
		if err != nil {
			return err
		}
		defer w.close()
		if err := w.load(&state); err != nil || !d.prog.Plan.LoRA.On() {
			return err
		}
	}
	for i := range d.prog.Plan.Slabs {
		s := &d.prog.Plan.Slabs[i]
		if s.Frozen && d.from != "" {
			continue
		}
		masters := checkpoint.MastersOf(s, state.view)
		for _, p := range s.Params {
			t := d.in.Lookup("init." + p.Name)
			if t == nil || !slices.Equal(t.Shape, p.Shape) {
				return fault.New("MT0625", d.in.Path, "there is no tensor init.%s of shape %v", p.Name, p.Shape)
			}
			v, err := d.in.F32(t.Name)
			if err != nil {
				return err
			}
			masters.Write(p.Off, v)
		}
	}
	return state.end()
}

// dump copies a part of the state of every parameter that learns: its gradient, or its weights.
func (d *debugRun) dump(prefix string, which func(s *plan.Slab, view checkpoint.View) checkpoint.Masters) {
	state := slabs{e: d.engine, readOnly: true}
	for i := range d.prog.Plan.Trained() {
		s := &d.prog.Plan.Slabs[i]
		values := which(s, state.view)
		for _, p := range s.Params {
			v := make([]float32, elems(p.Shape))
			values.Read(v, p.Off)
			raw := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(v))), 4*len(v))
			d.out = append(d.out, safetensors.Entry{Name: prefix + p.Name, DType: "F32", Shape: p.Shape, Data: raw})
		}
	}
}

// logits runs the first batch through generation: half of each row as a prompt, the rest token
// by token. Only the last logits of a prompt are given out, so the prompt is also run at each
// shorter length.
func (d *debugRun) logits(tokens []int32) error {
	p := d.prog.Plan
	if l := p.Lists[plan.Decode]; l.End == l.Start {
		return nil
	}
	var all []float32
	for r := range p.Batch {
		row := tokens[r*(p.Seq+1):][:p.Seq]
		half := int(p.Seq+1) / 2
		for i := 1; i <= len(row); i++ {
			from := 0
			if i > half {
				from = i - 1
			}
			v, err := d.engine.Infer(row[from:i], from)
			if err != nil {
				return err
			}
			all = append(all, v...)
		}
	}
	raw := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(all))), 4*len(all))
	d.out = append(d.out, safetensors.Entry{Name: "logits", DType: "F32", Shape: []int64{p.Batch, p.Seq, p.Vocab}, Data: raw})
	return nil
}
