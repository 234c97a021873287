package main

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/megatrain/mtc/compiler/schedule"
	"github.com/megatrain/mtc/lang/diag/suggest"
	"github.com/megatrain/mtc/runtime/fault"
	"github.com/megatrain/mtc/runtime/plan"
)

// scheduleFile is the plan in a build folder, for people and tools.
const scheduleFile = "schedule.json"

// inspectOptions are the flags of inspect.
type inspectOptions struct {
	json, memory bool
	list         string
	task         int
}

func newInspectCmd(e *env) *cobra.Command {
	var o inspectOptions
	cmd := &cobra.Command{
		Use:   "inspect [BUILD]",
		Short: "show the schedule of a build: timeline, memory, work by kind",
		Long: `
Reads schedule.json of a build folder (the newest in build/ when none is named) and shows, for
each lane, what a steady training step does over time, the work by kind of task, and the
memory by arena. The times are those of a nominal machine: they show which lane waits for
which, not how long a step takes here. --json prints the schedule as it is.`,
		Example: "  mtc inspect build/nano\n  mtc inspect --memory\n  mtc inspect --list steady\n  mtc inspect --task 12",
		Args:    argRange(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var views []string
			for _, v := range []string{"json", "memory", "list", "task"} {
				if cmd.Flags().Changed(v) {
					views = append(views, "--"+v)
				}
			}
			if len(views) > 1 {
				return usageErrorf("%s cannot be shown at once", suggest.List(views)).hint("give one of them")
			}
			path, err := inspectPath(args)
			if err != nil {
				return err
			}
			return inspect(e, path, o, cmd.Flags().Changed("task"))
		},
	}
	fs := cmd.Flags()
	fs.BoolVar(&o.json, "json", false, "print the schedule as JSON")
	fs.BoolVar(&o.memory, "memory", false, "show what each arena holds")
	enumFlag(fs, &o.list, "list", "", "show the tasks of a list", append([]string{"none"}, listNames()...)...)
	fs.IntVar(&o.task, "task", 0, "show task `N`")
	return cmd
}

func listNames() []string {
	var out []string
	for l := range plan.NumLists {
		out = append(out, l.String())
	}
	return out
}

// inspectPath is the schedule file of the build that is meant.
func inspectPath(args []string) (string, error) {
	if len(args) == 1 {
		if info, err := os.Stat(args[0]); err == nil && !info.IsDir() {
			return args[0], nil
		}
		return filepath.Join(args[0], scheduleFile), nil
	}
	found, err := filepath.Glob(filepath.Join("build", "*", scheduleFile))
	if err != nil {
		return "", err
	}
	newest, when := "", time.Time{}
	for _, path := range found {
		if info, err := os.Stat(path); err == nil && (newest == "" || info.ModTime().After(when)) {
			newest, when = path, info.ModTime()
		}
	}
	if newest == "" {
		return "", usageErrorf("there is no build in build/").hint("write `mtc compile FILE.mt`, or name a build folder")
	}
	return newest, nil
}

func inspect(e *env, path string, o inspectOptions, task bool) error {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return noBuild(path)
	}
	if err != nil {
		return err
	}
	f, err := schedule.Parse(text)
	if err != nil {
		return inputErrorf("%s: %v", path, err).hint("write `mtc compile FILE.mt` to make it anew")
	}
	var out bytes.Buffer
	switch {
	case o.json:
		out.Write(text)
	case o.memory:
		f.WriteMemory(&out, true)
	case o.list != "none":
		f.WriteTimeline(&out, o.list)
		out.WriteByte('\n')
		f.WriteList(&out, o.list)
	case task:
		if err := f.WriteTask(&out, o.task); err != nil {
			return usageErrorf("%v", err).hint("`mtc inspect --list steady` lists those of a training step")
		}
	default:
		f.WriteText(&out)
	}
	_, err = e.out.Write(out.Bytes())
	return err
}

// noBuild words the error of a folder without a schedule.
func noBuild(path string) error {
	dir := filepath.Dir(path)
	parent, name := filepath.Split(dir)
	ce := inputErrorf("there is no %s in %s", scheduleFile, dir)
	entries, _ := os.ReadDir(filepath.Clean("./" + parent))
	if filepath.IsAbs(dir) {
		entries, _ = os.ReadDir(parent)
	}
	var names []string
	for _, entry := range entries {
		if entry.IsDir() {
			names = append(names, entry.Name())
		}
	}
	if near := suggest.Nearest(name, names); near != "" {
		return ce.hint("did you mean `%s`?", parent+near)
	}
	return ce.hint("write `mtc compile FILE.mt -o %s`", fault.Shell(dir))
}
