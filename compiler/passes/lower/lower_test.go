package lower

import (
	"fmt"
	"testing"
)

func TestLlama(t *testing.T) {
	p := mustLower(t, spans(llama(t, 4, 16, 64, 32, 3, 4, 2, 48, true, 4)), Options{Rows: 2, LogitsBytes: 4096, MinChunk: 4})
	fmt.Println(Dump(p))
}
