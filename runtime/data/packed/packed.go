// Package packed is a folder of tokenized documents with what is learned of each:
//
//	packed.json       what was packed, with which tokenizer, and the shards (Manifest)
//	tokens-00000.tok  shards
//	tokenizer/        the tokenizer's files, when it has any
//
// A shard is little-endian:
//
//	0   8 bytes   magic "MTCTOK1\n"
//	8   uint32    version, 1
//	12  uint32    bytes a token: 2 or 4
//	16  uint64    vocabulary: ids are below it
//	24  16 bytes  hash of the tokenizer, padded with zeros
//	40  uint64    number of documents
//	48  uint64    number of tokens
//	56  uint64    number of tokens that are learned: that count as targets
//	64            tokens
//	              mask: a bit a token, the lowest of a byte first; padded to 8 bytes
//	              documents: uint64 end (a token), uint64 hash of its tokens
//
// The mask of a token says whether predicting it is learned; it goes by position, so two equal
// tokens may differ in it. All sizes follow from the header and are checked against the file
// before anything is read.
package packed

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"

	"github.com/megatrain/mtc/runtime/fault"
	"github.com/megatrain/mtc/runtime/jsontext"
)

// Names of files.
const (
	ManifestFile = "packed.json"
	TokenizerDir = "tokenizer"
	// Temporary begins the name of a folder that is being written.
	Temporary = ".packing-"
)

const (
	magic       = "MTCTOK1\n"
	version     = 1
	headerBytes = 64
	docBytes    = 16
)

// Manifest is packed.json.
type Manifest struct {
	Version   int       `json:"version"`
	Tokenizer Tokenizer `json:"tokenizer"`
	// Apart says that documents are never continued one into the next, as conversations.
	Apart bool   `json:"apart"`
	Loss  string `json:"loss"` // "all" or "assistant"
	// Template is a hash of the chat template, "" where there were no chats.
	Template  string      `json:"template,omitempty"`
	Width     int         `json:"width"`
	Documents int64       `json:"documents"`
	Tokens    int64       `json:"tokens"`
	Learned   int64       `json:"learned"`
	Longest   int64       `json:"longest"` // tokens of the longest document
	Digest    string      `json:"digest"`  // of all tokens
	Source    Source      `json:"source"`
	Shards    []ShardInfo `json:"shards"`
}

// Tokenizer names a tokenizer.
type Tokenizer struct {
	Name  string `json:"name"`
	Hash  string `json:"hash"`
	Vocab int64  `json:"vocab"`
}

// Source counts what was read, and what of it is not in the shards, by reason.
type Source struct {
	Files   int64 `json:"files"`
	Bytes   int64 `json:"bytes"`
	Records int64 `json:"records"`
	// Key is a hash of all that the folder was made from, where a run made it; else "".
	Key  string           `json:"key,omitempty"`
	Left map[string]int64 `json:"left_out,omitempty"`
}

// ShardInfo is a shard in the manifest.
type ShardInfo struct {
	File      string `json:"file"`
	Documents int64  `json:"documents"`
	Tokens    int64  `json:"tokens"`
	Learned   int64  `json:"learned"`
}

// ID names what was packed: the tokenizer, the way, and the counts of the shards.
func (m *Manifest) ID() string {
	h := sha256.New()
	fmt.Fprintf(h, "%s %v %s %s %d %s", m.Tokenizer.Hash, m.Apart, m.Loss, m.Template, m.Width, m.Digest)
	for _, s := range m.Shards {
		fmt.Fprintf(h, " %q %d %d %d", s.File, s.Documents, s.Tokens, s.Learned)
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// Is says whether a path is a packed folder.
func Is(path string) bool {
	info, err := os.Stat(filepath.Join(path, ManifestFile))
	return err == nil && info.Mode().IsRegular()
}

// ReadManifest reads and checks packed.json.
func ReadManifest(dir string) (*Manifest, error) {
	path := filepath.Join(dir, ManifestFile)
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fault.New("MT0602", path, "cannot be read").Wrap(cause(err)).Help("give a folder that `mtc data pack` wrote")
	}
	var m Manifest
	bad := func(format string, args ...any) error {
		return fault.New("MT0675", path, format, args...).Help("pack the data again")
	}
	if err := jsontext.Read(text, &m, 0); err != nil {
		return nil, fault.New("MT0675", path, "the list of a packed folder cannot be read").Wrap(err).Help("pack the data again")
	}
	var docs, tokens, learned int64
	for _, s := range m.Shards {
		if s.File == "" || s.File != filepath.Base(s.File) || strings.HasPrefix(s.File, ".") {
			return nil, bad("the shard %q is not a file of this folder", s.File)
		}
		if s.Documents < 0 || s.Tokens < 0 || s.Learned < 0 || s.Tokens > math.MaxInt64/8/int64(len(m.Shards)) || s.Documents > s.Tokens {
			return nil, bad("the counts of %s cannot be", s.File)
		}
		docs, tokens, learned = docs+s.Documents, tokens+s.Tokens, learned+s.Learned
	}
	switch {
	case m.Version != version:
		return nil, bad("version %d of a packed folder is not known, only %d", m.Version, version)
	case docs != m.Documents || tokens != m.Tokens || learned != m.Learned:
		return nil, bad("the counts of the shards do not add up to the folder's")
	case docs == 0:
		return nil, bad("the folder has no documents")
	case m.Loss != "all" && m.Loss != "assistant":
		return nil, bad("the loss %q is not known", m.Loss)
	}
	return &m, nil
}

// header is the beginning of a shard.
type header struct {
	width                   int64
	vocab                   int64
	hash                    string
	docs, tokens, learned   int64
	maskAt, tableAt, wanted int64 // bytes of the file
}

// parseHeader checks a header against the size of its file.
func parseHeader(path string, b []byte, size int64) (h header, err error) {
	bad := func(at int64, format string, args ...any) error {
		return fault.New("MT0675", path, format, args...).At(at).Help("pack the data again")
	}
	if len(b) < headerBytes {
		return h, bad(int64(len(b)), "a shard begins with %d bytes, this file has %d", headerBytes, len(b))
	}
	if string(b[:8]) != magic {
		return h, bad(0, "not a shard of a packed folder")
	}
	le := binary.LittleEndian
	if v := le.Uint32(b[8:]); v != version {
		return h, bad(8, "version %d of a shard is not known, only %d", v, version)
	}
	h.width = int64(le.Uint32(b[12:]))
	if h.width != 2 && h.width != 4 {
		return h, bad(12, "tokens of %d bytes", h.width)
	}
	h.hash = strings.TrimRight(string(b[24:40]), "\x00")
	for i, to := range []*int64{&h.vocab, nil, nil, &h.docs, &h.tokens, &h.learned} {
		if to == nil {
			continue
		}
		at := 16 + 8*i
		v := le.Uint64(b[at:])
		if v > math.MaxInt64/64 {
			return h, bad(int64(at), "the number %d cannot be", v)
		}
		*to = int64(v)
	}
	h.maskAt = headerBytes + h.tokens*h.width
	h.tableAt = h.maskAt + (h.tokens+63)/64*8
	h.wanted = h.tableAt + h.docs*docBytes
	switch {
	case size != h.wanted:
		return h, bad(size, "the header says %d tokens and %d documents, which take %d bytes, and the file has %d", h.tokens, h.docs, h.wanted, size)
	case h.docs > h.tokens || h.learned > h.tokens:
		return h, bad(40, "more documents, or more that is learned, than tokens")
	case h.vocab < 1 || h.vocab > math.MaxInt32:
		return h, bad(16, "a vocabulary of %d", h.vocab)
	}
	return h, nil
}

func (h *header) bytes() []byte {
	b := make([]byte, headerBytes)
	le := binary.LittleEndian
	copy(b, magic)
	le.PutUint32(b[8:], version)
	le.PutUint32(b[12:], uint32(h.width))
	le.PutUint64(b[16:], uint64(h.vocab))
	copy(b[24:40], h.hash)
	le.PutUint64(b[40:], uint64(h.docs))
	le.PutUint64(b[48:], uint64(h.tokens))
	le.PutUint64(b[56:], uint64(h.learned))
	return b
}

// cause strips the path from an error that repeats it.
func cause(err error) error {
	var pe *os.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}

func shardName(i int) string { return fmt.Sprintf("tokens-%05d.tok", i) }
