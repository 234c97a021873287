//go:build !unix

package main

// replaceProcess does nothing where a process cannot become another program; the caller then
// runs it as a child.
func replaceProcess(string, []string) error { return nil }
