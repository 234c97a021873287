package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/megatrain/mtc/compiler/cost"
	"github.com/megatrain/mtc/compiler/planner"
	"github.com/megatrain/mtc/compiler/schedule"
	"github.com/megatrain/mtc/compiler/view"
	"github.com/megatrain/mtc/lang/diag"
	"github.com/megatrain/mtc/runtime/plan"
	"github.com/megatrain/mtc/runtime/program"
	"github.com/megatrain/mtc/runtime/telemetry"
)

func newPlanCmd(e *env) *cobra.Command {
	var o compileOptions
	var whatIf []string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "plan [FILE.mt]",
		Short: "whether a model fits a machine, and how fast it trains there",
		Long: "Chooses what the flags leave open for the least predicted step time within the memory there\n" +
			"is, and says what comes of it; it builds nothing. --what-if takes other machines, memory,\n" +
			"batches and lengths, as KEY=VALUE with commas: gpu, link, host, device, batch, seq. Several\n" +
			"values of a key, gpu=rtx4090,h200, and several flags are combined with each other.",
		Example: "  mtc plan qwen2.5-7b.mt --machine h200\n  mtc plan m.mt --machine rtx4090 --host-memory 128GiB\n" +
			"  mtc plan m.mt --what-if gpu=rtx4090,h200 --what-if batch=65536,262144",
		Args: argRange(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			path, err := modelFile(args)
			if err != nil {
				return err
			}
			if err := o.check(); err != nil {
				return err
			}
			o.plans(cmd.Flags().Changed)
			if len(whatIf) > 0 {
				return planWhatIf(cmd.Context(), e, o, path, whatIf, asJSON)
			}
			e.noteUnused(&o, cmd.Flags().Changed)
			e.noteOneMemory(&o)
			return planOne(cmd.Context(), e, o, path, asJSON)
		},
	}
	o.bind(cmd.Flags())
	o.bindMachine(cmd.Flags())
	cmd.Flags().StringArrayVar(&whatIf, "what-if", nil, "`KEY=VALUE,...` to try instead; repeat it for more")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print it as JSON")
	return cmd
}

// plans marks that the planner chooses, as plan always does.
func (o *compileOptions) plans(given func(flag string) bool) {
	placement := o.Placement
	if !given("placement") {
		o.Placement = "auto"
	}
	o.choose(given)
	if o.Placement = placement; placement == "auto" {
		o.Pinned = slices.DeleteFunc(o.Pinned, func(s string) bool { return s == "placement" })
	}
	if !o.Planned { // a placement was given, and nothing else that asks for a plan
		o.Planned, o.Pinned = true, nil
		for _, f := range plannedFlags {
			if given(f) {
				o.Pinned = append(o.Pinned, f)
			}
		}
	}
}

func planOne(ctx context.Context, e *env, o compileOptions, path string, asJSON bool) error {
	var l diag.List
	o.tell = e.err
	c, err := o.plan(ctx, path, &l)
	if err != nil {
		return err
	}
	e.warn(&l)
	if asJSON {
		enc := json.NewEncoder(e.out)
		enc.SetIndent("", "  ")
		return enc.Encode(planReport(c))
	}
	writePlan(e.out, c)
	return nil
}

// planJSON is a plan's report.
type planJSON struct {
	Model   string `json:"model"`
	Params  int64  `json:"params"`
	Trained int64  `json:"trained,omitempty"` // where not all learn
	Machine string `json:"machine"`
	Load    string `json:"machine_load,omitempty"` // what else used it while it was measured
	Target  string `json:"target"`

	Device      int64 `json:"device_bytes"`
	DeviceLimit int64 `json:"device_limit"`
	Host        int64 `json:"host_bytes"`
	HostLimit   int64 `json:"host_limit"`

	Tokens      int64           `json:"tokens"`
	Seconds     float64         `json:"seconds"`
	Rate        float64         `json:"tokens_per_second"`
	FLOPs       float64         `json:"flops_per_second"` // 6 x parameters x tokens / time
	Steps       int64           `json:"steps"`
	RunSeconds  float64         `json:"run_seconds"`
	Path        []planner.Share `json:"critical_path"`
	Lanes       []cost.LaneUse  `json:"lanes"`
	HidesLink   int64           `json:"tokens_hide_link,omitempty"`
	HidesHost   int64           `json:"tokens_hide_host,omitempty"`
	Weights     int64           `json:"checkpoint_weights"`
	Checkpoint  int64           `json:"checkpoint_bytes"`
	SaveSeconds float64         `json:"checkpoint_seconds,omitempty"`

	Cut     bool                `json:"search_cut,omitempty"` // the schedules are too long to look at all
	Choices []planner.Reason    `json:"choices"`
	Others  []otherJSON         `json:"others,omitempty"`
	Memory  schedule.FileMemory `json:"memory"`
}

type otherJSON struct {
	Flags   string  `json:"flags"`
	Seconds float64 `json:"seconds"`
}

func planReport(c *planner.Choice) planJSON {
	p, t := c.Plan, c.Timeline
	r := planJSON{
		Model: p.Model, Params: p.NumParams, Machine: c.Machine.Name, Load: c.Machine.Load, Target: p.Target,
		Device: c.DevicePeak, DeviceLimit: c.DeviceLimit, Host: c.HostPeak, HostLimit: c.HostLimit,
		Tokens: p.Batch * p.Seq, Seconds: t.Seconds, Rate: t.Rate, FLOPs: c.FLOPs() / t.Seconds,
		Trained: trained(p), Steps: p.Train.Steps, RunSeconds: float64(p.Train.Steps) * t.Seconds,
		Path: planner.Shares(t), Lanes: t.Lanes, Choices: c.Why, Memory: schedule.MemoryOf(p),
	}
	r.HidesLink, r.HidesHost = c.BreakEven()
	r.Cut = c.Cut
	r.Weights, r.Checkpoint = c.Checkpoint()
	if rate := c.Machine.Disk.Write.Value; rate > 0 {
		r.SaveSeconds = float64(r.Checkpoint) / rate
	}
	for _, x := range c.Others {
		r.Others = append(r.Others, otherJSON{planFlags(x.Options), x.Seconds})
	}
	return r
}

// trained is the parameters that learn where others are frozen, 0 where all do.
func trained(p *plan.Plan) int64 {
	if !p.LoRA.On() {
		return 0
	}
	return p.NumTrained()
}

// writePlan prints a plan's report in 80 columns.
func writePlan(w io.Writer, c *planner.Choice) {
	r := planReport(c)
	p := c.Plan
	row := func(name, format string, args ...any) {
		for i, line := range wrapped(fmt.Sprintf(format, args...), 66) {
			if i > 0 {
				name = ""
			}
			fmt.Fprintf(w, "  %-11s %s\n", name, line)
		}
	}
	writeHead(w, fmt.Sprintf("%s (%s): %s parameters, on %s", p.Model, p.Source, telemetry.Group(p.NumParams), c.Machine.Name))
	title := c.Machine.Title
	if r.HostLimit > 0 && r.HostLimit != int64(c.Machine.HostMemory.Value) {
		title += "; planned with " + telemetry.Bytes(r.HostLimit) + " of host memory"
		if p.Target == "cpu" { // there is no other
			title = strings.TrimSuffix(title, "host memory") + "memory"
		}
	}
	row("machine", "%s", title)
	if r.Load != "" {
		row("warning", "%s while the machine was measured: its figures are too low", r.Load)
	}
	fits := fmt.Sprintf("host %s of %s", telemetry.Bytes(r.Host), telemetry.Bytes(r.HostLimit))
	if p.Target != "cpu" {
		beyond := ""
		if has := int64(c.Machine.DeviceMemory.Value); r.DeviceLimit > has {
			beyond = fmt.Sprintf(" (it has %s)", telemetry.Bytes(has))
		}
		fits = fmt.Sprintf("device %s of %s%s, ", telemetry.Bytes(r.Device), telemetry.Bytes(r.DeviceLimit), beyond) + fits
	}
	row("fits", "%s", fits)
	counted := "6N"
	if p.LoRA.On() {
		row("adapters", "%s", program.AdaptersText(p))
		counted = "4N, 6 of adapters"
	}
	row("step", "%s for %s tokens: %s tokens/s, %s (%s)", view.Seconds(r.Seconds), telemetry.Group(r.Tokens),
		telemetry.Group(int64(math.Round(r.Rate))), view.Rate(r.FLOPs, "FLOP/s"), counted)
	if r.Steps > 0 {
		row("run", "%s steps in %s", telemetry.Group(r.Steps), telemetry.Seconds(r.RunSeconds))
	}
	var parts []string
	for _, x := range r.Path {
		if x.Part >= 0.005 {
			parts = append(parts, fmt.Sprintf("%s %s", x.Bound, view.Percent(x.Part)))
		}
	}
	row("bound by", "%s", strings.Join(parts, ", "))
	parts = nil
	for _, u := range r.Lanes {
		if u.Busy > 0.001*r.Seconds {
			text := fmt.Sprintf("%s %s", u.Lane, view.Percent(u.Busy/r.Seconds))
			if u.Lane != "compute" && u.Exposed > 0.001*r.Seconds {
				text += fmt.Sprintf(" (%s exposed)", view.Seconds(u.Exposed))
			}
			parts = append(parts, text)
		}
	}
	row("lanes busy", "%s", strings.Join(parts, ", "))
	if r.HidesLink > 0 || r.HidesHost > 0 {
		row("break-even", "%s tokens a step hide the link, %s the host's updates", tokensText(r.HidesLink), tokensText(r.HidesHost))
	}
	save := fmt.Sprintf("%s, of it weights %s", telemetry.Bytes(r.Checkpoint), telemetry.Bytes(r.Weights))
	if r.SaveSeconds > 0 {
		save += fmt.Sprintf("; written in %s", telemetry.Seconds(r.SaveSeconds))
	}
	row("checkpoint", "%s", save)
	own := process(&r)
	row("device", "%s", holds(r.Memory, "device", "libraries", own.device))
	row("host", "%s", holds(r.Memory, "host", "the process", own.host))
	if r.Cut {
		row("search", "cut short: this is the best found so far, because schedules of %s tasks take long to make", telemetry.Group(int64(len(p.Tasks))))
	}
	fmt.Fprintf(w, "  choices\n")
	for _, x := range r.Choices {
		flag, value := x.Flag, quoted(x.Value)
		if len(value) > 9 {
			for _, line := range wrapped(value, 58) {
				fmt.Fprintf(w, "    %-15s %s\n", flag, line)
				flag, value = "", ""
			}
		}
		for _, line := range wrapped(x.Why, 48) {
			fmt.Fprintf(w, "    %-15s %-9s %s\n", flag, value, line)
			flag, value = "", ""
		}
	}
	writeOthers(w, &r)
}

// mostOthers is how many of the plans that were not chosen are shown.
const mostOthers = 4

// writeOthers lists plans that were not chosen. Those that take as long as the choice, to a tenth of a percent,
// say nothing; faster ones are in the list because a plainer plan is taken before them, which is said.
func writeOthers(w io.Writer, r *planJSON) {
	var shown []otherJSON
	for _, x := range r.Others {
		if len(shown) < mostOthers && signedPercent(x.Seconds/r.Seconds-1) != "0.0 %" {
			shown = append(shown, x)
		}
	}
	if len(shown) == 0 {
		return
	}
	title := "also tried"
	if shown[0].Seconds < r.Seconds {
		title += "; a plainer plan is taken before those under 1.5 % faster"
	}
	fmt.Fprintf(w, "  %s\n", title)
	for _, x := range shown {
		difference := signedPercent(x.Seconds/r.Seconds - 1)
		for _, line := range wrapped(x.Flags, 58) {
			fmt.Fprintf(w, "    %-9s %s\n", difference, line)
			difference = ""
		}
	}
}

func tokensText(n int64) string {
	if n >= 1<<50 {
		return "no number of"
	}
	return telemetry.Group(n)
}

// own is what no arena has: a device's context and libraries, and on the host these, the Go heap and
// what passes through.
type own struct{ device, host int64 }

func process(r *planJSON) own {
	arenas := map[string]int64{}
	for _, a := range r.Memory.Arenas {
		arenas[a.Memory] += a.Bytes
	}
	if r.Target == "cpu" { // both memories are one
		return own{0, r.Host - arenas["host"] - arenas["device"]}
	}
	return own{r.Device - arenas["device"], r.Host - arenas["host"]}
}

// holds says what a memory holds by purpose, the largest first; what is small is left out, but for what no
// arena has, which comes last. Of an arena whose buffers share memory at different times it says its own size.
func holds(m schedule.FileMemory, memory, rest string, bytes int64) string {
	type part struct {
		what  string
		bytes int64
	}
	var parts []part
	var total int64
	add := func(what string, bytes int64) {
		total += bytes
		for i := range parts {
			if parts[i].what == what {
				parts[i].bytes += bytes
				return
			}
		}
		parts = append(parts, part{what, bytes})
	}
	for _, a := range m.Arenas {
		if a.Memory != memory {
			continue
		}
		var sum int64
		for _, h := range a.Holds {
			sum += h.Bytes
		}
		if sum > a.Bytes {
			_, what, _ := strings.Cut(a.Name, ".")
			add(what+" that share memory", a.Bytes)
			continue
		}
		for _, h := range a.Holds {
			add(h.Purpose, h.Bytes)
		}
	}
	slices.SortStableFunc(parts, func(a, b part) int { return cmp.Compare(b.bytes, a.bytes) })
	var out []string
	for _, p := range parts {
		if p.bytes > 0 && p.bytes*100 >= total {
			out = append(out, fmt.Sprintf("%s %s", p.what, telemetry.Bytes(p.bytes)))
		}
	}
	if bytes > 0 {
		out = append(out, fmt.Sprintf("%s %s", rest, telemetry.Bytes(bytes)))
	}
	return strings.Join(out, ", ")
}

// signedPercent writes a part with its sign; what rounds to nothing has none.
func signedPercent(part float64) string {
	tenths := math.Round(1000 * part)
	if tenths == 0 {
		return "0.0 %"
	}
	return fmt.Sprintf("%+.1f %%", tenths/10)
}

// quoted is a value as a shell takes it: brackets are patterns there.
func quoted(value string) string {
	if strings.Contains(value, "[") {
		return "'" + value + "'"
	}
	return value
}

// wrapped breaks a text between words, and a word that is longer than a line, such as a list of layers, after
// commas: --resident and --recompute take it with the breaks.
func wrapped(text string, width int) []string {
	var out []string
	line, space := "", false // whether a word begins
	put := func(part string) {
		gap := ""
		if space && line != "" {
			gap = " "
		}
		if line != "" && utf8.RuneCountInString(line+gap+part) > width {
			out = append(out, line)
			line, gap = "", ""
		}
		line, space = line+gap+part, false
	}
	for _, word := range strings.Fields(text) {
		space = true
		if utf8.RuneCountInString(word) <= width {
			put(word)
			continue
		}
		for part := range strings.SplitAfterSeq(word, ",") {
			put(part)
		}
	}
	return append(out, line)
}
