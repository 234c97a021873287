package schedule

// Machine is what the order of updates is chosen for: rates in FLOP/s and bytes/s. It is nominal:
// what arrives before what matters, not how long a step takes on a machine at hand.
type Machine struct {
	FLOPs, Device, Link, Host float64
}

// Nominal machines by target.
var (
	nominalCPU  = Machine{FLOPs: 100e9, Device: 20e9, Link: 10e9, Host: 20e9}
	nominalCUDA = Machine{FLOPs: 400e12, Device: 3e12, Link: 50e9, Host: 100e9}
)

// Nominal is the nominal machine of a target.
func Nominal(target string) Machine {
	if target == "cuda" {
		return nominalCUDA
	}
	return nominalCPU
}
