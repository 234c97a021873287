package moe

import "github.com/megatrain/mtc/runtime/device"

// router is the constants of a router as kernels get them: I[0] to I[10], F[0] to F[7].
type router struct {
	Rows, Seq, Experts, Slots, Kind, K int
	Sigmoid, Renorm, Observed          bool
	Balance, Pool, Choice, Causal      int

	Rate, EMA, Capacity, Start, U, Alpha, ZLoss, Scale float32
}

// Bits of I[6].
const (
	flagSigmoid = 1 << iota
	flagRenorm
	flagObserved
)

func (r router) args(p ...device.Ptr) (a device.Args) {
	copy(a.P[:], p)
	var flags int64
	for i, b := range []bool{r.Sigmoid, r.Renorm, r.Observed} {
		if b {
			flags |= 1 << i
		}
	}
	a.I = [device.MaxInts]int64{
		int64(r.Rows), int64(r.Seq), int64(r.Experts), int64(r.Slots), int64(r.Kind), int64(r.K), flags,
		int64(r.Balance), int64(r.Pool), int64(r.Choice), int64(r.Causal),
	}
	a.F = [device.MaxFloats]float32{r.Rate, r.EMA, r.Capacity, r.Start, r.U, r.Alpha, r.ZLoss, r.Scale}
	return a
}

// routerOf is the inverse of args.
func routerOf(a *device.Args) router {
	n := func(i int) int { return int(a.I[i]) }
	return router{
		Rows: n(0), Seq: n(1), Experts: n(2), Slots: n(3), Kind: n(4), K: n(5),
		Sigmoid: a.I[6]&flagSigmoid != 0, Renorm: a.I[6]&flagRenorm != 0, Observed: a.I[6]&flagObserved != 0,
		Balance: n(7), Pool: n(8), Choice: n(9), Causal: n(10),
		Rate: a.F[0], EMA: a.F[1], Capacity: a.F[2], Start: a.F[3], U: a.F[4], Alpha: a.F[5], ZLoss: a.F[6], Scale: a.F[7],
	}
}

func (r *router) hist() bool { return HasHist(int64(r.Kind), int64(r.Balance)) }

// ObserveArgs are the arguments of Observe.
type ObserveArgs struct {
	Logits  device.Ptr // f32 [Rows, Experts]
	Targets device.Ptr // i32 [Rows]; negative: not counted
	Scalars device.Ptr // f64 [plan.NumScalars]; nil: nothing is counted
	Router  device.Ptr // State, its histograms and its number of tokens are added to
	Y       device.Ptr // i32 [Rows], set

	Rows, Seq, Experts, Slots, Kind, K int
	Sigmoid, Renorm                    bool
	Balance, Pool, Choice, Causal      int

	Rate, EMA, Capacity, Start, U, Alpha, ZLoss, Scale float32
}

var observe = device.Kernel{Name: "moe.observe", CPU: observeCPU, CUDA: observeCUDA}

// Observe counts a micro-batch's logits in a training step.
func Observe(q device.Queue, a ObserveArgs) {
	q.Launch(&observe, router{
		Rows: a.Rows, Seq: a.Seq, Experts: a.Experts, Slots: a.Slots, Kind: a.Kind, K: a.K, Sigmoid: a.Sigmoid, Renorm: a.Renorm,
		Balance: a.Balance, Pool: a.Pool, Choice: a.Choice, Causal: a.Causal,
		Rate: a.Rate, EMA: a.EMA, Capacity: a.Capacity, Start: a.Start, U: a.U, Alpha: a.Alpha, ZLoss: a.ZLoss, Scale: a.Scale,
	}.args(a.Logits, a.Targets, a.Scalars, a.Router, a.Y))
}

// SelectArgs are the arguments of Select.
type SelectArgs struct {
	Logits  device.Ptr // f32 [Rows, Experts]
	Targets device.Ptr // i32 [Rows], negative: not counted; nil: all count
	Scalars device.Ptr // f64 [plan.NumScalars]: ScalarRoute; nil: as RouteFrozen
	Router  device.Ptr // State: cutoffs and biases are read, counts of the step added to
	Y       device.Ptr // i32 [RoutingWords] a row: the routing, set

	Rows, Seq, Experts, Slots, Kind, K int
	Sigmoid, Renorm, Observed          bool // Observed: Observe has counted the step's logits
	Balance, Pool, Choice, Causal      int

	Rate, EMA, Capacity, Start, U, Alpha, ZLoss, Scale float32
}

var selectKernel = device.Kernel{Name: "moe.select", CPU: selectCPU, CUDA: selectCUDA}

// Select makes the routing of a micro-batch.
func Select(q device.Queue, a SelectArgs) {
	q.Launch(&selectKernel, router{
		Rows: a.Rows, Seq: a.Seq, Experts: a.Experts, Slots: a.Slots, Kind: a.Kind, K: a.K,
		Sigmoid: a.Sigmoid, Renorm: a.Renorm, Observed: a.Observed,
		Balance: a.Balance, Pool: a.Pool, Choice: a.Choice, Causal: a.Causal,
		Rate: a.Rate, EMA: a.EMA, Capacity: a.Capacity, Start: a.Start, U: a.U, Alpha: a.Alpha, ZLoss: a.ZLoss, Scale: a.Scale,
	}.args(a.Logits, a.Targets, a.Scalars, a.Router, a.Y))
}

// AdvanceArgs are the arguments of Advance.
type AdvanceArgs struct {
	Scalars device.Ptr // f64 [plan.NumScalars]: with ScalarSkip only the counts are cleared
	Router  device.Ptr // State, moved

	Rows, Seq, Experts, Slots, Kind, K int
	Sigmoid, Renorm, Observed          bool
	Balance, Pool, Choice, Causal      int

	Rate, EMA, Capacity, Start, U, Alpha, ZLoss, Scale float32
}

var advance = device.Kernel{Name: "moe.advance", CPU: advanceCPU, CUDA: advanceCUDA}

// Advance moves the state by the counts of a step, writes the report and clears the counts.
func Advance(q device.Queue, a AdvanceArgs) {
	q.Launch(&advance, router{
		Rows: a.Rows, Seq: a.Seq, Experts: a.Experts, Slots: a.Slots, Kind: a.Kind, K: a.K,
		Sigmoid: a.Sigmoid, Renorm: a.Renorm, Observed: a.Observed,
		Balance: a.Balance, Pool: a.Pool, Choice: a.Choice, Causal: a.Causal,
		Rate: a.Rate, EMA: a.EMA, Capacity: a.Capacity, Start: a.Start, U: a.U, Alpha: a.Alpha, ZLoss: a.ZLoss, Scale: a.Scale,
	}.args(a.Scalars, a.Router))
}

// GateArgs are the arguments of Gate.
type GateArgs struct {
	Logits  device.Ptr // f32 [Rows, Experts]
	Routing device.Ptr // of Select
	Y       device.Ptr // f32 [Rows * Slots]: by row, those in use set

	Rows, Seq, Experts, Slots, Kind, K int
	Sigmoid, Renorm                    bool
	Balance, Pool, Choice, Causal      int

	Rate, EMA, Capacity, Start, U, Alpha, ZLoss, Scale float32
}

var gate = device.Kernel{Name: "moe.gate", CPU: gateCPU, CUDA: gateCUDA}

// Gate sets the factors of routed pairs.
func Gate(q device.Queue, a GateArgs) {
	q.Launch(&gate, router{
		Rows: a.Rows, Seq: a.Seq, Experts: a.Experts, Slots: a.Slots, Kind: a.Kind, K: a.K, Sigmoid: a.Sigmoid, Renorm: a.Renorm,
		Balance: a.Balance, Pool: a.Pool, Choice: a.Choice, Causal: a.Causal,
		Rate: a.Rate, EMA: a.EMA, Capacity: a.Capacity, Start: a.Start, U: a.U, Alpha: a.Alpha, ZLoss: a.ZLoss, Scale: a.Scale,
	}.args(a.Logits, a.Routing, a.Y))
}

// GateBackwardArgs are the arguments of GateBackward.
type GateBackwardArgs struct {
	Logits              device.Ptr // f32 [Rows, Experts]
	Routing             device.Ptr // of Select
	Targets             device.Ptr // i32 [Rows]; negative: outside of the router's losses
	Scalars             device.Ptr // f64 [plan.NumScalars]: ScalarInvTokens
	Router              device.Ptr // State: counts of the whole step (AuxStep); read
	DY                  device.Ptr // f32 [Rows * Slots]
	AddDLogits, DLogits device.Ptr // f32 [Rows, Experts]

	Rows, Seq, Experts, Slots, Kind, K int
	Sigmoid, Renorm                    bool
	Balance, Pool, Choice, Causal      int

	Rate, EMA, Capacity, Start, U, Alpha, ZLoss, Scale float32
}

var gateBackward = device.Kernel{Name: "moe.gate_backward", CPU: gateBackwardCPU, CUDA: gateBackwardCUDA}

// GateBackward sets the gradient of the logits, of the gates and of the router's losses.
func GateBackward(q device.Queue, a GateBackwardArgs) {
	q.Launch(&gateBackward, router{
		Rows: a.Rows, Seq: a.Seq, Experts: a.Experts, Slots: a.Slots, Kind: a.Kind, K: a.K, Sigmoid: a.Sigmoid, Renorm: a.Renorm,
		Balance: a.Balance, Pool: a.Pool, Choice: a.Choice, Causal: a.Causal,
		Rate: a.Rate, EMA: a.EMA, Capacity: a.Capacity, Start: a.Start, U: a.U, Alpha: a.Alpha, ZLoss: a.ZLoss, Scale: a.Scale,
	}.args(a.Logits, a.Routing, a.Targets, a.Scalars, a.Router, a.DY, a.AddDLogits, a.DLogits))
}
