//go:build cuda

package cuda

import (
	"math"
	"strconv"
	"strings"
)

// pinLimit is the value of MTC_PINNED in bytes: "67108864", "64MiB", "1GiB"; without one there is
// no limit.
func pinLimit(text string) (int64, error) {
	if text == "" {
		return math.MaxInt64, nil
	}
	number, unit := text, int64(1)
	for _, u := range []struct {
		name  string
		bytes int64
	}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}} {
		if n, ok := strings.CutSuffix(text, u.name); ok {
			number, unit = n, u.bytes
		}
	}
	n, err := strconv.ParseInt(strings.TrimSpace(number), 10, 64)
	if err != nil || n < 0 || n > math.MaxInt64/unit {
		return 0, newFault(codeCannotUse, "MTC_PINNED=%s is no size", text).Help("write a number of bytes, or 64MiB, 2GiB")
	}
	return n * unit, nil
}
