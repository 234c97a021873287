package chat

import (
	"strings"

	"github.com/megatrain/mtc/runtime/chat/jinja"
	"github.com/megatrain/mtc/runtime/fault"
)

// Spans gives the text of a conversation and the parts of it that the assistant says, all of
// its turns, in bytes. A part begins where the model would be asked to go on and ends with
// what ends the turn.
//
// A template with {% generation %} blocks says itself what it is. Otherwise a turn is what the
// text of the conversation up to it has more than the text that asks for it; where a template
// writes earlier turns in another way than the last one, the turn is found by a mark that is
// put around it and taken out again. In each case the parts must lie in the text as it is: a
// template for which they cannot be found is an error, not a guess.
func (t *Template) Spans(c Conversation) (text string, spans []jinja.Span, err error) {
	text, spans, err = t.render(c, false)
	if err != nil || t.t.Marked {
		return text, spans, err
	}
	if turns := c.said(); turns > 1 && (turns*len(c.Messages) > maxTurns*maxTurns || turns*(len(text)>>10) > maxWork>>10) {
		return "", nil, fault.New("MT0671", t.name, "the conversation has %d turns and %d bytes, more than what the assistant says is looked for in, turn by turn", len(c.Messages), len(text)).
			Help("put `{%% generation %%}` and `{%% endgeneration %%}` around it in the template, or split the conversation")
	}
	done := 0
	for i, m := range c.Messages {
		if role, _ := m.Get("role"); role != "assistant" {
			continue
		}
		s, ok := t.turn(c, i, text)
		if !ok || s.From < done {
			return "", nil, fault.New("MT0671", t.name, "what the assistant says in turn %d cannot be found in the text that the chat template makes", i+1).
				Help("put `{%% generation %%}` and `{%% endgeneration %%}` around it in the template, or train on everything with `--loss all`")
		}
		spans = append(spans, s)
		done = s.To
	}
	return text, spans, nil
}

// Each turn takes renderings of all that stands before it: these bound their messages and their
// bytes, each to about ten seconds.
const (
	maxTurns = 1500
	maxWork  = 8 << 30
)

// said is the number of the assistant's turns.
func (c Conversation) said() (n int) {
	for _, m := range c.Messages {
		if role, _ := m.Get("role"); role == "assistant" {
			n++
		}
	}
	return n
}

// upTo is a conversation of the first n turns.
func (c Conversation) upTo(n int) Conversation { return Conversation{c.Messages[:n], c.Tools} }

// turn finds the turn i of a conversation in its text.
func (t *Template) turn(c Conversation, i int, text string) (jinja.Span, bool) {
	ask, err := t.Render(c.upTo(i), true)
	if err != nil || !strings.HasPrefix(text, ask) {
		return t.byMark(c, i, text)
	}
	upTo, err := t.Render(c.upTo(i+1), false)
	if err != nil || !strings.HasPrefix(upTo, ask) || !strings.HasPrefix(text, upTo) {
		return t.byMark(c, i, text)
	}
	if i+1 == len(c.Messages) {
		upTo = text
	}
	return jinja.Span{From: len(ask), To: len(upTo)}, true
}

// The marks are characters for private use that no template knows.
const (
	markOpen  = "\U0010fa01"
	markClose = "\U0010fa02"
)

// byMark renders once more with marks around the content of turn i. Without them the text must
// be what it was.
func (t *Template) byMark(c Conversation, i int, text string) (jinja.Span, bool) {
	content, _ := c.Messages[i].Get("content")
	said, ok := content.(string)
	if !ok || said == "" || strings.Contains(text, markOpen) || strings.Contains(text, markClose) {
		return jinja.Span{}, false
	}
	// Marks stand inside of the white space that templates trim.
	body := strings.TrimSpace(said)
	if body == "" {
		return jinja.Span{}, false
	}
	// A template may cut a part away that comes first, such as a thought: then the mark at the
	// beginning goes with it, and the turn begins where the text comes back.
	at := strings.Index(said, body)
	marked := said[:at] + markOpen + body + markClose + said[at+len(body):]
	list := append([]Message{}, c.Messages...)
	list[i] = jinja.NewDict()
	for _, k := range c.Messages[i].Keys() {
		v, _ := c.Messages[i].Get(k)
		list[i].Set(k, v)
	}
	list[i].Set("content", marked)
	got, err := t.Render(Conversation{list, c.Tools}, false)
	if err != nil || strings.Count(got, markClose) != 1 || strings.NewReplacer(markOpen, "", markClose, "").Replace(got) != text {
		return jinja.Span{}, false
	}
	closeAt := strings.Index(got, markClose)
	from := strings.Index(got, markOpen)
	switch {
	case from >= 0 && from < closeAt:
		closeAt -= len(markOpen)
	case from < 0:
		// Only what is left of the content: the longest end of it before the mark.
		n := 0
		for n < min(len(body), closeAt) && body[len(body)-n-1] == got[closeAt-n-1] {
			n++
		}
		// White space may be what the template wrote before it.
		from = closeAt - len(strings.TrimSpace(body[len(body)-n:]))
	default:
		return jinja.Span{}, false
	}
	end, ok := t.turnEnd(Conversation{list[:i+1], c.Tools}, text[closeAt:])
	return jinja.Span{From: from, To: closeAt + end}, ok
}

// turnEnd is how much of the text behind a turn's content ends the turn: what a template
// writes there when the turn, which is marked, is the last one.
func (t *Template) turnEnd(upTo Conversation, behind string) (int, bool) {
	got, err := t.Render(upTo, false)
	if err != nil {
		return 0, false
	}
	_, close, ok := strings.Cut(got, markClose)
	if ok && !strings.HasPrefix(behind, close) {
		close = strings.TrimSpace(close)
		ok = close != "" && strings.HasPrefix(behind, close)
	}
	return len(close), ok
}

// TurnEnd is what the template writes behind what the assistant says, without white space
// around it; "" when it writes nothing, or what cannot be told.
func (t *Template) TurnEnd() string {
	const said = "a\U0010fa03b"
	text, err := t.Render(Conversation{Messages: []Message{NewMessage("user", "?"), NewMessage("assistant", said)}}, false)
	if err != nil {
		return ""
	}
	_, end, _ := strings.Cut(text, said)
	return strings.TrimSpace(end)
}
