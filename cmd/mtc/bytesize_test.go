package main

import "testing"

func TestRate(t *testing.T) {
	for text, want := range map[string]int64{
		"25GB/s": 25e9, "25 GiB/s": 25 << 30, "25GB": 25e9, "2e9": 2e9,
		"2Gb/s": -1, "2gb/s": -1, "2Gbit/s": -1, "100Gbps": -1, "25": -1, "fast": -1, "/s": -1, "": -1,
	} {
		b := byteSize(-1)
		if err := b.setRate(text); (err == nil) != (want >= 0) || int64(b) != want {
			t.Errorf("%q: %d, %v; want %d", text, b, err, want)
		}
	}
}

func TestByteSize(t *testing.T) {
	for text, want := range map[string]int64{
		"24GiB": 24 << 30, "512MiB": 512 << 20, "1.5 GB": 1_500_000_000, "80g": 80 << 30, "1048576": 1 << 20, "2000000.5": 2000000, "7B": 7, "2e9": 2_000_000_000,
		"": -1, "GiB": -1, "-3GiB": -1, "0": -1, "NaN": -1, "Inf": -1, "9e30": -1, "0.5B": -1, "0.0001KiB": -1, "5 apples": -1, "24": -1, "24gb": 24_000_000_000, "24Gb": -1, "24 Gib": -1, "24Gbit": -1, "24gbps": -1, "1048575": -1,
	} {
		b := byteSize(-1)
		if err := b.Set(text); (err == nil) != (want >= 0) || int64(b) != want {
			t.Errorf("%q: %d, %v; want %d", text, b, err, want)
		}
	}
}
