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

// Windows says in which layers a window is, given that of each: from layer `from` on, but for every
// every-th one from there. Where no such layer follows, every is one more than there are layers. A
// list that is none of these gives the nearest one that begins alike.
func Windows(list []bool) (from, every int) {
	every = len(list) + 1
	for from < len(list) && !list[from] {
		from++
	}
	if from == len(list) {
		return 0, every // none at all: wherever it would be
	}
	for i := from; i < len(list); i++ {
		if !list[i] {
			return from, i - from + 1
		}
	}
	return from, every
}

// Windowed says whether layer i has the window that Windows has described.
func Windowed(i, from, every int) bool { return i >= from && (i-from+1)%every != 0 }
