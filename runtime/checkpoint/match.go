package checkpoint

import (
	"fmt"
	"slices"
	"strings"

	"github.com/megatrain/mtc/runtime/fault"
	"github.com/megatrain/mtc/runtime/plan"
)

// Match refuses a checkpoint of another model than the plan's, with both names and what
// differs. Another target, placement, batch or way of training is no other model.
func (c *Checkpoint) Match(p *plan.Plan) error {
	if c.State.Hash == p.ModelHash {
		return nil
	}
	const most = 3
	diffs := c.differences(p)
	if n := len(diffs) - most; n > 0 {
		diffs = append(diffs[:most], fmt.Sprintf("and %d more", n))
	}
	if len(diffs) == 0 {
		diffs = []string{"the ops between its parameters differ"}
	}
	what := strings.Join(diffs, "; ")
	if c.State.Model == p.Model {
		return fault.New("MT0622", c.Path, "the checkpoint is of another %s than this program's %s: %s", c.State.Model, p.Model, what).
			Help("compile the .mt it was trained from, a copy lies in its run folder, or train in another folder, `mtc run ... --out DIR`")
	}
	return fault.New("MT0622", c.Path, "the checkpoint is of model %s, this program's is %s: %s", c.State.Model, p.Model, what).
		Help("give the folder of a run of %s, or train in another folder, `mtc run ... --out DIR`", p.Model)
}

// differences says how the checkpoint's model differs from the plan's: in values of its text
// where both have them, otherwise in its parameters.
func (c *Checkpoint) differences(p *plan.Plan) []string {
	var out []string
	add := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	switch adapters := c.State.Base != nil; {
	case adapters && !p.LoRA.On():
		return []string{"it has adapters alone (`lora`), and everything of this program learns"}
	case !adapters && p.LoRA.On():
		return []string{"it has all weights, and this program trains adapters alone (`lora`)"}
	}
	if c.State.Seq != p.Seq {
		add("seq is %d there and %d here", c.State.Seq, p.Seq)
	}
	here := map[string]string{}
	for _, v := range p.Values {
		here[v.Name] = v.Text
	}
	for _, v := range c.State.Values {
		if text, both := here[v.Name]; both && text != v.Text {
			add("%s is %s there and %s here", v.Name, v.Text, text)
		}
	}
	if len(out) > 0 {
		return out
	}
	tensors, err := c.Tensors(WeightsFile)
	if err != nil {
		return out // what is damaged says so when it is loaded
	}
	there := map[string][]int64{}
	for _, t := range tensors {
		there[t.Name] = t.Shape
	}
	for i := range p.Trained() {
		for _, x := range p.Slabs[i].Params {
			shape, both := there[x.Name]
			switch {
			case !both:
				add("%s is only here", x.Name)
			case !slices.Equal(shape, x.Shape):
				add("%s is %v there and %v here", x.Name, shape, x.Shape)
			}
			delete(there, x.Name)
		}
	}
	for _, t := range tensors { // in the order of the file
		if _, left := there[t.Name]; left {
			add("%s is only there", t.Name)
		}
	}
	return out
}
