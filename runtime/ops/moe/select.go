package moe

import (
	"github.com/megatrain/mtc/runtime/op"
	"github.com/megatrain/mtc/runtime/tensor"
)

// Kinds of selection, the constant Kind.
const (
	Cutoff = iota // a token goes to each expert whose cutoff its logit exceeds
	TopK          // a token goes to the K experts of the highest score plus bias
)

// Pools of an expert's choice, the constant Pool.
const (
	NoPool   = iota // experts never choose
	Sequence        // from each sequence
	Micro           // from a micro-batch
	Step            // from the whole step: those above the step's quantile
)

// Balances, the constant Balance.
const (
	NoBalance   = iota
	AuxMicro    // a loss on the usage of a micro-batch
	AuxStep     // a loss on the usage of the step
	LossFree    // biases moved by a fixed length
	QuantileTop // biases from a quantile
)

// What the step's scalar ScalarRoute says.
const (
	RouteFrozen  = 0 // evaluation: causal, nothing is counted
	RouteTrain   = 1 // the way of training, counted
	RouteCollect = 2 // causal, counted: calibration
)

// routerParams are the constants of a router, which all its ops carry.
var routerParams = []op.Param{
	{Name: "experts", Kind: op.Int, Doc: "E"},
	{Name: "slots", Kind: op.Int, Doc: "C: rows a token that memory is made for"},
	{Name: "most", Kind: op.Int, Doc: "slots with which nothing is ever dropped: C in generation"},
	{Name: "mean", Kind: op.Float, Doc: "rows a token on average, for the cost"},
	{Name: "kind", Kind: op.Int, Doc: "Cutoff or TopK"},
	{Name: "k", Kind: op.Int, Doc: "experts a token (TopK)"},
	{Name: "sigmoid", Kind: op.Bool, Doc: "scores are sigmoids of logits, else softmax over experts"},
	{Name: "renorm", Kind: op.Bool, Doc: "gates of a token are divided by their sum"},
	{Name: "balance", Kind: op.Int, Doc: "NoBalance to QuantileTop"},
	{Name: "pool", Kind: op.Int, Doc: "NoPool to Step: from what experts choose in the first steps"},
	{Name: "choice", Kind: op.Int, Doc: "steps in which experts choose; -1: all"},
	{Name: "causal", Kind: op.Int, Doc: "steps in which the average's window grows"},
	{Name: "rate", Kind: op.Float, Doc: "the share of tokens that each expert should get"},
	{Name: "ema", Kind: op.Float, Doc: "decay of the average"},
	{Name: "capacity", Kind: op.Float, Doc: "an expert's share of a micro-batch varies by this part; below 0: freely"},
	{Name: "start", Kind: op.Float, Doc: "cutoff before the first update"},
	{Name: "u", Kind: op.Float, Doc: "how far a bias moves a step"},
	{Name: "alpha", Kind: op.Float, Doc: "weight of the balance loss"},
	{Name: "zloss", Kind: op.Float, Doc: "weight of the squared log-sum-exp"},
	{Name: "scale", Kind: op.Float, Doc: "a factor on gates"},
}

// routerConsts are the constant fields of the launchers of a router's ops.
func routerConsts(c *op.Call) []op.Const {
	i := func(field, name string) op.Const { return op.IntConst(field, c.Int(name)) }
	f := func(field, name string) op.Const { return op.FloatConst(field, c.Float(name)) }
	return []op.Const{
		op.RowsConst(), {Field: "Seq", Kind: op.CSeq},
		i("Experts", "experts"), i("Slots", "slots"), i("Kind", "kind"), i("K", "k"),
		op.BoolConst("Sigmoid", c.Bool("sigmoid")), op.BoolConst("Renorm", c.Bool("renorm")),
		i("Balance", "balance"), i("Pool", "pool"), i("Choice", "choice"), i("Causal", "causal"),
		f("Rate", "rate"), f("EMA", "ema"), f("Capacity", "capacity"), f("Start", "start"),
		f("U", "u"), f("Alpha", "alpha"), f("ZLoss", "zloss"), f("Scale", "scale"),
	}
}

// HasHist tells whether a router keeps histograms of logits.
func HasHist(kind, balance int64) bool { return kind == Cutoff || balance == QuantileTop }

// ObserveDef declares the count of a whole step's logits, before any of it is routed:
//
//	y[t] = 1 where token t has a target, else 0; the router's histograms count its logits
//
// Only an expert's choice from the whole step needs it.
var ObserveDef = &op.Def{
	Name:    "moe_observe",
	Room:    Room,
	Doc:     "counts a router's logits before any token of the step is routed",
	Formula: "hist[e, bucket(logits[t,e])] += 1; y[t] = 1",
	Hidden:  true,
	Router:  true,
	F32:     true,
	Params:  append([]op.Param{{Name: "logits", Kind: op.Tensor, Doc: "f32 [B, T, E]"}}, routerParams...),
	Infer: func(c *op.Call) error {
		t, err := logitsOf(c)
		c.Out = tensor.Type{DType: tensor.I32, Shape: t.Shape.WithLast(tensor.Dim{N: 1})}
		c.Consts = routerConsts(c)
		return err
	},
	Forward: op.Launch{Func: "Observe", Reads: []string{"logits", "targets", "scalars", "router"}, Writes: []string{"y", "router"}, Cost: logitsCost, Scratch: selectScratch},
}

func selectScratch(c *op.Call, s op.Sizes) int64 {
	a := router{Rows: int(s.Rows()), Experts: int(c.Int("experts")), Balance: int(c.Int("balance"))}.args()
	return selectWork(&a)
}

// SelectDef declares the choice of pairs (layout.go says what a routing is). Causal kinds of it
// look at a token's own logits and the state only; an expert's choice does so in training.
// With more than M pairs those of the lowest logits are dropped, ties by later token, then
// later expert. Padding (tokens without a target) is routed and not counted.
//
// Advance, which runs once after a step, moves the state and clears its counts.
var SelectDef = &op.Def{
	Name:    "moe_select",
	Room:    Room,
	Doc:     "which token goes to which expert",
	Formula: "cutoff: logit > threshold; topk: the k highest of score + bias; expert's choice: its rate * pool highest",
	Hidden:  true,
	Router:  true,
	F32:     true,
	Params: append([]op.Param{
		{Name: "logits", Kind: op.Tensor, Doc: "f32 [B, T, E]"},
		{Name: "seen", Kind: op.Tensor, Default: op.None(), Doc: "i32 [B, T, 1]: what observe left"},
	}, routerParams...),
	Infer: func(c *op.Call) error {
		t, err := logitsOf(c)
		if err != nil {
			return err
		}
		c.Out = routingOf(c, t)
		c.Consts = append(routerConsts(c), op.BoolConst("Observed", len(c.Inputs) > 1))
		return nil
	},
	Forward: op.Launch{Func: "Select", Reads: []string{"logits", "targets", "scalars", "router"}, Writes: []string{"y", "router"}, Cost: logitsCost, Scratch: selectScratch},
	Advance: &op.Launch{Func: "Advance", Reads: []string{"scalars", "router"}, Writes: []string{"router"},
		Cost: func(c *op.Call, _ op.Sizes) op.Cost {
			n := c.Int("experts")
			if HasHist(c.Int("kind"), c.Int("balance")) {
				n *= Buckets
			}
			return op.Cost{FLOPs: n, Bytes: 8 * n}
		}},
}

func logitsCost(c *op.Call, s op.Sizes) op.Cost {
	n := s.Elems(c.In[0].Shape)
	return op.Cost{FLOPs: 4 * n, Bytes: c.Moved(s, "logits", "y")}
}
