package hf

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash/crc32"
	"io"
	"runtime"
	"sort"
	"strings"
	"sync"
	"sync/atomic"
)

// Fingerprint tells the weights of a folder from any others: it is of the name, dtype, shape and
// bytes of every tensor that the model takes. Where the folder lies, how it is cut into files and
// what else is in it do not count. It guards against a folder that was changed or mixed up, not
// against one that was made to deceive.
func (m *Matching) Fingerprint() (string, error) {
	var list []*located
	for i := range m.entries {
		list = append(list, m.entries[i].from...)
	}
	lines, errs := make([]string, len(list)), make([]error, len(list))
	var next atomic.Int64
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			buf := make([]byte, 1<<20)
			for i := next.Add(1) - 1; i < int64(len(list)); i = next.Add(1) - 1 {
				t := list[i]
				crc := crc32.New(crc32.MakeTable(crc32.Castagnoli))
				if _, err := io.CopyBuffer(crc, onlyReader{t.shard.Data(t.Tensor)}, buf); err != nil {
					errs[i] = t.failed(err)
					continue
				}
				lines[i] = fmt.Sprintf("%s %s %v %08x\n", bare(t.Name), t.DType, t.Shape, crc.Sum32())
			}
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return "", err
		}
	}
	sort.Strings(lines)
	sum := sha256.Sum256([]byte(strings.Join(lines, "")))
	return hex.EncodeToString(sum[:])[:32], nil
}

// onlyReader hides WriteTo, so that CopyBuffer uses its buffer.
type onlyReader struct{ io.Reader }

// Path is the folder.
func (m *Matching) Path() string { return m.folder.Path }
