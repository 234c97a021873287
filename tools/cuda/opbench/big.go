//go:build cuda

package main

import (
	"bytes"
	"flag"
	"fmt"
	"strings"

	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/ops/add"
	"github.com/megatrain/mtc/runtime/ops/crossentropy"
	"github.com/megatrain/mtc/runtime/ops/embed"
	"github.com/megatrain/mtc/runtime/ops/fill"
	"github.com/megatrain/mtc/runtime/ops/gelu"
	"github.com/megatrain/mtc/runtime/ops/layernorm"
	"github.com/megatrain/mtc/runtime/ops/linear"
	"github.com/megatrain/mtc/runtime/ops/qkrope"
	"github.com/megatrain/mtc/runtime/ops/rmsnorm"
	"github.com/megatrain/mtc/runtime/ops/rope"
	"github.com/megatrain/mtc/runtime/ops/swiglu"
	"github.com/megatrain/mtc/runtime/optim"
	"github.com/megatrain/mtc/runtime/plan"
)

const (
	bigD = 4096
	tail = 64 // rows that are computed again, alone
)

// bigElems is passed by every tensor.
var bigElems = flag.Int("elems", 1<<31, "of -big: elements that tensors pass")

// bigCase runs a launch over all rows, then over the last ones into another place. It returns
// the pairs of results that must be equal.
type bigCase struct {
	name string
	run  func(m *memory) [][3]any // long result's tail, short result, bytes
}

func checkBig(m *memory, only string) error {
	failed := 0
	for _, c := range bigCases() {
		if !strings.Contains(c.name, only) {
			continue
		}
		m.reset()
		m.scatter()
		// Writes to memory, of ids, do not wait for what the queue has to do.
		if err := m.dev.Sync(); err != nil {
			return err
		}
		pairs := c.run(m)
		if err := m.dev.Sync(); err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		state := "ok"
		for _, p := range pairs {
			n := p[2].(int64)
			long, short := make([]byte, n), make([]byte, n)
			for _, r := range []struct {
				dst []byte
				src device.Ptr
			}{{long, p[0].(device.Ptr)}, {short, p[1].(device.Ptr)}} {
				if err := m.dev.Read(r.dst, r.src); err != nil {
					return err
				}
			}
			if !bytes.Equal(long, short) {
				state = "FAIL: other bits in the last rows"
				failed++
			}
		}
		fmt.Printf("%-28s %s\n", c.name, state)
	}
	if failed > 0 {
		return fmt.Errorf("%d results differ", failed)
	}
	return nil
}

// byRows checks a launch whose operands have rows of bigD activations: n read, k written. stats
// are two f32 for each row, or for each of per groups of one.
func byRows(name string, n, k, per int, launch func(q device.Queue, in, out []device.Ptr, stats [2]device.Ptr, rows int)) bigCase {
	return bigCase{name, func(m *memory) (pairs [][3]any) {
		row := bigD * m.act
		rows := int64(*bigElems/bigD + 100)
		var in, out, inTail, outShort []device.Ptr
		for range n {
			p := m.bytes(rows * row)
			in, inTail = append(in, p), append(inTail, p.At((rows-tail)*row))
		}
		for range k {
			p, short := m.bytes(rows*row), m.bytes(tail*row)
			out, outShort = append(out, p), append(outShort, short)
			pairs = append(pairs, [3]any{p.At((rows - tail) * row), short, tail * row})
		}
		var stats [2][2]device.Ptr
		for i := range stats {
			stats[0][i], stats[1][i] = m.f32(rows*int64(per)), m.f32(int64(tail*per))
			pairs = append(pairs, [3]any{stats[0][i].At((rows - tail) * int64(4*per)), stats[1][i], int64(4 * tail * per)})
			fill.Forward(m.queue, fill.ForwardArgs{Y: stats[0][i], N: int(rows) * per, Value: -1})
			fill.Forward(m.queue, fill.ForwardArgs{Y: stats[1][i], N: tail * per, Value: -1})
		}
		launch(m.queue, in, out, stats[0], int(rows))
		launch(m.queue, inTail, outShort, stats[1], tail)
		return pairs
	}}
}

func bigCases() []bigCase {
	return []bigCase{
		byRows("add", 2, 1, 1, func(q device.Queue, in, out []device.Ptr, _ [2]device.Ptr, rows int) {
			add.Forward(q, add.ForwardArgs{A: in[0], B: in[1], Y: out[0], Rows: rows, D: bigD})
		}),
		byRows("swiglu, backward", 3, 2, 1, func(q device.Queue, in, out []device.Ptr, _ [2]device.Ptr, rows int) {
			swiglu.Backward(q, swiglu.BackwardArgs{Gate: in[0], UP: in[1], DY: in[2], DGate: out[0], DUP: out[1], Rows: rows, D: bigD})
		}),
		byRows("rmsnorm", 1, 1, 1, func(q device.Queue, in, out []device.Ptr, stats [2]device.Ptr, rows int) {
			rmsnorm.Forward(q, rmsnorm.ForwardArgs{X: in[0], Y: out[0], Inv: stats[0], Rows: rows, D: bigD, Per: bigD, Eps: 1e-6})
		}),
		byRows("rmsnorm, backward", 2, 1, 1, func(q device.Queue, in, out []device.Ptr, stats [2]device.Ptr, rows int) {
			rmsnorm.Backward(q, rmsnorm.BackwardArgs{X: in[0], DY: in[1], DX: out[0], Inv: stats[0], Rows: rows, D: bigD, Per: bigD, Eps: 1e-6})
		}),
		byRows("layernorm", 1, 1, 1, func(q device.Queue, in, out []device.Ptr, stats [2]device.Ptr, rows int) {
			layernorm.Forward(q, layernorm.ForwardArgs{X: in[0], Y: out[0], Mean: stats[0], Inv: stats[1], Rows: rows, D: bigD, Eps: 1e-6})
		}),
		layernormBackward("layernorm, backward", bigD),
		layernormBackward("layernorm, backward of 1024", 1024),
		byRows("gelu, backward", 2, 1, 1, func(q device.Queue, in, out []device.Ptr, _ [2]device.Ptr, rows int) {
			gelu.Backward(q, gelu.BackwardArgs{X: in[0], DY: in[1], DX: out[0], Rows: rows, D: bigD})
		}),
		byRows("q and k, norm and rotation", 2, 2, bigD/128, func(q device.Queue, in, out []device.Ptr, stats [2]device.Ptr, rows int) {
			qkrope.Forward(q, qkrope.ForwardArgs{Q: in[0], K: in[1], YQ: out[0], YK: out[1], Invq: stats[0], Invk: stats[1], CS: in[0].At(-in[0].Off),
				Rows: rows, Seq: 1, Heads: bigD / 128, KV: bigD / 128, HD: 128, Norm: qkrope.Before, Eps: 1e-6})
		}),
		byRows("rope", 1, 1, 1, func(q device.Queue, in, out []device.Ptr, _ [2]device.Ptr, rows int) {
			// One position for all: the table is the operand's own first row.
			rope.Forward(q, rope.ForwardArgs{X: in[0], Y: out[0], CS: in[0].At(-in[0].Off), Rows: rows, Seq: 1, D: bigD, HD: 128})
		}),
		{"crossentropy", bigLoss},
		{"embed", bigEmbed},
		{"linear, bias", bigBias},
		{"adamw", bigAdamW},
	}
}

// layernormBackward takes rows of d, a part of bigD, with sums for the weight, which are not compared.
func layernormBackward(name string, d int) bigCase {
	return byRows(name, 2, 1, bigD/d, func(q device.Queue, in, out []device.Ptr, stats [2]device.Ptr, rows int) {
		// The sums take the place of the first rows of x, which are not computed again.
		layernorm.Backward(q, layernorm.BackwardArgs{X: in[0], DY: in[1], Mean: stats[0], Inv: stats[1], DX: out[0],
			DWeight: in[0].At(-in[0].Off), DBias: in[0].At(int64(4*d) - in[0].Off), Rows: rows * bigD / d, D: d})
	})
}

func bigLoss(m *memory) [][3]any {
	const v = 150001 // odd: rows begin anywhere
	const last = 6
	rows := *bigElems/v + 10
	logits := m.acts(rows * v)
	short := m.acts(last * v)
	scalars := make([]float64, plan.NumScalars)
	scalars[plan.ScalarInvTokens] = 1
	a := crossentropy.LossArgs{Logits: logits, Targets: m.i32(ids(rows, v)), Scalars: m.f64(scalars...), Partials: m.f64(0, 0), DLogits: logits, Rows: rows, V: v}
	b := a
	at := int64(rows-last) * v * m.act
	b.Logits, b.Targets, b.DLogits, b.Rows = logits.At(at), a.Targets.At(int64(4*(rows-last))), short, last
	crossentropy.Loss(m.queue, b)
	crossentropy.Loss(m.queue, a)
	return [][3]any{{logits.At(at), short, last * v * m.act}}
}

// bigEmbed looks up and adds to rows at the end of a table.
func bigEmbed(m *memory) [][3]any {
	const rows = 100
	v := *bigElems/bigD + 100
	table := m.bytes(int64(v) * bigD * m.act)
	dw := m.f32(int64(v) * bigD)
	y, short := m.acts(rows*bigD), m.acts(rows*bigD)
	dshort := m.f32(40 * bigD)
	high, low := make([]int32, rows), make([]int32, rows)
	for i, id := range ids(rows, 40) {
		high[i], low[i] = int32(v)-40+id, id
	}
	h, l := m.i32(high), m.i32(low)
	q := m.queue
	embed.Forward(q, embed.ForwardArgs{Ids: h, Weight: table, Y: y, Rows: rows, V: v, D: bigD})
	embed.Forward(q, embed.ForwardArgs{Ids: l, Weight: table.At(int64(v-40) * bigD * m.act), Y: short, Rows: rows, V: 40, D: bigD})
	embed.BackwardWeight(q, embed.BackwardWeightArgs{Ids: h, DY: y, DWeight: dw, Rows: rows, V: v, D: bigD})
	embed.BackwardWeight(q, embed.BackwardWeightArgs{Ids: l, DY: y, DWeight: dshort, Rows: rows, V: 40, D: bigD})
	return [][3]any{{y, short, rows * bigD * m.act}, {dw.At(int64(v-40) * bigD * 4), dshort, int64(40 * bigD * 4)}}
}

// bigBias sums equal rows: twice as many rows give twice the sum, to the bit.
func bigBias(m *memory) [][3]any {
	rows := int64(2 * *bigElems / bigD) // a power of two
	row := bigD * m.act
	dy := m.bytes(rows * row)
	for n := int64(1); n < rows; n *= 2 {
		m.queue.Copy(dy.At(n*row), dy, n*row)
	}
	whole, half, twice := m.f32(bigD), m.f32(bigD), m.f32(bigD)
	a := linear.BackwardBiasArgs{DY: dy, DBias: whole, Rows: int(rows), In: bigD, Out: bigD}
	linear.BackwardBias(m.queue, a)
	a.DBias, a.Rows = half, int(rows/2)
	linear.BackwardBias(m.queue, a)
	a.DBias, a.AddDBias = twice, half
	linear.BackwardBias(m.queue, a)
	return [][3]any{{whole, twice, int64(4 * bigD)}}
}

func bigAdamW(m *memory) [][3]any {
	const last = 4096
	n := int64(*bigElems) + 8192*5
	scalars := make([]float64, plan.NumScalars)
	scalars[plan.ScalarStep], scalars[plan.ScalarLR] = 3, 1e-3
	a := optim.AdamWArgs{Weight: m.f32(n), Grad: m.f32(n), M: m.f32(n), V: m.f32(n), Scalars: m.f64(scalars...),
		Elems: n, Decay: n, Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, WeightDecay: 0.1}
	fill.Forward(m.queue, fill.ForwardArgs{Y: a.V, N: int(n), Value: 0.5})
	b := a
	at := (n - last) * 4
	b.Weight, b.M, b.V = m.f32(last), m.f32(last), m.f32(last)
	for _, c := range [][2]device.Ptr{{b.Weight, a.Weight}, {b.M, a.M}, {b.V, a.V}} {
		m.queue.Copy(c[0], c[1].At(at), 4*last)
	}
	b.Grad, b.Elems, b.Decay = a.Grad.At(at), last, last
	optim.AdamW(m.queue, b)
	optim.AdamW(m.queue, a)
	return [][3]any{{a.Weight.At(at), b.Weight, int64(4 * last)}, {a.M.At(at), b.M, int64(4 * last)}, {a.V.At(at), b.V, int64(4 * last)}}
}
