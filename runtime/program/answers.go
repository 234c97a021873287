package program

import (
	"bufio"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/megatrain/mtc/runtime/hf"
	"github.com/megatrain/mtc/runtime/plan"
)

// answerTokens is how long an answer to --ask may be.
const answerTokens = 64

// question is a text of --ask, as the model reads it.
type question struct {
	text   string
	prompt []int32
	request
	voice *speech
}

// openQuestions prepares what --ask wants answered after every evaluation: with the chat template
// where there is one, else the text is continued. The run folder has the tokenizer by now.
func (s *session) openQuestions() error {
	if len(s.ask) == 0 {
		return nil
	}
	if l := s.plan.Lists[plan.Decode]; l.End == l.Start {
		return usagef("%s was compiled without generation, which `--ask` needs", s.plan.Model)
	}
	if s.eval == nil {
		return usagef("`--ask` is answered after evaluations, and there are none").hint("`--eval-data FILES` or `--holdout SHARE` say on what to evaluate")
	}
	known, err := hf.Vocabulary(s.out, s.plan.Vocab)
	if err != nil {
		return err
	}
	for _, text := range s.ask {
		q := question{text: text, request: request{tokens: answerTokens, stopAtSeq: true, known: known}}
		if q.voice, err = s.prog.speechOf(s.out); err != nil {
			return err
		}
		if q.inChat = q.voice.tok != nil && q.voice.tok.Template != ""; q.inChat {
			q.prompt, err = q.voice.chat("", text)
		} else {
			q.prompt, err = q.voice.prompt(text)
		}
		if err != nil {
			return err
		}
		if int64(len(q.prompt)) >= s.plan.Seq {
			return usagef("`--ask` has %d tokens, and the model was compiled for seq = %d in all", len(q.prompt), s.plan.Seq)
		}
		s.questions = append(s.questions, q)
	}
	return nil
}

// answer prints what the model says to each question, the likeliest token each time. Nothing of
// the training changes by it.
func (s *session) answer(step int64) error {
	for i := range s.questions {
		q := &s.questions[i]
		var b strings.Builder
		w := bufio.NewWriter(&b)
		_, err := s.prog.continueText(s.engine, q.prompt, &q.request, q.voice, w)
		switch {
		case errors.Is(err, errNoLogits): // the run has its own end for that
			w.WriteString(" (logits that are not finite)")
		case err != nil:
			return err
		}
		w.Flush() // into memory
		fmt.Fprintf(s.outw, "says %d/%d  %s: %s\n", step, s.train.Steps, strconv.Quote(q.text), strconv.Quote(b.String()))
	}
	return nil
}
