package plan

// Foreign ties tensors of a checkpoint in the layout of Hugging Face to parameters: one line
// of a `weights hf` map, indices expanded. It is read in both directions.
//
//	""           Params[0] is the tensor
//	transpose    Params[0] is the tensor with its two axes swapped; a vector is itself
//	split        the tensor cut along axis 0 into Params, in their sizes
//	join         Params[0] is the tensors one behind another along axis 0
//
// `split(transpose` and `join(transpose` swap the axes of each tensor first.
type Foreign struct {
	Op     string
	Names  []string // of the tensors
	Also   []string // other names under which the only tensor may be stored once more, equal
	Params []string // paths
}

// Family says as which model of a known family other programs can have this one. Values are
// the parameters of that family's .mt with which it gives the same graph.
type Family struct {
	Name   string // "llama", "gpt2"; "" when no family gives this graph
	Values []Value
	Why    string // what stands against it, when Name is ""
}
