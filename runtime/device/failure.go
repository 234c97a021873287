package device

import "fmt"

// Failure is a device's first failed command. Later commands are skipped, events still
// complete, and every Sync returns it.
type Failure struct {
	Kernel string // kernel name, or "copy"
	Lane   Lane
	Tag    int // what the Tagger was last told, -1 when nothing
	Err    error
	Stack  []byte // of the goroutine that failed; nil when there is none to show
}

func (f *Failure) Error() string {
	return fmt.Sprintf("%s on lane %s: %v", f.Kernel, f.Lane, f.Err)
}

// Unwrap returns the cause.
func (f *Failure) Unwrap() error { return f.Err }

// Tagger is a Queue that can say later what a command belonged to: the number given to Tag
// goes with every command enqueued after it and stands in a Failure. The engine passes task
// ids, so that a failure names the line of the model.
type Tagger interface {
	Tag(id int)
}

// MemoryError says that an arena does not fit.
type MemoryError struct {
	Memory Memory
	Want   int64  // bytes asked for
	Have   int64  // bytes left
	Of     string // what sets the limit
}

func (e *MemoryError) Error() string {
	s := fmt.Sprintf("out of %s memory: %d bytes asked for, %d available", e.Memory, e.Want, e.Have)
	if e.Of != "" {
		s += " (" + e.Of + ")"
	}
	return s
}
