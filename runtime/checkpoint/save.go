package checkpoint

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/megatrain/mtc/runtime/checkpoint/safetensors"
	"github.com/megatrain/mtc/runtime/fault"
)

// File is one safetensors file of a checkpoint to write. Its tensors are written from where
// they are; nobody may change them during Save.
type File struct {
	Name    string
	Meta    map[string]string
	Tensors []safetensors.Entry
}

// Save writes a checkpoint of st.Step into the run folder dir, which it makes if need be, and
// returns its path. With keep > 0 the oldest checkpoints go until keep are left; the new one
// stays in any case. On an error nothing of the new one is left and the earlier ones are
// untouched.
func Save(dir string, st State, files []File, keep int64) (string, error) {
	final := filepath.Join(dir, folderName(st.Step))
	tmp := filepath.Join(dir, fmt.Sprintf("%s%06d", tmpPrefix, st.Step))
	err := save(dir, tmp, final, st, files)
	if err != nil {
		os.RemoveAll(tmp)
		return "", notWritten(dir, st.Step, files, err)
	}
	if err := prune(dir, st.Step, keep); err != nil {
		return final, fault.New("MT0623", dir, "the checkpoint of step %d is written, but an old one cannot be removed", st.Step).Wrap(cause(err))
	}
	return final, nil
}

func save(dir, tmp, final string, st State, files []File) error {
	if err := write(dir, tmp, st, files); err != nil {
		return err
	}
	return swap(tmp, final, filepath.Join(dir, fmt.Sprintf("%s%06d", oldPrefix, st.Step)))
}

// swap gives the folder tmp its name. What has the name goes: at once where the system exchanges
// two names, else by way of old.
func swap(tmp, final, old string) error {
	between()
	if err := exchange(tmp, final); err == nil {
		old = tmp
	} else {
		if err := os.Rename(final, old); err != nil && !os.IsNotExist(err) {
			return err
		}
		between()
		if err := os.Rename(tmp, final); err != nil {
			return err
		}
	}
	between()
	if err := syncDir(filepath.Dir(final)); err != nil {
		return err
	}
	return os.RemoveAll(old)
}

// between stands between two changes of the file system; tests kill a run there.
var between = func() {}

// write puts a whole checkpoint into the folder tmp of the run folder.
func write(dir, tmp string, st State, files []File) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	if err := sweep(dir); err != nil {
		return err
	}
	if err := os.Mkdir(tmp, 0o777); err != nil {
		return err
	}
	between()
	m := manifest{Format: format}
	add := func(name string, write func(w io.Writer) error) error {
		e, err := writeFile(filepath.Join(tmp, name), write)
		e.Name = name
		m.Files = append(m.Files, e)
		return err
	}
	for _, f := range files {
		if err := add(f.Name, func(w io.Writer) error { return safetensors.Write(w, f.Meta, f.Tensors) }); err != nil {
			return err
		}
	}
	if err := add(stateFile, jsonTo(st)); err != nil {
		return err
	}
	if _, err := writeFile(filepath.Join(tmp, manifestFile), jsonTo(m)); err != nil {
		return err
	}
	return syncDir(tmp)
}

// create makes a file for writing; tests replace it to fill the disk.
var create = func(path string) (syncWriter, error) { return os.Create(path) }

type syncWriter interface {
	io.WriteCloser
	Sync() error
}

// writeFile writes and syncs a file, counting bytes and summing them on the way.
func writeFile(path string, write func(w io.Writer) error) (manifestEntry, error) {
	f, err := create(path)
	if err != nil {
		return manifestEntry{}, err
	}
	between()
	w := &summer{w: f}
	err = write(w)
	if err == nil {
		between()
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return manifestEntry{Bytes: w.n, CRC: sum(w.crc)}, err
}

type summer struct {
	w       io.Writer
	n       int64
	flushed int64 // bytes that the disk was given
	crc     uint32
}

// Write writes p in pieces, each while the one before it is on its way to the disk.
func (s *summer) Write(p []byte) (done int, err error) {
	for err == nil && done < len(p) {
		b := p[done:min(len(p), done+flushBytes)]
		var n int
		n, err = s.w.Write(b)
		s.crc = crc32.Update(s.crc, safetensors.Castagnoli, b[:n])
		s.n, done = s.n+int64(n), done+n
		if f, ok := s.w.(*os.File); ok && s.n-s.flushed >= flushBytes {
			flush(f, s.flushed, s.n-s.flushed)
			s.flushed = s.n
		}
	}
	return done, err
}

// flushBytes is how much is written before the disk begins to take it.
const flushBytes = 8 << 20

func jsonTo(v any) func(w io.Writer) error {
	return func(w io.Writer) error {
		text, err := json.MarshalIndent(v, "", "  ")
		if err != nil {
			return err
		}
		_, err = w.Write(append(text, '\n'))
		return err
	}
}

// syncDir makes the names in a folder durable. Some file systems cannot and say so.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	if err := d.Sync(); err != nil && !errors.Is(err, syscall.EINVAL) && !errors.Is(err, syscall.ENOTSUP) {
		return err
	}
	return nil
}

// sweep removes what an interrupted Save or discard left.
func sweep(dir string) error {
	if err := restoreBest(dir); err != nil {
		return err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), tmpPrefix) || strings.HasPrefix(e.Name(), oldPrefix) {
			if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

// prune removes the oldest checkpoints but the one just written. What is damaged counts for none
// and stays, so that a whole one never goes in its favour.
func prune(dir string, step, keep int64) error {
	if keep <= 0 {
		return nil
	}
	all, err := List(dir)
	if err != nil {
		return err
	}
	all = slices.DeleteFunc(all, func(i Info) bool { _, err := open(i.Path); return err != nil })
	excess := int64(len(all)) - keep
	for _, c := range all {
		if excess <= 0 {
			break
		}
		if c.Step == step {
			continue
		}
		if err := discard(c.Path, c.Step); err != nil {
			return err
		}
		excess--
	}
	return nil
}

// deviceCodes begin the codes of a device's faults: what cannot be read there is no fault of the folder.
const deviceCodes = "MT05"

// notWritten explains a failed Save: what it needed, and what is still there.
func notWritten(dir string, step int64, files []File, err error) error {
	var source *fault.Error
	if errors.As(err, &source) && strings.HasPrefix(source.Code, deviceCodes) {
		source.Message += fmt.Sprintf(", while the checkpoint of step %d was written", step)
		return source
	}
	f := fault.New("MT0623", dir, "the checkpoint of step %d cannot be written", step).Wrap(cause(err))
	kept, then := "no earlier checkpoint is there", "start again"
	good := previous(filepath.Join(dir, folderName(step)))
	if good != "" {
		kept = filepath.Base(good) + " is untouched"
		then = fmt.Sprintf("`mtc run ... --resume --out %s`", fault.Shell(dir))
	}
	for _, full := range []error{syscall.ENOSPC, syscall.EDQUOT} {
		if errors.Is(err, full) {
			var need int64
			for _, file := range files {
				n, _ := safetensors.Size(file.Meta, file.Tensors)
				need += n
			}
			return f.Help("a checkpoint takes %.1f MB here; %s; free some space, then %s", float64(need)/1e6, kept, then)
		}
	}
	if f.Hint != "" { // of a limit, which may hide what is there
		if good != "" {
			f.Hint += "; " + kept
		}
		return f
	}
	return f.Help("%s; give a folder that can be written with --out", kept)
}
