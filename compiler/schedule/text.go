package schedule

import (
	"fmt"
	"io"
	"strings"
)

// Width is the width of everything printed, in columns.
const Width = 80

// WriteHead prints the plan in a few lines.
func (f *File) WriteHead(out io.Writer) {
	w := &strings.Builder{}
	defer func() { _, _ = io.WriteString(out, within(w.String())) }() // writers keep their errors
	fmt.Fprintf(w, "%s: %s parameters, %s, target %s", f.Model, Count(f.Params), f.Placement, f.Target)
	if f.Placement == Stream {
		fmt.Fprintf(w, ", %d weight and %d gradient slots", f.Slots, f.GradSlots)
	}
	if f.SavedInputs > 0 {
		fmt.Fprintf(w, ", %s saved", plural(f.SavedInputs, "input"))
	}
	if f.SavedLayers > 0 {
		fmt.Fprintf(w, ", values of %s saved", plural(f.SavedLayers, "layer"))
	}
	if f.DeviceGrads > 0 {
		fmt.Fprintf(w, ", %s on the device", plural(f.DeviceGrads, "gradient"))
	}
	if f.GradPrecision != "" {
		fmt.Fprintf(w, ", gradients in %s", f.GradPrecision)
	}
	if len(f.Routers) > 0 {
		fmt.Fprintln(w)
		f.writeRouters(w)
		fmt.Fprint(w, "a step")
	} else {
		fmt.Fprint(w, "\na step")
	}
	fmt.Fprintf(w, ": %d rows of %d tokens in %s of %d", f.Batch, f.Seq, plural(f.Micros, "micro-batch"), f.Rows)
	if f.Groups > 1 {
		fmt.Fprintf(w, ", %d groups", f.Groups)
	}
	if f.Clip {
		fmt.Fprintln(w, "\nclipped: updates run under the next step's forward")
	} else {
		fmt.Fprintln(w, "\nnot clipped: updates follow their gradients")
	}
	var decayed int64
	for i := range f.Slabs {
		decayed += f.Slabs[i].Decayed
	}
	if f.Trained > 0 {
		fmt.Fprintf(w, "adapters: %s parameters learn, %s are frozen: they have weights alone\n", Count(f.Trained), Count(f.Params-f.Trained))
		fmt.Fprintf(w, "weight decay: %s parameters, of adapters\n", Count(decayed))
		return
	}
	if decayed == f.Params {
		fmt.Fprintf(w, "weight decay: all %s parameters\n", Count(decayed))
		return
	}
	fmt.Fprintf(w, "weight decay: %s parameters, of matrices; %s of norms and biases have none\n", Count(decayed), Count(f.Params-decayed))
}

// within breaks the lines of a text that are wider than Width between words; what follows is set in.
func within(text string) string {
	var b strings.Builder
	for _, line := range strings.SplitAfter(text, "\n") {
		for len(strings.TrimRight(line, "\n")) > Width {
			at := strings.LastIndexByte(line[:Width+1], ' ')
			if strings.TrimSpace(line[:max(0, at)]) == "" { // a word that is longer stands alone
				from := len(line) - len(strings.TrimLeft(line, " "))
				if at = strings.IndexByte(line[from:], ' '); at < 0 {
					break
				}
				at += from
			}
			b.WriteString(line[:at] + "\n")
			line = "  " + line[at+1:]
		}
		b.WriteString(line)
	}
	return b.String()
}

// kindOf is what a task counts as: the function of a compute task, else its kind.
func kindOf(t *FileTask) string {
	if t.Func != "" {
		return t.Func
	}
	return t.Kind
}

// WriteKinds prints the number of tasks, FLOPs and bytes of a list by kind and lane.
func (f *File) WriteKinds(w io.Writer, list string) {
	type row struct {
		kind, lane   string
		tasks        int64
		flops, bytes int64
	}
	var rows []row
	total := row{kind: "all"}
	for i := range f.Tasks {
		t := &f.Tasks[i]
		if t.List != list {
			continue
		}
		k := 0
		for k < len(rows) && (rows[k].kind != kindOf(t) || rows[k].lane != t.Lane) {
			k++
		}
		if k == len(rows) {
			rows = append(rows, row{kind: kindOf(t), lane: t.Lane})
		}
		for _, r := range []*row{&rows[k], &total} {
			r.tasks++
			r.flops += t.FLOPs
			r.bytes += t.Bytes
		}
	}
	fmt.Fprintf(w, "%-12s %-8s %8s %12s %12s\n", list, "lane", "tasks", "FLOPs", "bytes")
	for _, r := range append(rows, total) {
		fmt.Fprintf(w, "%-12s %-8s %8d %12s %12s\n", r.kind, r.lane, r.tasks, short(r.flops), Bytes(r.bytes))
	}
}

// WriteMemory prints the arenas; with all, what they hold.
func (f *File) WriteMemory(w io.Writer, all bool) {
	m := &f.Memory
	fmt.Fprintf(w, "%-32s %-8s %12s\n", "memory", "", "bytes")
	for _, a := range m.Arenas {
		fmt.Fprintf(w, "%-32s %-8s %12s\n", a.Name, a.Memory, Bytes(a.Bytes))
		if !all {
			continue
		}
		var sum int64
		for _, h := range a.Holds {
			sum += h.Bytes
			fmt.Fprintf(w, "  %-22s %7d %-8s %12s\n", h.Purpose, h.Buffers, buffers(h.Buffers), Bytes(h.Bytes))
		}
		if sum > a.Bytes {
			fmt.Fprintf(w, "  %-39s %12s\n", "shared by buffers of different times", "-"+Bytes(sum-a.Bytes))
		}
		if a.Generation > 0 && a.Generation < a.Bytes {
			fmt.Fprintf(w, "  %-39s %12s\n", "of which generation needs", Bytes(a.Generation))
		}
	}
	fmt.Fprintf(w, "%-32s %-8s %12s\n", "program and its work memory", "host", Bytes(m.Runtime))
	fmt.Fprintf(w, "%-32s %-8s %12s\n", "peak", "device", Bytes(m.DevicePeak))
	fmt.Fprintf(w, "%-32s %-8s %12s\n", "peak", "host", Bytes(m.HostPeak))
	if all && f.Params > 0 {
		each := func(bytes int64) string { return fmt.Sprintf("%.2f B", float64(bytes)/float64(f.Params)) }
		fmt.Fprintf(w, "%-32s %-8s %12s\n", "peak, for each parameter", "device", each(m.DevicePeak))
		fmt.Fprintf(w, "%-32s %-8s %12s\n", "peak, for each parameter", "host", each(m.HostPeak))
	}
	if f.Target == "cpu" {
		fmt.Fprintf(w, "%-32s %-8s %12s\n", "peak of the process", "both", Bytes(m.DevicePeak+m.HostPeak))
	}
}

func buffers(n int) string {
	if n == 1 {
		return "buffer"
	}
	return "buffers"
}

// WriteList prints the tasks of a list in submission order, one a line.
func (f *File) WriteList(w io.Writer, list string) {
	const format = "%6v %-7s %-10s %-18s %5s %9s  %s"
	fmt.Fprintf(w, format+"\n", "task", "lane", "does", "of", "micro", "bytes", "waits for")
	for i := range f.Tasks {
		t := &f.Tasks[i]
		if t.List != list {
			continue
		}
		micro, does := "", kindOf(t)
		if t.Micro >= 0 {
			micro = fmt.Sprint(t.Micro)
		}
		if t.Step < 0 {
			does += "'"
		}
		line := fmt.Sprintf(format, t.ID, t.Lane, does, clip(subject(t), 18), micro, Bytes(t.Bytes), waitList(t.Waits))
		fmt.Fprintln(w, strings.TrimRight(line, " "))
	}
	fmt.Fprintln(w, "\n' belongs to the step before, as does a task that is waited for")
}

// subject is the slab or the unit that a task is about.
func subject(t *FileTask) string {
	if t.Slab != "" {
		return t.Slab
	}
	return t.Unit
}

// waitList is "12 40'".
func waitList(ws []FileWait) string {
	var s []string
	for _, x := range ws {
		mark := ""
		if x.Back == 1 {
			mark = "'"
		}
		s = append(s, fmt.Sprint(x.Task)+mark)
	}
	return strings.Join(s, " ")
}

// WriteTask prints everything about one task.
func (f *File) WriteTask(w io.Writer, id int) error {
	if id < 0 || id >= len(f.Tasks) {
		return fmt.Errorf("there is no task %d: tasks go from 0 to %d", id, len(f.Tasks)-1)
	}
	t := &f.Tasks[id]
	row := func(name, format string, args ...any) {
		for _, s := range strings.Split(fmt.Sprintf(format, args...), "\n") {
			line := ""
			for _, word := range strings.Fields(s) {
				if line != "" && len(line)+1+len(word) > Width-11 {
					fmt.Fprintf(w, "%-10s %s\n", name, line)
					name, line = "", " "
				}
				if strings.TrimSpace(line) != "" {
					line += " "
				}
				line += word
			}
			if line != "" {
				fmt.Fprintf(w, "%-10s %s\n", name, line)
				name = ""
			}
		}
	}
	row("task", "%d", t.ID)
	row("list", "%s", t.List)
	row("does", "%s", kindOf(t))
	row("lane", "%s", t.Lane)
	row("unit", "%s", t.Unit)
	row("slab", "%s", t.Slab)
	if t.Micro >= 0 {
		row("micro", "%d", t.Micro)
	}
	if t.Step < 0 {
		row("step", "the one before")
	}
	row("template", "%s", t.Template)
	row("written at", "%s", t.Span)
	row("reads", "%s", strings.Join(t.Reads, "\n"))
	row("writes", "%s", strings.Join(t.Writes, "\n"))
	if t.Src != "" {
		row("copies", "%s from %s to %s", Bytes(t.Bytes), t.Src, t.Dst)
	}
	for _, x := range t.Waits {
		q := &f.Tasks[x.Task]
		when := ""
		if x.Back == 1 {
			when = ", of the step before"
		}
		row("waits for", "%d: %s %s (%s)%s", q.ID, kindOf(q), subject(q), q.Lane, when)
	}
	row("FLOPs", "%s", Count(t.FLOPs))
	row("bytes", "%s", Count(t.Bytes))
	return nil
}

func clip(s string, n int) string {
	r := []rune(s)
	if len(r) <= n {
		return s
	}
	return string(r[:n-1]) + "~"
}

// Count writes a whole number with thousands apart.
func Count(n int64) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// Bytes writes a size in binary units with three digits that count.
func Bytes(n int64) string {
	if n < 1<<10 {
		return fmt.Sprintf("%d B", n)
	}
	x, units := float64(n), []string{"KiB", "MiB", "GiB", "TiB", "PiB"}
	u := -1
	for x >= 1024 && u < len(units)-1 {
		x /= 1024
		u++
	}
	return threeDigits(x) + " " + units[u]
}

// short writes a count with a decimal prefix.
func short(n int64) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	x, units := float64(n), []string{"k", "M", "G", "T", "P", "E"}
	u := -1
	for x >= 1000 && u < len(units)-1 {
		x /= 1000
		u++
	}
	return threeDigits(x) + " " + units[u]
}

func threeDigits(x float64) string {
	switch {
	case x < 9.995:
		return fmt.Sprintf("%.2f", x)
	case x < 99.95:
		return fmt.Sprintf("%.1f", x)
	}
	return fmt.Sprintf("%.0f", x)
}

func plural(n int64, what string) string {
	switch {
	case n == 1:
		return "1 " + what
	case strings.HasSuffix(what, "ch"):
		return fmt.Sprintf("%d %ses", n, what)
	}
	return fmt.Sprintf("%d %ss", n, what)
}
