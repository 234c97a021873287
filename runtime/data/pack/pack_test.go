package pack

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/megatrain/mtc/runtime/chat"
	"github.com/megatrain/mtc/runtime/data/packed"
	"github.com/megatrain/mtc/runtime/fault"
	"github.com/megatrain/mtc/runtime/tokenizer"
)

const template = `{% for m in messages %}<{{ m.role[0] }}>{{ m.content }}.{% endfor %}{% if add_generation_prompt %}<a>{% endif %}`

func options(t testing.TB, in map[string]string) Options {
	t.Helper()
	dir := t.TempDir()
	for name, text := range in {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	tm, err := chat.Compile("t", template, "", "")
	if err != nil {
		t.Fatal(err)
	}
	return Options{In: []string{dir}, Out: filepath.Join(t.TempDir(), "out"), Tokenizer: tokenizer.OpenBytes(), Name: "bytes",
		Template: tm, Format: "auto", Key: "text", Overlong: "error"}
}

// texts are the documents of a folder; what is learned stands in brackets.
func texts(t testing.TB, dir string) (out []string) {
	t.Helper()
	s, err := packed.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for d := range s.Documents() {
		ids, learn := make([]int32, s.Len(d)), make([]bool, s.Len(d))
		if err := s.Read(d, 0, ids, learn); err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		on := false
		for i, id := range ids {
			if learn[i] != on {
				b.WriteString(map[bool]string{true: "[", false: "]"}[learn[i]])
				on = learn[i]
			}
			if id == 0 {
				b.WriteString("$")
			} else {
				b.WriteByte(byte(id))
			}
		}
		if on {
			b.WriteString("]")
		}
		out = append(out, b.String())
	}
	return out
}

func TestDocumentsAndMasks(t *testing.T) {
	for _, c := range []struct {
		name string
		in   map[string]string
		edit func(o *Options)
		want []string
	}{
		{"text files", map[string]string{"b.txt": "bb", "a.md": "\xef\xbb\xbfa"}, nil, []string{"[a$]", "[bb$]"}},
		{"texts of records", map[string]string{"a.jsonl": "{\"text\":\"xy\"}\r\n{\"n\":1,\"text\":\"é\"}"}, nil, []string{"[xy$]", "[\xc3\xa9$]"}},
		{"another key", map[string]string{"a.jsonl": `{"body":"xy"}`}, func(o *Options) { o.Key = "body" }, []string{"[xy$]"}},
		{"an array", map[string]string{"a.json": "[\n{\"text\":\"a]b\"},\n{\"text\":\"c\"}]\n"}, nil, []string{"[a]b$]", "[c$]"}},
		{"an array, apart", map[string]string{"a.json": "[\n{\"text\":\"a]b\"},\n{\"text\":\"c\"}]\n"}, func(o *Options) { o.Apart = true }, []string{"a[]b$]", "c[$]"}},
		{"messages", map[string]string{"a.jsonl": `{"messages":[{"role":"user","content":"q"},{"role":"assistant","content":"w"},{"role":"user","content":"e"},{"role":"assistant","content":"r"}]}`}, nil,
			[]string{"<u>q.<a>[w.]<u>e.<a>[r.]"}},
		{"sharegpt", map[string]string{"a.jsonl": `{"conversations":[{"from":"system","value":"s"},{"from":"human","value":"q"},{"from":"gpt","value":"w"}]}`}, nil, []string{"<s>s.<u>q.<a>[w.]"}},
		{"alpaca", map[string]string{"a.json": `[{"instruction":"q","input":"i","output":"w"}]`}, nil, []string{"<u>q\n\ni.<a>[w.]"}},
		{"all of a chat", map[string]string{"a.jsonl": `{"instruction":"q","output":"w"}`}, func(o *Options) { o.Loss = "all" }, []string{"<[u>q.<a>w.]"}},
		{"drop", map[string]string{"a.jsonl": "{\"text\":\"abcdefgh\"}\n{\"text\":\"x\"}"}, func(o *Options) { o.Apart, o.Seq, o.Overlong = true, 4, "drop" }, []string{"x[$]"}},
		{"cut", map[string]string{"a.jsonl": `{"text":"abcdefgh"}`}, func(o *Options) { o.Apart, o.Seq, o.Overlong = true, 4, "cut" }, []string{"a[bcde]"}},
		{"split", map[string]string{"a.jsonl": `{"text":"abcdefgh"}`}, func(o *Options) { o.Apart, o.Seq, o.Overlong = true, 4, "split" }, []string{"a[bcde]", "e[fgh$]"}},
	} {
		o := options(t, c.in)
		if c.edit != nil {
			c.edit(&o)
		}
		r, err := Run(o)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if d := cmp.Diff(c.want, texts(t, o.Out)); d != "" {
			t.Errorf("%s (-wanted +got): %s", c.name, d)
		}
		if m := r.Manifest; m.Documents != int64(len(c.want)) {
			t.Errorf("%s: %d documents", c.name, m.Documents)
		}
	}
}

// Every kind of bad record is counted with its place and reason, and is fatal with Strict.
func TestBadRecords(t *testing.T) {
	for _, c := range []struct{ name, file, text, reason, at string }{
		{"blank line", "a.jsonl", "{\"text\":\"ok\"}\n \n", "a blank line", "a.jsonl:2"},
		{"trailing comma", "a.jsonl", "{\"text\":\"a\"},\n{\"text\":\"ok\"}\n", "not JSON", "a.jsonl:1: a comma behind"},
		{"comma inside", "a.jsonl", "{\"text\":\"a\",}\n{\"text\":\"ok\"}\n", "not JSON", "a.jsonl:1: "},
		{"comma at the end of an array", "a.json", "[{\"text\":\"ok\"},\n]", "not JSON", "a.json:2: a comma"},
		{"an open array", "a.json", "[{\"text\":\"ok\"},\n{\"text\":", "not JSON", "a.json:2: the array is not closed"},
		{"text behind an array", "a.json", "[{\"text\":\"ok\"}]\nx", "not JSON", "a.json:2: more text"},
		{"cut short", "a.jsonl", "{\"text\":\"ok\"}\n{\"text\":\"a", "not JSON", "a.jsonl:2: it ends in the middle"},
		{"two on a line", "a.jsonl", "{\"text\":\"a\"} {\"text\":\"b\"}\n{\"text\":\"ok\"}", "not JSON", "a.jsonl:1: more text"},
		{"invalid UTF-8", "a.jsonl", "{\"text\":\"a\xff\"}\n{\"text\":\"ok\"}", "not UTF-8", "a.jsonl:1: byte 10"},
		{"lone surrogate", "a.jsonl", "{\"text\":\"ok\"}\n{\"text\":\"\\ud83d\"}", "not UTF-8", "a.jsonl:2: half of a pair of surrogates, \\ud83d"},
		{"low surrogate", "a.jsonl", "{\"text\":\"ok\"}\n{\"text\":\"\\uDE00\"}", "not UTF-8", "a.jsonl:2: half"},
		{"an array for a line", "a.jsonl", "{\"text\":\"ok\"}\n[1]", "not of the format", "a.jsonl:2: not an object"},
		{"missing key", "a.jsonl", "{\"text\":\"ok\"}\n{\"txt\":\"a\"}", "not of the format", "a.jsonl:2: it has neither \"text\""},
		{"null text", "a.jsonl", "{\"text\":\"ok\"}\n{\"text\":null}", "not of the format", "a.jsonl:2: \"text\" is null"},
		{"a number", "a.jsonl", "{\"text\":\"ok\"}\n{\"text\":3}", "not of the format", "a.jsonl:2: \"text\" is not a text"},
		{"empty text", "a.jsonl", "{\"text\":\"ok\"}\n{\"text\":\"\"}", "empty text", "a.jsonl:2"},
		{"a long line", "a.jsonl", "{\"text\":\"ok\"}\n{\"text\":\"" + strings.Repeat("x", 300000) + "\"}\n", "too large a record", "a.jsonl:2: more than"},
		{"nothing to learn", "a.jsonl", `{"messages":[{"role":"user","content":"q"}]}` + "\n" + `{"messages":[{"role":"user","content":"q"},{"role":"assistant","content":"a"}]}`, "nothing to learn", "a.jsonl:1"},
		{"null content", "a.jsonl", `{"messages":[{"role":"user","content":"q"},{"role":"assistant","content":"a"}]}` + "\n" + `{"messages":[{"role":"user","content":null}]}`, "not of the format", "a.jsonl:2: turn 1 has no `content`"},
		{"who speaks", "a.jsonl", `{"conversations":[{"from":"human","value":"q"},{"from":"gpt","value":"a"}]}` + "\n" + `{"conversations":[{"from":"nobody","value":"q"}]}`, "not of the format", "a.jsonl:2: turn 1 is from \"nobody\""},
	} {
		in := map[string]string{c.file: c.text, "._x.jsonl": "junk", "empty.jsonl": ""}
		o := options(t, in)
		o.MaxRecord = 200000
		r, err := Run(o)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if len(r.Left) != 1 || r.Left[0].Reason != c.reason || r.Left[0].Count != 1 || !strings.Contains(r.Left[0].Cases[0], c.at) {
			t.Errorf("%s: %+v, wanted %s at %s", c.name, r.Left, c.reason, c.at)
		}
		if r.Hidden != 1 || r.Empty != 1 || r.Manifest.Documents != 1 || r.Manifest.Source.Left[c.reason] != 1 {
			t.Errorf("%s: %d hidden, %d empty, %d documents", c.name, r.Hidden, r.Empty, r.Manifest.Documents)
		}
		strict := options(t, map[string]string{c.file: c.text})
		strict.MaxRecord, strict.Strict = 200000, true
		var f *fault.Error
		if _, err := Run(strict); !errors.As(err, &f) || f.Code != "MT0672" {
			t.Errorf("%s, strict: %v", c.name, err)
		}
		if _, err := os.Stat(strict.Out); err == nil {
			t.Errorf("%s: a folder was left", c.name)
		}
	}
}

func TestErrors(t *testing.T) {
	for _, c := range []struct {
		name string
		in   map[string]string
		edit func(o *Options)
		code string
		want string
	}{
		{"too long", map[string]string{"a.jsonl": `{"text":"abcdefgh"}`}, func(o *Options) { o.Apart, o.Seq = true, 4 }, "MT0672", "9 tokens, and 5 fit"},
		{"nothing at all", map[string]string{"a.jsonl": "x\n\n"}, nil, "MT0673", "1: not JSON"},
		{"no template", map[string]string{"a.jsonl": `{"instruction":"q","output":"w"}`}, func(o *Options) { o.Template = nil }, "MT0671", "no chat template"},
		{"chats among text", map[string]string{"a.jsonl": `{"instruction":"q","output":"w"}`, "b.txt": "x"}, nil, "MT0608", "conversations"},
		{"no assistant", map[string]string{"a.jsonl": `{"text":"q"}`}, func(o *Options) { o.Loss = "assistant" }, "MT0608", "no conversations"},
		{"no files", nil, nil, "MT0601", "no files"},
		{"not gzip", map[string]string{"a.jsonl.gz": "plain"}, nil, "MT0602", ""},
	} {
		o := options(t, c.in)
		if c.edit != nil {
			c.edit(&o)
		}
		_, err := Run(o)
		var f *fault.Error
		if !errors.As(err, &f) || f.Code != c.code || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, wanted %s with %q", c.name, err, c.code, c.want)
		}
	}
}

// Where nothing is left, the hint is of what took most of the records.
func TestTheHintIsOfWhatTookMost(t *testing.T) {
	refusing, err := chat.Compile("t", "{{ raise_exception('no') }}", "", "")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		in   string
		tpl  *chat.Template
		hint string
	}{
		{`{"instruction":"q","output":"w"}`, refusing, "--template"},
		{`{"messages":[{"role":"user","content":"q"}]}`, nil, "turns of the assistant"},
		{"{\n\"text\":\n\"a\"\n}\n", nil, "one object on a line"},
		{`{"txt":"a"}`, nil, "--key"},
	} {
		o := options(t, map[string]string{"a.jsonl": c.in})
		if c.tpl != nil {
			o.Template = c.tpl
		}
		_, err := Run(o)
		var f *fault.Error
		if !errors.As(err, &f) || f.Code != "MT0673" || !strings.Contains(f.Hint, c.hint) {
			t.Errorf("%s: %v, wanted a hint of %q", c.in, err, c.hint)
		}
	}
}

// The folder is the same for every number of workers, and for compressed input.
func TestWorkersAndCompressionChangeNothing(t *testing.T) {
	var b strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&b, "{\"text\":%q}\n", strings.Repeat(fmt.Sprint(i), 1+i%400))
	}
	var z bytes.Buffer
	w := gzip.NewWriter(&z)
	w.Write([]byte(b.String()))
	w.Close()
	var want []string
	var digest string
	for _, c := range []struct {
		name, text string
		workers    int
	}{{"a.jsonl", b.String(), 1}, {"a.jsonl", b.String(), 7}, {"a.jsonl.gz", z.String(), 2}} {
		o := options(t, map[string]string{c.name: c.text})
		o.Workers, o.ShardTokens = c.workers, 100000
		r, err := Run(o)
		if err != nil {
			t.Fatal(err)
		}
		if want == nil {
			want, digest = texts(t, o.Out), r.Manifest.Digest
			if len(want) != 3000 || len(r.Manifest.Shards) < 3 {
				t.Fatalf("%d documents in %d shards", len(want), len(r.Manifest.Shards))
			}
		} else if r.Manifest.Digest != digest || !cmp.Equal(want, texts(t, o.Out)) {
			t.Errorf("%s with %d workers differs", c.name, c.workers)
		}
	}
}

func FuzzRecord(f *testing.F) {
	for _, s := range []string{`{"text":"a"}`, `{"messages":[{"role":"user","content":"q"},{"role":"assistant","content":[{"text":"a"}]}]}`, `{"conversations":[{"from":"gpt","value":"a"}]}`,
		`{"instruction":"a","output":"b","system":3}`, `{"messages":[{"role":"assistant","content":"\ud83d\ude00","tool_calls":[]}],"tools":"[1]"}`, "[1,", "{\"a\":\"\\ud800\"}"} {
		f.Add([]byte(s))
	}
	tm, err := chat.Compile("t", template, "", "")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		for _, chats := range []bool{false, true} {
			p := &packer{Options: Options{Tokenizer: tokenizer.OpenBytes(), Template: tm, Format: "auto", Key: "text", Loss: "assistant", Overlong: "split", Seq: 5}, chats: chats}
			for _, d := range p.document(record{line: 1, text: line}) {
				if d.bad == nil && (len(d.tokens) != len(d.learn) || len(d.tokens) > 6 && chats) {
					t.Errorf("%d tokens, %d masks", len(d.tokens), len(d.learn))
				}
			}
		}
	})
}
