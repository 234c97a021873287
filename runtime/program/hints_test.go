package program

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// The verbs of a program, and their flags.
var verbs = map[string][]Flag{
	"train": TrainFlags, "generate": GenerateFlags, "export": ExportFlags, "calibrate": CalibrateFlags,
}

// reachedBy says which verbs meet the errors of a package, or of one file of it.
var reachedBy = map[string][]string{
	"../checkpoint":             {"train", "generate", "export", "calibrate"},
	"../checkpoint/lock.go":     {"train", "calibrate"},
	"../checkpoint/save.go":     {"train", "calibrate"},
	"../checkpoint/folder.go":   {"train", "calibrate"}, // what reads a folder names no flag without its verb
	"../data":                   {"train", "calibrate"},
	"../data/feed.go":           {"train"}, // of evaluation data
	"../data/data.go":           {"train"},
	"../device/cuda/driver.go":  {"train"}, // of memory that a run may lock
	"../data/corpus.go":         {"train", "calibrate"},
	"calibrate.go":              {"calibrate"},
	"generate.go":               {"generate"},
	"export.go":                 {"export"},
	"resume.go":                 {"train"},
	"settings.go":               {"train"},
	"../telemetry":              {"train"},
	"../hf/peft.go":             {"export"},
	"../device/cuda":            {"train", "generate", "export", "calibrate"},
	"../device/cpu":             {"train", "generate", "export", "calibrate"},
	"../engine":                 {"train", "generate", "export", "calibrate"},
	"../checkpoint/safetensors": {"train", "generate", "export", "calibrate"},
	"../tokenizer":              {"train", "generate", "export", "calibrate"},
}

var (
	// A flag in a command that says whose it is: `mtc run --resume`, or what follows "compile with" or "pack again".
	ofAnother = regexp.MustCompile("`mtc [^`]*`|%s generate .*|(compile|pack again|passed through)[^;`]*(`[^`]*`[^;`]*)*")
	flagName  = regexp.MustCompile(`--([a-z][a-z-]*)`)
)

// foreignFlags are the flags that a text names and one of the verbs lacks.
func foreignFlags(text string, of []string) (out []string) {
	for _, m := range flagName.FindAllStringSubmatch(ofAnother.ReplaceAllString(text, ""), -1) {
		for _, verb := range of {
			if !slices.ContainsFunc(verbs[verb], func(f Flag) bool { return f.Name == m[1] }) {
				out = append(out, "--"+m[1]+" of "+verb)
			}
		}
	}
	return out
}

// TestHintsNameFlagsThatAVerbHas: an error says what to write, and what it says can be written.
func TestHintsNameFlagsThatAVerbHas(t *testing.T) {
	if got := foreignFlags("`--resume` goes on", []string{"calibrate"}); len(got) != 1 {
		t.Fatalf("a flag that calibrate lacks is not seen: %v", got)
	}
	if got := foreignFlags("`mtc run --resume` goes on; give --out", []string{"calibrate"}); len(got) != 0 {
		t.Fatalf("a command says whose its flags are: %v", got)
	}
	texts := 0
	for where, of := range reachedBy {
		files := []string{where}
		if info, err := os.Stat(where); err != nil {
			t.Fatal(err)
		} else if info.IsDir() {
			files, _ = filepath.Glob(filepath.Join(where, "*.go"))
		}
		for _, path := range files {
			if strings.HasSuffix(path, "_test.go") || reachedBy[path] != nil && path != where {
				continue
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(file, func(n ast.Node) bool {
				lit, ok := n.(*ast.BasicLit)
				if !ok || lit.Kind != token.STRING {
					return true
				}
				text, _ := strconv.Unquote(lit.Value)
				if flagName.MatchString(text) {
					texts++
				}
				for _, f := range foreignFlags(text, of) {
					t.Errorf("%s: %q names %s, which has no such flag", path, text, f)
				}
				return true
			})
		}
	}
	if texts < 20 {
		t.Errorf("%d texts name a flag: the test looks at nothing", texts)
	}
}
