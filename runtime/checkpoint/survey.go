package checkpoint

import (
	"encoding/binary"
	"io"
	"math"
	"path/filepath"

	"github.com/megatrain/mtc/runtime/checkpoint/safetensors"
	"github.com/megatrain/mtc/runtime/fault"
)

// Health is what a checkpoint says of one parameter.
type Health struct {
	Name  string  `json:"name"`
	Shape []int64 `json:"shape"`
	// Moved is false when no gradient has ever reached the parameter: its second moment, a
	// decayed sum of squares, is zero throughout. Weight decay alone is no movement.
	Moved bool `json:"moved"`
	// Idle counts the rows of a matrix for which that holds: tokens that never occurred, outputs
	// that nothing reads.
	Idle int64 `json:"idle_rows"`
	// NonFinite counts weights and moments that are no finite numbers.
	NonFinite int64 `json:"non_finite"`
}

// Survey looks at every parameter of a whole checkpoint, in the order of its file.
func (c *Checkpoint) Survey() ([]Health, error) {
	if !c.Whole() {
		return nil, fault.New("MT0620", c.Path, "the checkpoint has weights alone, and what has moved shows in the optimizer's state").
			Help("name the run folder, or one of its step folders")
	}
	if err := c.Verify(); err != nil {
		return nil, err
	}
	weights, err := safetensors.Open(filepath.Join(c.Path, WeightsFile))
	if err != nil {
		return nil, c.damaged(WeightsFile, "cannot be used").Wrap(cause(err))
	}
	defer weights.Close()
	moments, err := safetensors.Open(filepath.Join(c.Path, OptimizerFile))
	if err != nil {
		return nil, c.damaged(OptimizerFile, "cannot be used").Wrap(cause(err))
	}
	defer moments.Close()
	var out []Health
	for i := range weights.Tensors {
		t := &weights.Tensors[i]
		h := Health{Name: t.Name, Shape: t.Shape}
		m, v := moments.Lookup(momentM+t.Name), moments.Lookup(momentV+t.Name)
		if m == nil || v == nil {
			return nil, c.damaged(OptimizerFile, "has no moments of %s", t.Name)
		}
		row := int64(1)
		for _, d := range t.Shape[min(1, len(t.Shape)):] {
			row *= d
		}
		if len(t.Shape) < 2 {
			row = max(1, v.Elems())
		}
		moved, at := false, int64(0)
		err := each(moments.Data(v), func(x float32) {
			moved = moved || x != 0
			if at++; at%row == 0 {
				if h.Moved = h.Moved || moved; !moved && len(t.Shape) > 1 {
					h.Idle++
				}
				moved = false
			}
			h.count(x)
		})
		if err == nil {
			err = each(moments.Data(m), h.count)
		}
		if err == nil {
			err = each(weights.Data(t), h.count)
		}
		if err != nil {
			return nil, c.damaged(WeightsFile, "tensor %q cannot be read", t.Name).Wrap(cause(err))
		}
		out = append(out, h)
	}
	return out, nil
}

func (h *Health) count(x float32) {
	if math.IsNaN(float64(x)) || math.IsInf(float64(x), 0) {
		h.NonFinite++
	}
}

// each reads f32 values one after another.
func each(in io.Reader, f func(x float32)) error {
	buf := make([]byte, 1<<16)
	for {
		n, err := io.ReadFull(in, buf)
		for i := 0; i+4 <= n; i += 4 {
			f(math.Float32frombits(binary.LittleEndian.Uint32(buf[i:])))
		}
		if err == io.EOF || err == io.ErrUnexpectedEOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
