package cost

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	"github.com/megatrain/mtc/runtime/jsontext"
)

// Check says what a profile lacks or has wrong, by the name of the field; a simulation divides by its
// rates. The least and the most of a figure are far from any machine, so that what is refused is a slip:
// a rate in GB/s, a size in GiB, a figure that was not measured.
func (m *Machine) Check() error { return m.check(limits{1e3, 1, false, true}) }

// limits are the least rate and the longest delay that are taken, whether a launch may take no time, and whether
// figures say where they are from. A simulation takes any that it can count in.
type limits struct {
	rate, seconds float64
	noLaunch      bool
	sources       bool
}

// source refuses a figure of a file that does not say where it is from; one of 0 is not known.
func (l limits) source(name string, f Figure) error {
	if l.sources && f.Value != 0 && strings.TrimSpace(f.Source) == "" {
		return wrong(strings.TrimPrefix(name+".source", "."), "is empty; it says where the figure is from")
	}
	return nil
}

func (l limits) bytes() within { return within{l.rate, 1e18, false, "bytes a second"} }
func (l limits) flops() within { return within{l.rate, 1e21, false, "FLOP a second"} }
func (l limits) delay() within { return within{0, l.seconds, true, "seconds"} }
func (l limits) maybe() within { return within{l.rate, 1e18, true, "bytes a second"} }

// launch may be as short as a call that does nothing.
func (l limits) launch() within { return within{1e-12, l.seconds, l.noLaunch, "seconds"} }

func (m *Machine) check(l limits) error {
	for _, f := range []struct{ field, text string }{{"name", m.Name}, {"title", m.Title}, {"load", m.Load}} {
		if len(f.text) > 200 || strings.ContainsFunc(f.text, func(r rune) bool { return !unicode.IsPrint(r) }) {
			return jsontext.In(f.field, fmt.Errorf("the %s, %.40q, is not a line of text that can be shown", f.field, f.text))
		}
	}
	if strings.TrimSpace(m.Name) == "" {
		return jsontext.In("name", errors.New("the machine has no name"))
	}
	if m.Target != "cpu" && m.Target != "cuda" {
		return jsontext.In("target", fmt.Errorf("machine %s: target is %q, not cpu or cuda", m.Name, m.Target))
	}
	if len(m.Rates) == 0 {
		return jsontext.In("rates", fmt.Errorf("machine %s: it has no rates", m.Name))
	}
	for _, check := range []func(limits) error{m.checkRates, m.checkFigures, m.checkThreads} {
		var e *fieldError
		if err := check(l); errors.As(err, &e) {
			return jsontext.In(e.field, fmt.Errorf("machine %s: %w", m.Name, err))
		}
	}
	return nil
}

// within are the bounds of a figure; optional ones may be 0, which says that they are not known.
type within struct {
	least, most float64
	optional    bool
	unit        string
}

var (
	memoryBytes = within{1 << 20, 1 << 60, false, "bytes"}
	part        = within{1e-3, 1, true, "a part of the rates of products"}
	coreCount   = within{1e-3, 1 << 20, false, "cores"}
)

// fieldError is what is wrong with a field of a profile.
type fieldError struct{ field, what string }

func (e *fieldError) Error() string { return e.field + " " + e.what }

func wrong(field, format string, args ...any) error {
	return &fieldError{field, fmt.Sprintf(format, args...)}
}

// below is an error about a field of a field.
func below(field string, err error) error {
	if e, ok := err.(*fieldError); ok {
		if e.field != "" {
			field += "." + e.field
		}
		return &fieldError{field, e.what}
	}
	return err
}

func (w within) check(name string, x float64) error {
	if w.optional && x == 0 || x >= w.least && x <= w.most { // NaN is neither
		return nil
	}
	return wrong(name, "is %v; %s, from %g to %g, are what it can be", x, w.unit, w.least, w.most)
}

func (m *Machine) checkFigures(l limits) error {
	for _, f := range []struct {
		name string
		Figure
		within
	}{
		{"device_memory", m.DeviceMemory, memoryBytes}, {"host_memory", m.HostMemory, memoryBytes}, {"cores", m.Cores, coreCount},
		{"link.h2d", m.Link.H2D, l.bytes()}, {"link.d2h", m.Link.D2H, l.bytes()}, {"link.both", m.Link.Both, l.bytes()},
		{"link.updating", m.Link.Updating, l.bytes()}, {"link.latency", m.Link.Latency, l.delay()},
		{"host.optimizer", m.Host.Optimizer, l.bytes()}, {"host.copying", m.Host.Copying, l.bytes()}, {"host.memory", m.Host.Memory, l.bytes()},
		{"host.first_touch", m.Host.FirstTouch, l.maybe()},
		{"disk.read", m.Disk.Read, l.maybe()}, {"disk.write", m.Disk.Write, l.maybe()},
	} {
		if err := f.check(f.name, f.Value); err != nil {
			return err
		}
		if err := l.source(f.name, f.Figure); err != nil {
			return err
		}
	}
	return nil
}

func (m *Machine) checkThreads(l limits) error {
	for i, t := range m.Host.Threads {
		name := fmt.Sprintf("host.threads[%d]", i)
		if t.Threads < 1 || t.Threads > 1<<20 || i > 0 && t.Threads <= m.Host.Threads[i-1].Threads {
			return wrong(name+".threads", "is %d; they begin at 1 and ascend", t.Threads)
		}
		if err := l.bytes().check(name+".rate", t.Rate); err != nil {
			return err
		}
	}
	return nil
}

func (m *Machine) checkRates(l limits) error {
	for _, precision := range slices.Sorted(maps.Keys(m.Rates)) {
		if precision != "f32" && precision != "bf16" {
			return wrong("rates."+precision, "is not f32 or bf16")
		}
		r := m.Rates[precision]
		if r == nil {
			return wrong("rates."+precision, "is empty")
		}
		if err := r.check(l); err != nil {
			return below("rates."+precision, err)
		}
	}
	return nil
}

func (r *Rates) check(l limits) error {
	for _, t := range []struct {
		name string
		*Table
		forms []string
	}{{"product", &r.Product, []string{"nt", "nn", "tn"}}, {"attention", &r.Attention, []string{"forward", "backward"}}} {
		if err := t.check(l, t.forms); err != nil {
			return below(t.name, err)
		}
	}
	for _, f := range []struct {
		name string
		Figure
		within
	}{
		{"memory", r.Memory, l.bytes()}, {"optimizer", r.Optimizer, l.bytes()},
		{"sustained", r.Sustained, part}, {"launch", r.Launch, l.launch()},
	} {
		if err := f.check(f.name, f.Value); err != nil {
			return err
		}
		if err := l.source(f.name, f.Figure); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.Kernels)) {
		c := r.Kernels[name]
		if err := c.check(l); err != nil {
			return below("kernels."+name, err)
		}
	}
	return nil
}

// maxSize is the most that a side of a product is.
const maxSize = 1 << 40

func (t *Table) check(l limits, forms []string) error {
	if len(t.Points) == 0 {
		return wrong("", "has no points")
	}
	if err := l.source("", Figure{1, t.Source}); err != nil {
		return err
	}
	for i, p := range t.Points {
		if !slices.Contains(forms, p.Form) {
			return wrong(fmt.Sprintf("points[%d].form", i), "is %q; there are %s", p.Form, strings.Join(forms, ", "))
		}
		if n := min(p.M, p.N, p.K); n < 1 {
			return wrong(fmt.Sprintf("points[%d]", i), "has sizes %d, %d and %d; each is at least 1", p.M, p.N, p.K)
		} else if n := max(p.M, p.N, p.K); n > maxSize {
			return wrong(fmt.Sprintf("points[%d]", i), "has a size of %d; each is at most %d", n, int64(maxSize))
		}
		if err := l.flops().check(fmt.Sprintf("points[%d].rate", i), p.Rate); err != nil {
			return err
		}
	}
	return nil
}

func (c *Curve) check(l limits) error {
	if len(c.Points) == 0 {
		return wrong("", "has no points")
	}
	if err := l.source("", Figure{1, c.Source}); err != nil {
		return err
	}
	for i, p := range c.Points {
		if p.Bytes < 1 || p.Bytes > 1<<60 || i > 0 && p.Bytes <= c.Points[i-1].Bytes {
			return wrong(fmt.Sprintf("points[%d].bytes", i), "is %d; they begin at 1 and ascend, to 2^60 at most", p.Bytes)
		}
		if err := l.bytes().check(fmt.Sprintf("points[%d].rate", i), p.Rate); err != nil {
			return err
		}
	}
	return nil
}
