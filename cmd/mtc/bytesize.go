package main

import (
	"errors"
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

// setRate reads bytes a second: "25GB/s". Links are sold in bits a second, which are refused: eight of them are a byte.
func (b *byteSize) setRate(s string) error {
	s = strings.TrimSpace(s)
	size, _ := strings.CutSuffix(s, "/s")
	if s, ok := strings.CutSuffix(size, "b"); ok {
		size = s + "bit" // of a link small letters are more often bits
	}
	if err := b.Set(size); err != nil {
		if errors.Is(err, errBits) {
			return errors.New("those are bits: write bytes a second, an eighth of it, such as 25GB/s")
		}
		return errors.New("write a rate, such as 25GB/s")
	}
	return nil
}

var errBits = errors.New("those are bits: write bytes, an eighth of it, such as 24GiB")

// inBits says that a size ends in bits: "Gb", "Gibit", "Gbps". One in small letters, "24gb", is not: people write so.
func inBits(s string) bool {
	low := strings.ToLower(s)
	return strings.HasSuffix(s, "b") && s != low || strings.HasSuffix(low, "bit") || strings.HasSuffix(low, "bits") || strings.HasSuffix(low, "bps")
}

func (b *byteSize) Set(s string) error {
	if s = strings.TrimSpace(s); inBits(s) {
		return errBits
	}
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
