// Package kit holds the header that every CUDA kernel includes (mtc.cuh), and says with which
// options a kernel is compiled. It is plain Go: compiling is package nvrtc's.
package kit

import (
	_ "embed"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// HeaderName is what a kernel includes.
const HeaderName = "mtc.cuh"

//go:embed mtc.cuh
var header string

//go:embed loops.cuh
var loops string

//go:embed mma.cuh
var mma string

//go:embed hopper.cuh
var hopper string

// Header is the text of mtc.cuh, and behind it loops.cuh, mma.cuh and hopper.cuh: what a kernel
// gets with one include.
var Header = header + "#line 1 \"loops.cuh\"\n" + loops + "#line 1 \"mma.cuh\"\n" + mma + "#line 1 \"hopper.cuh\"\n" + hopper

// Options are the compiler options of a kernel: arch is the virtual or real architecture
// ("sm_90a"), f32 the precision of the program, spec the constants S0 to S3.
func Options(arch string, f32 bool, spec [4]int64) []string {
	o := []string{"--gpu-architecture=" + arch, "--std=c++17", "--extra-device-vectorization"}
	if f32 {
		o = append(o, "-DMTC_F32")
	}
	for i, s := range spec {
		if s != 0 {
			o = append(o, fmt.Sprintf("-DS%d=%d", i, s))
		}
	}
	return o
}

// Arch names the architecture to compile for, of a GPU's compute capability. From Hopper on
// it is the one with the features of that chip alone (wgmma).
func Arch(major, minor int) string {
	if major >= 9 {
		return fmt.Sprintf("sm_%d%da", major, minor)
	}
	return fmt.Sprintf("sm_%d%d", major, minor)
}

var specLine = regexp.MustCompile(`(?m)^//mtc:spec[ \t]+(.*)$`)

// Specs lists the sets of constants that a kernel's text asks to be checked with, one for each
// line "//mtc:spec S0 [S1 [S2 [S3]]]"; without such a line it is one set of zeros.
func Specs(text string) ([][4]int64, error) {
	var out [][4]int64
	for _, m := range specLine.FindAllStringSubmatch(text, -1) {
		var s [4]int64
		words := strings.Fields(m[1])
		if len(words) > 4 {
			return nil, fmt.Errorf("%q has more than 4 constants", m[0])
		}
		for i, w := range words {
			n, err := strconv.ParseInt(w, 0, 64)
			if err != nil {
				return nil, fmt.Errorf("%q: %w", m[0], err)
			}
			s[i] = n
		}
		out = append(out, s)
	}
	if out == nil {
		out = [][4]int64{{}}
	}
	return out, nil
}
