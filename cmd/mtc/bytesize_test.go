package main

import "testing"

func TestByteSize(t *testing.T) {
	for text, want := range map[string]int64{
		"24GiB": 24 << 30, "512MiB": 512 << 20, "1.5 GB": 1_500_000_000, "80g": 80 << 30, "1048576": 1 << 20, "2000000.5": 2000000, "7B": 7, "2e9": 2_000_000_000,
		"": -1, "GiB": -1, "-3GiB": -1, "0": -1, "NaN": -1, "Inf": -1, "9e30": -1, "0.5B": -1, "0.0001KiB": -1, "5 apples": -1, "24": -1, "1048575": -1,
	} {
		b := byteSize(-1)
		if err := b.Set(text); (err == nil) != (want >= 0) || int64(b) != want {
			t.Errorf("%q: %d, %v; want %d", text, b, err, want)
		}
	}
}
