package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/megatrain/mtc/compiler/view"
	"github.com/megatrain/mtc/lang/diag/suggest"
	"github.com/megatrain/mtc/runtime/plan"
)

// inspectOptions are the flags of inspect.
type inspectOptions struct {
	json, memory  bool
	list          string
	task          int
	why           string
	machine       string
	html, trace   string
	moe           string
	data          []string
	asked, whying bool // --task, --why
}

func newInspectCmd(e *env) *cobra.Command {
	var o inspectOptions
	cmd := &cobra.Command{
		Use:   "inspect [BUILD | RUN]",
		Short: "where a step's time and memory go: timeline, lanes, critical path",
		Long: `
Reads schedule.json of a build folder (the newest in build/ when none is named) or of a run
folder, and shows a steady training step over time: what each lane does, how much of it
hides behind the computation, the critical path, the costliest tasks with their line of the
.mt, and the memory that is alive. The times are predicted for --machine; without it for the
machine that the build was planned for, else for this one where mtc bench has measured it. A
run folder with a profile (mtc run --profile) shows the times that were measured.`,
		Example: "  mtc inspect build/nano\n  mtc inspect build/nano --machine h200 --why 12\n  mtc inspect runs/nano --html step.html",
		Args:    argRange(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			given := cmd.Flags().Changed
			var views []string
			for _, v := range []string{"json", "memory", "list", "task", "why"} {
				if given(v) {
					views = append(views, "--"+v)
				}
			}
			if len(views) > 1 && !(len(views) == 2 && o.json && given("why")) {
				return usageErrorf("%s cannot be shown at once", suggest.List(views)).hint("give one of them")
			}
			if len(o.data) > 0 && !given("moe") {
				return usageErrorf("`--data` needs `--moe`").hint("write `--moe FILE` too")
			}
			o.asked, o.whying = given("task"), given("why")
			files, err := o.files(given)
			if err != nil {
				return err
			}
			if given("moe") {
				if err := inspectMoe(cmd.Context(), e, args, o.moe, o.data, o.json); err != nil {
					return err
				}
				if files = files[1:]; len(files)+len(views) == 0 {
					return nil
				}
			}
			s, err := loadSchedule(args)
			if err != nil {
				return err
			}
			if len(views) > 0 || len(files) == 0 {
				if err := inspect(cmd.Context(), e, s, o); err != nil {
					return err
				}
			}
			return writeSteps(e, s, o, files)
		},
	}
	fs := cmd.Flags()
	fs.BoolVar(&o.json, "json", false, "print the schedule and the report on its step as JSON")
	fs.BoolVar(&o.memory, "memory", false, "show what each arena holds")
	enumFlag(fs, &o.list, "list", "", "show the tasks of a list", append([]string{"none"}, listNames()...)...)
	fs.IntVar(&o.task, "task", 0, "show task `N`")
	fs.StringVar(&o.why, "why", "", "say why `TASK` runs when it does, and what other choices would cost: a number, or the beginning of a name, such as \"prefetch layer[2]\"")
	fs.StringVar(&o.machine, "machine", "", "`NAME` or file of a machine's profile to predict for (default: the one planned for; else this machine, if measured)")
	fs.StringVar(&o.html, "html", "", "write the step as one page to `FILE`")
	fs.StringVar(&o.moe, "moe", "", "write what the routers of RUN did, its moe.jsonl, as one page of figures to `FILE`")
	fs.StringArrayVar(&o.data, "data", nil, "with --moe: also how many experts tokens of `PATH` have, by their loss")
	fs.StringVar(&o.trace, "trace", "", "write the step as a Chrome / Perfetto trace to `FILE`")
	return cmd
}

func listNames() []string {
	var out []string
	for l := range plan.NumLists {
		out = append(out, l.String())
	}
	return out
}

func listNamed(name string) (plan.List, bool) {
	for l := range plan.NumLists {
		if l.String() == name {
			return l, true
		}
	}
	return 0, false
}

// inspect prints one view.
func inspect(ctx context.Context, e *env, s *loaded, o inspectOptions) error {
	var out bytes.Buffer
	var err error
	switch {
	case o.memory:
		s.File.WriteMemory(&out, true)
	case o.asked:
		if err := s.File.WriteTask(&out, o.task); err != nil {
			return usageErrorf("%v", err).hint("`mtc inspect --list steady` lists those of a training step")
		}
	case o.list != "none":
		l, _ := listNamed(o.list)
		var t *view.Step
		if t, err = s.predict(o.machine, l); err == nil {
			t.WriteTimeline(&out)
			out.WriteByte('\n')
			s.File.WriteList(&out, o.list)
		}
	case o.whying:
		err = inspectWhy(ctx, e, s, o, &out)
	default:
		err = inspectStep(s, o, &out)
	}
	if err != nil {
		return err
	}
	_, err = e.out.Write(out.Bytes())
	return err
}

// inspectStep shows a steady step.
func inspectStep(s *loaded, o inspectOptions, out *bytes.Buffer) error {
	predicted, measured, err := s.steps(o.machine)
	if err != nil {
		return err
	}
	if o.json {
		return inspectJSON(out, s, predicted, measured)
	}
	shown := predicted
	if measured != nil {
		shown = measured
	}
	s.File.WriteHead(out)
	fmt.Fprintln(out)
	shown.WriteText(out)
	if measured != nil {
		fmt.Fprintf(out, "\n%s: %s (%s of what was measured)\n`mtc compare` compares them\n",
			predicted.Origin(), view.Seconds(predicted.Line.Seconds), view.Percent(predicted.Line.Seconds/measured.Line.Seconds))
	}
	fmt.Fprintln(out)
	predicted.WriteRouters(out)
	s.File.WriteKinds(out, "steady")
	fmt.Fprintln(out)
	s.File.WriteMemory(out, false)
	return nil
}

// inspectJSON prints the keys of schedule.json and, beside them, the reports.
func inspectJSON(out *bytes.Buffer, s *loaded, predicted, measured *view.Step) error {
	text := bytes.TrimRight(s.text, " \t\r\n}")
	out.Write(text)
	for _, r := range []struct {
		key  string
		step *view.Step
	}{{"predicted", predicted}, {"measured", measured}} {
		report := []byte("null")
		if r.step != nil {
			var err error
			if report, err = json.MarshalIndent(r.step.Report(), "  ", "  "); err != nil {
				return err
			}
		}
		fmt.Fprintf(out, ",\n  %q: %s", r.key, report)
	}
	out.WriteString("\n}\n")
	return nil
}
