package data

import (
	"encoding/binary"
	"io"

	"github.com/megatrain/mtc/runtime/fault"
)

// headerBytes is the size of a shard's header: 256 int32.
const headerBytes = 256 * 4

// headers are the known shard formats.
var headers = []struct {
	magic, version uint32
	width          int64
}{
	{20240520, 1, 2},
	{20240801, 7, 4},
}

// layout says where the tokens of a file are.
type layout struct {
	start  int64 // byte of the first token
	tokens int64
	width  int64 // bytes a token
}

// shardLayout reads the header of a shard of size bytes and checks it against the size.
func shardLayout(path string, r io.ReaderAt, size int64) (layout, error) {
	var buf [headerBytes]byte
	if size < headerBytes {
		if err := unfetched(path, r); err != nil {
			return layout{}, err
		}
		return layout{}, fault.New("MT0603", path, "a token shard starts with a header of %d bytes, this file has %d", headerBytes, size).
			Help("if its tokens start at the first byte, give their width; if it is text, read it as bytes")
	}
	if _, err := r.ReadAt(buf[:], 0); err != nil {
		return layout{}, fault.New("MT0602", path, "the header cannot be read").Wrap(cause(err))
	}
	word := func(i int) uint32 { return binary.LittleEndian.Uint32(buf[i*4:]) }
	for _, h := range headers {
		if word(0) != h.magic {
			continue
		}
		if word(1) != h.version {
			return layout{}, fault.New("MT0603", path, "version %d of a shard with magic %d is not known, only %d", word(1), h.magic, h.version).At(4)
		}
		l := layout{start: headerBytes, tokens: int64(word(2)), width: h.width}
		want := headerBytes + l.tokens*l.width
		switch {
		case word(2) > 1<<31-1:
			return layout{}, fault.New("MT0603", path, "the header says %d tokens, which is negative as an int32", int32(word(2))).At(8).
				Help("write the tokens into several shards, each with its count in the header")
		case size < want:
			return layout{}, fault.New("MT0604", path, "cut short: the header says %d tokens, which end at byte %d, and the file has %d", l.tokens, want, size).
				At(size).Help("fetch or write this shard again")
		case size > want:
			return layout{}, fault.New("MT0604", path, "the header says %d tokens, which end at byte %d, and the file goes on to %d", l.tokens, want, size).
				At(want).Help("write the shard again with the right count in its header")
		}
		return l, nil
	}
	if m := word(0); swap(m) == headers[0].magic || swap(m) == headers[1].magic {
		return layout{}, fault.New("MT0603", path, "the shard was written in big-endian byte order").At(0).Help("write it again in little-endian order")
	}
	return layout{}, fault.New("MT0603", path, "not a token shard: its first number is %d, a shard has %d or %d", word(0), headers[0].magic, headers[1].magic).At(0).
		Help("if its tokens start at the first byte, give their width; if it is text, read it as bytes")
}

// plainLayout checks the size of a headerless shard.
func plainLayout(path string, size, width int64) (layout, error) {
	if rest := size % width; rest != 0 {
		return layout{}, fault.New("MT0605", path, "%d bytes are not a whole number of %d-byte tokens", size, width).
			At(size - rest).Help("check the width, and that the file is complete")
	}
	return layout{tokens: size / width, width: width}, nil
}

func swap(x uint32) uint32 { return x<<24 | x>>24 | x<<8&0xff0000 | x>>8&0xff00 }

// decode turns little-endian tokens into ids, 0 <= id < vocab. It returns the index of the
// first id outside, or -1; uint32 values above the int32 range are outside of any vocabulary.
func decode(dst []int32, src []byte, width, vocab int64) int {
	limit := uint32(1<<31 - 1)
	if vocab > 0 && vocab-1 < int64(limit) {
		limit = uint32(vocab - 1)
	}
	bad := -1
	for i := range dst {
		var v uint32
		switch width {
		case 1:
			v = uint32(src[i])
		case 2:
			v = uint32(binary.LittleEndian.Uint16(src[2*i:]))
		default:
			v = binary.LittleEndian.Uint32(src[4*i:])
		}
		if v > limit && bad < 0 {
			bad = i
		}
		dst[i] = int32(v)
	}
	return bad
}
