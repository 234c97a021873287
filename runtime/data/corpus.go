package data

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"github.com/megatrain/mtc/runtime/fault"
	"github.com/megatrain/mtc/runtime/telemetry"
)

// Corpus is the tokens of a list of files, one after another. Its methods may be called from
// several goroutines.
type Corpus struct {
	from  []string // the patterns, for messages
	files []file
	lay   []layout
	end   []int64 // end[i]: tokens in files 0..i, separators included
	bytes bool    // byte format: a Separator after each file
	vocab int64
	skip  skipped
	open  handles
	id    string
}

// Open finds, opens and checks the files of the patterns; it reads shard headers, not tokens.
func Open(patterns []string, o Options) (*Corpus, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	if len(patterns) == 0 {
		return nil, fault.New("MT0601", "", "no data is given").Help("write `data = \"dir/**/*.txt\"` in the train block, or give --data")
	}
	files, skip, err := find(patterns)
	if err != nil {
		return nil, err
	}
	c := &Corpus{from: patterns, vocab: o.Vocab, skip: skip}
	if c.bytes, err = byteFormat(files, o.Width); err != nil {
		return nil, err
	}
	if c.files, err = choose(files, o); err != nil {
		return nil, err
	}
	sum := sha256.New()
	var total int64
	for _, f := range c.files {
		l, err := fileLayout(f, c.bytes, o, sum)
		if err != nil {
			return nil, err
		}
		total += l.tokens
		if c.bytes {
			total++
		}
		c.lay = append(c.lay, l)
		c.end = append(c.end, total)
		fmt.Fprintf(sum, "%q %d\n", f.name, f.size)
	}
	c.id = hex.EncodeToString(sum.Sum(nil)[:8])
	return c, nil
}

func (o Options) check() error {
	switch o.Width {
	case 0, 1, 2, 4:
	default:
		return fault.New("MT0608", "", "a token width of %d bytes", o.Width).Help("1 is bytes, 2 is uint16, 4 is uint32, 0 goes by the shard's header")
	}
	if o.Part != All && !(o.Holdout > 0 && o.Holdout < 1) {
		return fault.New("MT0608", "", "a held-out share of %v", o.Holdout).Help("give a share between 0 and 1, such as 0.05")
	}
	return nil
}

// byteFormat decides whether files are bytes. Width 0 goes by name, and a mix is an error.
func byteFormat(files []file, width int) (bool, error) {
	if width != 0 {
		return width == 1, nil
	}
	var bin, other *file
	for i := range files {
		if strings.EqualFold(filepath.Ext(files[i].name), ".bin") {
			bin = &files[i]
		} else {
			other = &files[i]
		}
	}
	if bin != nil && other != nil {
		return false, fault.New("MT0608", bin.path, "a token shard among text files such as %s", other.path).
			Help("name one kind: \"dir/*.bin\" or \"dir/**/*.txt\"")
	}
	return bin == nil, nil
}

// choose applies the held-out split. A file's place depends on its name within its folder or
// pattern, not on where that folder lies, what other files there are, or the seed.
func choose(files []file, o Options) ([]file, error) {
	if o.Part == All {
		return files, nil
	}
	var in, out []file
	for _, f := range files {
		if share(f.name) < o.Holdout {
			out = append(out, f)
		} else {
			in = append(in, f)
		}
	}
	if len(in) == 0 || len(out) == 0 {
		return nil, fault.New("MT0608", files[0].path, "a held-out share of %v puts %s in training and %d in evaluation", o.Holdout, telemetry.Count(int64(len(in)), "file"), len(out)).
			Help("files are held out whole: give more files or another share, or evaluate on data of its own")
	}
	if o.Part == HeldOut {
		return out, nil
	}
	return in, nil
}

// share maps a name to [0, 1), evenly.
func share(name string) float64 {
	h := sha256.Sum256([]byte(name))
	return float64(binary.LittleEndian.Uint64(h[:])>>11) / (1 << 53)
}

// openFile opens a file of a corpus; tests replace it.
var openFile = os.Open

// fileLayout opens every file, so that one that cannot be read ends the run before it starts,
// not when a batch comes to it. What stands in 16 places of it goes to sum.
func fileLayout(f file, bytes bool, o Options, sum io.Writer) (layout, error) {
	r, err := openFile(f.path)
	if err != nil {
		return layout{}, fault.New("MT0602", f.path, "cannot be read").Wrap(cause(err)).
			Help("give yourself the right to read it, or leave it out with a narrower pattern")
	}
	defer r.Close()
	for i := range int64(16) {
		at := max(i*4096, i*(f.size-4096)/15)
		if _, err := io.Copy(sum, io.NewSectionReader(r, at, 4096)); err != nil {
			return layout{}, fault.New("MT0602", f.path, "cannot be read").At(at).Wrap(cause(err))
		}
	}
	switch {
	case bytes && o.Width == 0 && o.Vocab > 0: // and not only looked at
		return layout{tokens: f.size, width: 1}, packedUp(f.path, r)
	case bytes:
		return layout{tokens: f.size, width: 1}, nil
	case o.Width != 0:
		if err := unfetched(f.path, r); err != nil {
			return layout{}, err
		}
		return plainLayout(f.path, f.size, int64(o.Width))
	}
	return shardLayout(f.path, r, f.size)
}

// Tokens is the number of tokens, separators included.
func (c *Corpus) Tokens() int64 {
	if len(c.end) == 0 {
		return 0
	}
	return c.end[len(c.end)-1]
}

func (c *Corpus) source() string { return strings.Join(c.from, ", ") }

// Bytes says whether the files are read as bytes.
func (c *Corpus) Bytes() bool { return c.bytes }

// Files is the number of files.
func (c *Corpus) Files() int { return len(c.files) }

// ID names the corpus by its files' names and sizes, and by what stands in 16 places of each: of up
// to 64 KiB all of it. A run that resumes on a corpus with another ID sees other rows than it would have.
func (c *Corpus) ID() string { return c.id }

// Summary is one line for people: "9,214 files, 81,234,567 tokens (bytes); skipped: 3 hidden".
func (c *Corpus) Summary() string {
	kind := fmt.Sprintf("uint%d", 8*c.lay[0].width)
	if c.bytes {
		kind = "bytes"
	}
	s := fmt.Sprintf("%s, %s tokens (%s)", telemetry.Count(int64(len(c.files)), "file"), telemetry.Group(c.Tokens()), kind)
	var skips []string
	for _, k := range []struct {
		n    int
		what string
	}{{c.skip.hidden, "hidden"}, {c.skip.empty, "empty"}, {c.skip.special, "not regular"}, {c.skip.links, "links to folders"}, {c.skip.made, "runs and builds"}} {
		if k.n > 0 {
			skips = append(skips, fmt.Sprintf("%s %s", telemetry.Group(int64(k.n)), k.what))
		}
	}
	if len(skips) > 0 {
		s += "; skipped: " + strings.Join(skips, ", ")
	}
	return s
}

// Read fills dst with the tokens from off on; off+len(dst) must not pass Tokens.
func (c *Corpus) Read(dst []int32, off int64) error {
	if off < 0 || off+int64(len(dst)) > c.Tokens() {
		panic(fmt.Sprintf("data: read of tokens [%d, %d) of %d", off, off+int64(len(dst)), c.Tokens()))
	}
	i := sort.Search(len(c.end), func(i int) bool { return c.end[i] > off })
	for len(dst) > 0 {
		start := int64(0)
		if i > 0 {
			start = c.end[i-1]
		}
		n := min(int64(len(dst)), c.end[i]-off)
		body := min(n, max(0, c.lay[i].tokens-(off-start)))
		if err := c.readFile(dst[:body], i, off-start); err != nil {
			return err
		}
		if body < n {
			dst[body] = Separator
		}
		dst, off = dst[n:], off+n
		i++
	}
	return nil
}

// readFile reads tokens of one file, from its token `from` on.
func (c *Corpus) readFile(dst []int32, i int, from int64) error {
	if len(dst) == 0 {
		return nil
	}
	f, l := &c.files[i], c.lay[i]
	at := l.start + from*l.width
	buf := make([]byte, int64(len(dst))*l.width)
	n, err := c.open.readAt(f, buf, at)
	if errors.Is(err, errChanged) {
		return fault.New("MT0609", f.path, "%v", err).Help("leave the data alone while a run reads it")
	}
	if n < len(buf) && (err == nil || errors.Is(err, io.EOF)) {
		return fault.New("MT0609", f.path, "the file had %d bytes when the run started and now ends at byte %d", f.size, at+int64(n)).
			At(at + int64(n)).Help("leave the data alone while a run reads it")
	}
	if n < len(buf) {
		return fault.New("MT0602", f.path, "cannot be read").At(at).Wrap(cause(err))
	}
	if bad := decode(dst, buf, l.width, c.vocab); bad >= 0 {
		vocab := c.vocab
		if vocab == 0 || vocab > math.MaxInt32 {
			vocab = math.MaxInt32
		}
		return fault.New("MT0606", f.path, "token id %d is outside the model's vocabulary of %d", uint32(dst[bad]), vocab).
			At(at+int64(bad)*l.width).Help("the data was made by another tokenizer, or its width is not %d bytes", l.width)
	}
	return nil
}

// Close closes the open files. Reading again opens them again.
func (c *Corpus) Close() error {
	c.open.close()
	return nil
}
