package schedule

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/megatrain/mtc/compiler/cost"
	"github.com/megatrain/mtc/runtime/plan"
)

// JSON is schedule.json: the same plan gives the same bytes. Tasks and buffers stand one on
// a line, so that line tools can read them too. They are written by hand, because a large
// model has a hundred thousand of them.
//
// Work is what the templates launch, for the cost model, and planned what the planner chose for; nil
// leaves them out.
func JSON(p *plan.Plan, work *cost.Work, planned *Planned) []byte {
	f := FileOf(p)
	f.Work, f.Planned = work, planned
	tasks, buffers := f.Tasks, f.Buffers
	f.Tasks, f.Buffers = nil, nil
	head, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		panic(fmt.Sprintf("schedule.json: %v", err)) // plain data always marshals
	}
	w := jsonWriter{out: make([]byte, 0, len(head)+128*len(buffers)+512*len(tasks))}
	rest := w.upTo(head, "buffers")
	for i := range buffers {
		w.line(i)
		w.buffer(&buffers[i])
	}
	w.raw("\n  ]")
	rest = w.upTo(rest, "tasks")
	for i := range tasks {
		w.line(i)
		w.task(&tasks[i])
	}
	w.raw("\n  ]")
	w.out = append(w.out, rest...)
	return append(w.out, '\n')
}

// jsonWriter appends JSON text.
type jsonWriter struct{ out []byte }

func (w *jsonWriter) raw(s string) { w.out = append(w.out, s...) }

// upTo writes head up to the null value of a key, opens its list and returns the rest.
func (w *jsonWriter) upTo(head []byte, key string) []byte {
	before, after, ok := bytes.Cut(head, fmt.Appendf(nil, "\n  %q: null", key))
	if !ok {
		panic("schedule.json: no place for " + key)
	}
	w.out = append(w.out, before...)
	w.raw("\n  \"" + key + "\": [")
	return after
}

func (w *jsonWriter) line(i int) {
	if i > 0 {
		w.raw(",")
	}
	w.raw("\n    ")
}

func (w *jsonWriter) key(k string) {
	if c := w.out[len(w.out)-1]; c != '{' {
		w.raw(",")
	}
	w.raw("\"" + k + "\":")
}

func (w *jsonWriter) int(k string, n int64) {
	w.key(k)
	w.out = strconv.AppendInt(w.out, n, 10)
}

func (w *jsonWriter) str(k, s string) {
	w.key(k)
	w.quote(s)
}

// some writes a string unless it is empty.
func (w *jsonWriter) some(k, s string) {
	if s != "" {
		w.str(k, s)
	}
}

func (w *jsonWriter) strs(k string, list []string) {
	w.key(k)
	w.raw("[")
	for i, s := range list {
		if i > 0 {
			w.raw(",")
		}
		w.quote(s)
	}
	w.raw("]")
}

func (w *jsonWriter) quote(s string) {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			text, err := json.Marshal(s)
			if err != nil {
				panic(fmt.Sprintf("schedule.json: %v", err))
			}
			w.out = append(w.out, text...)
			return
		}
	}
	w.raw("\"" + s + "\"")
}

func (w *jsonWriter) buffer(b *FileBuffer) {
	w.raw("{")
	w.str("name", b.Name)
	w.str("arena", b.Arena)
	w.str("purpose", b.Purpose)
	w.int("off", b.Off)
	w.int("bytes", b.Bytes)
	w.int("copies", int64(b.Copies))
	w.raw("}")
}

func (w *jsonWriter) task(t *FileTask) {
	w.raw("{")
	w.int("id", int64(t.ID))
	w.str("list", t.List)
	w.str("kind", t.Kind)
	w.some("func", t.Func)
	w.str("lane", t.Lane)
	w.int("layer", int64(t.Layer))
	w.int("micro", int64(t.Micro))
	w.some("unit", t.Unit)
	w.some("slab", t.Slab)
	w.str("template", t.Template)
	w.int("step", int64(t.Step))
	w.some("span", t.Span)
	w.strs("reads", t.Reads)
	w.strs("writes", t.Writes)
	w.some("src", t.Src)
	w.some("dst", t.Dst)
	for i, k := range t.Adds {
		if i == 0 {
			w.key("adds")
			w.raw("[")
		} else {
			w.raw(",")
		}
		w.out = strconv.AppendInt(w.out, int64(k), 10)
		if i+1 == len(t.Adds) {
			w.raw("]")
		}
	}
	w.key("waits")
	w.raw("[")
	for i, x := range t.Waits {
		if i > 0 {
			w.raw(",")
		}
		w.raw("{")
		w.int("task", int64(x.Task))
		w.int("back", int64(x.Back))
		w.raw("}")
	}
	w.raw("]")
	w.int("flops", t.FLOPs)
	w.int("bytes", t.Bytes)
	w.raw("}")
}
