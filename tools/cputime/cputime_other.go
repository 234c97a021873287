//go:build !unix

package cputime

import "time"

var started = time.Now()

// spent is wall time where the system does not tell processor time.
func spent() time.Duration { return time.Since(started) }
