package packed

import (
	"encoding/binary"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"

	"github.com/megatrain/mtc/runtime/fault"
)

// Set is an open folder. Its methods may be called from several goroutines.
type Set struct {
	Manifest *Manifest
	Dir      string
	shards   []*shard
	first    []int64 // first[i]: documents before shard i; one more at the end
}

// shard is an open shard: its table is in memory, tokens and masks are read when asked for.
type shard struct {
	path string
	header
	f    *os.File
	ends []int64
	hash []uint64
}

// Open opens a folder and checks headers and tables, so that what can be wrong is told before
// a run begins. Ids are checked as they are read.
func Open(dir string) (*Set, error) {
	m, err := ReadManifest(dir)
	if err != nil {
		return nil, err
	}
	s := &Set{Manifest: m, Dir: dir, first: []int64{0}}
	for _, info := range m.Shards {
		sh, err := openShard(filepath.Join(dir, info.File))
		if err != nil {
			s.Close()
			return nil, err
		}
		s.shards = append(s.shards, sh)
		s.first = append(s.first, s.first[len(s.first)-1]+sh.docs)
		h := sh.header
		if h.docs != info.Documents || h.tokens != info.Tokens || h.learned != info.Learned || h.hash != m.Tokenizer.Hash || h.vocab != m.Tokenizer.Vocab {
			s.Close()
			return nil, fault.New("MT0675", sh.path, "the shard is not the one that %s lists", ManifestFile).
				Help("the folder is mixed from several: pack the data again")
		}
	}
	return s, nil
}

func openShard(path string) (*shard, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fault.New("MT0602", path, "cannot be read").Wrap(cause(err)).Help("the folder is not whole: pack the data again")
	}
	s := &shard{path: path, f: f}
	if err := s.read(); err != nil {
		f.Close()
		return nil, err
	}
	return s, nil
}

func (s *shard) read() error {
	info, err := s.f.Stat()
	if err != nil {
		return fault.New("MT0602", s.path, "cannot be read").Wrap(cause(err))
	}
	head := make([]byte, headerBytes)
	n, err := s.f.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return fault.New("MT0602", s.path, "cannot be read").Wrap(cause(err))
	}
	if s.header, err = parseHeader(s.path, head[:n], info.Size()); err != nil {
		return err
	}
	table, err := s.bytes(s.tableAt, s.docs*docBytes)
	if err != nil {
		return err
	}
	s.ends, s.hash = make([]int64, s.docs), make([]uint64, s.docs)
	last := uint64(0)
	for i := range s.ends {
		end := binary.LittleEndian.Uint64(table[i*docBytes:])
		if end <= last || end > uint64(s.tokens) {
			return fault.New("MT0675", s.path, "document %d ends at token %d, the one before at %d", i, end, last).At(s.tableAt + int64(i)*docBytes).Help("pack the data again")
		}
		last = end
		s.ends[i], s.hash[i] = int64(end), binary.LittleEndian.Uint64(table[i*docBytes+8:])
	}
	if last != uint64(s.tokens) {
		return fault.New("MT0675", s.path, "the documents end at token %d of %d", last, s.tokens).At(s.tableAt).Help("pack the data again")
	}
	return nil
}

func (s *shard) bytes(at, n int64) ([]byte, error) {
	b := make([]byte, n)
	got, err := s.f.ReadAt(b, at)
	if int64(got) < n {
		return nil, fault.New("MT0609", s.path, "the file ends at byte %d and had %d when it was opened", at+int64(got), s.wanted).
			At(at + int64(got)).Wrap(err).Help("leave the data alone while a run reads it")
	}
	return b, nil
}

// tokensAt reads tokens and masks from a token on. learn may be nil.
func (s *shard) tokensAt(dst []int32, learn []bool, from int64) error {
	b, err := s.bytes(headerBytes+from*s.width, int64(len(dst))*s.width)
	if err != nil {
		return err
	}
	for i := range dst {
		var id uint32
		if s.width == 2 {
			id = uint32(binary.LittleEndian.Uint16(b[2*i:]))
		} else {
			id = binary.LittleEndian.Uint32(b[4*i:])
		}
		if int64(id) >= s.vocab || id > math.MaxInt32 {
			return fault.New("MT0606", s.path, "token id %d is outside the tokenizer's vocabulary of %d", id, s.vocab).
				At(headerBytes + (from+int64(i))*s.width).Help("the shard is damaged: pack the data again")
		}
		dst[i] = int32(id)
	}
	if learn == nil {
		return nil
	}
	lo, hi := from/8, (from+int64(len(dst))+7)/8
	m, err := s.bytes(s.maskAt+lo, hi-lo)
	if err != nil {
		return err
	}
	for i := range dst {
		at := from + int64(i)
		learn[i] = m[at/8-lo]>>(at%8)&1 != 0
	}
	return nil
}

// Documents is the number of documents.
func (s *Set) Documents() int64 { return s.first[len(s.first)-1] }

// find is the shard of a document and its place there.
func (s *Set) find(doc int64) (*shard, int64) {
	lo, hi := 0, len(s.shards)
	for hi-lo > 1 {
		if mid := (lo + hi) / 2; s.first[mid] <= doc {
			lo = mid
		} else {
			hi = mid
		}
	}
	return s.shards[lo], doc - s.first[lo]
}

func (s *shard) start(doc int64) int64 {
	if doc == 0 {
		return 0
	}
	return s.ends[doc-1]
}

// Len is the number of tokens of a document.
func (s *Set) Len(doc int64) int64 {
	sh, i := s.find(doc)
	return sh.ends[i] - sh.start(i)
}

// Hash is a hash of a document's tokens: equal documents have equal ones.
func (s *Set) Hash(doc int64) uint64 {
	sh, i := s.find(doc)
	return sh.hash[i]
}

// Read reads the tokens of a document from its token `from` on, and their masks unless learn
// is nil.
func (s *Set) Read(doc, from int64, dst []int32, learn []bool) error {
	sh, i := s.find(doc)
	return sh.tokensAt(dst, learn, sh.start(i)+from)
}

// Close closes the files.
func (s *Set) Close() error {
	for _, sh := range s.shards {
		sh.f.Close()
	}
	return nil
}
