package pack

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/megatrain/mtc/runtime/aside"
	"github.com/megatrain/mtc/runtime/data"
	"github.com/megatrain/mtc/runtime/data/packed"
	"github.com/megatrain/mtc/runtime/fault"
)

// way is what a document becomes, given its text and its tokenizer. It goes up with every change of
// that, so that what an older mtc has kept is packed again.
const way = 2

// Key is a hash of all that a packed folder depends on: the contents of the inputs in their
// order, the tokenizer with its template, the options. Where the inputs lie, and when they were
// written, plays no part.
func Key(o Options) (string, error) {
	in, empty := withoutEmpty(o.In)
	files, passed, err := data.List(in)
	if err != nil {
		return "", err
	}
	h := sha256.New()
	fmt.Fprintf(h, "%d %s %d %s %q %q %q %q %v %d %q %v %d\n", way, o.Tokenizer.Hash(), o.Tokenizer.Vocab(), o.TemplateHash,
		[]string{o.Tokenizer.BOS, o.Tokenizer.EOS}, o.Format, o.Key, o.Loss, o.Apart, o.Seq, o.Overlong, o.Strict, o.MaxRecord)
	if o.Strict {
		fmt.Fprintln(h, len(empty), passed.Empty, passed.Hidden)
	}
	names := make([]string, 0, len(o.Files))
	for n := range o.Files {
		names = append(names, n)
	}
	slices.Sort(names)
	for _, n := range names {
		fmt.Fprintf(h, "%q %x\n", n, sha256.Sum256(o.Files[n]))
	}
	for _, f := range files {
		sum, err := contentOf(f.Path)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(h, "%q %x\n", strings.ToLower(filepath.Base(f.Path)), sum) // how it is read goes by its name
	}
	return hex.EncodeToString(h.Sum(nil)[:16]), nil
}

func contentOf(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, unreadable(path, err)
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return nil, unreadable(path, err)
	}
	return h.Sum(nil), nil
}

// Kept packs into o.Out, unless what lies there was packed from the same inputs in the same way:
// then the result is nil. What was packed there from other inputs is replaced, once the new
// folder is whole; any other folder is refused. Nobody else may write below o.Out's parent.
func Kept(o Options) (*Result, error) {
	key, err := Key(o)
	if err != nil {
		return nil, err
	}
	ours, err := keyOf(o.Out)
	if err != nil {
		return nil, err
	}
	if ours == key {
		if set, err := packed.Open(o.Out); err == nil {
			return nil, set.Close()
		} // damaged: packed again
	}
	out := o.Out
	o.Out, o.SourceKey = out+".new", key
	sweep(filepath.Dir(out))
	if err := os.RemoveAll(o.Out); err != nil {
		return nil, cannotKeep(out, err)
	}
	r, err := Run(o)
	if err != nil {
		return nil, err
	}
	if err = os.RemoveAll(out); err == nil {
		err = os.Rename(o.Out, out)
	}
	if err != nil {
		return nil, cannotKeep(out, err)
	}
	return r, nil
}

// keyOf is the key of a folder that Kept wrote, "" where there is none; what somebody else put
// there is an error.
func keyOf(dir string) (string, error) {
	if _, err := aside.Place(dir); err == nil {
		return "", nil // nothing is there, or an empty folder
	}
	m, err := packed.ReadManifest(dir)
	if err != nil && packed.Is(dir) {
		return "damaged", nil
	}
	if err != nil || m.Source.Key == "" {
		return "", fault.New("MT0623", dir, "the run keeps its packed data here, and there is something else").
			Help("move it away, or give another folder with --out")
	}
	return m.Source.Key, nil
}

// sweep removes what a packing left that was ended by force.
func sweep(dir string) {
	left, _ := filepath.Glob(filepath.Join(dir, packed.Temporary+"*")) // only a bad pattern fails
	for _, l := range left {
		os.RemoveAll(l)
	}
}

func cannotKeep(dir string, err error) error {
	return fault.New("MT0623", dir, "the packed data cannot be kept").Wrap(pathless(err))
}
