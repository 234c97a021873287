package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// byteSize is a flag's number of bytes: "24GiB", "512 MB", "1.5e9". One without a unit that is less than
// a mebibyte is none that anybody means.
type byteSize int64

// byteUnits by suffix, the longer ones first.
var byteUnits = []struct {
	suffix string
	bytes  float64
}{
	{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10},
	{"TB", 1e12}, {"GB", 1e9}, {"MB", 1e6}, {"kB", 1e3},
	{"T", 1 << 40}, {"G", 1 << 30}, {"M", 1 << 20}, {"K", 1 << 10}, {"B", 1}, {"", 1},
}

func (b *byteSize) Type() string { return "SIZE" }

func (b *byteSize) String() string {
	if b == nil || *b == 0 {
		return ""
	}
	return strconv.FormatInt(int64(*b), 10)
}

func (b *byteSize) Set(s string) error {
	for _, u := range byteUnits {
		if len(s) < len(u.suffix) || !strings.EqualFold(s[len(s)-len(u.suffix):], u.suffix) {
			continue
		}
		x, err := strconv.ParseFloat(strings.TrimSpace(s[:len(s)-len(u.suffix)]), 64)
		if err != nil || !(x*u.bytes >= 1) || x*u.bytes >= math.MaxInt64 {
			break
		}
		if u.suffix == "" && x < 1<<20 {
			return fmt.Errorf("that is %s bytes: write a unit, such as %sGiB", s, s)
		}
		*b = byteSize(x * u.bytes)
		return nil
	}
	return fmt.Errorf("write a size, such as 24GiB or 512MiB")
}
