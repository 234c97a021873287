package packed

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/megatrain/mtc/runtime/aside"
	"github.com/megatrain/mtc/runtime/fault"
)

// Writer writes a packed folder. Everything is written beside the folder's place and moved
// there at the end, so that no reader ever finds a half of it.
type Writer struct {
	m      Manifest
	dir    string // the folder's place
	tmp    *aside.Folder
	limit  int64 // tokens of a shard
	shard  *os.File
	out    *bufio.Writer
	h      header
	mask   []uint64
	table  []byte
	buf    []byte
	digest uint64
	closed bool
}

// Create begins a folder; m says what is packed. A place that is taken is refused.
func Create(dir string, m Manifest, shardTokens int64) (*Writer, error) {
	if list, err := os.ReadDir(dir); err == nil && len(list) > 0 {
		f := fault.New("MT0623", dir, "the folder is there and is not empty")
		if Is(dir) {
			return nil, f.Help("it holds packed data: remove it to pack again, or give another folder with -o")
		}
		return nil, f.Help("give another folder with -o")
	}
	place, err := aside.Place(dir)
	if err != nil {
		return nil, fault.New("MT0623", dir, "it cannot be written").Wrap(cause(err)).Help("give a folder that is not there yet with -o")
	}
	var tmp *aside.Folder
	if err = os.MkdirAll(filepath.Dir(place), 0o777); err == nil {
		tmp, err = aside.Make(filepath.Dir(place), Temporary)
	}
	if err != nil {
		return nil, cannotWrite(dir, err)
	}
	m.Version = version
	if m.Width = 4; m.Tokenizer.Vocab <= 1<<16 {
		m.Width = 2
	}
	return &Writer{m: m, dir: place, tmp: tmp, limit: shardTokens}, nil
}

func cannotWrite(path string, err error) error {
	return fault.New("MT0623", path, "the packed folder cannot be written").Wrap(cause(err)).
		Help("give a folder that can be written, with room for the tokens")
}

// Dir is the folder while it is written; files put there go along.
func (w *Writer) Dir() string { return w.tmp.Path }

// Manifest is what has been written so far.
func (w *Writer) Manifest() *Manifest { return &w.m }

// Add writes a document: its tokens, and which of them are learned.
func (w *Writer) Add(tokens []int32, learn []bool) error {
	if w.shard != nil && w.h.tokens+int64(len(tokens)) > w.limit {
		if err := w.endShard(); err != nil {
			return err
		}
	}
	if w.shard == nil {
		if err := w.beginShard(); err != nil {
			return err
		}
	}
	w.buf = w.buf[:0]
	sum := uint64(14695981039346656037) // FNV-1a over the tokens
	for i, t := range tokens {
		if w.m.Width == 2 {
			w.buf = binary.LittleEndian.AppendUint16(w.buf, uint16(t))
		} else {
			w.buf = binary.LittleEndian.AppendUint32(w.buf, uint32(t))
		}
		sum = (sum ^ uint64(uint32(t))) * 1099511628211
		at := w.h.tokens + int64(i)
		for int64(len(w.mask)) <= at/64 {
			w.mask = append(w.mask, 0)
		}
		if learn[i] {
			w.mask[at/64] |= 1 << (at % 64)
			w.h.learned++
		}
	}
	if _, err := w.out.Write(w.buf); err != nil {
		return cannotWrite(w.dir, err)
	}
	w.h.tokens += int64(len(tokens))
	w.h.docs++
	w.digest = (w.digest ^ sum) * 1099511628211
	w.table = binary.LittleEndian.AppendUint64(w.table, uint64(w.h.tokens))
	w.table = binary.LittleEndian.AppendUint64(w.table, sum)
	w.m.Longest = max(w.m.Longest, int64(len(tokens)))
	return nil
}

func (w *Writer) beginShard() (err error) {
	name := shardName(len(w.m.Shards))
	if w.shard, err = os.Create(filepath.Join(w.tmp.Path, name)); err != nil {
		return cannotWrite(w.dir, err)
	}
	w.out = bufio.NewWriterSize(w.shard, 1<<20)
	w.h = header{width: int64(w.m.Width), vocab: w.m.Tokenizer.Vocab, hash: w.m.Tokenizer.Hash}
	w.mask, w.table = w.mask[:0], w.table[:0]
	if _, err := w.out.Write(w.h.bytes()); err != nil {
		return cannotWrite(w.dir, err)
	}
	return nil
}

func (w *Writer) endShard() error {
	b := w.buf[:0]
	for _, m := range w.mask {
		b = binary.LittleEndian.AppendUint64(b, m)
	}
	_, err := w.out.Write(b)
	if err == nil {
		_, err = w.out.Write(w.table)
	}
	if err == nil {
		err = w.out.Flush()
	}
	if err == nil {
		_, err = w.shard.Seek(0, io.SeekStart)
	}
	if err == nil {
		_, err = w.shard.Write(w.h.bytes())
	}
	if err == nil {
		err = w.shard.Sync()
	}
	if cerr := w.shard.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return cannotWrite(w.dir, err)
	}
	w.shard = nil
	w.m.Shards = append(w.m.Shards, ShardInfo{shardName(len(w.m.Shards)), w.h.docs, w.h.tokens, w.h.learned})
	w.m.Documents += w.h.docs
	w.m.Tokens += w.h.tokens
	w.m.Learned += w.h.learned
	return nil
}

// Tokens is the number of tokens written so far.
func (w *Writer) Tokens() int64 {
	n := w.m.Tokens
	if w.shard != nil {
		n += w.h.tokens
	}
	return n
}

// Learned is the number of them that are learned.
func (w *Writer) Learned() int64 {
	n := w.m.Learned
	if w.shard != nil {
		n += w.h.learned
	}
	return n
}

// Close writes the manifest and moves the folder to its place.
func (w *Writer) Close(s Source) error {
	if w.shard != nil {
		if err := w.endShard(); err != nil {
			return err
		}
	}
	w.m.Source, w.m.Digest = s, fmt.Sprintf("%016x", w.digest)
	text, err := json.MarshalIndent(&w.m, "", "  ")
	if err == nil {
		err = os.WriteFile(filepath.Join(w.tmp.Path, ManifestFile), append(text, '\n'), 0o666)
	}
	if err == nil {
		err = w.tmp.Move(w.dir)
	}
	if err != nil {
		return cannotWrite(w.dir, err)
	}
	w.closed = true
	return nil
}

// Abort removes what was written, unless it has been closed.
func (w *Writer) Abort() {
	if w.closed {
		return
	}
	if w.shard != nil {
		w.shard.Close()
	}
	w.tmp.Remove()
}
