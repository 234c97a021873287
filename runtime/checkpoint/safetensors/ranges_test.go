package safetensors

import (
	"bytes"
	"hash/crc32"
	"math/rand/v2"
	"testing"
)

// A range gives the bytes and the sum of a plain reading, whatever its length.
func TestRangesAreTheFile(t *testing.T) {
	data := make([]byte, 3*pieceBytes+100)
	r := rand.New(rand.NewPCG(1, 2))
	for i := range data {
		data[i] = byte(r.Uint32())
	}
	var b bytes.Buffer
	entries := []Entry{{Name: "before", DType: "U8", Shape: []int64{13}, Data: data[:13]}, {Name: "x", DType: "U8", Shape: []int64{int64(len(data))}, Data: data}}
	if err := Write(&b, nil, entries); err != nil {
		t.Fatal(err)
	}
	f, err := read(b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ from, n int64 }{
		{0, 0}, {0, 1}, {5, pieceBytes}, {7, pieceBytes + 1}, {0, 2 * pieceBytes}, {100, 3 * pieceBytes}, {0, int64(len(data))},
	} {
		got := make([]byte, c.n)
		crc, err := f.Range(f.Lookup("x"), c.from, c.n, func(at int64, b []byte) { copy(got[at:], b) })
		want := data[c.from : c.from+c.n]
		if err != nil || !bytes.Equal(got, want) || crc != crc32.Checksum(want, Castagnoli) {
			t.Errorf("%d bytes from %d on: %v, sum %08x", c.n, c.from, err, crc)
		}
	}
	if crc, err := f.Sum(f.Size); err != nil || crc != crc32.Checksum(b.Bytes(), Castagnoli) {
		t.Errorf("the file: %08x, %v", crc, err)
	}
	f.r = bytes.NewReader(b.Bytes()[:b.Len()-1])
	if _, err := f.Range(f.Lookup("x"), 0, int64(len(data)), func(int64, []byte) {}); err == nil {
		t.Error("a file that was cut short reads whole")
	}
}

func TestSumsJoin(t *testing.T) {
	data := bytes.Repeat([]byte("abcdefg"), 1000)
	for _, n := range []int{0, 1, 2, 63, 64, 1000, len(data)} {
		a, b := data[:len(data)-n], data[len(data)-n:]
		if got, want := JoinSums(crc32.Checksum(a, Castagnoli), crc32.Checksum(b, Castagnoli), int64(n)), crc32.Checksum(data, Castagnoli); got != want {
			t.Errorf("%d bytes behind: %08x, wanted %08x", n, got, want)
		}
	}
}
