package pack

import (
	"fmt"
	"strings"

	"github.com/megatrain/mtc/runtime/chat"
	"github.com/megatrain/mtc/runtime/chat/jinja"
)

// shape is the format of a record: text, messages, sharegpt or alpaca; "" when it has none.
func (p *packer) shape(text []byte) string {
	if p.Format != "auto" && p.Format != "jsonl" {
		return p.Format
	}
	obj, bad := parse(text)
	if bad != nil {
		return ""
	}
	return shapeOf(obj, p.Key)
}

func shapeOf(obj *jinja.Dict, key string) string {
	has := func(k string) bool { _, ok := obj.Get(k); return ok }
	list := func(k string) []any { v, _ := obj.Get(k); l, _ := v.([]any); return l }
	switch {
	case list("messages") != nil:
		return "messages"
	case list("conversations") != nil:
		if m, ok := first(list("conversations")).(*jinja.Dict); ok {
			if _, ok := m.Get("role"); ok {
				return "messages"
			}
		}
		return "sharegpt"
	case has("instruction") && has("output"):
		return "alpaca"
	case has(key):
		return "text"
	}
	return ""
}

func first(l []any) any {
	if len(l) == 0 {
		return nil
	}
	return l[0]
}

// missing says what a record would need.
func missing(obj *jinja.Dict, key string) string {
	for _, k := range []string{"messages", "conversations"} {
		if v, ok := obj.Get(k); ok {
			return fmt.Sprintf("%q is %s, not a list", k, map[bool]string{true: "null", false: "something else"}[v == nil])
		}
	}
	names := strings.Join(obj.Keys()[:min(len(obj.Keys()), 6)], ", ")
	return fmt.Sprintf("it has neither %q nor messages, conversations or instruction, but %s", key, orNothing(names))
}

func orNothing(s string) string {
	if s == "" {
		return "nothing"
	}
	return s
}

// roles are what sharegpt calls who speaks.
var roles = map[string]string{"human": "user", "user": "user", "gpt": "assistant", "assistant": "assistant", "chatgpt": "assistant",
	"bing": "assistant", "bard": "assistant", "model": "assistant", "system": "system", "tool": "tool", "function_response": "tool", "observation": "tool"}

// conversation reads the turns of a record.
func conversation(obj *jinja.Dict, shape string) (c chat.Conversation, bad *reason) {
	fail := func(format string, args ...any) (chat.Conversation, *reason) {
		return c, &reason{kind: ofShape, detail: fmt.Sprintf(format, args...)}
	}
	text := func(k string) string { v, _ := obj.Get(k); s, _ := v.(string); return s }
	c.Tools, _ = obj.Get("tools")
	if s, ok := c.Tools.(string); ok { // some files hold them as the text of JSON
		c.Tools = nil
		if s != "" {
			v, err := jinja.FromJSON([]byte(s))
			if err != nil {
				return fail("`tools` is a text that is not JSON")
			}
			c.Tools = v
		}
	}
	if l, ok := c.Tools.([]any); ok && len(l) == 0 {
		c.Tools = nil
	}
	if shape == "alpaca" {
		v, _ := obj.Get("output")
		out, ok := v.(string)
		if !ok || text("instruction") == "" {
			return fail("`instruction` or `output` is null, empty or not a text")
		}
		if s := text("system"); s != "" {
			c.Messages = append(c.Messages, chat.NewMessage("system", s))
		}
		ask := text("instruction")
		if in := text("input"); in != "" {
			ask += "\n\n" + in
		}
		c.Messages = append(c.Messages, chat.NewMessage("user", ask), chat.NewMessage("assistant", out))
		return c, nil
	}
	v, _ := obj.Get("messages")
	list, ok := v.([]any)
	if !ok {
		v, _ = obj.Get("conversations")
		list, ok = v.([]any)
	}
	if !ok {
		return fail("there is no list of `messages` or `conversations`")
	}
	if len(list) == 0 {
		return fail("there are no turns")
	}
	if s := text("system"); s != "" && shape == "sharegpt" {
		c.Messages = append(c.Messages, chat.NewMessage("system", s))
	}
	for i, x := range list {
		m, ok := x.(*jinja.Dict)
		if !ok {
			return fail("turn %d is not an object", i+1)
		}
		if shape == "sharegpt" {
			from, _ := m.Get("from")
			name, _ := from.(string)
			value, _ := m.Get("value")
			s, isText := value.(string)
			role := roles[name]
			if role == "" || !isText {
				return fail("turn %d is from %q with a value that is %s", i+1, name, nameOf(value))
			}
			c.Messages = append(c.Messages, chat.NewMessage(role, s))
			continue
		}
		role, _ := m.Get("role")
		if s, ok := role.(string); !ok || s == "" {
			return fail("turn %d has no `role`", i+1)
		}
		content, has := m.Get("content")
		if _, isCall := m.Get("tool_calls"); (!has || content == nil) && !isCall {
			return fail("turn %d has no `content`, or null", i+1)
		}
		c.Messages = append(c.Messages, withoutNull(m))
	}
	return c, nil
}

func nameOf(v any) string {
	switch v.(type) {
	case nil:
		return "null or missing"
	case string:
		return "a text"
	}
	return "not a text"
}

// withoutNull leaves out what is null, which templates take for something that is there.
func withoutNull(m *jinja.Dict) *jinja.Dict {
	out := jinja.NewDict()
	for _, k := range m.Keys() {
		if v, _ := m.Get(k); v != nil {
			out.Set(k, v)
		}
	}
	return out
}
