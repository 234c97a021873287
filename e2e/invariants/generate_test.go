package invariants

import (
	"bytes"
	"os/exec"
	"strings"
	"testing"

	"github.com/megatrain/mtc/compiler"
)

// sample generates and returns the tokens after the prompt, and the notes.
func sample(t *testing.T, binary, dir, prompt string, args ...string) (tokens []string, notes string) {
	t.Helper()
	var out, errs bytes.Buffer
	cmd := exec.Command(binary, append([]string{"generate", dir, "--prompt", prompt}, args...)...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v: %v\n%s", args, err, &errs)
	}
	return strings.Fields(strings.TrimPrefix(out.String(), prompt)), errs.String()
}

// TestGenerationGoesOnPastSeq: when the 16 positions are used, the last 8 tokens are read again
// as if they were a prompt.
func TestGenerationGoesOnPastSeq(t *testing.T) {
	t.Parallel()
	binary := program(t, "llama", compiler.Options{MicroBatch: 4, Set: []string{"V=300"}}) // tokens that are no bytes
	dir := out(t)
	run(t, binary, "train", "--data", corpus(t, 1500), "--steps", "3", "--out", dir)

	prompt := strings.Fields("97 32 115 108 111 116 32 97 110 100")
	greedy := func(prompt []string, args ...string) ([]string, string) {
		return sample(t, binary, dir, strings.Join(prompt, " "), append(args, "--temperature", "0")...)
	}
	equal := func(what string, got, want []string) {
		t.Helper()
		if g, w := strings.Join(got, " "), strings.Join(want, " "); g != w || g == "" {
			t.Errorf("%s: %s\nwant %s", what, g, w)
		}
	}
	long, notes := greedy(prompt, "--tokens", "40")
	if len(long) != 40 || notes != "" {
		t.Fatalf("%d tokens, it said %q", len(long), notes)
	}
	// 6 tokens fill the positions; the 7th is the last one made from them.
	at := 7
	short, notes := greedy(prompt, "--tokens", "40", "--stop-at-seq")
	equal("--stop-at-seq", short, long[:at])
	if !says(notes, "7 of 40 tokens") || !says(notes, "seq = 16") {
		t.Errorf("--stop-at-seq says %q", notes)
	}
	all := append(append([]string{}, prompt...), long...)
	for ; at+9 <= len(long); at += 9 {
		end := len(prompt) + at
		again, _ := greedy(all[end-8:end], "--tokens", "9")
		equal("after the last half", long[at:at+9], again)
	}
	a, _ := sample(t, binary, dir, strings.Join(prompt, " "), "--tokens", "40", "--seed", "3")
	b, _ := sample(t, binary, dir, strings.Join(prompt, " "), "--tokens", "40", "--seed", "3")
	equal("the same seed", a, b)

	// Of a prompt that is too long the model reads the last part.
	whole, notes := greedy(all[:30], "--tokens", "20")
	if !says(notes, "30 tokens") || !says(notes, "last 16") {
		t.Errorf("a long prompt: it says %q", notes)
	}
	last, notes := greedy(all[14:30], "--tokens", "20")
	equal("a long prompt", whole, last)
	if notes != "" {
		t.Errorf("a prompt that fits: it says %q", notes)
	}
}
