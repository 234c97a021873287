package main

import (
	_ "embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/megatrain/mtc/lang/parser"
	"github.com/megatrain/mtc/runtime/fault"
)

//go:embed new.mt
var newModel string

func newNewCmd(e *env) *cobra.Command {
	return &cobra.Command{
		Use:     "new NAME",
		Short:   "write a small commented model to start from",
		Long:    "Writes NAME.mt: a byte-level decoder of about a million parameters that compiles and trains as it is.",
		Example: "  mtc new my && mtc run my.mt --data text.txt",
		Args:    argRange(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			file := strings.TrimSuffix(args[0], ".mt") + ".mt"
			name, err := modelName(file)
			if err != nil {
				return err
			}
			text := strings.ReplaceAll(newModel, "mtc run NAME.mt", "mtc run "+fault.Shell(file))
			text = strings.ReplaceAll(text, "NAME", name)
			formatted, err := formatText(file, []byte(text))
			if err != nil {
				return err
			}
			if err := createFile(file, func(w io.Writer) error { _, err := w.Write(formatted); return err }); err != nil {
				return err
			}
			fmt.Fprintf(e.out, "wrote %s\nnext: mtc run %s --data FILE-OR-FOLDER    trains it on text of yours\n", file, fault.Shell(file))
			return nil
		},
	}
}

var notInNames = regexp.MustCompile(`[^A-Za-z0-9_]+`)

// modelName makes the name of a model from that of its file.
func modelName(file string) (string, error) {
	name := notInNames.ReplaceAllString(strings.TrimSuffix(filepath.Base(file), ".mt"), "_")
	if strings.Trim(name, "_") == "" || name[0] >= '0' && name[0] <= '9' {
		return "", usageErrorf("`%s` gives no name for a model", strings.TrimSuffix(file, ".mt")).hint("start it with a letter")
	}
	for _, r := range parser.Reserved {
		if r == name {
			return "", usageErrorf("`%s` is a reserved word, it cannot be a model's name", name).hint("try `mtc new %s1`", name)
		}
	}
	return name, nil
}

// createFile writes a file that must not be there yet; nothing is left of it on an error.
func createFile(name string, write func(w io.Writer) error) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	switch {
	case errors.Is(err, fs.ErrExist):
		return inputErrorf("%s is there already", name).hint("choose another name, or remove the file first")
	case err != nil:
		return machineErrorf("%s cannot be written: %v", name, reasonOf(err)).hint("choose a folder that can be written")
	}
	if err := errors.Join(write(f), f.Close()); err != nil {
		os.Remove(name)
		return machineErrorf("%s cannot be written: %v", name, reasonOf(err)).hint("free some space, or choose another folder")
	}
	return nil
}
