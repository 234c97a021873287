package parser

import (
	"strings"
)

// Grammar is the grammar in EBNF, made from the productions that parse: `*` is any number of,
// `?` is optional. The reference shows it.
func Grammar() string {
	var out []string
	seen := map[string]bool{}
	add := func(line string) {
		name, _, ok := strings.Cut(line, " = ")
		if ok && !seen[name] && name != "GEnd" && name != "GWeightEnd" {
			seen[name] = true
			out = append(out, readable(line))
		}
	}
	add("GFile = GDecl* .")
	for _, g := range []string{
		declParser.String(), itemParser.String(), presetParser.String(), weightParser.String(),
		fieldParser.String(), stmtParser.String(), exprParser.String(),
	} {
		for _, line := range strings.Split(g, "\n") {
			add(line)
		}
	}
	return alignEquals(out)
}

// readable gives a production the names of the language instead of those of the code.
func readable(line string) string {
	line = strings.NewReplacer(
		"GWeightEnd", "<weightbody>", "GEnd", "<stmtbody>",
	).Replace(line)
	return strings.NewReplacer(
		"<modelbody>", `"{" Item* "}"`, "<stmtbody>", `"{" Stmt* "}"`, "<weightbody>", `"{" WeightLine* "}"`,
		"<presetbody>", `"{" PresetLine* "}"`, "<trainbody>", `"{" Field* "}"`,
		"(<ident> | <target>)", "name", "<ident>", "name", "<label>", "name", "<callee>", "name", "<target>", "name",
		"<int>", "int", "<float>", "float", "<string>", "string",
		"<prefix>", `("-" | "not")`, "<op>", "operator",
		"GLink", "Link", "G", "",
	).Replace(strings.ReplaceAll(line, "((<target> \"=\" GExpr) | <ident>)", "<ident> (\"=\" GExpr)?"))
}

// alignEquals pads the names of productions to one width.
func alignEquals(lines []string) string {
	width := 0
	for _, l := range lines {
		width = max(width, strings.Index(l, " = "))
	}
	var b strings.Builder
	for _, l := range lines {
		name, rest, _ := strings.Cut(l, " = ")
		b.WriteString(name + strings.Repeat(" ", width-len(name)) + " = " + rest + "\n")
	}
	return b.String()
}
