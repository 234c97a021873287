//go:build cuda

package cuda

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/megatrain/mtc/runtime/device"
)

// The choice of algorithms for matrix products. cuBLASLt names several and holds one for the best;
// which one is shows only when they run. So before the first step each product of a program runs
// with every one of them, and the fastest is kept on disk, by everything that the choice depends
// on: sums of another order have other bits, and a run that is resumed must find what it had.
// Whoever chose first is followed by all others. What is seen later (a prompt's last chunk) takes
// the first algorithm, whatever the disk says: its bits do not depend on what ran before.

const (
	// tuneTime bounds what a start spends on choosing. What is left then takes the first algorithm,
	// and keeps it.
	tuneTime = 4 * time.Second
	// tuneTry is about how long a product runs for one measurement, the shortest of tuneTries.
	tuneTry   = 500 * time.Microsecond
	tuneTries = 3
	// tuneGain is the share of the best time so far that another must stay under: less is noise.
	tuneGain = 0.98
)

// choice is what is kept of a product: an algorithm as the library describes it, or that its
// epilogue is better left to a kernel.
type choice struct {
	apart bool
	algo  [64]byte
}

// settle chooses the algorithms of products and takes the scratch memory that they need. It may
// write to what the launches write to: nothing of that is in use before the first step.
func (s *stream) settle(calls []productCall) error {
	for i := range calls {
		if err := s.settleOne(calls[i].kernel, &calls[i].args); err != nil {
			return err
		}
	}
	return nil
}

func (s *stream) settleOne(k *device.Kernel, a *device.Args) (err error) {
	defer func() {
		if r, ok := recover().(*rangeError); ok {
			err = r
		}
	}()
	m := k.Matmul(a)
	if m.M == 0 || m.N == 0 {
		return nil
	}
	b, err := s.dev.blas()
	if err != nil {
		return err
	}
	list, n := s.dev.parts(&m)
	for i := range list[:n] {
		if err := s.settlePart(b, k, a, list[i]); err != nil {
			return err
		}
	}
	return nil
}

func (s *stream) settlePart(b *blas, k *device.Kernel, a *device.Args, m device.Matmul) error {
	whole := m
	p, fused, err := b.find(s.dev, &m)
	if err != nil {
		return fmt.Errorf("[%d, %d] x [%d, %d]: %w", m.M, m.K, m.K, m.N, err)
	}
	if !p.settled {
		if err := s.tune(b, p, &m); err != nil {
			return err
		}
		if fused && whole.Epilogue != device.NoEpilogue {
			if err := s.tuneEpilogue(b, p, k, a, whole); err != nil {
				return err
			}
		}
	}
	return s.reserve(p.room)
}

// tune chooses a product's algorithm.
func (s *stream) tune(b *blas, p *product, m *device.Matmul) error {
	p.settled = true
	path := b.choicePath(s.dev, p, "")
	if path == "" || p.algorithms() < 2 || !restores() {
		return nil
	}
	c, ok := readChoice(path)
	if !ok {
		best, err := s.fastest(b, p, m)
		if err != nil {
			return err
		}
		if c, ok = keepChoice(path, choice{algo: p.algo(best)}); !ok {
			return nil // what cannot be kept must not be chosen
		}
	}
	if !p.restore(b, c.algo) {
		return newFault(codeKernel, "the algorithm of a matrix product that is kept in %s does not fit", path).
			Help("remove that file, and the fastest is chosen anew; set MTC_CUDA_TUNE=0 to do without")
	}
	return nil
}

// fastest runs a product with every algorithm.
func (s *stream) fastest(b *blas, p *product, m *device.Matmul) (best int, err error) {
	defer p.choose(0)
	var least time.Duration
	for i := range p.algorithms() {
		if !p.usable(i) || b.spent > tuneTime {
			continue
		}
		p.choose(i)
		if err := s.reserve(p.room); err != nil {
			return 0, err
		}
		t, err := s.timed(b, func() error { return s.multiply(b, p, m) })
		switch {
		case err != nil && i == 0:
			return 0, err
		case err != nil: // named by the library, and refused when it comes to it
		case i == 0 || t < time.Duration(tuneGain*float64(least)):
			best, least = i, t
		}
	}
	return best, nil
}

// tuneEpilogue chooses between a product with its epilogue and a kernel that follows it.
func (s *stream) tuneEpilogue(b *blas, p *product, k *device.Kernel, a *device.Args, whole device.Matmul) error {
	path := b.choicePath(s.dev, p, "epilogue")
	if path == "" {
		return nil
	}
	m := whole.Plain()
	plain, err := b.look(s.dev, &m)
	if err != nil {
		return err
	}
	if err := s.tune(b, plain, &m); err != nil {
		return err
	}
	c, ok := readChoice(path)
	if !ok {
		if err := s.reserve(max(p.room, plain.room)); err != nil {
			return err
		}
		if b.spent <= tuneTime {
			together, err := s.timed(b, func() error { return s.multiply(b, p, &whole) })
			if err != nil {
				return err
			}
			apart, err := s.timed(b, func() error {
				if err := s.multiply(b, plain, &m); err != nil {
					return err
				}
				return s.launchSource(k, a)
			})
			if err != nil {
				return err
			}
			c.apart = apart < time.Duration(tuneGain*float64(together))
		}
		if c, ok = keepChoice(path, c); !ok {
			return nil
		}
	}
	if c.apart {
		p.drop()
		p.room = plain.room
	}
	return nil
}

// timed is the time of one run of f, by the host's clock over several.
func (s *stream) timed(b *blas, f func() error) (time.Duration, error) {
	began := time.Now()
	defer func() { b.spent += time.Since(began) }()
	run := func(n int) (time.Duration, error) {
		start := time.Now()
		for range n {
			if err := f(); err != nil {
				return 0, err
			}
		}
		err := s.dev.syncStream(s.handle)
		return time.Since(start) / time.Duration(n), err
	}
	if _, err := run(1); err != nil { // the first run loads code
		return 0, err
	}
	least, err := run(1)
	if err != nil {
		return 0, err
	}
	n := int(min(max(tuneTry/max(least, 1), 1), 50))
	for range tuneTries {
		t, err := run(n)
		if err != nil {
			return 0, err
		}
		least = min(least, t)
	}
	return least, nil
}

// choicePath is where a product's choice is kept; "": nowhere, so that there is none.
func (b *blas) choicePath(d *Device, p *product, what string) string {
	dir := cacheDir()
	if dir == "" || d.noTuning {
		return ""
	}
	version, err := BlasVersion()
	if err != nil {
		return ""
	}
	h := sha256.New()
	fmt.Fprintf(h, "%d %s %s %t %d\n%+v\n%s", version, d.name, d.arch, d.opt.F32, blasWorkspace, p.key, what)
	return filepath.Join(dir, "products", hex.EncodeToString(h.Sum(nil)))
}

func readChoice(path string) (c choice, ok bool) {
	data, whole := kept(path)
	if !whole || len(data) != 1+len(c.algo) || data[0] > 1 {
		return choice{}, false
	}
	c.apart = data[0] == 1
	copy(c.algo[:], data[1:])
	return c, true
}

// keepChoice keeps a choice unless another process was first, and returns the one that holds.
func keepChoice(path string, c choice) (choice, bool) {
	data := make([]byte, 1, 1+len(c.algo))
	if c.apart {
		data[0] = 1
	}
	data = append(data, c.algo[:]...)
	if _, err := os.Lstat(path); err == nil {
		if _, ok := readChoice(path); !ok {
			_ = os.Remove(path) // a damaged one
		}
	}
	mine := fmt.Sprintf("%s.%d", path, os.Getpid())
	defer os.Remove(mine)
	if keep(mine, data) != nil {
		return choice{}, false
	}
	_ = os.Link(mine, path)
	return readChoice(path)
}
