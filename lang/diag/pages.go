package diag

import (
	"embed"
	"path"
	"sort"
	"strings"
)

// pages holds one page for each code, pages/MT0301.md: a title, what the code means, and
// where a text can show it an example that triggers it and the mended text. Blocks of code
// start with ```mt wrong or ```mt right, then how to read them: nothing for a whole file,
// in=block, in=forward, in=model or in=train for a part of one (ExampleFile says of which),
// `compile` when checking is not enough, and flags.
//
//go:embed pages/*.md
var pages embed.FS

// Page explains a code.
type Page struct {
	Code  string
	Title string // "shapes do not fit"
	Text  string // markdown, the title not included
}

// PageOf returns the page of a code.
func PageOf(code string) (Page, bool) {
	b, err := pages.ReadFile("pages/" + code + ".md")
	if err != nil {
		return Page{}, false
	}
	head, text, _ := strings.Cut(string(b), "\n")
	return Page{Code: code, Title: strings.TrimPrefix(head, "# "+code+": "), Text: strings.TrimLeft(text, "\n")}, true
}

// Pages returns all pages, by code.
func Pages() []Page {
	names, err := pages.ReadDir("pages")
	if err != nil {
		panic(err) // the folder is part of the program
	}
	var out []Page
	for _, n := range names {
		if p, ok := PageOf(strings.TrimSuffix(path.Base(n.Name()), ".md")); ok {
			out = append(out, p)
		}
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Code < out[j].Code })
	return out
}

// Example is a block of code of a page.
type Example struct {
	Right bool     // the mended text
	In    string   // "", "block", "forward", "model" or "train"
	Flags []string // "compile", "--set", "D=128"
	Text  string
}

// Examples returns the examples of a page.
func (p *Page) Examples() []Example {
	var out []Example
	for _, part := range strings.Split(p.Text, "```mt ")[1:] {
		head, rest, _ := strings.Cut(part, "\n")
		text, _, _ := strings.Cut(rest, "```")
		e := Example{Text: text}
		for _, w := range strings.Fields(head) {
			switch {
			case w == "right" || w == "wrong":
				e.Right = w == "right"
			case strings.HasPrefix(w, "in="):
				e.In = strings.TrimPrefix(w, "in=")
			default:
				e.Flags = append(e.Flags, w)
			}
		}
		out = append(out, e)
	}
	return out
}

// File puts an example into the small model that its fragments belong to. Further files that
// it uses follow in the map, by name; the first is m.mt.
func (e *Example) File() map[string]string {
	parts := strings.Split(e.Text, "-- ")
	files := map[string]string{}
	for _, p := range parts[1:] {
		name, text, _ := strings.Cut(p, " --\n")
		files[name] = text
	}
	part := map[string]string{
		"block":   "    x += o: linear(x, D)\n",
		"forward": "    x = wte: embed(tokens, V, D)\n    repeat 2 { layer(x) }\n    return head: linear(x, V)\n",
		"model":   "",
		"train":   "  seq   = 64\n  batch = 512 tokens\n",
	}
	text := parts[0]
	if e.In != "" {
		part[e.In] = text
		if e.In == "train" {
			for _, f := range []string{"seq   = 64\n", "batch = 512 tokens\n"} {
				if !strings.Contains(text, strings.Fields(f)[0]) {
					part["train"] = f + part["train"]
				}
			}
		}
		text = "model m(D = 64, F = 256, H = 4, V = 256) {\n  init normal(0.02)\n" + part["model"] +
			"  block layer(x) {\n" + part["block"] + "  }\n  forward(tokens) {\n" + part["forward"] + "  }\n}\n" +
			"train {\n" + part["train"] + "}\n"
	}
	files["m.mt"] = text
	return files
}

// Plain returns the page for a terminal: code indented instead of fenced.
func (p *Page) Plain() string {
	var b strings.Builder
	b.WriteString(p.Code + ": " + p.Title + "\n\n")
	code := false
	for _, line := range strings.Split(strings.TrimRight(p.Text, "\n"), "\n") {
		switch {
		case strings.HasPrefix(line, "```"):
			code = !code
			continue
		case code && line != "":
			line = "    " + line
		case strings.HasPrefix(line, "## "):
			line = strings.TrimPrefix(line, "## ") + ":"
		}
		b.WriteString(line + "\n")
	}
	return b.String()
}
