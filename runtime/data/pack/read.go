package pack

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/klauspost/compress/zstd"

	"github.com/megatrain/mtc/runtime/data"
	"github.com/megatrain/mtc/runtime/fault"
)

// jobBytes is about how much text a job has, jobRecords the most records.
const (
	jobBytes   = 256 << 10
	jobRecords = 512
)

// kindOf is a file's name without the endings of compression, and whether it holds records.
func kindOf(path, format string) (isRecords bool) {
	name := strings.ToLower(filepath.Base(path))
	name = strings.TrimSuffix(strings.TrimSuffix(name, ".gz"), ".zst")
	switch filepath.Ext(name) {
	case ".jsonl", ".ndjson", ".json":
		return format != "text"
	}
	return format != "text" && format != "auto"
}

// opened is an open file, decompressed.
type opened struct {
	io.Reader
	close func()
}

// counting counts the bytes of a file as they are read, before they are decompressed.
type counting struct {
	r io.Reader
	p *packer
}

func (c counting) Read(b []byte) (int, error) {
	n, err := c.r.Read(b)
	c.p.read.Add(int64(n))
	return n, err
}

func (p *packer) open(path string) (*opened, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, unreadable(path, err)
	}
	var begin [32]byte
	n, _ := f.ReadAt(begin[:], 0) // what cannot be read is told below
	if u := fault.Unfetched("MT0608", path, string(begin[:n])); u != nil {
		f.Close()
		return nil, u
	}
	raw := counting{f, p}
	switch strings.ToLower(filepath.Ext(path)) {
	case ".gz":
		z, err := gzip.NewReader(raw)
		if err != nil {
			f.Close()
			return nil, unreadable(path, err)
		}
		return &opened{z, func() { f.Close() }}, nil
	case ".zst":
		z, err := zstd.NewReader(raw, zstd.WithDecoderConcurrency(1))
		if err != nil {
			f.Close()
			return nil, unreadable(path, err)
		}
		return &opened{z, func() { z.Close(); f.Close() }}, nil
	}
	return &opened{raw, func() { f.Close() }}, nil
}

func unreadable(path string, err error) error {
	var pe *os.PathError
	if errors.As(err, &pe) {
		err = pe.Err
	}
	return fault.New("MT0602", path, "cannot be read").Wrap(err).Help("leave it out with a narrower pattern, or fetch it again")
}

// decide opens the first file of records to see whether there are conversations, which the
// manifest says before anything is packed.
func (p *packer) decide(files []data.Found) error {
	text, chat := "", "" // the first file of each
	for _, f := range files {
		if !kindOf(f.Path, p.Format) {
			if text == "" {
				text = f.Path
			}
			continue
		}
		if p.chats {
			continue
		}
		first := ""
		p.readFile(f, func(j *job) bool {
			for _, r := range j.recs {
				if r.bad == nil {
					if s := p.shape(r.text); s != "" {
						first = s
						return false
					}
				}
			}
			return true
		})
		if p.chats = first == "messages" || first == "sharegpt" || first == "alpaca"; p.chats {
			chat = f.Path
		}
	}
	p.read.Store(0)
	switch {
	case p.chats && p.Template == nil:
		return fault.New("MT0671", "", "the input has conversations, and %s has no chat template", p.Name).
			Help("give the template of a model with `--template FILE`, or `--template chatml`")
	case p.chats && text != "":
		return fault.New("MT0608", text, "a plain text file among conversations such as %s", chat).
			Help("name the conversations alone, \"%s\" in quotes, or pack the two apart", filepath.Join(filepath.Dir(chat), "*"+filepath.Ext(chat)))
	case p.Loss == "" && p.chats:
		p.Loss = "assistant"
	case p.Loss == "":
		p.Loss = "all"
	case p.Loss == "assistant" && !p.chats:
		return fault.New("MT0608", "", "the input has no conversations, so nothing an assistant says").
			Help("leave out `--loss assistant`; conversations are records with `messages`, `conversations` or `instruction`")
	}
	return nil
}

// readFile cuts a file into jobs; give returns false to end the reading.
func (p *packer) readFile(f data.Found, give func(j *job) bool) bool {
	r, err := p.open(f.Path)
	if err != nil {
		return give(&job{err: err})
	}
	defer r.close()
	in := bufio.NewReaderSize(r, 1<<16)
	if head, _ := in.Peek(3); string(head) == "\xef\xbb\xbf" {
		in.Discard(3) // a byte order mark is not a part of the text
	}
	if !kindOf(f.Path, p.Format) {
		return p.readText(f.Path, in, give)
	}
	c := &cutter{p: p, path: f.Path, in: in, give: give, line: 1}
	if c.array() {
		err = c.elements()
	} else {
		err = c.lines()
	}
	switch {
	case errors.Is(err, errStopped):
		return false
	case err != nil:
		return give(&job{err: unreadable(fmt.Sprintf("%s:%d", f.Path, c.line), err)})
	}
	return c.flush() == nil
}

func (p *packer) readText(path string, in io.Reader, give func(j *job) bool) bool {
	text, err := io.ReadAll(io.LimitReader(in, p.MaxRecord+1))
	switch {
	case err != nil:
		return give(&job{err: unreadable(path, err)})
	case int64(len(text)) > p.MaxRecord:
		return give(&job{recs: []record{{bad: &reason{kind: ofSize, detail: fmt.Sprintf("more than the %d bytes of --max-record", p.MaxRecord)}}}})
	}
	return give(&job{recs: []record{{text: text}}})
}

var errStopped = errors.New("stopped")

// cutter cuts a file of records.
type cutter struct {
	p    *packer
	path string
	in   *bufio.Reader
	give func(j *job) bool
	line int64
	recs []record
	size int
}

func (c *cutter) add(r record) error {
	c.recs = append(c.recs, r)
	if c.size += len(r.text); c.size >= jobBytes || len(c.recs) >= jobRecords {
		return c.flush()
	}
	return nil
}

func (c *cutter) flush() error {
	if len(c.recs) == 0 {
		return nil
	}
	j := &job{recs: c.recs}
	c.recs, c.size = nil, 0
	if !c.give(j) {
		return errStopped
	}
	return nil
}

// array says whether the file is one array.
func (c *cutter) array() bool {
	for n := 1; ; n++ {
		b, err := c.in.Peek(n)
		if len(b) < n {
			return false
		}
		switch b[n-1] {
		case ' ', '\t', '\r', '\n':
		case '[':
			return true
		default:
			return false
		}
		if err != nil || n >= 4096 {
			return false
		}
	}
}

// lines cuts at line ends. A line that is too long is passed over, not kept.
func (c *cutter) lines() error {
	for {
		line, long, err := c.readLine()
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		end := errors.Is(err, io.EOF)
		line = bytes.TrimSuffix(line, []byte("\r"))
		r := record{line: c.line, text: line}
		switch {
		case long:
			r = record{line: c.line, bad: &reason{kind: ofSize, detail: fmt.Sprintf("more than the %d bytes of --max-record", c.p.MaxRecord)}}
		case len(bytes.TrimSpace(line)) == 0:
			if end && len(line) == 0 {
				return nil // behind the last line end
			}
			r = record{line: c.line, bad: &reason{kind: ofBlank}}
		}
		if err := c.add(r); err != nil {
			return err
		}
		if end {
			return nil
		}
		c.line++
	}
}

func (c *cutter) readLine() (line []byte, long bool, err error) {
	for {
		part, err := c.in.ReadSlice('\n')
		if !long {
			line = append(line, part...)
			if int64(len(line)) > c.p.MaxRecord+1 {
				line, long = nil, true
			}
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		return bytes.TrimSuffix(line, []byte("\n")), long, err
	}
}

// elements cuts an array at its commas; what an element holds is looked at later.
func (c *cutter) elements() error {
	var b []byte
	depth, inText, escaped, at, open, comma := 0, false, false, c.line, false, false
	give := func() error {
		text := bytes.TrimSpace(b)
		r := record{line: at, text: append([]byte(nil), text...)}
		if len(text) == 0 {
			r.bad = &reason{kind: ofJSON, detail: "a comma with nothing before it"}
		}
		b, open = b[:0], false
		return c.add(r)
	}
	for {
		ch, err := c.in.ReadByte()
		if errors.Is(err, io.EOF) {
			return c.add(record{line: c.line, bad: &reason{kind: ofJSON, detail: "the array is not closed with `]`"}})
		}
		if err != nil {
			return err
		}
		if ch == '\n' {
			c.line++
		}
		if inText {
			b = append(b, ch)
			switch {
			case escaped:
				escaped = false
			case ch == '\\':
				escaped = true
			case ch == '"':
				inText = false
			}
		} else {
			switch ch {
			case '[', '{':
				if depth++; depth == 1 {
					continue
				}
			case ']', '}':
				if depth--; depth <= 0 {
					if open {
						if err := give(); err != nil {
							return err
						}
					} else if comma {
						if err := c.add(record{line: c.line, bad: &reason{kind: ofJSON, detail: "a comma before the end of the array"}}); err != nil {
							return err
						}
					}
					return c.behind()
				}
			case ',':
				if depth == 1 {
					if err := give(); err != nil {
						return err
					}
					comma = true
					continue
				}
			case '"':
				inText = true
			}
			if !open && ch != ' ' && ch != '\t' && ch != '\r' && ch != '\n' {
				open, at = true, c.line
			}
			b = append(b, ch)
		}
		if int64(len(b)) > c.p.MaxRecord {
			return fmt.Errorf("an element of the array has more than the %d bytes of --max-record", c.p.MaxRecord)
		}
	}
}

// behind reports text after an array.
func (c *cutter) behind() error {
	for {
		ch, err := c.in.ReadByte()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if ch == '\n' {
			c.line++
		}
		if strings.IndexByte(" \t\r\n", ch) < 0 {
			return c.add(record{line: c.line, bad: &reason{kind: ofJSON, detail: "more text behind the array"}})
		}
	}
}

// badUTF8 is where a text stops being UTF-8.
func badUTF8(b []byte) (at int, ok bool) {
	if utf8.Valid(b) {
		return 0, false
	}
	for at < len(b) {
		r, n := utf8.DecodeRune(b[at:])
		if r == utf8.RuneError && n == 1 {
			return at, true
		}
		at += n
	}
	return 0, false
}
