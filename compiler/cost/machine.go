// Package cost predicts the time of a plan on a machine before it runs there. In go a plan,
// the launches of its templates (WorkOf) and a Machine, a profile of measured or estimated
// rates; out comes a Timeline: each task of a steady step with its start, end and what bounds
// it, and of each lane how much of it hides behind the computation. Package planner searches
// with it; the views draw it. It chooses nothing and reads no clock.
package cost

// Machine is a profile: what a plan may use and how fast that is. Rates are per second.
type Machine struct {
	Name   string `json:"name"`   // "h200"
	Title  string `json:"title"`  // "NVIDIA H200 SXM, 16 host cores, PCIe 5 x16"
	Target string `json:"target"` // "cpu" or "cuda"

	DeviceMemory Figure `json:"device_memory"` // bytes a process may take on the device
	HostMemory   Figure `json:"host_memory"`   // bytes a process may take on the host; on a CPU both are one memory
	Cores        Figure `json:"cores"`         // of the host, for the optimizer

	// Path is the file that it was read from; "" for one that ships.
	Path string `json:"-"`

	// Rates are the device's, by what it computes in: "f32", "bf16".
	Rates map[string]*Rates `json:"rates"`
	Link  Link              `json:"link"`
	Host  Host              `json:"host"`
	Disk  Disk              `json:"disk"`

	// Load says what else used the machine while it was measured, which makes its figures too low; "" where
	// nothing to speak of did, or nobody looked.
	Load string `json:"load,omitempty"`
}

// Figure is a number and where it is from: "measured 2026-11-29 by `mtc bench`", "data
// sheet", "estimated from ...".
type Figure struct {
	Value  float64 `json:"value"`
	Source string  `json:"source"`
}

// Rates are the device's kernels.
type Rates struct {
	Product   Table `json:"product"`   // FLOP/s of matrix products
	Attention Table `json:"attention"` // FLOP/s of attention, visible pairs counted
	// Sustained is the part of their rate that products keep for long: a power limit lowers the
	// clock, and all become slower as the largest does. 0: nothing was seen of one.
	Sustained Figure `json:"sustained,omitzero"`
	Memory    Figure `json:"memory"` // bytes/s of kernels that memory bounds
	// Kernels are those that reach another rate, by launcher, "rmsnorm.Backward", and by
	// kind of task: "norm", "accumulate", "update".
	Kernels map[string]Curve `json:"kernels,omitempty"`
	// Launch is the seconds that a kernel takes at least.
	Launch Figure `json:"launch"`
	// Optimizer is bytes/s of an update on the device, at 28 bytes a parameter.
	Optimizer Figure `json:"optimizer"`
}

// Table is rates by shape class; what lies between is interpolated.
type Table struct {
	Source string  `json:"source"`
	Points []Point `json:"points"`
}

// Curve is bytes/s by the bytes moved, ascending: what fits in a cache is moved faster. Between
// its points it is straight in the logarithm of the bytes.
type Curve struct {
	Source string `json:"source"`
	Points []Size `json:"points"`
}

// Size is a rate at a size.
type Size struct {
	Bytes int64   `json:"bytes"`
	Rate  float64 `json:"rate"` // bytes/s
}

// Point is a rate at a shape (op.Shape).
type Point struct {
	Form string  `json:"form"`
	M    int64   `json:"m"`
	N    int64   `json:"n"`
	K    int64   `json:"k"`
	Rate float64 `json:"rate"` // FLOP/s
}

// Link is the way between host and device, bytes/s in one direction. On a CPU it is a copy in
// memory.
type Link struct {
	H2D      Figure `json:"h2d"`      // alone
	D2H      Figure `json:"d2h"`      // alone
	Both     Figure `json:"both"`     // each, at the same time
	Updating Figure `json:"updating"` // each, at the same time, while the host updates
	Latency  Figure `json:"latency"`  // seconds of a copy besides its bytes
}

// Host is host memory as the optimizer sees it, bytes/s at 28 bytes a parameter.
type Host struct {
	Optimizer Figure `json:"optimizer"` // all cores, alone
	Copying   Figure `json:"copying"`   // the same while copies go both ways
	// Threads is the rate alone by number of threads, ascending.
	Threads    []Threads `json:"threads,omitempty"`
	Memory     Figure    `json:"memory"`      // bytes/s of a triad
	FirstTouch Figure    `json:"first_touch"` // bytes/s of fresh memory, at start-up
}

// Threads is the optimizer's rate on some threads.
type Threads struct {
	Threads int64   `json:"threads"`
	Rate    float64 `json:"rate"`
}

// Disk is where checkpoints and data are, bytes/s.
type Disk struct {
	Read  Figure `json:"read"`
	Write Figure `json:"write"`
}
