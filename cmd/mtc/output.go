package main

import "io"

// output is where results go. It keeps the first error of writing, so that a verb which
// could not say its result does not end as if it had.
type output struct {
	w   io.Writer
	err error
}

func (o *output) Write(p []byte) (int, error) {
	n, err := o.w.Write(p)
	if err != nil && o.err == nil {
		o.err = err
	}
	return n, err
}
