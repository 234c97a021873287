package program

import (
	"bufio"
	"encoding/json"
	"os"
	"sync/atomic"

	"github.com/megatrain/mtc/runtime/fault"
	"github.com/megatrain/mtc/runtime/ops/finite"
)

// digestLine is a value as a program writes it to the file that MTC_DIGEST names: one line of JSON
// for each check of a program compiled with --check-nan, in the order in which they are made.
// tools/digest.py finds where two such files part.
type digestLine struct {
	List  string `json:"list"` // first, steady, ...
	Unit  string `json:"unit"` // layer[3]
	Func  string `json:"func"` // forward, recompute, ...
	Micro int    `json:"micro"`
	Task  int    `json:"task"`
	Op    string `json:"op"`
	Value string `json:"value"`
	Line  string `json:"line"`
	Rows  int64  `json:"rows"`
	Width int64  `json:"width"`
	Hash  uint64 `json:"hash,string"`
	// At is the place in its arena, of which the low bits tell how far it is aligned.
	At     int64 `json:"at"`
	Finite bool  `json:"finite"`
}

// digested counts the lines of a process; -1 where none are to be written.
var digested atomic.Int64

func init() { digested.Store(-1) }

// checkDigest refuses a digest that a program without checks was asked for.
func (p *Program) checkDigest() error {
	if digested.Load() != 0 {
		return nil
	}
	return usagef("MTC_DIGEST is set, and %s was compiled without checks", p.Plan.Model).
		hint("compile with --check-nan: what looks at every value writes the digest too")
}

// writeDigest has every check write a line; path "" has none.
func (p *Program) writeDigest(path string) error {
	if path == "" {
		return nil
	}
	digested.Store(0)
	f, err := os.Create(path)
	if err != nil {
		return fault.New("MT0623", path, "the digest cannot be written").Wrap(err)
	}
	w := bufio.NewWriter(f)
	enc := json.NewEncoder(w)
	finite.Watch(func(s finite.Seen) {
		l := digestLine{
			Task: s.Task, Op: s.Op, Value: s.Value, Line: s.Line, Rows: s.Rows, Width: s.D,
			Hash: s.Hash, At: s.At.Off, Finite: s.Finite, Micro: -1,
		}
		if s.Task >= 0 && s.Task < len(p.Plan.Tasks) {
			t := &p.Plan.Tasks[s.Task]
			l.List, l.Micro, l.Func = t.List.String(), t.Micro, t.Func.String()
			if t.Unit >= 0 {
				l.Unit = p.Plan.Units[t.Unit].Name
			}
		}
		// Line by line: the run may end anywhere.
		_ = enc.Encode(l)
		digested.Add(1)
		_ = w.Flush()
	})
	return nil
}
