package chat

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/megatrain/mtc/runtime/chat/jinja"
)

type fixture struct {
	Templates     map[string]string
	Conversations map[string]json.RawMessage
	Cases         []struct {
		Template, Conversation string
		Ask                    bool
		Text                   *string
		Error                  string
		Spans                  [][2]int
	}
}

func read(t *testing.T) (f fixture) {
	t.Helper()
	b, err := os.ReadFile("testdata/rendered.json")
	if err == nil {
		err = json.Unmarshal(b, &f)
	}
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func (f *fixture) template(t *testing.T, name string) *Template {
	t.Helper()
	tm, err := Compile(name, f.Templates[name], "<s>", "</s>")
	if err != nil {
		t.Fatal(err)
	}
	return tm
}

func (f *fixture) conversation(t *testing.T, name string) (out Conversation) {
	t.Helper()
	v, err := jinja.FromJSON(f.Conversations[name])
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range v.([]any) {
		out.Messages = append(out.Messages, m.(Message))
	}
	return out
}

// Templates of every style give what transformers gives, errors included.
func TestRendersAsTransformersDoes(t *testing.T) {
	f := read(t)
	for _, c := range f.Cases {
		got, err := f.template(t, c.Template).Render(f.conversation(t, c.Conversation), c.Ask)
		what := c.Template + " of " + c.Conversation
		switch {
		case c.Text == nil && err == nil:
			t.Errorf("%s: no error, wanted %q", what, c.Error)
		case c.Text == nil:
			if !strings.Contains(err.Error(), c.Error) && !strings.Contains(c.Error, "undefined") {
				t.Errorf("%s: %v, wanted %q", what, err, c.Error)
			}
		case err != nil:
			t.Errorf("%s: %v", what, err)
		default:
			if d := cmp.Diff(*c.Text, got); d != "" {
				t.Errorf("%s (-transformers +here):\n%s", what, d)
			}
		}
		if c.Spans != nil {
			_, spans, err := f.template(t, c.Template).render(f.conversation(t, c.Conversation), c.Ask)
			if err != nil {
				t.Fatal(err)
			}
			var list [][2]int
			for _, s := range spans {
				list = append(list, [2]int{s.From, s.To})
			}
			if d := cmp.Diff(c.Spans, append([][2]int{}, list...)); d != "" {
				t.Errorf("%s: spans: %s", what, d)
			}
		}
	}
}

// What the assistant says is found in every style, all of its turns and what ends them.
func TestSpansOfTheAssistant(t *testing.T) {
	f := read(t)
	for _, c := range []struct {
		template, conversation string
		want                   []string
	}{
		{"chatml", "one", []string{"Hello!<|im_end|>\n"}},
		{"chatml", "four", []string{"a<|im_end|>\n", "a<|im_end|>\n"}},
		{"qwen2.5", "long", []string{"<think>\nhm\n</think>\n\nThat. <|im_end|>\n", "ok\n<|im_end|>\n"}},
		{"qwen2.5", "tools", []string{"<tool_call>\n{\"name\": \"now\", \"arguments\": {\"zone\": \"UTC\", \"n\": 1}}\n</tool_call><|im_end|>\n", "noon<|im_end|>\n"}},
		// The first thought is not in the text, the last turn's place for one is.
		{"thinking", "long", []string{"That. <|im_end|>\n", "<think>\n\n</think>\n\nok\n<|im_end|>\n"}},
		{"thinking", "four", []string{"a<|im_end|>\n", "<think>\n\n</think>\n\na<|im_end|>\n"}},
		{"llama3", "long", []string{"<think>\nhm\n</think>\n\nThat.<|eot_id|>", "ok<|eot_id|>"}},
		{"mistral", "long", []string{" <think>\nhm\n</think>\n\nThat. </s>", " ok\n</s>"}},
		{"zephyr", "four", []string{"a</s>\n", "a</s>\n"}},
		{"gemma", "four", []string{"a<end_of_turn>\n", "a<end_of_turn>\n"}},
		{"generation", "four", []string{"a</s>", "a</s>"}},
		{"chatml", "ask", nil},
	} {
		text, spans, err := f.template(t, c.template).Spans(f.conversation(t, c.conversation))
		if err != nil {
			t.Errorf("%s of %s: %v", c.template, c.conversation, err)
			continue
		}
		var got []string
		for _, s := range spans {
			got = append(got, text[s.From:s.To])
		}
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%s of %s:\n%s", c.template, c.conversation, d)
		}
	}
}

// Where the turns cannot be told apart, that is an error.
func TestSpansThatCannotBeFound(t *testing.T) {
	tm, err := Compile("x", "{% for m in messages %}{{ m.content[::-1] }}{% endfor %}{% if add_generation_prompt %}>{% endif %}", "", "")
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = tm.Spans(Conversation{Messages: []Message{NewMessage("user", "b"), NewMessage("assistant", "abc"), NewMessage("user", "d")}})
	if err == nil || !strings.Contains(err.Error(), "turn 2") {
		t.Errorf("got %v", err)
	}
}

func TestTemplateErrorsNameTheLine(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"a\n{% if x %}", "line 2"}, {"{{ 1 +", "line 1"}, {"\n\n{{ x.y.z }}", "line 3: `x` is not defined"}, {"{% include 'x' %}", "not known"},
		{"{{ x | nope }}", "nope"}, {"{{ 1 // 0 }}", "zero"}, {"{% for i in range(99999999) %}{% endfor %}", "range"},
		{"{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "deep"}, {"{% break %}", "loop"}, {"{% endif %}", "without"}, {strings.Repeat("{{(", 1) + strings.Repeat("(", 500), "not closed"},
		{"{{ " + strings.Repeat("(", 500) + "1 }}", "deep"}, {"{{ 'x' * 999999999999 }}", "too long"},
	} {
		tm, err := Compile("t", c.text, "", "")
		if err == nil {
			_, err = tm.Render(Conversation{}, false)
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.40q: %v, wanted %q", c.text, err, c.want)
		}
	}
}

// Long conversations and long turns end, with a reason if need be: finding turns is quadratic in
// their number, and linear in their length.
func TestLongConversationsEnd(t *testing.T) {
	tm, err := Compile("t", "{% for m in messages %}<{{ m.role }}>{{ m.content.split('</think>')[-1] | trim if loop.index < 3 else m.content }}.{% endfor %}"+
		"{% if add_generation_prompt %}<assistant>{% endif %}", "", "")
	if err != nil {
		t.Fatal(err)
	}
	var many Conversation
	for range 4000 {
		many.Messages = append(many.Messages, NewMessage("user", "a"), NewMessage("assistant", "b"))
	}
	if _, _, err := tm.Spans(many); err == nil || !strings.Contains(err.Error(), "8000 turns") {
		t.Errorf("8000 turns: %v", err)
	}
	long := Conversation{Messages: []Message{NewMessage("user", "a"),
		NewMessage("assistant", strings.Repeat("a", 1<<20)+"</think>"+strings.Repeat("a", 1<<20)), NewMessage("user", "a")}}
	text, spans, err := tm.Spans(long)
	if err != nil || len(spans) != 1 || spans[0].To-spans[0].From != 1<<20+1 || text[spans[0].To-1] != '.' {
		t.Errorf("a long turn: %v, %v", spans, err)
	}
}
