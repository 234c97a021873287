package front

import (
	"github.com/megatrain/mtc/lang/diag/suggest"
	"github.com/megatrain/mtc/lang/source"
)

// Ready checks what compiling needs beyond a checked model: a train block, which gives B
// and T, and notes where its values stand.
func Ready(s *State) {
	if t := s.Model.Train; t != nil {
		t.Fields = map[string]source.Span{}
		if s.target.train != nil {
			for _, f := range s.target.train.Fields {
				t.Fields[f.Name.Name] = f.Value.Pos()
			}
		}
		for _, set := range s.target.trains {
			f := set.field()
			t.Fields[f.Name.Name] = f.Value.Pos()
		}
		return
	}
	at := s.Model.Span
	if s.target.name.Span.File != s.Main.Source {
		at = source.Span{File: s.Main.Source}
	}
	s.errorf(codeTrainField, at, "compiling `%s` needs a train block: `seq` and `batch` shape the schedule", s.Model.Name).
		Hint("add `train { seq = 1024; batch = 524288 tokens }`, or pass `--set train.seq=1024 --set \"train.batch=524288 tokens\"`")
}

// DidYouMean is the help for a word that is none of those possible.
func DidYouMean(word string, possible []string) string { return suggest.HintOr(word, possible) }
