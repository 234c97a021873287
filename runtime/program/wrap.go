package program

import "strings"

// Wrap breaks a text between words into lines of at most width columns; a longer word gets a
// line of its own. Every run of spaces and line ends is one space.
func Wrap(text string, width int) []string {
	var lines []string
	for _, word := range strings.Fields(text) {
		if n := len(lines); n > 0 && columns(lines[n-1])+1+columns(word) <= width {
			lines[n-1] += " " + word
		} else {
			lines = append(lines, word)
		}
	}
	return lines
}
