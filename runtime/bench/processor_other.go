//go:build !unix

package bench

import "time"

var began = time.Now()

// processorTime would be what this process has used of the processors; here it is the time that
// passed.
func processorTime() time.Duration { return time.Since(began) }
