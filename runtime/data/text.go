package data

import "strconv"

// group writes n with commas between thousands.
func group(n int64) string {
	s := strconv.FormatInt(n, 10)
	lead := 0
	if n < 0 {
		lead = 1
	}
	for i := len(s) - 3; i > lead; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// count is "1 file", "2 files".
func count(n int64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return group(n) + " " + noun + "s"
}
