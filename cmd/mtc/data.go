package main

import (
	"fmt"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/megatrain/mtc/runtime/data/pack"
	"github.com/megatrain/mtc/runtime/data/packed"
	"github.com/megatrain/mtc/runtime/fault"
	"github.com/megatrain/mtc/runtime/tokenizer"
	"github.com/megatrain/mtc/runtime/tokenizer/known"
)

func newDataCmd(e *env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "data pack IN... | data show DIR",
		Short: "tokenize text and conversations to train on; look into the result",
		Long: `
mtc data pack IN... -o DIR writes a packed folder; mtc data show DIR --row N shows what
became of a document, token by token. mtc run MODEL --data DIR trains on it.`,
		Example: "  mtc data pack chats.jsonl -o packed --tokenizer qwen2.5-0.5b/\n  mtc data show packed --row 0",
		Args:    cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usageErrorf("there is no command `mtc data %s`", args[0]).hint("there are `mtc data pack` and `mtc data show`")
			}
			return usageErrorf("`mtc data` needs to know what to do").hint("write `mtc data pack IN... -o DIR` or `mtc data show DIR`")
		},
	}
	cmd.AddCommand(newDataPackCmd(e), newDataShowCmd(e))
	return cmd
}

// openTokenizer opens what --tokenizer names, with the files that go along with the data.
func openTokenizer(name string) (*tokenizer.Folder, map[string][]byte, error) {
	switch {
	case name == "bytes":
		return tokenizer.OpenBytes(), map[string][]byte{}, nil
	case slices.Contains(known.Names, name):
		text, err := known.JSON(name)
		if err != nil {
			return nil, nil, err
		}
		t, err := tokenizer.Parse(text)
		if err != nil {
			return nil, nil, err
		}
		id := t.ID(known.EndOfText)
		f := &tokenizer.Folder{Tokenizer: t, EOS: known.EndOfText, EOSID: id, Stop: []int32{id}}
		return f, map[string][]byte{
			"tokenizer.json":        text,
			"tokenizer_config.json": []byte(fmt.Sprintf("{\n  \"bos_token\": %q,\n  \"eos_token\": %q\n}\n", known.EndOfText, known.EndOfText)),
		}, nil
	}
	f, err := tokenizer.Open(name)
	if err != nil {
		return nil, nil, err
	}
	files, err := pack.FilesOf(f)
	return f, files, err
}

// tokenizerOf opens the tokenizer of a packed folder, which must be the one it was packed with.
func tokenizerOf(dir string, m *packed.Manifest) (*tokenizer.Folder, error) {
	if m.Tokenizer.Hash == tokenizer.Bytes().Hash() {
		return tokenizer.OpenBytes(), nil
	}
	f, err := tokenizer.Open(filepath.Join(dir, packed.TokenizerDir))
	if err != nil {
		return nil, err
	}
	if f.Hash() != m.Tokenizer.Hash {
		return nil, fault.New("MT0674", f.Dir, "this is not the tokenizer that the data was packed with (%s, not %s)", f.Hash(), m.Tokenizer.Hash).
			Help("pack the data again")
	}
	return f, nil
}
