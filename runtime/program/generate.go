package program

import (
	"bufio"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/megatrain/mtc/runtime/engine"
	"github.com/megatrain/mtc/runtime/fault"
	"github.com/megatrain/mtc/runtime/hf"
	"github.com/megatrain/mtc/runtime/plan"
)

// request is what to generate.
type request struct {
	prompt      string
	tokens      int64
	temperature float64
	topK        int64
	seed        int64
	threads     int64
	stopAtSeq   bool
	known       []bool // ids of the tokenizer, nil: all
	chat        string
	system      string
	inChat      bool
}

// generate is the generate command: it continues a prompt with the weights of the newest
// checkpoint of a run, or of a given one.
func (p *Program) generate(args []string, out, errw io.Writer) error {
	r := request{tokens: 200, temperature: 0.8, seed: 1}
	var from string
	fs := newFlagSet("generate", GenerateFlags)
	for name, to := range map[string]any{"prompt": &r.prompt, "tokens": &r.tokens, "temperature": &r.temperature,
		"top-k": &r.topK, "seed": &r.seed, "threads": &r.threads, "stop-at-seq": &r.stopAtSeq,
		"chat": &r.chat, "system": &r.system, "from": &from} {
		fs.bind(name, to)
	}
	rest, err := fs.parse(args, out)
	switch {
	case err != nil:
		return err
	case fs.given("chat") && fs.given("prompt"):
		return usagef("`--chat` and `--prompt` cannot be given at once").hint("`--chat` is what a user says, `--prompt` a text to continue")
	case fs.given("system") && !fs.given("chat"):
		return usagef("`--system` needs `--chat`").hint("write `--chat TEXT` too")
	case len(rest) > 1:
		return usagef("`generate` takes one run folder, not %d", len(rest)).hint("put the prompt in quotes: `--prompt \"%s\"`", strings.Join(rest[1:], " "))
	case r.tokens < 1:
		return usagef("`--tokens` is out of range").hint("write at least 1")
	case !(r.temperature >= 0):
		return usagef("`--temperature` is out of range").hint("write 0 or more")
	case fs.given("threads") && (r.threads < 1 || r.threads > maxThreads):
		return usagef("`--threads` is out of range").hint("write %s", threadsRange)
	case r.topK < 0:
		return usagef("`--top-k` is out of range").hint("write 0 or more")
	}
	if err := p.checkGiven(from); err != nil {
		return err
	}
	l := p.Plan.Lists[plan.Decode]
	if l.End == l.Start {
		return usagef("%s was compiled without generation", p.Plan.Model)
	}
	r.inChat = fs.given("chat")
	c, err := p.checkpointOf(rest)
	if err != nil {
		return err
	}
	run := filepath.Dir(filepath.Clean(c.Path))
	voice, err := p.speechOf(run)
	if err != nil {
		return err
	}
	if voice.note != "" {
		fmt.Fprintf(errw, "note: %s\n", voice.note)
	}
	var prompt []int32
	if r.inChat {
		prompt, err = voice.chat(r.system, r.chat)
	} else {
		prompt, err = voice.prompt(r.prompt)
	}
	if err != nil {
		return err
	}
	if r.stopAtSeq && int64(len(prompt)) >= p.Plan.Seq {
		return usagef("the prompt is %d tokens long, and the model was compiled for seq = %d in all", len(prompt), p.Plan.Seq).
			hint("shorten it by %d tokens, leave out --stop-at-seq, or compile with a larger seq", int64(len(prompt))-p.Plan.Seq+1)
	}
	if over := int64(len(prompt)) - p.Plan.Seq; over > 0 {
		fmt.Fprintf(errw, "note: the prompt has %d tokens; the model, compiled for seq = %d, reads the last %d\n", len(prompt), p.Plan.Seq, p.Plan.Seq)
		prompt = prompt[over:]
	}
	if r.known, err = hf.Vocabulary(run, p.Plan.Vocab); err != nil {
		return err
	}
	if err := preflight(p.Plan, true); err != nil {
		return err
	}
	e, err := p.open(r.threads, true)
	if err != nil {
		return err
	}
	defer e.Device().Close()
	if err := p.loadModel(e, c, false, from); err != nil {
		return err
	}
	w := bufio.NewWriter(out)
	fmt.Fprint(w, r.prompt)
	why, err := p.continueText(e, prompt, &r, voice, w)
	fmt.Fprintln(w)
	if ferr := w.Flush(); err == nil {
		err = ferr
	}
	if err != nil {
		return failed(err, "")
	}
	if why != "" {
		fmt.Fprintln(errw, why)
	}
	return nil
}

// errNoLogits ends a text where the model's values are no numbers any more.
var errNoLogits = fault.New("MT0630", "", "the model's logits are not finite, so there is no next token").
	Help("`mtc doctor RUN` says which weights are not finite or far too large; an earlier checkpoint may be whole")

// continueText writes what follows the prompt, and returns why it ended early, if it did.
func (p *Program) continueText(e *engine.Engine, prompt []int32, r *request, voice *speech, w *bufio.Writer) (why string, err error) {
	s := newSampler(r)
	said := voice.begin(r.inChat)
	c := &window{seq: int(p.Plan.Seq), infer: e.Infer}
	logits, err := c.add(prompt...)
	for n := int64(0); err == nil; n++ {
		token, ok := s.pick(logits)
		if !ok {
			w.WriteString(said.end())
			return "", errNoLogits
		}
		if voice.ends(token, r.inChat) {
			w.WriteString(said.end())
			return fmt.Sprintf("(the model ended the text after %d tokens)", n), nil
		}
		_, err = w.WriteString(said.push(token))
		if said.done {
			return fmt.Sprintf("(the model ended the text after %d tokens)", n+1), err
		}
		if err == nil {
			err = w.Flush()
		}
		if n+1 == r.tokens || err != nil {
			w.WriteString(said.end())
			return "", err
		}
		if r.stopAtSeq && c.full() {
			w.WriteString(said.end())
			return fmt.Sprintf("(ended after %d of %d tokens: the model was compiled for seq = %d)", n+1, r.tokens, p.Plan.Seq), nil
		}
		logits, err = c.add(token)
	}
	return "", err
}
