package hf

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// float writes a number as plan values have it.
func float(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }

// rope reads the settings of rotary embedding in their three spellings:
//
//	"rope_theta": 1e6, "rope_scaling": {"type": "linear", "factor": 2.0}
//	"rope_theta": 1e6, "rope_scaling": {"rope_type": "llama3", "factor": 8.0, ...}
//	"rope_parameters": {"rope_type": "llama3", "rope_theta": 1e6, "factor": 8.0, ...}
//
// Where several are there they must say the same. It returns theta and the value of `scaling`
// in the family's .mt.
func (r *reader) rope(def float64) (theta float64, scaling string) {
	theta, scaling = def, "none"
	before := len(r.faults)
	given := r.number("rope_theta", 0)
	if given > 0 {
		theta = given
	}
	old, hasOld := r.section("rope_scaling")
	params, hasNew := r.section("rope_parameters")
	if hasOld || hasNew {
		r.get("original_max_position_embeddings") // as scaling does
	}
	// Either object may have the theta.
	within := func(where string, p *reader) float64 {
		t := p.number("rope_theta", theta)
		if given > 0 && given != t {
			r.fault("rope_theta is %s and in %s %s", float(given), where, float(t))
		}
		return t
	}
	if hasOld {
		scaling = r.scaling("rope_scaling", old)
		theta = within("rope_scaling", old)
	}
	if !hasNew {
		return theta, scaling
	}
	s, t := r.scaling("rope_parameters", params), within("rope_parameters", params)
	if hasOld && (s != scaling || t != theta) && len(r.faults) == before {
		r.fault("rope_scaling says %s with theta %s, and rope_parameters %s with %s", scaling, float(theta), s, float(t))
	}
	return t, s
}

// section reads a key that holds an object.
func (r *reader) section(key string) (*reader, bool) {
	v, ok := r.get(key)
	if !ok {
		return nil, false
	}
	o, ok := v.(object)
	if !ok {
		r.fault("%s is %s, an object is wanted", key, jsonText(v))
		return nil, false
	}
	return newReader(o), true
}

// scaling reads the object of a scaling.
func (r *reader) scaling(where string, p *reader) string {
	kind, older := p.word("rope_type", ""), p.word("type", "")
	switch {
	case kind == "":
		kind = older
	case older != "" && older != kind:
		r.fault("%s has the rope_type %q and the type %q", where, kind, older)
	}
	p.number("rope_theta", 0)
	if f := p.number("partial_rotary_factor", 1); f != 1 {
		r.fault("%s.partial_rotary_factor is %s: only whole heads are turned here", where, float(f))
	}
	need := func(key string) float64 {
		if _, ok := p.get(key); !ok {
			r.fault("%s of type %q lacks %s", where, kind, key)
			return 1
		}
		return p.number(key, 1)
	}
	out := "none"
	switch kind {
	case "", "default":
	case "linear":
		out = fmt.Sprintf("linear(%s)", float(need("factor")))
	case "llama3":
		low, high := need("low_freq_factor"), need("high_freq_factor")
		out = fmt.Sprintf("llama3(%s, %s, %s, %s)", float(need("factor")), float(low), float(high), float(r.original(p)))
	case "yarn":
		original := r.original(p)
		factor := need("factor")
		out = fmt.Sprintf("yarn(%s, %s, %s, %s)", float(factor), float(original), float(p.number("beta_fast", 32)), float(p.number("beta_slow", 1)))
		if a := p.amplitude(factor); a > 0 {
			out = strings.TrimSuffix(out, ")") + ", " + float(a) + ")"
		}
		p.only("truncate", true, "the ramp's ends are whole pairs here")
	default:
		r.fault("%s has the type %q; there are default, linear, llama3 and yarn", where, kind)
		return out
	}
	for key, v := range p.keys {
		if !p.used[key] && v != nil && !(key == "original_max_position_embeddings" || key == "factor" && kind == "default") {
			r.fault("%s.%s is not known for the type %q", where, key, kind)
		}
	}
	r.faults = append(r.faults, p.faults...)
	return out
}

// original is the context before stretching: beside the settings, where some write it, else in
// them, else the model's.
func (r *reader) original(p *reader) float64 {
	own := p.number("original_max_position_embeddings", 0)
	if n := r.number("original_max_position_embeddings", 0); n > 0 {
		return n
	}
	if own == 0 {
		return float64(r.whole("max_position_embeddings"))
	}
	return own
}

// amplitude is the factor on cosine and sine of yarn where the settings have one of their own: as
// a number, or as the ratio of two temperatures, 0.1 m ln(factor) + 1 with m the mscale and the
// mscale_all_dim. 0: by the factor alone.
func (p *reader) amplitude(factor float64) float64 {
	own, a, b := p.number("attention_factor", 0), p.number("mscale", 0), p.number("mscale_all_dim", 0)
	switch {
	case own > 0:
		return own
	case a == 0 || b == 0:
		return 0
	case factor <= 1:
		return 1
	}
	return (0.1*a*math.Log(factor) + 1) / (0.1*b*math.Log(factor) + 1)
}
