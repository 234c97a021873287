package program

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/megatrain/mtc/runtime/fold"
	"github.com/megatrain/mtc/runtime/hf"
	"github.com/megatrain/mtc/runtime/telemetry"
)

// export is the export command: a checkpoint of a run, its newest or a given one, as a
// Hugging Face folder, or its adapters as PEFT's.
func (p *Program) export(args []string, out, errw io.Writer) error {
	var to, dtype, size string
	fs := newFlagSet("export", ExportFlags)
	var peft, from string
	fs.usage = "export [RUN] --hf DIR [flags]"
	fs.bind("hf", &to)
	fs.bind("peft", &peft)
	fs.bind("from", &from)
	fs.bind("dtype", &dtype)
	fs.bind("shard-size", &size)
	rest, err := fs.parse(args, out)
	req := hf.Request{Plan: p.Plan}
	if err == nil {
		if req.ShardBytes, err = sizeOf("shard-size", size); err == nil && size != "" && req.ShardBytes == 0 {
			err = usagef("`--shard-size %s` leaves no room for a tensor", size).hint("write a size: 5GB, 500MiB")
		}
	}
	switch {
	case err != nil:
		return err
	case len(rest) > 1:
		return usagef("`export` takes one run folder, not %d", len(rest))
	case to == "" && peft == "":
		return usagef("`export` needs a folder to write").hint("`export --hf DIR`")
	case to != "" && peft != "":
		return usagef("`--hf` and `--peft` exclude each other").hint("`--hf` writes the whole model with the adapters merged, `--peft` the adapters alone")
	case peft != "" && (dtype != "" || size != ""):
		return usagef("`--dtype` and `--shard-size` go with `--hf`: adapters are one file of f32")
	}
	if err := p.checkGiven(from); err != nil {
		return err
	}
	known := map[string]string{"": "", "f32": "F32", "f16": "F16", "bf16": "BF16"}
	var ok bool
	if req.DType, ok = known[dtype]; !ok {
		return usagef("`--dtype` cannot be `%s`", dtype).hint("write f32, f16 or bf16")
	}
	if req.Checkpoint, err = p.checkpointOf(rest); err != nil {
		return err
	}
	req.Run = filepath.Dir(filepath.Clean(req.Checkpoint.Path))
	write := hf.Export
	if peft != "" {
		to, write = peft, hf.ExportPEFT
	} else if p.Plan.LoRA.On() {
		w, err := p.openFrozen(req.Checkpoint, from)
		if err != nil {
			return err
		}
		defer w.close()
		if err := w.same(req.Checkpoint.State.Base); err != nil {
			return err
		}
		req.Base = w.matching
	}
	res, err := write(to, &req)
	if err != nil {
		return err
	}
	for _, n := range res.Notes {
		fmt.Fprintf(errw, "note: %s\n", n)
	}
	fmt.Fprintf(out, "%s: %s of step %d as %s, %d tensors, %s\n", to, p.Plan.Model, req.Checkpoint.State.Step,
		res.Arch, res.Tensors, telemetry.Bytes(res.Bytes))
	for _, line := range fold.Wrap(strings.Join(res.Files, ", "), 76) {
		fmt.Fprintf(out, "  %s\n", line)
	}
	return nil
}
