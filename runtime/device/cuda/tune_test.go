//go:build cuda

package cuda

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/megatrain/mtc/runtime/device"
)

// TestTune: the fastest algorithm of a product is kept, and every later device takes it; a damaged
// file is made anew, and an algorithm that does not fit is an error that names the file.
func TestTune(t *testing.T) {
	if os.Getenv("MTC_TEST_TUNE") == "" {
		// Over the stand-in, which then names three algorithms, the second of which is the fastest.
		again(t, "TestTune", "MTC_TEST_TUNE=1", "MTC_FAKE_CUDA=on,tune", "XDG_CACHE_HOME="+t.TempDir())
		return
	}
	chosen := func() ([64]byte, error) {
		d := open(t, Options{})
		rnd := rand.New(rand.NewPCG(1, 2))
		const m, n, k = 48, 80, 64
		mm := device.Matmul{M: m, N: n, K: k, TransB: true, DA: device.ActDtype, DB: device.WeightDtype, DD: device.ActDtype}
		mm.A, mm.B = put(t, d, rnd, m*k, mm.DA).p, put(t, d, rnd, n*k, mm.DB).p
		mm.D = alloc(t, d, device.DeviceMemory, 2*m*n)
		kernel := &device.Kernel{Name: "matmul", Matmul: func(*device.Args) device.Matmul { return mm }}
		if err := d.Warm(func(q device.Queue) { q.Launch(kernel, device.Args{}) }); err != nil {
			return [64]byte{}, err
		}
		d.Queue(device.Compute).Launch(kernel, device.Args{})
		return d.lt.plans[0].algo(0), d.Sync()
	}
	first, err := chosen()
	if err != nil {
		t.Fatal(err)
	}
	if fake() && first[0] != 1 {
		t.Errorf("algorithm %d was chosen, 1 is the fastest", first[0])
	}
	files, _ := filepath.Glob(filepath.Join(cacheDir(), "products", "*"))
	if len(files) != 1 {
		t.Fatalf("kept are %q, want one file", files)
	}
	for _, change := range []struct {
		name string
		do   func(b []byte) []byte
		bad  bool
	}{
		{"left alone", func(b []byte) []byte { return b }, false},
		{"damaged", func(b []byte) []byte { return b[:7] }, false},
		{"a changed byte", func(b []byte) []byte { b[1] = 9; return b }, false},
		{"of another library", func(b []byte) []byte { b[1] = 9; return b }, true},
	} {
		b, err := os.ReadFile(files[0])
		if err != nil {
			t.Fatal(err)
		}
		if change.bad {
			whole, _ := kept(files[0])
			err = keep(files[0], change.do(whole))
		} else {
			err = os.WriteFile(files[0], change.do(b), 0o666)
		}
		if err != nil {
			t.Fatal(err)
		}
		got, err := chosen()
		switch {
		case change.bad && fake():
			if err == nil || !strings.Contains(err.Error(), files[0]) {
				t.Errorf("%s: %v, want an error that names %s", change.name, err, files[0])
			}
		case !change.bad && (err != nil || got != first && fake()):
			t.Errorf("%s: %x, %v, want %x", change.name, got, err, first)
		}
	}
	t.Setenv("MTC_CUDA_TUNE", "0")
	if got, err := chosen(); err != nil || fake() && got[0] != 0 {
		t.Errorf("without: %x, %v, want the first algorithm", got, err)
	}
}
