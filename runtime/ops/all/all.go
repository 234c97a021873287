// Package all lists every op. It is the only place that names the rooms one by one: adding
// an op is adding its folder and one line here.
package all

import (
	"slices"
	"strings"

	"github.com/megatrain/mtc/runtime/op"
	"github.com/megatrain/mtc/runtime/ops/add"
	"github.com/megatrain/mtc/runtime/ops/attention"
	"github.com/megatrain/mtc/runtime/ops/copy"
	"github.com/megatrain/mtc/runtime/ops/crossentropy"
	"github.com/megatrain/mtc/runtime/ops/embed"
	"github.com/megatrain/mtc/runtime/ops/fill"
	"github.com/megatrain/mtc/runtime/ops/gelu"
	"github.com/megatrain/mtc/runtime/ops/grouped"
	"github.com/megatrain/mtc/runtime/ops/layernorm"
	"github.com/megatrain/mtc/runtime/ops/linear"
	"github.com/megatrain/mtc/runtime/ops/moe"
	"github.com/megatrain/mtc/runtime/ops/mul"
	"github.com/megatrain/mtc/runtime/ops/qkrope"
	"github.com/megatrain/mtc/runtime/ops/relu"
	"github.com/megatrain/mtc/runtime/ops/relu2"
	"github.com/megatrain/mtc/runtime/ops/rmsnorm"
	"github.com/megatrain/mtc/runtime/ops/rope"
	"github.com/megatrain/mtc/runtime/ops/scale"
	"github.com/megatrain/mtc/runtime/ops/sigmoid"
	"github.com/megatrain/mtc/runtime/ops/silu"
	"github.com/megatrain/mtc/runtime/ops/softcap"
	"github.com/megatrain/mtc/runtime/ops/squares"
	"github.com/megatrain/mtc/runtime/ops/sub"
	"github.com/megatrain/mtc/runtime/ops/swiglu"
)

var defs = sorted(
	add.Def,
	&attention.Def,
	copy.Def,
	crossentropy.Def,
	embed.Def,
	fill.Def,
	gelu.Def,
	grouped.Def,
	grouped.NormDef,
	layernorm.Def,
	linear.Def,
	moe.Def,
	moe.LogitsDef,
	moe.ObserveDef,
	moe.SelectDef,
	moe.GateDef,
	moe.GatherDef,
	moe.CombineDef,
	mul.Def,
	qkrope.Def,
	relu.Def,
	relu2.Def,
	rmsnorm.Def,
	rope.Def,
	scale.Def,
	sigmoid.Def,
	silu.Def,
	softcap.Def,
	squares.Def,
	sub.Def,
	swiglu.Def,
)

func sorted(d ...*op.Def) []*op.Def {
	slices.SortFunc(d, func(a, b *op.Def) int { return strings.Compare(a.Name, b.Name) })
	return d
}

// All returns every op, hidden ones too, sorted by name.
func All() []*op.Def { return slices.Clone(defs) }

// Lookup returns the op of a name, hidden ones too; nil when there is none.
func Lookup(name string) *op.Def {
	i, ok := slices.BinarySearchFunc(defs, name, func(d *op.Def, name string) int { return strings.Compare(d.Name, name) })
	if !ok {
		return nil
	}
	return defs[i]
}

// Names returns the names that a .mt may call, sorted.
func Names() []string {
	var names []string
	for _, d := range defs {
		if !d.Hidden {
			names = append(names, d.Name)
		}
	}
	return names
}
