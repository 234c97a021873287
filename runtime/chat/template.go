// Package chat renders conversations with the template of a model, a Jinja text that comes
// with its tokenizer, and finds what the assistant says in the result.
package chat

import (
	"github.com/megatrain/mtc/runtime/chat/jinja"
	"github.com/megatrain/mtc/runtime/fault"
)

// Template is a compiled template; it may be used from several goroutines.
type Template struct {
	name string
	t    *jinja.Template
	vars map[string]any
}

// Message is one turn: "role", "content" and whatever else a template reads.
type Message = *jinja.Dict

// NewMessage is a turn of text.
func NewMessage(role, content string) Message {
	m := jinja.NewDict()
	m.Set("role", role)
	m.Set("content", content)
	return m
}

// Conversation is what a template renders: turns, and the tools that it may tell of.
type Conversation struct {
	Messages []Message
	Tools    any // a list as a record has it; nil: none
}

// Compile reads a template. name is for messages; bos and eos are the texts of these tokens.
func Compile(name, text, bos, eos string) (*Template, error) {
	if f := fault.Unfetched("MT0671", name, text); f != nil {
		return nil, f
	}
	t, err := jinja.Compile(text)
	if err != nil {
		return nil, fault.New("MT0671", name, "the chat template cannot be used").Wrap(err).
			Help("take the template that comes with the model, or leave out what is named")
	}
	return &Template{name: name, t: t, vars: map[string]any{"bos_token": bos, "eos_token": eos}}, nil
}

// Render gives the text of a conversation; with ask, up to where the assistant begins to speak.
func (t *Template) Render(c Conversation, ask bool) (string, error) {
	text, _, err := t.render(c, ask)
	return text, err
}

func (t *Template) render(c Conversation, ask bool) (string, []jinja.Span, error) {
	list := make([]any, len(c.Messages))
	for i, m := range c.Messages {
		list[i] = m
	}
	vars := map[string]any{"messages": list, "add_generation_prompt": ask, "tools": c.Tools, "documents": nil}
	for k, v := range t.vars {
		vars[k] = v
	}
	text, spans, err := t.t.Render(vars)
	if err != nil {
		return "", nil, fault.New("MT0671", t.name, "the chat template refuses this conversation").Wrap(err)
	}
	return text, spans, nil
}
