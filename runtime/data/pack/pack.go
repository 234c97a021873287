// Package pack tokenizes files into a packed folder: text files, one document each, and records
// of JSON, one a line or in one array, that hold a text or a conversation.
//
// A reader takes the files in order and cuts them into jobs; workers parse and tokenize; one
// goroutine writes the results in the order of the files, so the folder depends neither on
// the number of workers nor on their pace. What is not taken over is counted by reason, the
// first cases of each with file and line; with Options.Strict the first one ends the packing.
package pack

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/megatrain/mtc/runtime/chat"
	"github.com/megatrain/mtc/runtime/data"
	"github.com/megatrain/mtc/runtime/data/packed"
	"github.com/megatrain/mtc/runtime/fault"
	"github.com/megatrain/mtc/runtime/tokenizer"
)

// Options say how to pack.
type Options struct {
	In        []string // files, folders, patterns
	Out       string
	Tokenizer *tokenizer.Folder
	Name      string // of the tokenizer, for people
	Template  *chat.Template
	// TemplateHash names the template.
	TemplateHash string
	Format       string // one of Formats
	Key          string // of the text in a record
	Loss         string // "assistant", "all", "": assistant for conversations, all for text
	Apart        bool   // keep documents of text apart too
	Seq          int64  // longest document: Seq inputs and Seq targets; 0: no bound
	Overlong     string // one of Overlongs
	Strict       bool
	ShardTokens  int64
	MaxRecord    int64 // bytes of a record or text file
	Workers      int
	// Progress is called now and then from one goroutine; nil: not.
	Progress func(Progress)
	// Files are written to the folder's tokenizer/.
	Files map[string][]byte
	// SourceKey goes into the manifest.
	SourceKey string
}

// Formats are the values of Options.Format.
var Formats = []string{"auto", "text", "jsonl", "messages", "sharegpt", "alpaca"}

// Losses are the values of --loss; auto stands for an Options.Loss of "".
var Losses = []string{"auto", "assistant", "all"}

// Overlongs are the values of Options.Overlong.
var Overlongs = []string{"error", "drop", "split", "cut"}

// Defaults of options.
const (
	DefaultShardTokens = 100_000_000
	DefaultMaxRecord   = 256 << 20
)

// Progress is how far packing is.
type Progress struct{ Bytes, Of, Documents, Tokens int64 }

// Result is what was packed and what was not.
type Result struct {
	Manifest packed.Manifest
	Hidden   int
	Empty    int
	Left     []Left // by reason, in a stable order
}

// Left is what was left out for one reason.
type Left struct {
	Reason string   `json:"reason"`
	Count  int64    `json:"count"`
	Cases  []string `json:"first"` // the first few, with file and line
}

// job is a piece of a file: records, or a text.
type job struct {
	path string
	recs []record
	n    int64 // number of records
	done chan struct{}
	out  []document
	// Reading ended with this; it is told in the order of the files.
	err error
}

// record is the text of one record and where it stands.
type record struct {
	line int64 // from 1; 0: a whole text file
	text []byte
	bad  *reason // it could not be read
}

// document is what became of a record.
type document struct {
	tokens []int32
	learn  []bool
	line   int64
	bad    *reason
}

// reason is why a record is left out.
type reason struct {
	kind   string // counted by this
	detail string
	fatal  bool // also without Strict
}

// Run packs. The error is a *fault.Error.
func Run(o Options) (*Result, error) {
	in, empty := withoutEmpty(o.In)
	files, passed, err := data.List(in)
	if err != nil {
		return nil, err
	}
	if n := len(empty) + passed.Empty + passed.Hidden; o.Strict && n > 0 {
		return nil, fault.New("MT0672", strings.Join(empty, ", "), "%d empty and %d hidden files would be passed over", len(empty)+passed.Empty, passed.Hidden).
			Help("name only files with data, or leave out --strict to pass over and count them")
	}
	passed.Empty += len(empty)
	if o.Workers < 1 {
		o.Workers = runtime.GOMAXPROCS(0)
	}
	if o.ShardTokens < 1 {
		o.ShardTokens = DefaultShardTokens
	}
	if o.MaxRecord < 1 {
		o.MaxRecord = DefaultMaxRecord
	}
	p := &packer{Options: o, stop: make(chan struct{})}
	for _, f := range files {
		p.of += f.Size
	}
	if err := p.decide(files); err != nil {
		return nil, err
	}
	w, err := packed.Create(o.Out, p.manifest(), o.ShardTokens)
	if err != nil {
		return nil, err
	}
	defer w.Abort()
	p.w = w
	if err := p.writeFiles(); err != nil {
		return nil, err
	}
	if err := p.pipeline(files); err != nil {
		return nil, err
	}
	return p.finish(passed, int64(len(files)))
}

// withoutEmpty takes out files that are named and hold nothing, unless there are no others.
func withoutEmpty(in []string) (full, empty []string) {
	for _, p := range in {
		if info, err := os.Stat(p); err == nil && info.Mode().IsRegular() && info.Size() == 0 {
			empty = append(empty, p)
			continue
		}
		full = append(full, p)
	}
	if len(full) == 0 {
		return in, nil
	}
	return full, empty
}

// packer is a packing under way.
type packer struct {
	Options
	chats bool // the input holds conversations
	w     *packed.Writer
	of    int64
	read  atomic.Int64
	stop  chan struct{}
	left  []Left
	docs  int64
	recs  int64
}

func (p *packer) manifest() packed.Manifest {
	m := packed.Manifest{Loss: p.Loss, Apart: p.Apart || p.chats,
		Tokenizer: packed.Tokenizer{Name: p.Name, Hash: p.Tokenizer.Hash(), Vocab: p.Tokenizer.Vocab()}}
	if p.chats {
		m.Template = p.TemplateHash
	}
	return m
}

func (p *packer) writeFiles() error {
	if len(p.Files) == 0 {
		return nil
	}
	dir := filepath.Join(p.w.Dir(), packed.TokenizerDir)
	err := os.Mkdir(dir, 0o777)
	for name, text := range p.Files {
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), text, 0o666)
		}
	}
	if err != nil {
		return fault.New("MT0623", p.Out, "the packed folder cannot be written").Wrap(err)
	}
	return nil
}

// pipeline reads, tokenizes and writes.
func (p *packer) pipeline(files []data.Found) error {
	ordered := make(chan *job, 4*p.Workers)
	work := make(chan *job, p.Workers)
	var wg sync.WaitGroup
	wg.Go(func() {
		defer close(ordered)
		defer close(work)
		for _, f := range files {
			if !p.readFile(f, func(j *job) bool {
				j.path, j.n, j.done = f.Path, int64(len(j.recs)), make(chan struct{})
				select {
				case ordered <- j:
				case <-p.stop:
					return false
				}
				select {
				case work <- j:
					return true
				case <-p.stop:
					return false
				}
			}) {
				return
			}
		}
	})
	for range p.Workers {
		wg.Go(func() {
			for j := range work {
				for _, r := range j.recs {
					j.out = append(j.out, p.document(r)...)
				}
				j.recs = nil
				close(j.done)
			}
		})
	}
	err := p.write(ordered)
	close(p.stop)
	for range ordered { // let the reader go on to its end
	}
	wg.Wait()
	return err
}

func (p *packer) write(ordered chan *job) error {
	for j := range ordered {
		<-j.done
		if j.err != nil {
			return j.err
		}
		p.recs += j.n
		for _, d := range j.out {
			if err := p.add(j.path, d); err != nil {
				return err
			}
		}
		if p.Progress != nil {
			p.Progress(Progress{p.read.Load(), p.of, p.docs, p.w.Tokens()})
		}
	}
	return nil
}

// add writes a document, or counts why not.
func (p *packer) add(path string, d document) error {
	if d.bad != nil {
		return p.leave(path, d.line, d.bad)
	}
	for i, t := range d.tokens {
		if int64(t) < 0 || int64(t) >= p.Tokenizer.Vocab() {
			panic(fmt.Sprintf("pack: token %d is %d", i, t))
		}
	}
	p.docs++
	return p.w.Add(d.tokens, d.learn)
}

// mostCases is how many cases of a reason are told one by one.
const mostCases = 5

// leave counts what is left out.
func (p *packer) leave(path string, line int64, r *reason) error {
	at := path
	if line > 0 {
		at = fmt.Sprintf("%s:%d", path, line)
	}
	if r.fatal || p.Strict && r.kind != ofLength {
		f := fault.New("MT0672", at, "%s", r.kind)
		if r.detail != "" {
			f.Message += ": " + r.detail
		}
		if r.fatal {
			return f.Help("`--overlong drop`, `split` or `cut` says what becomes of it")
		}
		return f.Help("mend the record, or leave out --strict to skip and count it")
	}
	i := 0
	for i < len(p.left) && p.left[i].Reason != r.kind {
		i++
	}
	if i == len(p.left) {
		p.left = append(p.left, Left{Reason: r.kind})
	}
	l := &p.left[i]
	if l.Count++; len(l.Cases) < mostCases {
		if r.detail != "" {
			at += ": " + r.detail
		}
		l.Cases = append(l.Cases, at)
	}
	return nil
}

// finish closes the folder, unless there is nothing to learn from it.
func (p *packer) finish(passed data.Passed, files int64) (*Result, error) {
	if p.w.Learned() == 0 {
		f := fault.New("MT0673", "", "none of the %d records has anything to learn", p.recs)
		for _, l := range p.left {
			f.Message += fmt.Sprintf("; %d: %s", l.Count, l.Reason)
			if len(l.Cases) > 0 {
				f.Message += " (" + l.Cases[0] + ")"
			}
		}
		most := slices.MaxFunc(append(p.left, Left{}), func(a, b Left) int { return cmp.Compare(a.Count, b.Count) })
		switch {
		case most.Reason == ofTemplate:
			return nil, f.Help("the chat template does not take such conversations: give another with `--template FILE`, or `--template chatml`")
		case most.Reason == ofJSON:
			return nil, f.Help("a file of records has one object on a line, or all in one array; any other text goes under another name, such as a.txt")
		case p.chats && p.Loss == "assistant":
			return nil, f.Help("there must be turns of the assistant to learn from; `--loss all` learns everything")
		}
		return nil, f.Help("name files with text in them; --key NAME is the field of a record that holds the text")
	}
	s := packed.Source{Files: files, Bytes: p.read.Load(), Records: p.recs, Key: p.SourceKey, Left: map[string]int64{}}
	for _, l := range p.left {
		s.Left[l.Reason] = l.Count
	}
	if err := p.w.Close(s); err != nil {
		return nil, err
	}
	return &Result{Manifest: *p.w.Manifest(), Hidden: passed.Hidden, Empty: passed.Empty, Left: p.left}, nil
}

// Reasons that are counted in several places.
const (
	ofLength   = "longer than seq"
	ofNothing  = "nothing to learn"
	ofJSON     = "not JSON"
	ofUTF8     = "not UTF-8"
	ofBlank    = "a blank line"
	ofSize     = "too large a record"
	ofShape    = "not of the format"
	ofTemplate = "refused by the chat template"
	ofEmpty    = "empty text"
)
