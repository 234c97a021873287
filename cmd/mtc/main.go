// Command mtc compiles .mt models into static training schedules and runs them.
package main

import (
	"os"

	"github.com/megatrain/mtc/runtime/fold"
)

func main() {
	os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, &fold.Writer{W: os.Stderr}))
}
