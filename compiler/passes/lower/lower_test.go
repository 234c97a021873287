package lower

import (
	"testing"
)

func TestGradientsOfLlama(t *testing.T) {
	p := mustLower(t, spans(llama(t, 4, 8, 24, 16, 3, 4, 2, 20, true, 4)), Options{Rows: 2, LogitsBytes: 4096, MinChunk: 4})
	checkGradients(t, p)
}
