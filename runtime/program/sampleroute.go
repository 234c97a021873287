package program

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"path/filepath"

	"github.com/megatrain/mtc/runtime/data"
	"github.com/megatrain/mtc/runtime/engine"
	"github.com/megatrain/mtc/runtime/ops/moe"
	"github.com/megatrain/mtc/runtime/plan"
)

// sampleFlags are those of sample-routing, which `mtc inspect --moe` runs.
var sampleFlags = []Flag{
	{Name: "data", Arg: "PATH", Doc: "files to take tokens from", Many: true},
	{Name: "tokens", Arg: "N", Doc: "how many (default 2048)"},
	{Name: "threads", Arg: "N", Doc: "processors to use (default: all)"},
}

// sampleRouting runs data through the model token by token, as generation does, and prints as
// JSON how many experts tokens had by how hard they were to predict.
func (p *Program) sampleRouting(args []string, out io.Writer) error {
	var paths []string
	tokens, threads := int64(2048), int64(0)
	fs := newFlagSet("sample-routing", sampleFlags)
	fs.usage = "sample-routing [RUN] --data PATH [flags]"
	fs.bind("data", &paths)
	fs.bind("tokens", &tokens)
	fs.bind("threads", &threads)
	rest, err := fs.parse(args, out)
	switch {
	case err != nil:
		return err
	case len(rest) > 1 || len(paths) == 0 || tokens < 1:
		return usagef("`sample-routing` takes a run folder, data and at least one token").hint("`sample-routing RUN --data PATH`")
	case len(p.Plan.Routers) == 0:
		return usagef("%s has no mixture of experts", p.Plan.Model)
	}
	c, err := p.checkpointOf(rest)
	if err != nil {
		return err
	}
	feed, err := data.OpenFeed(plan.Train{Data: paths, Seed: 1}, data.Shape{Vocab: p.Plan.Vocab, Batch: p.Plan.Batch, Seq: p.Plan.Seq})
	if err != nil {
		return err
	}
	defer feed.Close()
	if err := p.inTokens(feed, filepath.Dir(filepath.Clean(c.Path)), paths[0]); err != nil {
		return err
	}
	if err := preflight(p.Plan, true); err != nil {
		return err
	}
	e, err := p.open(threads, true)
	if err != nil {
		return err
	}
	defer e.Device().Close()
	if err := p.loadModel(e, c, false, ""); err != nil {
		return err
	}
	s, err := p.sample(e, feed.Train, tokens)
	if err != nil {
		return failed(err, "")
	}
	text, err := json.Marshal(s)
	if err == nil {
		_, err = fmt.Fprintf(out, "%s\n", text)
	}
	return err
}

// sample runs whole sequences until there are enough tokens.
func (p *Program) sample(e *engine.Engine, feed data.Training, want int64) (moe.Sample, error) {
	rows, seq := p.Plan.Batch, p.Plan.Seq
	in, targets := make([]int32, rows*seq), make([]int32, rows*seq)
	var names []string
	for i := range p.Plan.Routers {
		names = append(names, p.Plan.Routers[i].Name)
	}
	var losses []float64
	var fans [][]float64
	for step := int64(0); int64(len(losses)) < want; step++ {
		if err := feed.Batch(step, in, targets); err != nil {
			return moe.Sample{}, err
		}
		before := len(losses)
		for r := int64(0); r < rows && int64(len(losses)) < want; r++ {
			for t := range seq {
				i := r*seq + t
				logits, err := e.Infer(in[i:i+1], int(t))
				if err != nil {
					return moe.Sample{}, err
				}
				if targets[i] < 0 {
					continue
				}
				fan, err := p.lastFan(e)
				if err != nil {
					return moe.Sample{}, err
				}
				losses, fans = append(losses, lossOf(logits, targets[i])), append(fans, fan)
			}
		}
		if len(losses) == before {
			return moe.Sample{}, fmt.Errorf("the data has no token to predict")
		}
	}
	return moe.SampleOf(names, losses, fans), nil
}

// lastFan is how many experts each router gave the token that ran last: the end of the rows of
// its routing.
func (p *Program) lastFan(e *engine.Engine) ([]float64, error) {
	out := make([]float64, len(p.Plan.Routers))
	var word [4]byte
	for i := range p.Plan.Routers {
		r := &p.Plan.Routers[i]
		if err := e.Device().Read(word[:], e.Ptr(r.Routing, 0).At(4*r.Experts)); err != nil {
			return nil, err
		}
		out[i] = float64(int32(binary.LittleEndian.Uint32(word[:])))
	}
	return out, nil
}

// lossOf is the cross-entropy of logits against a token.
func lossOf(logits []float32, target int32) float64 {
	top := math.Inf(-1)
	for _, x := range logits {
		top = max(top, float64(x))
	}
	sum := 0.0
	for _, x := range logits {
		sum += math.Exp(float64(x) - top)
	}
	return top + math.Log(sum) - float64(logits[target])
}
