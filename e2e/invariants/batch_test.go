package invariants

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/megatrain/mtc/codegen"
	"github.com/megatrain/mtc/compiler"
)

// Programs of tests that wait at the same time are linked as one: a link takes longer than everything else
// about a small program. Each is a package of the whole, which runs the one that its name says.

// programs are the binaries built so far: tests share them.
var programs struct {
	sync.Mutex
	dir    string
	built  map[string]*wanted // by family and options
	queue  []*wanted
	linker bool // one is at work
}

// wanted is a program that a test waits for.
type wanted struct {
	dir  string // of its sources
	path string // of the program, when done is closed
	err  error
	done chan struct{}
}

// program builds a family's model with options, once for all tests.
func program(t *testing.T, family string, o compiler.Options) string {
	t.Helper()
	if raceOn { // the program would be without the detector
		t.Skip("not under -race")
	}
	key := fmt.Sprintf("%s %+v", family, o)
	programs.Lock()
	w := programs.built[key]
	if w == nil {
		w = &wanted{done: make(chan struct{})}
		if programs.built == nil {
			programs.built = map[string]*wanted{}
		}
		programs.built[key] = w
		programs.Unlock()
		o.Path = filepath.Join("testdata", "models", family+".mt")
		made := false
		defer func() {
			if !made { // the test has ended: others that want the program fail too
				w.err = fmt.Errorf("%s does not compile", key)
				close(w.done)
			}
		}()
		w.dir, _ = generate(t, o, nil)
		made = true
		programs.Lock()
		programs.queue = append(programs.queue, w)
		if !programs.linker {
			programs.linker = true
			go linkQueue()
		}
	}
	programs.Unlock()
	select {
	case <-w.done:
	case <-time.After(10 * time.Minute):
		t.Fatal("nothing linked the program")
	}
	if w.err != nil {
		t.Fatal(w.err)
	}
	return w.path
}

// linkQueue links what waits until nothing does.
func linkQueue() {
	for {
		time.Sleep(100 * time.Millisecond) // others are about to want theirs
		programs.Lock()
		list := programs.queue
		programs.queue = nil
		if len(list) == 0 {
			programs.linker = false
			programs.Unlock()
			return
		}
		err := link(list)
		programs.Unlock()
		for _, w := range list {
			w.err = err
			close(w.done)
		}
	}
}

// link makes one binary of programs, and a name for each. programs is locked.
func link(list []*wanted) error {
	if programs.dir == "" {
		dir, err := os.MkdirTemp("", "mtc-e2e")
		if err != nil {
			return err
		}
		programs.dir = dir
	}
	dir, err := os.MkdirTemp(programs.dir, "batch")
	if err != nil {
		return err
	}
	var imports, cases strings.Builder
	for i, w := range list {
		pkg := fmt.Sprintf("p%d", i)
		if err := asPackage(w.dir, filepath.Join(dir, pkg), pkg); err != nil {
			return err
		}
		fmt.Fprintf(&imports, "\t\"mtcprogram/batch/%s\"\n", pkg)
		fmt.Fprintf(&cases, "\tcase %q:\n\t\t%s.Main()\n", pkg, pkg)
	}
	text := "package main\n\nimport (\n\t\"os\"\n\t\"path/filepath\"\n\n" + imports.String() + ")\n\n" +
		"func main() {\n\tswitch filepath.Base(os.Args[0]) {\n" + cases.String() + "\tdefault:\n\t\tpanic(os.Args[0])\n\t}\n}\n"
	if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte(text), 0o666); err != nil {
		return err
	}
	for _, name := range []string{"go.mod", "go.sum"} {
		text, err := os.ReadFile(filepath.Join(list[0].dir, name))
		if err != nil {
			return err
		}
		if rest := bytes.IndexByte(text, '\n'); name == "go.mod" {
			text = append([]byte("module mtcprogram/batch"), text[rest:]...)
		}
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o666); err != nil {
			return err
		}
	}
	binary, err := codegen.Build(context.Background(), dir, "batch")
	if err != nil {
		return err
	}
	for i, w := range list {
		to := filepath.Join(dir, "bin", fmt.Sprintf("p%d", i))
		if err := os.MkdirAll(filepath.Dir(to), 0o777); err != nil {
			return err
		}
		if err := os.Link(binary, to); err != nil {
			return err
		}
		w.path = to
	}
	return nil
}

// asPackage copies a program's sources as those of a package with a function Main.
func asPackage(from, to, name string) error {
	if err := os.MkdirAll(to, 0o777); err != nil {
		return err
	}
	files, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	for _, f := range files {
		if f.IsDir() || strings.HasPrefix(f.Name(), "go.") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(from, f.Name()))
		if err != nil {
			return err
		}
		if strings.HasSuffix(f.Name(), ".go") {
			text = bytes.Replace(text, []byte("\npackage main\n"), []byte("\npackage "+name+"\n"), 1)
			text = bytes.Replace(text, []byte("\nfunc main() {"), []byte("\n// Main is the program.\nfunc Main() {"), 1)
		}
		if err := os.WriteFile(filepath.Join(to, f.Name()), text, 0o666); err != nil {
			return err
		}
	}
	return nil
}
