package linear

import (
	_ "embed"

	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/ops/internal/grid"
)

var (
	//go:embed linear.cu
	text string
	//go:embed bias.cu
	biasText string
)

var (
	biasCUDA = &device.Source{Pick: func(t device.Target, a *device.Args) *device.Source {
		if t.Major >= 9 && a.I[2]%8 == 0 && a.I[3]%8 == 0 && grid.Aligned(a.P[0]) {
			return clusterCUDA
		}
		return columnsCUDA
	}}
	columnsCUDA = &device.Source{
		Text: text, Func: "linear_bias_terms",
		Grid: func(a *device.Args) device.Grid { return grid.Columns(a.I[0], a.I[2]) },
		Work: func(a *device.Args) int64 { return grid.ColumnWork(a.I[0], a.I[2]) },
		Next: &device.Source{
			Text: text, Func: "linear_bias_sums",
			Grid: func(a *device.Args) device.Grid { return grid.ColumnsEnd(a.I[2]) },
		},
	}
	clusterCUDA = &device.Source{
		Text: biasText, Func: "linear_bias_cluster", Spec: tile,
		Grid: func(a *device.Args) device.Grid {
			s := tile(a)
			return grid.Of(cluster*((a.I[2]+8*s[0]-1)/(8*s[0])), s[1])
		},
	}
)

// cluster is bias.cu's CLUSTER.
const cluster = 8

// tile is the lanes of 8 columns of a cluster, whole lines of 128 bytes, and the threads of its blocks:
// more where there would be fewer than two blocks for each of 132 multiprocessors.
func tile(a *device.Args) [4]int64 {
	if a.I[2] < 2*132*64/cluster {
		return [4]int64{8, 512}
	}
	return [4]int64{8, 256}
}

// The products, for a library of the device. Where the weight has spare rows the products take
// them along: the library's fast kernels want widths of whole vectors. A bias has no spare elements.

func forwardMatmul(a *device.Args) device.Matmul {
	n := a.I[4]
	if !a.P[2].Nil() {
		n = a.I[2]
	}
	return device.Matmul{
		M: a.I[0], N: n, K: a.I[1], A: a.P[0], B: a.P[1], TransB: true, Bias: a.P[2], C: a.P[4], D: a.P[3], LDD: a.I[3],
		DA: device.ActDtype, DB: device.WeightDtype, DD: device.ActDtype,
	}
}

func inputMatmul(a *device.Args) device.Matmul {
	return device.Matmul{
		M: a.I[0], N: a.I[1], K: a.I[4], A: a.P[1], LDA: a.I[3], B: a.P[0], C: a.P[2], D: a.P[3],
		DA: device.ActDtype, DB: device.WeightDtype, DD: device.ActDtype,
	}
}

func weightMatmul(a *device.Args) device.Matmul {
	return device.Matmul{
		M: a.I[4], N: a.I[1], K: a.I[0], A: a.P[1], LDA: a.I[3], TransA: true, B: a.P[0], C: a.P[2], D: a.P[3],
		DA: device.ActDtype, DB: device.ActDtype, DD: device.GradDtype,
	}
}
