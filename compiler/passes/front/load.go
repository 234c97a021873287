package front

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/megatrain/mtc/lang/ast"
	"github.com/megatrain/mtc/lang/diag/suggest"
	"github.com/megatrain/mtc/lang/parser"
	"github.com/megatrain/mtc/lang/source"
)

// maxFiles bounds how many files one compile may read through `use`.
const maxFiles = 256

// Load reads the file and, depth first, the files it uses. A path in `use` is relative to
// the file that holds it. A file is read once; a circle of files is an error that shows it.
func Load(s *State) {
	s.files, s.uses = map[string]*ast.File{}, map[*ast.File][]*ast.File{}
	if s.In.ReadFile == nil {
		s.In.ReadFile = parser.ReadFile
	}
	text := s.In.Text
	if text == nil {
		var err error
		if text, err = s.In.ReadFile(s.In.Path); err != nil {
			s.errorf(codeUse, source.Span{}, "cannot read %s: %s", s.In.Path, reason(err))
			return
		}
	}
	s.Main = s.parse(s.In.Path, text)
	s.load(s.Main, []string{filepath.Clean(s.In.Path)})
}

func (s *State) parse(path string, text []byte) *ast.File {
	f := parser.Parse(source.New(path, text), s.Diags)
	s.files[filepath.Clean(path)] = f
	s.Files = append(s.Files, f)
	return f
}

// load reads what f uses; open is the chain of files from the main one to f.
func (s *State) load(f *ast.File, open []string) {
	seen := map[string]bool{}
	for _, d := range f.Decls {
		u, ok := d.(*ast.Use)
		if !ok {
			continue
		}
		if u.Path == "" {
			s.errorf(codeUse, u.PathSpan, "`use` needs the path of a file").Hint("write `use \"llama.mt\"`")
			continue
		}
		path := u.Path
		if !filepath.IsAbs(path) {
			path = filepath.Join(filepath.Dir(f.Source.Name), filepath.FromSlash(path))
		}
		path = filepath.Clean(path)
		if seen[path] {
			s.errorf(codeTwice, u.PathSpan, "`%s` is used twice", u.Path).Hint("remove this line")
			continue
		}
		seen[path] = true
		if i := indexOf(open, path); i >= 0 {
			chain := append(append([]string(nil), open[i:]...), path)
			for k := range chain {
				chain[k] = filepath.Base(chain[k])
			}
			s.errorf(codeUseCycle, u.PathSpan, "files use each other in a circle: %s", strings.Join(chain, " -> ")).
				Mark("this closes the circle").
				Hint("move what both need into a file that uses neither")
			continue
		}
		g := s.files[path]
		if g == nil {
			if len(s.Files) >= maxFiles {
				s.errorf(codeTooMany, u.PathSpan, "more than %d files are used", maxFiles)
				return
			}
			text, err := s.In.ReadFile(path)
			if err != nil {
				s.useError(u, path, err)
				continue
			}
			g = s.parse(path, text)
			s.load(g, append(open[:len(open):len(open)], path))
		}
		s.uses[f] = append(s.uses[f], g)
	}
}

func (s *State) useError(u *ast.Use, path string, err error) {
	d := s.errorf(codeUse, u.PathSpan, "cannot read `%s`: %s", u.Path, reason(err))
	if !errors.Is(err, fs.ErrNotExist) {
		return
	}
	d.Note("looked for %s; a `use` path is relative to the file it stands in", path)
	if entries, err := os.ReadDir(filepath.Dir(path)); err == nil {
		var names []string
		for _, e := range entries {
			if strings.HasSuffix(e.Name(), ".mt") {
				names = append(names, e.Name())
			}
		}
		if n := suggest.Nearest(filepath.Base(path), names); n != "" {
			d.Hint("did you mean `%s`?", filepath.ToSlash(filepath.Join(filepath.Dir(u.Path), n)))
		}
	}
}

// reason is an error without the path and the system call that the message already names.
func reason(err error) string {
	var pe *fs.PathError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "no such file"
	case errors.Is(err, fs.ErrPermission):
		return "permission denied"
	case errors.As(err, &pe):
		return pe.Err.Error()
	}
	return err.Error()
}

func indexOf(list []string, x string) int {
	for i, v := range list {
		if v == x {
			return i
		}
	}
	return -1
}
