package hf

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/megatrain/mtc/runtime/checkpoint/safetensors"
)

// Fingerprint tells the weights of a folder from any others: it is of the name, dtype, shape and
// bytes of every tensor that the model takes. Where the folder lies, how it is cut into files and
// what else is in it do not count. It guards against a folder that was changed or mixed up, not
// against one that was made to deceive. After Load it is of what was loaded, and nothing is read.
func (m *Matching) Fingerprint() (string, error) {
	var lines []string
	for i := range m.entries {
		for _, t := range m.entries[i].from {
			crc, whole := joined(m.sums[t], t.Bytes)
			if !whole {
				var err error
				if crc, err = t.shard.Range(t.Tensor, 0, t.Bytes, func(int64, []byte) {}); err != nil {
					return "", t.failed(err)
				}
			}
			lines = append(lines, fmt.Sprintf("%s %s %v %08x\n", bare(t.Name), t.DType, t.Shape, crc))
		}
	}
	sort.Strings(lines)
	sum := sha256.Sum256([]byte(strings.Join(lines, "")))
	return hex.EncodeToString(sum[:])[:32], nil
}

// span is a part of a tensor's bytes that has been read.
type span struct {
	from, n int64
	crc     uint32
}

// joined is the CRC of n bytes from those of its parts, if these are all of them.
func joined(parts []span, n int64) (crc uint32, whole bool) {
	slices.SortFunc(parts, func(a, b span) int { return int(a.from - b.from) })
	at := int64(0)
	for _, p := range parts {
		if p.from != at {
			return 0, false
		}
		crc = safetensors.JoinSums(crc, p.crc, p.n)
		at += p.n
	}
	return crc, at == n && len(parts) > 0
}

// Path is the folder.
func (m *Matching) Path() string { return m.folder.Path }
