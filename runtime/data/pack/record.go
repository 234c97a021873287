package pack

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/megatrain/mtc/runtime/chat"
	"github.com/megatrain/mtc/runtime/chat/jinja"
	"github.com/megatrain/mtc/runtime/fault"
)

// document makes what is packed of a record: none when it is left out in silence, which is
// never, several when it is split.
func (p *packer) document(r record) []document {
	if r.bad != nil {
		return []document{{line: r.line, bad: r.bad}}
	}
	d := document{line: r.line}
	if r.line == 0 {
		d.bad = p.plainText(&d, r.text)
	} else {
		d.bad = p.fromJSON(&d, r.text)
	}
	if d.bad != nil {
		return []document{d}
	}
	return p.fit(d)
}

// plainText packs a whole text file.
func (p *packer) plainText(d *document, text []byte) *reason {
	if !p.Tokenizer.IsBytes() {
		if at, bad := badUTF8(text); bad {
			return &reason{kind: ofUTF8, detail: fmt.Sprintf("byte %d", at)}
		}
	}
	if len(text) == 0 {
		return &reason{kind: ofEmpty}
	}
	p.framed(d, string(text))
	return nil
}

// framed is a text as a document: with what the tokenizer puts around one, and its end. All
// of it is learned but what the tokenizer put first, which nothing predicts.
func (p *packer) framed(d *document, text string) {
	ids := p.Tokenizer.Encode(text)
	first := p.Tokenizer.Prefix(ids)
	ids = p.Tokenizer.Frame(ids)
	if e := p.Tokenizer.EOSID; e >= 0 && (len(ids) == 0 || ids[len(ids)-1] != e) {
		ids = append(ids, e)
	}
	d.tokens, d.learn = ids, make([]bool, len(ids))
	for i := range d.learn {
		d.learn[i] = i >= first
	}
}

// fromJSON packs a record.
func (p *packer) fromJSON(d *document, text []byte) *reason {
	obj, bad := parse(text)
	if bad != nil {
		return bad
	}
	shape := p.Format
	if shape == "auto" || shape == "jsonl" {
		if shape = shapeOf(obj, p.Key); shape == "" {
			return &reason{kind: ofShape, detail: missing(obj, p.Key)}
		}
	}
	if shape == "text" {
		if p.chats {
			return &reason{kind: ofShape, detail: "a text among conversations"}
		}
		v, _ := obj.Get(p.Key)
		s, ok := v.(string)
		switch {
		case v == nil:
			return &reason{kind: ofShape, detail: fmt.Sprintf("%q is null or missing", p.Key)}
		case !ok:
			return &reason{kind: ofShape, detail: fmt.Sprintf("%q is not a text", p.Key)}
		case s == "":
			return &reason{kind: ofEmpty}
		}
		p.framed(d, s)
		return nil
	}
	if !p.chats {
		return &reason{kind: ofShape, detail: "a conversation among texts"}
	}
	c, bad := conversation(obj, shape)
	if bad != nil {
		return bad
	}
	return p.chat(d, c)
}

// chat packs a conversation.
func (p *packer) chat(d *document, c chat.Conversation) *reason {
	var text string
	var spans []jinja.Span
	var err error
	if p.Loss == "all" {
		text, err = p.Template.Render(c, false)
		spans = []jinja.Span{{From: 0, To: len(text)}}
	} else {
		text, spans, err = p.Template.Spans(c)
	}
	if err != nil {
		var f *fault.Error
		if errors.As(err, &f) && f.Err != nil {
			err = f.Err
		} else if f != nil {
			err = errors.New(f.Message)
		}
		return &reason{kind: ofTemplate, detail: err.Error()}
	}
	ids, starts := p.Tokenizer.EncodeSpans(text)
	d.tokens, d.learn = ids, make([]bool, len(ids))
	k := 0
	for i, s := range starts {
		for k < len(spans) && int(s) >= spans[k].To {
			k++
		}
		d.learn[i] = k < len(spans) && int(s) >= spans[k].From
	}
	return nil
}

// parse reads a record's object, and refuses text that JSON's reader would mend in silence.
func parse(text []byte) (*jinja.Dict, *reason) {
	if at, bad := badUTF8(text); bad {
		return nil, &reason{kind: ofUTF8, detail: fmt.Sprintf("byte %d of the line", at)}
	}
	v, err := jinja.FromJSON(text)
	if err != nil {
		return nil, &reason{kind: ofJSON, detail: explain(text, err)}
	}
	if s := loneSurrogate(text); s != "" {
		return nil, &reason{kind: ofUTF8, detail: "half of a pair of surrogates, " + s}
	}
	obj, ok := v.(*jinja.Dict)
	if !ok {
		return nil, &reason{kind: ofShape, detail: "not an object"}
	}
	return obj, nil
}

// explain says what is wrong with a line, for the slips that are made most.
func explain(text []byte, err error) string {
	t := bytes.TrimSpace(text)
	if json.Valid(bytes.TrimSuffix(t, []byte(","))) && bytes.HasSuffix(t, []byte(",")) {
		return "a comma behind the record"
	}
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) && syntax.Error() != "" {
		return fmt.Sprintf("%v, at byte %d", err, syntax.Offset)
	}
	if errors.As(err, &syntax) {
		return "more text behind the record"
	}
	if strings.Contains(err.Error(), "EOF") {
		return "it ends in the middle"
	}
	return err.Error()
}

// loneSurrogate finds an escape of half a character, which Go's reader replaces.
func loneSurrogate(text []byte) string {
	for i := 0; i+5 < len(text); i++ {
		if text[i] != '\\' {
			continue
		}
		if text[i+1] != 'u' {
			i++
			continue
		}
		v, ok := hex4(text[i+2:])
		switch {
		case !ok:
		case v >= 0xdc00 && v < 0xe000:
			return string(text[i : i+6])
		case v >= 0xd800 && v < 0xdc00:
			if i+11 < len(text) && text[i+6] == '\\' && text[i+7] == 'u' {
				if low, ok := hex4(text[i+8:]); ok && low >= 0xdc00 && low < 0xe000 {
					i += 11
					continue
				}
			}
			return string(text[i : i+6])
		}
		i += 5
	}
	return ""
}

func hex4(b []byte) (v int, ok bool) {
	if len(b) < 4 {
		return 0, false
	}
	for _, c := range b[:4] {
		d := strings.IndexByte("0123456789abcdef", c|0x20)
		if c >= '0' && c <= '9' {
			d = int(c - '0')
		}
		if d < 0 {
			return 0, false
		}
		v = v<<4 | d
	}
	return v, true
}
