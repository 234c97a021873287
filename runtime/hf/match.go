package hf

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/megatrain/mtc/runtime/fault"
	"github.com/megatrain/mtc/runtime/plan"
)

// Shapes are a model's parameters by path.
type Shapes map[string][]int64

// ShapesOf returns the parameters of a plan.
func ShapesOf(p *plan.Plan) Shapes {
	out := Shapes{}
	for i := range p.Slabs {
		for _, x := range p.Slabs[i].Params {
			out[x.Name] = x.Shape
		}
	}
	return out
}

// entry is a line of the map with the tensors that were found for it.
type entry struct {
	*plan.Foreign
	from  []*located
	also  []*located // stored once more
	rows  []int64    // split, join: where each part begins along axis 0, and the end
	shape [][]int64  // of the parameters
}

// Matching is a map with the tensors of a folder: every parameter has its tensors, every
// tensor its parameters.
type Matching struct {
	folder  *Folder
	entries []entry
	buffers []*located          // constants that older programs stored among the weights
	Odd     Odd                 // values that Load has found not finite
	sums    map[*located][]span // of the bytes that Load has read
}

// isBuffer says whether a tensor is a constant that is made again wherever it is needed:
// GPT-2's masks, and the frequencies of rotary embedding.
func isBuffer(name string) bool {
	for _, s := range []string{".attn.bias", ".attn.masked_bias", ".rotary_emb.inv_freq"} {
		if strings.HasSuffix(name, s) {
			return true
		}
	}
	return false
}

// Match holds the folder's tensors against a map: each name is there, with the shape that its
// parameters have, and nothing is left over. All that is wrong is one error.
func (f *Folder) Match(foreign []plan.Foreign, shapes Shapes) (*Matching, error) {
	if len(foreign) == 0 {
		return nil, fault.New("MT0663", f.Path, "the model does not say how its weights are called there").
			Help("give it a map, `weights hf { ... }`, or let `mtc import` write the model")
	}
	m := &Matching{folder: f}
	taken := map[string]bool{}
	var faults []string
	for i := range foreign {
		e := entry{Foreign: &foreign[i]}
		complete := true
		for _, name := range e.Names {
			t := f.tensor[bare(name)]
			if t == nil {
				faults = append(faults, fmt.Sprintf("%s is missing: %s of shape %s comes from it", name, e.Params[0], shapeText(shapes[e.Params[0]])))
				complete = false
				continue
			}
			taken[bare(name)] = true
			if width(t.DType) == 0 {
				faults = append(faults, fmt.Sprintf("%s has the dtype %s; F32, F16 and BF16 are read", t.Name, t.DType))
				complete = false
			}
			e.from = append(e.from, t)
		}
		for _, name := range e.Also {
			if t := f.tensor[bare(name)]; t != nil {
				taken[bare(name)] = true
				e.also = append(e.also, t)
			}
		}
		if !complete {
			continue
		}
		faults = append(faults, e.fit(shapes)...)
		m.entries = append(m.entries, e)
	}
	for _, s := range f.Shards {
		for i := range s.Tensors {
			name := s.Tensors[i].Name
			switch {
			case taken[bare(name)]:
			case isBuffer(name):
				m.buffers = append(m.buffers, f.tensor[bare(name)])
			default:
				faults = append(faults, fmt.Sprintf("%s of shape %s is left over: the model has no place for it", name, shapeText(s.Tensors[i].Shape)))
			}
		}
	}
	if len(faults) == 0 {
		return m, nil
	}
	e := fault.New("MT0663", f.Path, "the weights are not those of the model:%s", lines(collapse(faults)))
	return nil, e.Help("%s", f.advice(foreign, taken))
}

// advice says what most likely happened.
func (f *Folder) advice(foreign []plan.Foreign, taken map[string]bool) string {
	if hint := ownHint(filepath.Join(f.Path, configFile), f.Config); hint != "" {
		return hint
	}
	if tied, _ := f.Config["tie_word_embeddings"].(bool); !tied && f.tensor["lm_head.weight"] == nil && taken["embed_tokens.weight"] {
		for i := range foreign {
			if slices.Contains(foreign[i].Names, "lm_head.weight") {
				return "config.json does not tie the head to the token table, and there is no lm_head.weight: where the two are one, say \"tie_word_embeddings\": true there, and import again"
			}
		}
	}
	if f.tensor["lm_head.weight"] != nil && !taken["lm_head.weight"] {
		return "the model ties its head to the token table, the folder has a head of its own"
	}
	return "`mtc import` writes a model that fits config.json; where that is the model, the weights and the configuration are not of one folder"
}

// fit compares shapes and notes where parts begin.
func (e *entry) fit(shapes Shapes) (faults []string) {
	for _, p := range e.Params {
		e.shape = append(e.shape, shapes[p])
	}
	transposed := transposed(e.Foreign)
	wrong := func(t *located, want []int64) {
		if transposed && len(want) == 2 {
			want = []int64{want[1], want[0]}
		}
		if !slices.Equal(t.Shape, want) {
			faults = append(faults, fmt.Sprintf("%s has the shape %s, the model wants %s (%s)", t.Name, shapeText(t.Shape), shapeText(want), strings.Join(e.Params, ", ")))
		}
	}
	switch {
	case strings.HasPrefix(e.Op, "split"):
		want := slices.Clone(e.shape[0])
		want[0] = 0
		for _, s := range e.shape {
			e.rows = append(e.rows, want[0])
			want[0] += s[0]
		}
		e.rows = append(e.rows, want[0])
		wrong(e.from[0], want)
	case strings.HasPrefix(e.Op, "join"):
		end := int64(0)
		axis := 0
		if transposed {
			axis = 1
		}
		for _, t := range e.from {
			e.rows = append(e.rows, end)
			want := slices.Clone(e.shape[0])
			if len(t.Shape) == len(want) {
				want[0] = t.Shape[axis]
			}
			wrong(t, want)
			end += want[0]
		}
		e.rows = append(e.rows, end)
		if len(faults) == 0 && end != e.shape[0][0] {
			faults = append(faults, fmt.Sprintf("%s have %d rows together, the model wants %d (%s)", strings.Join(e.Names, ", "), end, e.shape[0][0], e.Params[0]))
		}
	default:
		wrong(e.from[0], e.shape[0])
	}
	for _, t := range e.also {
		if !slices.Equal(t.Shape, e.from[0].Shape) {
			faults = append(faults, fmt.Sprintf("%s has the shape %s and %s, which is the same tensor, %s", t.Name, shapeText(t.Shape), e.from[0].Name, shapeText(e.from[0].Shape)))
		} else if width(t.DType) == 0 {
			faults = append(faults, fmt.Sprintf("%s has the dtype %s; F32, F16 and BF16 are read", t.Name, t.DType))
		}
	}
	return faults
}

// shapeText writes [2, 3].
func shapeText(shape []int64) string {
	parts := make([]string, len(shape))
	for i, d := range shape {
		parts[i] = strconv.FormatInt(d, 10)
	}
	return "[" + strings.Join(parts, ", ") + "]"
}

var number = regexp.MustCompile(`[.\[](\d+)[.\]]`)

// collapse makes one line of lines that differ in the number of the layer only.
func collapse(faults []string) []string {
	type group struct {
		first   string
		numbers []string
	}
	var order []string
	groups := map[string]*group{}
	for _, f := range faults {
		at := number.FindStringSubmatchIndex(f)
		key, n := f, ""
		if at != nil {
			n = f[at[2]:at[3]]
			key = number.ReplaceAllStringFunc(f, func(s string) string {
				if s[1:len(s)-1] == n {
					return s[:1] + "*" + s[len(s)-1:]
				}
				return s
			})
		}
		g := groups[key]
		if g == nil {
			g = &group{first: f}
			groups[key] = g
			order = append(order, key)
		}
		g.numbers = append(g.numbers, n)
	}
	var out []string
	for _, key := range order {
		g := groups[key]
		if len(g.numbers) == 1 {
			out = append(out, g.first)
			continue
		}
		out = append(out, fmt.Sprintf("%s; so for %d layers, %s to %s", g.first, len(g.numbers), g.numbers[0], g.numbers[len(g.numbers)-1]))
	}
	return out
}
