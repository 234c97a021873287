package moe

// Line is a line of moe.jsonl.
type Line struct {
	Step   int64   `json:"step"`
	Layers []Layer `json:"layers"`
}

// Layer is what one router did since the line before, and its cutoffs in the last step.
type Layer struct {
	Name      string    `json:"name"`
	Mean      float64   `json:"mean"`                   // experts a token
	Target    float64   `json:"target"`                 // that it aims at
	Usage     []float64 `json:"usage"`                  // by expert: share of tokens
	MaxVio    float64   `json:"max_vio"`                // the most used expert over the mean, less 1
	CV        float64   `json:"cv"`                     // deviation of usage over the mean
	None      float64   `json:"none"`                   // share of tokens without an expert
	Fan       []float64 `json:"fan"`                    // share of tokens by number of experts
	Position  []float64 `json:"position"`               // experts a token by sixteenths of the sequence
	Threshold []float64 `json:"threshold"`              // by expert
	Drift     float64   `json:"drift"`                  // largest distance of a cutoff from the step's quantile
	Bias      []float64 `json:"bias,omitempty"`         // by expert, of a router that has them
	Dead      int       `json:"dead"`                   // experts without a token
	Starved   int       `json:"starved"`                // experts with less than a tenth of their share
	Dropped   float64   `json:"dropped"`                // share of pairs beyond the plan's rows
	Flooded   int64     `json:"flooded"`                // micro-batches in which that happened
	NonCausal int64     `json:"noncausal_tokens"`       // of the run so far
	Evaluated float64   `json:"eval_dropped,omitempty"` // pairs that the last evaluation dropped
	Balance   float64   `json:"balance_loss,omitempty"` // what the balance adds to the loss
	Z         float64   `json:"z_loss,omitempty"`       // and the z-loss
}
