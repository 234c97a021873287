package finite

import (
	_ "embed"
	"encoding/binary"
	"math"

	"github.com/megatrain/mtc/runtime/device"
)

//go:embed finite.cu
var text string

const (
	threads   = 256
	perThread = 8    // elements worth a thread
	maxBlocks = 1024 // each leaves its own result
	foundSize = 24   // struct Found of finite.cu
)

var checkCUDA = &device.Source{
	Text: text, Func: "finite_blocks", Spec: half,
	Grid: func(a *device.Args) device.Grid {
		n := a.I[0] * a.I[1]
		return device.Grid{X: int32(min(maxBlocks, (n+threads*perThread-1)/(threads*perThread))), Threads: threads}
	},
	Work: func(*device.Args) int64 { return foundSize * (1 + maxBlocks) },
	Next: &device.Source{Text: text, Func: "finite_fold", Spec: half,
		Grid: func(*device.Args) device.Grid { return device.Grid{X: 1, Threads: threads} }},
}

func half(a *device.Args) [4]int64 { return [4]int64{a.I[4]} }

// report reads what finite_fold left.
func report(work []byte, a *device.Args) error {
	f := found{
		hash:  binary.LittleEndian.Uint64(work),
		first: int64(binary.LittleEndian.Uint64(work[8:])),
		bits:  uint32(binary.LittleEndian.Uint64(work[16:])),
	}
	if a.I[4] != 0 {
		f.bits <<= 16
	}
	return f.judge(a)
}

func number(bits uint32) float32 { return math.Float32frombits(bits) }
