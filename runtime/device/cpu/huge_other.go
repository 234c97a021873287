//go:build !linux

package cpu

func huge([]byte) {}
