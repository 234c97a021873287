package known

import (
	"strings"
	"testing"

	tiktoken "github.com/tiktoken-go/tokenizer"

	"github.com/megatrain/mtc/runtime/tokenizer"
)

// U+007F is not among them: the library leaves it out of its ids, where the encoding has 221.
var samples = []string{
	"Hello world! It's 12345 o'clock, isn't IT'S?", "  a  b\n\n\tc\r\n  ", "naïve café ΕΛΛΆΔΑ Привет", "漢字かな交じり文、日本語です。", "한국어 텍스트",
	"😀👩‍👩‍👧‍👦🇩🇪👍🏽", "func main() {\n\tfmt.Println(\"hi\") // x/y\n}\n", "\x00\x01\u0085\u00a0\u2028\ufeff", strings.Repeat("ab", 200), strings.Repeat(" ", 100) + "x",
	"SELECT * FROM t WHERE a<=3.14159e-10;", "",
}

// The ids are those of the library whose vocabularies these are.
func TestSameIdsAsTheLibrary(t *testing.T) {
	for _, name := range Names {
		text, err := JSON(name)
		if err != nil {
			t.Fatal(err)
		}
		tok, err := tokenizer.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		ref, err := tiktoken.Get(sources[name].encoding)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range samples {
			want, _, err := ref.Encode(s)
			if err != nil {
				t.Fatal(err)
			}
			got := tok.Encode(s)
			same := len(got) == len(want)
			for i := 0; same && i < len(got); i++ {
				same = got[i] == int32(want[i])
			}
			if !same {
				t.Errorf("%s: %q: %v, the library has %v", name, s, got, want)
			}
			if back := tok.Decode(got, false); back != s {
				t.Errorf("%s: %q comes back as %q", name, s, back)
			}
		}
		if id := tok.ID(EndOfText); !tok.Special(id) || len(tok.Encode("a"+EndOfText)) != 2 {
			t.Errorf("%s: %s is %d", name, EndOfText, id)
		}
	}
}

func TestSizes(t *testing.T) {
	for name, want := range map[string]int64{"gpt2": 50257, "o200k": 200019} {
		text, err := JSON(name)
		if err != nil {
			t.Fatal(err)
		}
		tok, err := tokenizer.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if tok.Vocab() != want {
			t.Errorf("%s: a vocabulary of %d", name, tok.Vocab())
		}
	}
	if _, err := JSON("gpt3"); err == nil {
		t.Error("a tokenizer that is not there")
	}
}
