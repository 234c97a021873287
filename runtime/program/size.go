package program

import (
	"fmt"
	"strings"
)

// sizeOf reads the size that a flag is given, such as 5GB or 500MiB; 0 without one.
func sizeOf(flag, text string) (int64, error) {
	if text == "" || text == "0" {
		return 0, nil
	}
	unit := map[string]float64{"KB": 1e3, "MB": 1e6, "GB": 1e9, "KIB": 1 << 10, "MIB": 1 << 20, "GIB": 1 << 30, "B": 1}
	at := strings.IndexFunc(text, func(r rune) bool { return r != '.' && (r < '0' || r > '9') })
	var x float64
	if at > 0 {
		if _, err := fmt.Sscanf(text[:at]+"\n", "%g\n", &x); err == nil {
			if u, ok := unit[strings.ToUpper(text[at:])]; ok && x*u < 1<<62 {
				return int64(x * u), nil
			}
		}
	}
	return 0, usagef("`--%s` cannot be `%s`", flag, text).hint("write a size: 5GB, 500MiB")
}
