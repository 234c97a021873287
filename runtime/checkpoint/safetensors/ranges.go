package safetensors

import (
	"hash/crc32"
	"io"
	"os"
	"sync"

	"github.com/megatrain/mtc/runtime/cores"
)

// pieceBytes is how much of a file is read at a time: it stays in a core's cache while it is
// used, and is a whole number of elements of any dtype.
const pieceBytes = 256 << 10

var (
	pieces = sync.Pool{New: func() any { return new([pieceBytes]byte) }}
	// Castagnoli is the table of the sums here.
	Castagnoli = crc32.MakeTable(crc32.Castagnoli)
)

// Range reads n bytes of a tensor from one on, in pieces on all cores, and returns their
// CRC-32C. It calls use with each piece and where that begins in the range, several at a time;
// a piece is gone when use returns, and holds whole elements where the range does.
func (f *File) Range(t *Tensor, from, n int64, use func(at int64, b []byte)) (crc uint32, err error) {
	return readRange(f.r, t.off+from, n, use)
}

// Sum is the CRC-32C of the file's first n bytes.
func (f *File) Sum(n int64) (crc uint32, err error) { return readRange(f.r, 0, n, ignore) }

// SumFile is the CRC-32C of a file of any kind.
func SumFile(path string) (crc uint32, err error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return readRange(f, 0, info.Size(), ignore)
}

func ignore(int64, []byte) {}

func readRange(r io.ReaderAt, off, n int64, use func(at int64, b []byte)) (crc uint32, err error) {
	count := (n + pieceBytes - 1) / pieceBytes
	sums, errs := make([]uint32, count), make([]error, count)
	cores.Each(n, pieceBytes, func(from, to int64) {
		buf := pieces.Get().(*[pieceBytes]byte)
		defer pieces.Put(buf)
		i, b := from/pieceBytes, buf[:to-from]
		if got, err := r.ReadAt(b, off+from); got < len(b) {
			errs[i] = err
			return
		}
		sums[i] = crc32.Checksum(b, Castagnoli)
		use(from, b)
	})
	for i := range count {
		if errs[i] != nil {
			return 0, errs[i]
		}
		crc = JoinSums(crc, sums[i], min(pieceBytes, n-i*pieceBytes))
	}
	return crc, nil
}

// JoinSums is the CRC-32C of two runs of bytes one behind the other, from that of each and the
// bytes of the second. A CRC is a remainder of polynomials over GF(2), so what follows multiplies
// it by x to the power of its bits.
func JoinSums(a, b uint32, bytes int64) uint32 {
	power := uint32(1) << 23 // x^8; bit 31 is x^0
	for ; bytes > 0; bytes >>= 1 {
		if bytes&1 == 1 {
			a = multiply(a, power)
		}
		power = multiply(power, power)
	}
	return a ^ b
}

// multiply is the product of two polynomials modulo Castagnoli's.
func multiply(a, b uint32) (product uint32) {
	for ; a != 0; a <<= 1 {
		if a>>31 == 1 {
			product ^= b
		}
		b = b>>1 ^ crc32.Castagnoli*(b&1)
	}
	return product
}
