package plan

// The step's scalars: a block of float64 that the host writes before a step and the reduce
// task completes. Update and loss kernels read it by these indices.
const (
	ScalarStep      = iota // optimizer step number, from 1
	ScalarLR               // learning rate
	ScalarInvTokens        // 1 / target tokens of the whole step
	ScalarMaxNorm          // clip threshold, 0: off
	// Written by Reduce.
	ScalarGradNorm // global gradient norm
	ScalarClip     // factor on every gradient
	ScalarSkip     // 1 when a norm or the loss is not finite: updates change nothing
	ScalarLoss     // sum of losses / tokens
	ScalarTokens   // target tokens of the step
	ScalarSkipped  // optimizer steps skipped since the start (kept by the host)
	// What routers do: 0 evaluation, 1 training, 2 collecting counts (package moe). Set by the host.
	ScalarRoute
	NumScalars = 16
)
