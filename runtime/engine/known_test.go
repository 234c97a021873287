package engine

import (
	"strings"
	"testing"
)

// TestKnownTokens: ids outside the vocabulary are named before a device sees them; a target
// below 0 is ignored.
func TestKnownTokens(t *testing.T) {
	for _, c := range []struct {
		tokens, targets []int32
		want            string
	}{
		{[]int32{0, 9}, []int32{9, -1}, ""},
		{[]int32{0, 10}, []int32{1, 1}, "token 1 is id 10"},
		{[]int32{-1, 0}, []int32{1, 1}, "token 0 is id -1"},
		{[]int32{0, 1}, []int32{10, 1}, "target 0 is id 10"},
	} {
		err := (&hostBlocks{tokens: c.tokens, targets: c.targets}).known(10, 3)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v %v: %v, wanted %q", c.tokens, c.targets, err, c.want)
		}
	}
}
