//go:build cuda

// emucc compiles the CUDA source of kernels for this processor, to a shared library that the
// stand-in for the driver (emu/standin) runs:
//
//	emucc IN.cu OUT.so [-DMTC_F32] [-DS0=N ...]
//
// A text with PTX of its own becomes a library without kernels.
package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"

	"github.com/megatrain/mtc/runtime/device/cuda/emu"
)

var ptx = regexp.MustCompile(`\basm\b`)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "emucc:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) < 2 {
		return fmt.Errorf("usage: emucc IN.cu OUT.so [-DNAME[=N] ...]")
	}
	source, err := os.ReadFile(args[0])
	if err != nil {
		return err
	}
	var f32 bool
	var spec [4]int64
	for _, a := range args[2:] {
		name, value, _ := strings.Cut(strings.TrimPrefix(a, "-D"), "=")
		switch {
		case name == "MTC_F32":
			f32 = true
		case len(name) == 2 && name[0] == 'S' && name[1] >= '0' && name[1] <= '3':
			if spec[name[1]-'0'], err = strconv.ParseInt(value, 10, 64); err != nil {
				return err
			}
		default:
			return fmt.Errorf("the option %s is not known", a)
		}
	}
	kernels := string(source)
	if ptx.MatchString(kernels) {
		kernels = ""
	}
	text, err := emu.Text(kernels, f32, spec)
	if err != nil {
		return err
	}
	sum := sha256.Sum256([]byte(text))
	path, err := emu.Build(hex.EncodeToString(sum[:]), text)
	if err != nil {
		return err
	}
	lib, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return os.WriteFile(args[1], lib, 0o755)
}
