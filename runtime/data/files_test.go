package data

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// tree writes files (path to content) below a fresh folder.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		p := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(p), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestFindPatterns(t *testing.T) {
	dir := tree(t, map[string]string{
		"a.go": "1", "b.txt": "2", "z/a.go": "3", "z/y/a.go": "4", "z/y/b.go": "5", "z/z/a.go": "6",
		".hidden.go": "7", ".git/x.go": "8", "empty.go": "", "odd[1].go": "9",
	})
	for _, c := range []struct {
		pattern string
		want    string
		hidden  int
	}{
		{"a.go", "a.go", 0},
		{"", "a.go b.txt odd[1].go z/a.go z/y/a.go z/y/b.go z/z/a.go", 2},
		{"*.go", "a.go odd[1].go", 1},
		{"**/*.go", "a.go odd[1].go z/a.go z/y/a.go z/y/b.go z/z/a.go", 2},
		{"**", "a.go b.txt odd[1].go z/a.go z/y/a.go z/y/b.go z/z/a.go", 2},
		{"**/a.go", "a.go z/a.go z/y/a.go z/z/a.go", 1},
		{"**/z/a.go", "z/a.go z/z/a.go", 1},
		{"**/z/**/a.go", "z/a.go z/y/a.go z/z/a.go", 1},
		{"**/**/b.go", "z/y/b.go", 1},
		{"z/*/a.go", "z/y/a.go z/z/a.go", 0},
		{"*/[a-y]/?.go", "z/y/a.go z/y/b.go", 1},
		{".git", ".git/x.go", 0},
		{".git/*", ".git/x.go", 0},
		{".hidden.go", ".hidden.go", 0},
		{".*.go", ".hidden.go", 0},
		{"odd[1].go", "odd[1].go", 0},
	} {
		t.Run(c.pattern, func(t *testing.T) {
			files, skip, err := find([]string{filepath.Join(dir, c.pattern)})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, f := range files {
				rel, err := filepath.Rel(dir, f.path)
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, filepath.ToSlash(rel))
			}
			if s := strings.Join(got, " "); s != c.want {
				t.Errorf("found %s, wanted %s", s, c.want)
			}
			if skip.hidden != c.hidden {
				t.Errorf("%d hidden names said, wanted %d", skip.hidden, c.hidden)
			}
		})
	}
}

// TestRunsAndBuildsAreNoData: a search that comes upon the folder of a run or a build passes over it; a pattern
// that begins there reads it.
func TestRunsAndBuildsAreNoData(t *testing.T) {
	dir := tree(t, map[string]string{
		"a.txt": "1", "runs/m/run.json": "{}", "runs/m/schedule.json": "{}", "runs/m/step-000001/w.txt": "2", "runs/m/metrics.jsonl": "3",
		"build/m/schedule.json": "{}", "build/m/plan_gen.go": "x", "build/m/main.go": "4", "build/b.txt": "5",
		"own/schedule.json": "6", "mine/run.json": "7", "go/plan_gen.go": "8",
	})
	for _, c := range []struct {
		pattern string
		want    string // "": an error
		made    int
	}{
		{"", "a.txt build/b.txt go/plan_gen.go mine/run.json own/schedule.json", 2},
		{"**/*.txt", "a.txt build/b.txt", 2},
		{"**/m/**/*.txt", "", 2},
		{"runs", "", 1},
		{"runs/*/*.jsonl", "", 1},
		{"runs/m", "runs/m/metrics.jsonl runs/m/run.json runs/m/schedule.json runs/m/step-000001/w.txt", 0},
		{"runs/m/*.jsonl", "runs/m/metrics.jsonl", 0},
		{"runs/m/step-*/*", "runs/m/step-000001/w.txt", 0},
		{"build/m/**/*.go", "build/m/main.go build/m/plan_gen.go", 0},
		{"runs/m/metrics.jsonl", "runs/m/metrics.jsonl", 0},
	} {
		files, skip, err := find([]string{filepath.Join(dir, c.pattern)})
		var got []string
		for _, f := range files {
			rel, err := filepath.Rel(dir, f.path)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, filepath.ToSlash(rel))
		}
		if s := strings.Join(got, " "); s != c.want || skip.made != c.made {
			t.Errorf("%s: found %s and %d runs and builds, wanted %s and %d", c.pattern, s, skip.made, c.want, c.made)
		}
		if c.want == "" {
			wantFault(t, c.pattern, err, "MT0601", -1, "of a run or build of mtc skipped")
		} else if err != nil {
			t.Errorf("%s: %v", c.pattern, err)
		}
	}
}

func TestFindKeepsPatternOrderAndDropsRepeats(t *testing.T) {
	dir := tree(t, map[string]string{"a.txt": "1", "b.txt": "2", "c.txt": "3"})
	files, _, err := find([]string{filepath.Join(dir, "c.txt"), dir})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range files {
		names = append(names, f.name)
	}
	if d := cmp.Diff([]string{"c.txt", "a.txt", "b.txt"}, names); d != "" {
		t.Error(d)
	}
}

func TestFindFollowsFileLinksAndNoFolderCircles(t *testing.T) {
	dir := tree(t, map[string]string{"real/a.txt": "1", "other.txt": "2"})
	for link, target := range map[string]string{"real/loop": "..", "real/link.txt": "../other.txt", "named": "real"} {
		if err := os.Symlink(target, filepath.Join(dir, link)); err != nil {
			t.Skip("no links here:", err)
		}
	}
	for pattern, want := range map[string]int{"real": 2, "**/*.txt": 3, "named/*.txt": 2, "n*/a.txt": 1} {
		files, _, err := find([]string{filepath.Join(dir, pattern)})
		if err != nil || len(files) != want {
			t.Errorf("%s: %d files, %v; wanted %d", pattern, len(files), err, want)
		}
	}
}

func TestSkippedLinksAreNamed(t *testing.T) {
	dir := tree(t, map[string]string{"real/a.txt": "1"})
	links := filepath.Join(dir, "links")
	if err := os.Mkdir(links, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(dir, "real"), filepath.Join(links, "link")); err != nil {
		t.Skip("no links here:", err)
	}
	_, _, err := find([]string{links})
	wantFault(t, "only a link", err, "MT0601", -1, "1 link to a folder skipped")
}

func TestFindErrors(t *testing.T) {
	dir := tree(t, map[string]string{"a.txt": "1", "void/.keep": "1", "none/x": ""})
	for _, c := range []struct{ pattern, code, hint string }{
		{"missing.txt", "MT0601", "relative to"},
		{"*.go", "MT0601", "pattern"},
		{"void", "MT0601", "1 hidden"},
		{"none", "MT0601", "with text or tokens"},
		{"none/x", "MT0601", "with text or tokens"},
		{"nowhere/*.go", "MT0601", ""},
		{"a.txt/x", "MT0602", ""},
		{"a**b", "MT0608", "**"},
		{"x/[a", "MT0608", ""},
	} {
		_, _, err := find([]string{filepath.Join(dir, c.pattern)})
		wantFault(t, c.pattern, err, c.code, -1, c.hint)
	}
	_, _, err := find([]string{""})
	wantFault(t, "empty", err, "MT0608", -1, "")
}

func FuzzPattern(f *testing.F) {
	for _, p := range []string{"**/*.txt", "a/[", "**", "*/**/*", "./../x*", "a//b*", "[!a]*"} {
		f.Add(p)
	}
	dir := f.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "a", "b"), 0o777); err != nil {
		f.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "a", "b", "x.txt"), []byte("x"), 0o666); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, p string) {
		if strings.Contains(p, "..") || strings.Contains(p, "\x00") {
			return
		}
		files, _, err := find([]string{dir + "/" + p})
		if err == nil && len(files) != 1 {
			t.Errorf("%q: %d files of 1", p, len(files))
		}
	})
}
