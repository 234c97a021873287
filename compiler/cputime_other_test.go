//go:build !unix

package compiler

import "time"

var started = time.Now()

func cpuTime() time.Duration { return time.Since(started) }
