package data

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"sort"
	"strings"
	"time"

	"github.com/megatrain/mtc/runtime/fault"
	"github.com/megatrain/mtc/runtime/telemetry"
)

// file is one regular file of a corpus.
type file struct {
	path string // to open it
	name string // relative to the folder or pattern it came from, with slashes; decides the held-out split
	size int64
	time time.Time // of its last change
}

// skipped counts what a search passed over.
type skipped struct {
	hidden  int // files and folders whose name starts with a dot
	special int // devices, pipes, sockets
	empty   int
	links   int // to folders
	made    int // folders of runs and builds
}

// find expands patterns to files: patterns in the given order, the files of one pattern
// sorted by path, each file once. A pattern is
//
//	a file           taken as it is, even when its name starts with a dot
//	a folder         every regular file below it
//	a glob           * ? [a-z] within a name; ** as a whole name: any number of folders
//
// Names that start with a dot are skipped unless the pattern's own part starts with a dot.
// Links to files are followed; links to folders are followed only where the pattern names
// them, so a search cannot run in a circle. Empty files are skipped, and so are the folders of runs and
// builds below the one that a pattern names: a run would learn its own checkpoints, and a resumed one
// have other data than it began with.
func find(patterns []string) ([]file, skipped, error) {
	var out []file
	var skip skipped
	seen := map[string]bool{}
	for _, p := range patterns {
		emptyBefore, linksBefore, madeBefore := skip.empty, skip.links, skip.made
		w := walker{seen: map[visit]bool{}, skip: &skip}
		if err := w.pattern(p); err != nil {
			return nil, skip, err
		}
		if len(w.files) == 0 {
			f := fault.New("MT0601", p, "no files here")
			if empty := skip.empty - emptyBefore; empty > 0 {
				f.Message = "the files here are all empty"
				if info, err := os.Stat(p); err == nil && !info.IsDir() {
					f.Message = "the file is empty"
				}
				f.Help("give files with text or tokens in them")
			} else if skip.links > linksBefore {
				f.Help("%s to a folder skipped: name such a link itself to follow it", telemetry.Count(int64(skip.links-linksBefore), "link"))
			} else if made := skip.made - madeBefore; made > 0 {
				f.Help("%s of a run or build of mtc skipped: name such a folder itself to read it", telemetry.Count(int64(made), "folder"))
			} else if skip.hidden > 0 {
				f.Help("%d hidden names were skipped: name a hidden file or folder itself to read it", skip.hidden)
			} else {
				f.Help("give a file, a folder, or a pattern such as \"dir/**/*.txt\" (in quotes on a command line)")
			}
			return nil, skip, f
		}
		sort.Slice(w.files, func(i, j int) bool { return w.files[i].path < w.files[j].path })
		for _, f := range w.files {
			if clean := filepath.Clean(f.path); !seen[clean] {
				seen[clean] = true
				out = append(out, f)
			}
		}
	}
	return out, skip, nil
}

// walker collects the files of one pattern.
type walker struct {
	root  string // names are relative to it
	files []file
	seen  map[visit]bool // several "**" reach a folder in several ways
	skip  *skipped
}

// visit is a folder and how many parts of the pattern were left there.
type visit struct {
	dir  string
	left int
}

func (w *walker) pattern(p string) error {
	if p == "" {
		return fault.New("MT0608", "", "an empty path is not a pattern").Help("give a file, a folder or a glob")
	}
	info, err := os.Stat(p)
	switch {
	case err == nil && info.IsDir():
		w.root = p
		return w.glob(p, []string{"**", "*"})
	case err == nil && !info.Mode().IsRegular():
		return fault.New("MT0602", p, "is not a regular file").Help("write its content to a file first")
	case err == nil:
		w.root = filepath.Dir(p)
		w.add(p, info)
		return nil
	case !errors.Is(err, fs.ErrNotExist) && !hasMeta(p):
		return fault.New("MT0602", p, "cannot be read").Wrap(cause(err))
	case !hasMeta(p):
		return fault.New("MT0601", p, "there is no such file or folder").
			Help("paths in a .mt are relative to it, on the command line to the working folder")
	}
	return w.globbed(p)
}

// globbed splits a pattern into the folder before its first wildcard and the parts after it.
func (w *walker) globbed(p string) error {
	parts := strings.Split(filepath.ToSlash(p), "/")
	n := 0
	for n < len(parts) && !hasMeta(parts[n]) {
		n++
	}
	w.root = strings.Join(parts[:n], "/")
	switch {
	case n == 0:
		w.root = "."
	case w.root == "":
		w.root = "/"
	}
	rest := make([]string, 0, len(parts)-n)
	for _, part := range parts[n:] {
		if strings.Contains(part, "**") && part != "**" {
			return fault.New("MT0608", p, "`**` stands for whole folders and must be a part of its own").
				Help("write %s", strings.Replace(p, "**", "**/*", 1))
		}
		if _, err := path.Match(part, ""); err != nil {
			return fault.New("MT0608", p, "the pattern has a `[` without its `]`")
		}
		if part != "" && part != "." && (part != "**" || len(rest) == 0 || rest[len(rest)-1] != "**") {
			rest = append(rest, part)
		}
	}
	if info, err := os.Stat(w.root); err != nil || !info.IsDir() {
		return fault.New("MT0601", p, "there is no folder %s", w.root)
	}
	if rest[len(rest)-1] == "**" {
		rest = append(rest, "*")
	}
	return w.glob(w.root, rest)
}

// glob matches parts below dir. A "**" first tries to match no folder, then every visible
// folder once more with itself.
func (w *walker) glob(dir string, parts []string) error {
	v := visit{dir, len(parts)}
	if w.seen[v] {
		return nil
	}
	w.seen[v] = true
	deep := parts[0] == "**"
	rest := parts
	if deep {
		rest = parts[1:]
	}
	last := len(rest) == 1
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fault.New("MT0602", dir, "the folder cannot be read").Wrap(cause(err))
	}
	if dir != w.root && madeHere(entries) {
		if v.left = 0; !w.seen[v] { // counted once
			w.skip.made++
		}
		w.seen[v] = true
		return nil
	}
	for _, e := range entries {
		name := e.Name()
		full := filepath.Join(dir, name)
		match, _ := path.Match(rest[0], name)
		if strings.HasPrefix(name, ".") && !strings.HasPrefix(rest[0], ".") {
			if e.IsDir() && (deep || match && !last) || !e.IsDir() && match && last {
				w.skip.hidden++
			}
			continue
		}
		if e.Type()&fs.ModeSymlink == 0 && e.IsDir() {
			if deep {
				if err := w.glob(full, parts); err != nil {
					return err
				}
			}
			if match && !last {
				if err := w.glob(full, rest[1:]); err != nil {
					return err
				}
			}
			continue
		}
		if !match {
			continue
		}
		info, err := os.Stat(full)
		if err != nil {
			return fault.New("MT0602", full, "cannot be read").Wrap(cause(err)).Help("remove it, or leave it out with a narrower pattern")
		}
		switch {
		case info.IsDir() && last:
			w.skip.links++
		case info.IsDir() && !deep:
			if err := w.glob(full, rest[1:]); err != nil {
				return err
			}
		case last:
			w.add(full, info)
		}
	}
	return nil
}

// madeHere says that a folder is that of a run or a build.
func madeHere(entries []fs.DirEntry) bool {
	has := map[string]bool{}
	for _, e := range entries {
		has[e.Name()] = true
	}
	return has["schedule.json"] && (has["run.json"] || has["plan_gen.go"])
}

func (w *walker) add(p string, info fs.FileInfo) {
	switch {
	case !info.Mode().IsRegular():
		w.skip.special++
	case info.Size() == 0:
		w.skip.empty++
	default:
		name, err := filepath.Rel(w.root, p)
		if err != nil {
			name = p
		}
		w.files = append(w.files, file{path: p, name: filepath.ToSlash(name), size: info.Size(), time: info.ModTime()})
	}
}

func hasMeta(s string) bool { return strings.ContainsAny(s, "*?[") }

// cause strips the path from an error that repeats it.
func cause(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}
