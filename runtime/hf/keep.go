package hf

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/megatrain/mtc/runtime/checkpoint/safetensors"
	"github.com/megatrain/mtc/runtime/fault"
)

// A run folder keeps of the folder that its weights came from:
//
//	hf/NAME             files that are neither weights nor the tokenizer's, as they were
//	hf/SHARD.header     the header of each shard: names, order, dtypes, metadata
//	hf/buffers.safetensors  constants that lay among the weights
//	tokenizer/NAME      the tokenizer's files, as they were
const (
	keepFolder      = "hf"
	tokenizerFolder = "tokenizer"
	headerSuffix    = ".header"
	buffersFile     = "buffers.safetensors"
	listFile        = ".kept" // names of all these, a line each
)

// Bounds of what is copied.
const (
	maxCopied  = 256 << 20
	maxBuffers = 4 << 30
)

// tokenizerFiles are the files that together are a tokenizer.
var tokenizerFiles = []string{
	"tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", "vocab.json", "merges.txt",
	"vocab.txt", "tokenizer.model", "tekken.json", "chat_template.jinja", "chat_template.json",
}

// isTokenizer says whether a file belongs to the tokenizer.
func isTokenizer(name string) bool {
	return slices.Contains(tokenizerFiles, name) || strings.HasSuffix(name, ".tiktoken") || strings.HasSuffix(name, ".jinja")
}

// isKept says whether another file is worth keeping: configurations and words about the model.
func isKept(name string) bool {
	if strings.HasPrefix(name, ".") || strings.HasSuffix(name, ".index.json") {
		return name == indexFile
	}
	switch strings.ToLower(filepath.Ext(name)) {
	case ".json", ".md", ".txt":
		return true
	}
	base := strings.ToUpper(name)
	return strings.HasPrefix(base, "LICENSE") || strings.HasPrefix(base, "NOTICE") || base == "USE_POLICY.MD"
}

// Kept says whether a run folder keeps such a folder.
func Kept(run string) bool {
	_, err := os.Stat(filepath.Join(run, keepFolder, configFile))
	return err == nil
}

// Keep copies into a run folder what an export needs; what an earlier run left there goes.
func (m *Matching) Keep(run string) error {
	if err := m.keep(run); err != nil {
		var f *fault.Error
		if errors.As(err, &f) {
			return err
		}
		return cannotWrite(run, err)
	}
	return nil
}

func cannotWrite(path string, err error) error {
	var pe *os.PathError
	if errors.As(err, &pe) {
		path, err = pe.Path, pe.Err
	}
	return fault.New("MT0623", path, "cannot be written").Wrap(err).Help("free some space, or give another folder")
}

func (m *Matching) keep(run string) error {
	if err := Forget(run); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(run, keepFolder), 0o777); err != nil {
		return err
	}
	var list []string
	claim := func(dir, name string) (string, error) {
		path := filepath.Join(run, dir, name)
		if exists(path) {
			return "", fault.New("MT0626", path, "the file is there already, and is not of a run").Help("give another folder with --out")
		}
		list = append(list, dir+"/"+name)
		// The list comes first: what is cut short here can be removed.
		return path, os.WriteFile(filepath.Join(run, keepFolder, listFile), []byte(strings.Join(list, "\n")+"\n"), 0o666)
	}
	entries, err := os.ReadDir(m.folder.Path)
	if err != nil {
		return unreadable(m.folder.Path, err)
	}
	for _, e := range entries {
		to := keepFolder
		switch {
		case isTokenizer(e.Name()):
			to = tokenizerFolder
		case !isKept(e.Name()):
			continue
		}
		path, err := claim(to, e.Name())
		if err != nil {
			return err
		}
		if err := copyFile(filepath.Join(m.folder.Path, e.Name()), path); err != nil {
			return err
		}
	}
	for _, s := range m.folder.Shards {
		header := make([]byte, s.HeaderBytes())
		if _, err := io.ReadFull(s.All(), header); err != nil {
			return unreadable(s.Path, err)
		}
		path, err := claim(keepFolder, s.Name+headerSuffix)
		if err != nil {
			return err
		}
		if err := os.WriteFile(path, header, 0o666); err != nil {
			return err
		}
	}
	if len(m.buffers) == 0 {
		return nil
	}
	path, err := claim(keepFolder, buffersFile)
	if err != nil {
		return err
	}
	return m.keepBuffers(path)
}

func (m *Matching) keepBuffers(path string) error {
	var list []safetensors.Entry
	var total int64
	for _, t := range m.buffers {
		if total += t.Bytes; total > maxBuffers {
			return fault.New("MT0662", m.folder.Path, "the constants among its weights, such as %s, have more than %d bytes", t.Name, int64(maxBuffers))
		}
		list = append(list, safetensors.Entry{Name: t.Name, DType: t.DType, Shape: t.Shape, Stream: func(w io.Writer) error {
			_, err := io.Copy(w, &source{t.shard.Data(t.Tensor), t.shard.Path})
			return err
		}})
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(safetensors.Write(f, nil, list), f.Close())
}

// source is a file that is copied: it, and not the copy, is at fault where it cannot be read.
type source struct {
	io.Reader
	path string
}

func (s *source) Read(b []byte) (int, error) {
	n, err := s.Reader.Read(b)
	if err != nil && err != io.EOF {
		err = unreadable(s.path, err)
	}
	return n, err
}

// copyFile copies a regular file, following a link to one, as folders of downloads have them.
func copyFile(from, to string) error {
	info, err := os.Stat(from) // before it is opened: to open a pipe waits for a writer
	switch {
	case err != nil:
		return unreadable(from, err)
	case info.IsDir():
		return nil
	case !info.Mode().IsRegular():
		return unreadable(from, errors.New("it is not a regular file"))
	case info.Size() > maxCopied:
		return unreadable(from, fmt.Errorf("it has %d bytes, at most %d are copied", info.Size(), int64(maxCopied)))
	}
	in, err := os.Open(from)
	if err != nil {
		return unreadable(from, err)
	}
	defer in.Close()
	if err := os.MkdirAll(filepath.Dir(to), 0o777); err != nil {
		return err
	}
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, io.LimitReader(&source{in, from}, maxCopied))
	return errors.Join(err, out.Close())
}

// Forget removes what Keep put into a run folder, going by its list: a folder of somebody else
// with such a name stays.
func Forget(run string) error {
	list := filepath.Join(run, keepFolder, listFile)
	text, err := os.ReadFile(list)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return unreadable(list, err)
	}
	for _, name := range append(strings.Split(strings.TrimSpace(string(text)), "\n"), keepFolder+"/"+listFile) {
		if !filepath.IsLocal(name) {
			continue
		}
		if err := os.Remove(filepath.Join(run, filepath.FromSlash(name))); err != nil && !errors.Is(err, os.ErrNotExist) {
			return cannotWrite(run, err)
		}
	}
	for _, dir := range []string{keepFolder, tokenizerFolder} {
		os.Remove(filepath.Join(run, dir)) // fails, as it should, where something else is in it
	}
	return nil
}

// KeepAgain copies what one run folder keeps into another; one that keeps nothing leaves the
// other as it is.
func KeepAgain(from, to string) error {
	for _, dir := range []string{keepFolder, tokenizerFolder} {
		entries, err := os.ReadDir(filepath.Join(from, dir))
		if err != nil {
			continue
		}
		for _, e := range entries {
			if err := copyFile(filepath.Join(from, dir, e.Name()), filepath.Join(to, dir, e.Name())); err != nil {
				var f *fault.Error
				if errors.As(err, &f) {
					return err
				}
				return cannotWrite(to, err)
			}
		}
	}
	return nil
}
