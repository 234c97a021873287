package data

import (
	"io"
	"strings"

	"github.com/megatrain/mtc/runtime/fault"
)

// magics are how files begin that are bytes, and whose bytes nobody wants to learn.
var magics = []struct{ begin, what, help string }{
	{"\x1f\x8b", "gzip", "unpack it first: `gzip -d`"},
	{"\x28\xb5\x2f\xfd", "zstd", "unpack it first: `zstd -d`"},
	{"\xfd7zXZ\x00", "xz", "unpack it first: `xz -d`"},
	{"BZh", "bzip2", "unpack it first: `bzip2 -d`"},
	{"PK\x03\x04", "zip", "unpack it first: `unzip`"},
	{"PAR1\x15", "Parquet", "write its text to files of text or JSON lines first"},
	{"ARROW1\x00", "Arrow", "write its text to files of text or JSON lines first"},
	{"\x93NUMPY", "NumPy", "write the tokens as they are, `tokens.tofile(\"x.bin\")`, and give their width"},
}

// packedUp refuses a file that would be read as bytes and is of another kind.
func packedUp(path string, r io.ReaderAt) error {
	var buf [10]byte
	n, err := r.ReadAt(buf[:], 0)
	if err != nil && err != io.EOF {
		return fault.New("MT0602", path, "cannot be read").Wrap(cause(err))
	}
	begin := string(buf[:n])
	for _, m := range magics {
		if strings.HasPrefix(begin, m.begin) && (m.begin != "BZh" || strings.HasSuffix(begin, "1AY&SY")) {
			return fault.New("MT0608", path, "it is %s, and would be read as bytes", m.what).
				Help("%s; `width = 1 bytes` in the train block trains on the bytes as they are", m.help)
		}
	}
	return unfetched(path, r)
}

// unfetched refuses what Git LFS leaves in place of a file.
func unfetched(path string, r io.ReaderAt) error {
	var buf [32]byte
	n, _ := r.ReadAt(buf[:], 0) // what cannot be read is told where it is read
	if f := fault.Unfetched("MT0608", path, string(buf[:n])); f != nil {
		return f
	}
	return nil
}
