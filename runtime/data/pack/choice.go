package pack

import (
	"fmt"
	"slices"
	"strings"
)

// Choice is how text and conversations become tokens, as a person says it: "" is what is usual.
type Choice struct {
	Loss     string `json:"loss,omitempty"`
	Overlong string `json:"overlong,omitempty"`
	Format   string `json:"format,omitempty"`
	Key      string `json:"key,omitempty"`
	Template string `json:"-"` // a run has it beside its tokenizer
	Strict   bool   `json:"strict,omitempty"`
}

// Check refuses words that are none; the error names the flag.
func (c *Choice) Check() error {
	for _, f := range []struct {
		flag, value string
		words       []string
	}{{"loss", c.Loss, Losses}, {"overlong", c.Overlong, Overlongs}, {"format", c.Format, Formats}} {
		if f.value != "" && !slices.Contains(f.words, f.value) {
			return fmt.Errorf("`--%s` cannot be `%s`: there are %s", f.flag, f.value, strings.Join(f.words, ", "))
		}
	}
	return nil
}

// Over lays a choice over an earlier one: what it leaves open is as it was.
func (c Choice) Over(had *Choice) Choice {
	if had == nil {
		return c
	}
	for _, f := range []struct{ to, from *string }{{&c.Loss, &had.Loss}, {&c.Overlong, &had.Overlong}, {&c.Format, &had.Format}, {&c.Key, &had.Key}} {
		if *f.to == "" {
			*f.to = *f.from
		}
	}
	c.Strict = c.Strict || had.Strict
	return c
}

// Options are those of packing paths into the folder out, of documents of at most seq.
func (c *Choice) Options(in []string, out string, seq int64) Options {
	o := Options{In: in, Out: out, Format: c.Format, Key: c.Key, Loss: c.Loss, Seq: seq, Overlong: c.Overlong, Strict: c.Strict}
	for _, d := range []struct {
		to    *string
		usual string
	}{{&o.Format, "auto"}, {&o.Key, "text"}, {&o.Overlong, "error"}} {
		if *d.to == "" {
			*d.to = d.usual
		}
	}
	if o.Loss == "auto" {
		o.Loss = ""
	}
	return o
}
