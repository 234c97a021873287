package lower

import (
	"cmp"

	"github.com/megatrain/mtc/compiler/ir"
	"github.com/megatrain/mtc/runtime/tensor"
)

// What sizes follow from where the options leave them open, for a device that computes in bf16: a
// GPU, which is busy only with many rows at once. Both grow with its memory.
const (
	// gpuMicroTokens is how many tokens a micro-batch has at most. Beyond that no product gets
	// faster, and the activations of one take memory.
	gpuMicroTokens = 65536
	// gpuActivations is the bytes that the results of one micro-batch's ops may take where the
	// device's memory is not known, and the share of it where it is.
	gpuActivations      = 12 << 30
	gpuActivationsShare = 4

	// gpuLogitsBytes bounds the logits that exist at once. Each chunk adds to the gradient of the
	// whole table, and its rows must fill the multiprocessors evenly, so that more is faster.
	gpuLogitsBytes      = 2 << 30
	gpuLogitsShare      = 32
	gpuLeastLogitsBytes = 256 << 20
	gpuMinChunk         = 1024
)

// defaultRows is the micro-batch when none is asked for.
func (o Options) defaultRows(m *ir.Model) int64 {
	tokens := int64(microTokens)
	if o.DType == tensor.BF16 {
		room := int64(gpuActivations)
		if o.DeviceMemory > 0 {
			room = o.DeviceMemory / gpuActivationsShare
		}
		tokens = min(max(tokens, room/max(1, o.tokenBytes(m))), gpuMicroTokens)
	}
	return DefaultRows(m.Batch, m.Seq, tokens)
}

// tokenBytes is what the results of all ops take for one token, without logits: about what is
// kept between forward and backward where nothing is computed again.
func (o Options) tokenBytes(m *ir.Model) int64 {
	var n int64
	for _, u := range m.Units {
		for _, node := range u.Graph.Nodes {
			if shape := node.Out.Type.Shape; len(shape) > 2 && (u.Kind != ir.HeadUnit || node.Out != u.Graph.Outputs[0]) {
				n += shape[2:].Elems() * o.DType.Size()
			}
		}
	}
	return n
}

// gpuLogits is the bound of the logits on a GPU.
func (o Options) gpuLogits() int64 {
	room := cmp.Or(o.LogitsFor, o.DeviceMemory)
	if room <= 0 {
		return gpuLogitsBytes
	}
	return min(max(room/gpuLogitsShare, gpuLeastLogitsBytes), gpuLogitsBytes)
}
