package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"sync"

	"github.com/megatrain/mtc/compiler"
	"github.com/megatrain/mtc/runtime/jsontext"
)

// recordFile says what a build folder was made from.
const recordFile = "build.json"

// buildRecord is build.json. Paths are relative to the build folder, so that a project can move.
type buildRecord struct {
	Model   string         `json:"model"`
	Hash    string         `json:"hash"` // plan.Plan.Hash
	Source  string         `json:"source"`
	Files   []sourceFile   `json:"files"` // every .mt that was read
	Options compileOptions `json:"options"`
	// Asked are the options that the user compiled with, where those of one run were laid over
	// them; nil: Options.
	Asked    *compileOptions `json:"asked,omitempty"`
	Compiler string          `json:"compiler"` // hash of the mtc that compiled
	Clip     bool            `json:"clip"`
	Program  string          `json:"program"` // the executable, "" when it was not built
}

type sourceFile struct {
	Path   string `json:"path"`
	SHA256 string `json:"sha256"`
}

// newRecord describes a build of res into dir.
func newRecord(dir, source string, o compileOptions, res *compiler.Result, program string) *buildRecord {
	r := &buildRecord{
		Model: res.Plan.Model, Hash: res.Plan.Hash, Source: relativeTo(dir, source),
		Options: o, Compiler: ownHash(), Clip: res.Plan.Clip, Program: program,
	}
	for _, f := range res.Model.Files {
		r.Files = append(r.Files, sourceFile{relativeTo(dir, f.Name), hashOf(f.Text)})
	}
	return r
}

// asked are the options that the build had before flags of a run.
func (r *buildRecord) asked() compileOptions {
	if r.Asked != nil {
		return *r.Asked
	}
	return r.Options
}

// madeFrom says whether path is the file that the build was made from.
func (r *buildRecord) madeFrom(dir, path string) bool {
	own := r.resolve(dir, r.Source)
	a, err1 := os.Stat(own)
	b, err2 := os.Stat(path)
	if err1 == nil && err2 == nil {
		return os.SameFile(a, b)
	}
	return relativeTo(dir, own) == relativeTo(dir, path)
}

// relativeTo is path as seen from dir, or path when there is no such way.
func relativeTo(dir, path string) string {
	d, err1 := filepath.Abs(dir)
	p, err2 := filepath.Abs(path)
	if err1 != nil || err2 != nil {
		return path
	}
	rel, err := filepath.Rel(d, p)
	if err != nil {
		return p
	}
	return filepath.ToSlash(rel)
}

// resolve is a recorded path as seen from the working folder.
func (r *buildRecord) resolve(dir, path string) string {
	path = filepath.FromSlash(path)
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}

func (r *buildRecord) write(dir string) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, recordFile), append(text, '\n'), 0o666)
}

// readRecord reads the record of a build folder.
func readRecord(dir string) (*buildRecord, error) {
	text, err := os.ReadFile(filepath.Join(dir, recordFile))
	if err != nil {
		return nil, err
	}
	r := &buildRecord{}
	if err := jsontext.Read(text, r, jsontext.Whole); err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(dir, recordFile), err)
	}
	return r, nil
}

// stale says why a build has to be made again with options o; "" when it is up to date.
func (r *buildRecord) stale(dir string, o compileOptions) string {
	if r.Compiler != ownHash() {
		return "it was made by another mtc"
	}
	for _, f := range r.Files {
		path := r.resolve(dir, f.Path)
		text, err := os.ReadFile(path)
		if err != nil || hashOf(text) != f.SHA256 {
			return filepath.Base(path) + " changed"
		}
	}
	if !sameOptions(r.Options, o) {
		if sameOptions(r.asked(), o) {
			return "an earlier run had other options"
		}
		return "the options changed"
	}
	if r.Program == "" {
		return "the program was not built"
	}
	if _, err := os.Stat(filepath.Join(dir, r.Program)); err != nil {
		return "the program is missing"
	}
	return ""
}

func sameOptions(a, b compileOptions) bool {
	if len(a.Set) == 0 && len(b.Set) == 0 {
		a.Set, b.Set = nil, nil
	}
	return reflect.DeepEqual(a, b)
}

func hashOf(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// ownHash is the hash of this executable: two of the same version may differ while mtc itself
// is worked on.
var ownHash = sync.OnceValue(func() string {
	path, err := os.Executable()
	if err != nil {
		return version()
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return version()
	}
	return hashOf(text)[:16]
})
