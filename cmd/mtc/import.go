package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/megatrain/mtc/compiler"
	"github.com/megatrain/mtc/lang/diag"
	"github.com/megatrain/mtc/models"
	"github.com/megatrain/mtc/runtime/fault"
	"github.com/megatrain/mtc/runtime/hf"
	"github.com/megatrain/mtc/runtime/telemetry"
)

func newImportCmd(e *env) *cobra.Command {
	var file string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "import DIR",
		Short: "write the .mt of a Hugging Face model",
		Long: "Reads a Hugging Face folder (config.json, safetensors) and writes the model that it describes " +
			"as a .mt of its own, after it has held every tensor's name and shape against it. The weights " +
			"stay where they are: mtc run FILE.mt --from DIR takes them.\n\n" +
			"Known architectures: " + strings.Join(hf.Architectures(), ", ") + ".",
		Example: "  mtc import Qwen2.5-0.5B\n  mtc run qwen2_5_0_5b.mt --from Qwen2.5-0.5B --data corpus/",
		Args:    argRange(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			im, err := importFolder(cmd.Context(), args[0], file)
			if err != nil {
				return err
			}
			if err := createFile(im.File, func(w io.Writer) error { _, err := w.Write(im.text); return err }); err != nil {
				return err
			}
			if asJSON {
				enc := json.NewEncoder(e.out)
				enc.SetIndent("", "  ")
				return enc.Encode(im)
			}
			im.print(e)
			return nil
		},
	}
	cmd.Flags().StringVarP(&file, "output", "o", "", "`FILE`.mt to write (default the folder's name)")
	cmd.Flags().BoolVar(&asJSON, "json", false, "what was imported as JSON")
	return cmd
}

// imported is what an import found and wrote.
type imported struct {
	File    string            `json:"file"`
	Model   string            `json:"model"`
	Arch    string            `json:"architecture"`
	Family  string            `json:"family"`
	Values  map[string]string `json:"values"`
	Params  int64             `json:"params"`
	Tensors int               `json:"tensors"`
	Bytes   int64             `json:"bytes"`
	Shards  int               `json:"shards"`
	Notes   []string          `json:"notes"`
	from    string
	text    []byte
}

// importFolder reads a folder and makes its .mt, in memory.
func importFolder(ctx context.Context, dir, file string) (*imported, error) {
	folder, err := hf.Open(dir)
	if err != nil {
		return nil, err
	}
	defer folder.Close()
	d, err := folder.Describe()
	if err != nil {
		return nil, err
	}
	im := &imported{File: file, Arch: d.Arch, Family: d.Family, Values: map[string]string{}, Notes: d.Notes, Shards: len(folder.Shards), from: dir}
	for _, v := range d.Values {
		im.Values[v.Name] = v.Text
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		abs = dir
	}
	if im.File == "" {
		im.File = strings.ToLower(strings.Trim(notInNames.ReplaceAllString(filepath.Base(abs), "_"), "_")) + ".mt"
		if c := im.File[0]; c >= '0' && c <= '9' || c == '.' {
			im.File = "model_" + strings.TrimPrefix(im.File, ".")
		}
	}
	im.File = strings.TrimSuffix(im.File, ".mt") + ".mt"
	if im.Model, err = modelName(im.File); err != nil {
		return nil, err
	}
	if _, err := os.Lstat(im.File); err == nil {
		return nil, inputErrorf("%s is there already", im.File).hint("choose another name with -o, or remove the file first")
	}
	if im.text, err = importText(im, d, filepath.Base(abs)); err != nil {
		return nil, err
	}
	return im, im.check(ctx, folder)
}

var presetLine = regexp.MustCompile(`(?m)^  preset .*\n`)

// importText is the family's text with the model's values as defaults, and a train block to
// start from.
func importText(im *imported, d *hf.Description, from string) ([]byte, error) {
	family, ok := models.Lookup(d.Family)
	if !ok {
		return nil, fmt.Errorf("there is no family %s", d.Family)
	}
	head := "model " + d.Family + "("
	at := strings.Index(family.Text, head)
	end := strings.Index(family.Text, ") {\n")
	if at < 0 || end < at {
		return nil, fmt.Errorf("the text of the family %s does not begin with its parameters", d.Family)
	}
	var params []string
	for _, v := range d.Values {
		params = append(params, v.Name+" = "+importValue(v.Text))
	}
	body := strings.TrimLeft(presetLine.ReplaceAllString(family.Text[end+len(") {\n"):], ""), "\n")
	if i := strings.Index(body, "\n}\n"); i >= 0 {
		body = body[:i+3]
	}
	text := fmt.Sprintf("// %s, imported from %s. Its weights stay there:\n//   mtc run %s --from %s --data PATH\nmodel %s(", d.Arch, oneLine(from), im.File, oneLine(im.from), im.Model)
	indent := "\n" + strings.Repeat(" ", len("model "+im.Model+"("))
	text += strings.Join(columns(params, 100-len(indent)), ","+indent) + ") {\n" + body
	text += fmt.Sprintf(`
train {
  seq       = %d
  batch     = 8 rows
  epochs    = 3
  optimizer = adamw(beta1 = 0.9, beta2 = 0.95, decay = 0.01)
  lr        = cosine(peak = 2e-5, warmup = 20, final = 2e-6)
  clip      = 1.0
  eval      = every(100)
  save      = every(500, keep = 2)
  seed      = 1337
}
`, min(d.Context, 1024))
	return formatText(im.File, []byte(text))
}

// importValue writes a value as a person would: 1e6, not 1e+06.
func importValue(text string) string {
	return strings.NewReplacer("e+0", "e", "e+", "e", "e-0", "e-").Replace(text)
}

// oneLine keeps a path from ending a comment.
func oneLine(path string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return '?'
		}
		return r
	}, path)
}

// check compiles the text and holds the folder's tensors against it.
func (im *imported) check(ctx context.Context, folder *hf.Folder) error {
	var l diag.List
	res, err := compiler.Check(ctx, compiler.Options{Path: im.File, Text: im.text}, &l)
	if err != nil {
		return err
	}
	shapes := hf.Shapes{}
	for _, p := range res.Model.Params {
		for _, d := range p.Shape {
			shapes[p.Path] = append(shapes[p.Path], d.N)
		}
	}
	m, err := folder.Match(compiler.Foreign(res.Model), shapes)
	if err != nil {
		return err
	}
	im.Params = res.Model.NumParams()
	for _, s := range folder.Shards {
		im.Tensors += len(s.Tensors)
		im.Bytes += s.Size
	}
	return m.Twins()
}

// print says what was imported and what to do with it.
func (im *imported) print(e *env) {
	for _, n := range im.Notes {
		fmt.Fprintf(e.err, "note: %s\n", n)
	}
	shards := "one file"
	if im.Shards > 1 {
		shards = fmt.Sprintf("%d files", im.Shards)
	}
	fmt.Fprintf(e.out, "wrote %s: %s, %s parameters; %d tensors in %s, %s\n", im.File, im.Arch,
		telemetry.Group(im.Params), im.Tensors, shards, telemetry.Bytes(im.Bytes))
	fmt.Fprintf(e.out, "next: mtc run %s --from %s --data PATH\n", fault.Shell(im.File), fault.Shell(im.from))
}
