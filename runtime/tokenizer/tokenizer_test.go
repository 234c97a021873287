package tokenizer

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// styles are the tokenizers of testdata, made by tools/fixtures/tokenizers_check.py.
var styles = []string{"gpt2", "llama3", "qwen", "o200k", "llama2", "mistral", "gemma", "added", "steps"}

func unzip(t testing.TB, path string) []byte {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func load(t testing.TB, name string) *Tokenizer {
	t.Helper()
	tok, err := Parse(unzip(t, filepath.Join("testdata", name+".json.gz")))
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return tok
}

func texts(t testing.TB) []string {
	t.Helper()
	var out []string
	if err := json.Unmarshal(unzip(t, "testdata/texts.json.gz"), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// The ids of 100 KB of hard text are those of the `tokenizers` library, and so is what they
// decode to.
func TestSameIdsAsTheReference(t *testing.T) {
	var want map[string]struct {
		SHA256    string
		First     [][]int32
		Frame     []int32
		Decode    []string
		DecodeAll string `json:"decodeAll"`
	}
	b, err := os.ReadFile("testdata/want.json")
	if err == nil {
		err = json.Unmarshal(b, &want)
	}
	if err != nil {
		t.Fatal(err)
	}
	list := texts(t)
	for _, name := range styles {
		tok, w := load(t, name), want[name]
		sum := sha256.New()
		var all []string
		for i, text := range list {
			ids, starts := tok.EncodeSpans(text)
			if d := cmp.Diff(ids, tok.Encode(text)); d != "" {
				t.Fatalf("%s: ids depend on the wish for spans: %s", name, d)
			}
			for k := range starts {
				if starts[k] < 0 || int(starts[k]) > len(text) || k > 0 && starts[k] < starts[k-1] {
					t.Fatalf("%s: token %d of %q begins at %d, after %d", name, k, text, starts[k], starts[max(0, k-1)])
				}
			}
			if i < len(w.First) {
				if d := cmp.Diff(w.First[i], append([]int32{}, ids...)); d != "" {
					t.Errorf("%s: %q (-reference +here):\n%s", name, text, d)
				}
				if got := tok.Decode(ids, false); got != w.Decode[i] {
					t.Errorf("%s: %v decodes to %q, wanted %q", name, ids, got, w.Decode[i])
				}
			}
			binary.Write(sum, binary.LittleEndian, int32(-1))
			binary.Write(sum, binary.LittleEndian, ids)
			all = append(all, tok.Decode(ids, true))
		}
		if got := hex.EncodeToString(sum.Sum(nil)); got != w.SHA256 {
			t.Errorf("%s: the ids of some of the %d texts differ from the reference's", name, len(list))
		}
		if got := sha256.Sum256([]byte(strings.Join(all, "\x00"))); hex.EncodeToString(got[:]) != w.DecodeAll {
			t.Errorf("%s: some texts decode otherwise than in the reference", name)
		}
		if d := cmp.Diff(w.Frame, tok.Frame(tok.Encode("Hello"))); d != "" {
			t.Errorf("%s: frame: %s", name, d)
		}
		if f := tok.Frame(tok.Frame(tok.Encode("Hello"))); len(f) != len(w.Frame) {
			t.Errorf("%s: framed twice: %v", name, f)
		}
	}
}

// With MTC_TOKENIZER_CHECK=DIR: texts and ids of many megabytes, which the script wrote.
func TestBigCheck(t *testing.T) {
	dir := os.Getenv("MTC_TOKENIZER_CHECK")
	if dir == "" {
		t.Skip("`make tokenizer-check` runs this")
	}
	var list []string
	b, err := os.ReadFile(filepath.Join(dir, "texts.json"))
	if err == nil {
		err = json.Unmarshal(b, &list)
	}
	if err != nil {
		t.Fatal(err)
	}
	files, _ := filepath.Glob(filepath.Join(dir, "*.ids"))
	for _, f := range files {
		tok, err := Load(strings.TrimSuffix(f, ".ids") + ".json")
		if err != nil {
			t.Error(err)
			continue
		}
		want, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		size, ids, bad := 0, 0, 0
		var took time.Duration
		for _, text := range list {
			start := time.Now()
			got := tok.Encode(text)
			took += time.Since(start)
			size, ids = size+len(text), ids+len(got)
			n := int(binary.LittleEndian.Uint32(want))
			ref := make([]int32, n)
			binary.Read(bytes.NewReader(want[4:]), binary.LittleEndian, ref)
			want = want[4+4*n:]
			if !cmp.Equal(ref, got) && (len(ref) > 0 || len(got) > 0) {
				if bad++; bad <= 3 {
					k := 0
					for k < len(ref) && k < len(got) && ref[k] == got[k] {
						k++
					}
					t.Errorf("%s: token %d of %d and %d differs: %q", f, k, len(got), len(ref), tok.Decode(ref[max(0, k-3):min(len(ref), k+5)], false))
				}
			}
		}
		t.Logf("%-10s %d texts, %.1f MB, %d ids, %d texts differ, %.1f MB/s", filepath.Base(f), len(list), float64(size)/1e6, ids, bad, float64(size)/1e6/took.Seconds())
	}
}
