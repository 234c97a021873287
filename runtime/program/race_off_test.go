//go:build !race

package program

const raced = false
