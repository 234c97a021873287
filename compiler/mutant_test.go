package compiler

import (
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/megatrain/mtc/lang/diag"
	"github.com/megatrain/mtc/tools/cputime"
)

var tokenPattern = regexp.MustCompile(`"[^"\n]*"|[A-Za-z_][A-Za-z_0-9]*|[0-9][0-9.e-]*|\+=|==|!=|<=|>=|[^\sA-Za-z0-9]`)

// mutate changes a text by tokens and lines, so that most results still parse.
func mutate(r *rand.Rand, text string) string {
	for range 1 + r.IntN(3) {
		at := tokenPattern.FindAllStringIndex(text, -1)
		if len(at) < 2 {
			return text
		}
		a, b := at[r.IntN(len(at))], at[r.IntN(len(at))]
		lines := strings.Split(text, "\n")
		i, j := r.IntN(len(lines)), r.IntN(len(lines))
		switch r.IntN(7) {
		case 0: // another token of the file in its place
			text = text[:a[0]] + text[b[0]:b[1]] + text[a[1]:]
		case 1: // without it
			text = text[:a[0]] + text[a[1]:]
		case 2: // twice
			text = text[:a[1]] + " " + text[a[0]:a[1]] + text[a[1]:]
		case 3: // another number
			if n := text[a[0]:a[1]]; n[0] >= '0' && n[0] <= '9' {
				v := []string{"0", "1", "2", "3", "7", "1.5", "-1", "1000000007", "9223372036854775807"}
				text = text[:a[0]] + v[r.IntN(len(v))] + text[a[1]:]
			}
		case 4: // lines changed about
			lines[i], lines[j] = lines[j], lines[i]
			text = strings.Join(lines, "\n")
		case 5: // a line twice
			text = strings.Join(append(lines[:i:i], append([]string{lines[i]}, lines[i:]...)...), "\n")
		case 6: // a line less
			text = strings.Join(append(lines[:i:i], lines[i+1:]...), "\n")
		}
	}
	return text
}

// TestMutants compiles models with small slips in them. Most are errors, some are other
// models: none may make a pass panic or a schedule that does not verify.
func TestMutants(t *testing.T) {
	n := 600
	if s := os.Getenv("MTC_MUTANTS"); s != "" {
		n, _ = strconv.Atoi(s)
	}
	seed := uint64(1)
	if s := os.Getenv("MTC_SEED"); s != "" {
		seed, _ = strconv.ParseUint(s, 10, 64)
	}
	var texts []string
	for _, path := range []string{"../models/nano.mt", "../models/gpt2.mt", "../models/llama.mt", "testdata/syntax.mt"} {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		s := string(text)
		if filepath.Base(path) == "llama.mt" {
			s = strings.Replace(s, "D, L, H, KV = H, F, V,", "D = 64, L = 3, H = 4, KV = 2, F = 96, V = 256,", 1)
			s = strings.Replace(s, "qk_norm = false, window = none, tied = false", "qk_norm = true, window = 16, tied = true", 1)
		}
		if !strings.Contains(s, "train {") {
			s += "\ntrain { seq = 32; batch = 128 tokens; clip = 1.0; eval = every(10) }\n"
		}
		texts = append(texts, s)
	}
	r := rand.New(rand.NewPCG(seed, 2))
	good := 0
	for i := range n {
		text := mutate(r, texts[i%len(texts)])
		o := Options{Path: "m.mt", Text: []byte(text)}
		if i%2 == 1 {
			o.Placement, o.Recompute = "stream", "all"
		}
		l := &diag.List{}
		var err error
		if took := cputime.Of(func() { _, err = Compile(context.Background(), o, l) }); took > 20e9 {
			t.Errorf("took %s:\n%s", took, text)
		}
		if err == nil {
			good++
		}
		for _, d := range l.Sorted() {
			if strings.HasPrefix(d.Code, "MT00") {
				t.Fatalf("%s %q\n%s", d.Message, d.Notes, text)
			}
		}
	}
	if good == 0 || good == n {
		t.Errorf("%d of %d compiled", good, n)
	}
	t.Logf("%d of %d compiled", good, n)
}
