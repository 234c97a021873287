package data

// Found is a file that a pattern stands for.
type Found struct {
	Path string
	Size int64
}

// Passed counts what a search passed over.
type Passed struct{ Hidden, Empty, Special int }

// List expands patterns to files as Open does: see find.
func List(patterns []string) ([]Found, Passed, error) {
	files, skip, err := find(patterns)
	if err != nil {
		return nil, Passed{}, err
	}
	out := make([]Found, len(files))
	for i, f := range files {
		out[i] = Found{f.path, f.size}
	}
	return out, Passed{skip.hidden, skip.empty, skip.special}, nil
}
