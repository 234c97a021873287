package main

import (
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/megatrain/mtc/runtime/data/packed"
)

func newDataShowCmd(e *env) *cobra.Command {
	var row int64
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "show DIR",
		Short: "what a packed folder holds, and a document token by token",
		Long: `
Without --row, what was packed and how. With it, a document: for every token its place, a
star where it is learned, its id, and its text.`,
		Example: "  mtc data show packed\n  mtc data show packed --row 12",
		Args:    argRange(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := packed.Open(args[0])
			if err != nil {
				return err
			}
			defer s.Close()
			if cmd.Flags().Changed("row") {
				return showRow(e, s, row, asJSON)
			}
			return showFolder(e, s, asJSON)
		},
	}
	fs := cmd.Flags()
	fs.Int64Var(&row, "row", 0, "show document `N`, from 0")
	fs.BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func showFolder(e *env, s *packed.Set, asJSON bool) error {
	m := s.Manifest
	if asJSON {
		return json.NewEncoder(e.out).Encode(m)
	}
	fmt.Fprintf(e.out, "documents  %d, %s, the longest of %d tokens\n", m.Documents, map[bool]string{true: "kept apart", false: "one after another"}[m.Apart], m.Longest)
	fmt.Fprintf(e.out, "tokens     %d (u%d), %d of them learned (loss: %s)\n", m.Tokens, 8*m.Width, m.Learned, m.Loss)
	fmt.Fprintf(e.out, "tokenizer  %s (%s), vocabulary %d\n", m.Tokenizer.Name, m.Tokenizer.Hash, m.Tokenizer.Vocab)
	for _, sh := range m.Shards {
		fmt.Fprintf(e.out, "shard      %s: %d documents, %d tokens\n", sh.File, sh.Documents, sh.Tokens)
	}
	return nil
}

func showRow(e *env, s *packed.Set, row int64, asJSON bool) error {
	if row < 0 || row >= s.Documents() {
		return usageErrorf("there is no document %d", row).hint("the folder has %d, from 0 to %d", s.Documents(), s.Documents()-1)
	}
	tok, err := tokenizerOf(s.Dir, s.Manifest)
	if err != nil {
		return err
	}
	n := s.Len(row)
	tokens, learn := make([]int32, n), make([]bool, n)
	if err := s.Read(row, 0, tokens, learn); err != nil {
		return err
	}
	text := make([]string, n)
	for i, t := range tokens {
		text[i] = string(tok.Tokenizer.Bytes(t))
	}
	if asJSON {
		return json.NewEncoder(e.out).Encode(map[string]any{"document": row, "tokens": tokens, "learn": learn, "pieces": text, "text": tok.Decode(tokens, false)})
	}
	learned := 0
	for _, l := range learn {
		if l {
			learned++
		}
	}
	fmt.Fprintf(e.out, "document %d: %d tokens, %d learned (*)\n", row, n, learned)
	for i, t := range tokens {
		mark := ' '
		if learn[i] {
			mark = '*'
		}
		fmt.Fprintf(e.out, "%7d %c %7d  %s\n", i, mark, t, strconv.Quote(text[i]))
	}
	return nil
}
