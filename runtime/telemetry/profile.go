package telemetry

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"unicode"

	"github.com/megatrain/mtc/runtime/fault"
	"github.com/megatrain/mtc/runtime/jsontext"
)

// ProfileFile is the name of a profile in a run folder.
const ProfileFile = "profile.json"

// ProfileVersion is the version of the format that this package writes and reads.
const ProfileVersion = 1

// Profile is profile.json: when each task of some steady steps ran.
type Profile struct {
	Version  int    `json:"version"`
	Model    string `json:"model"`
	Hash     string `json:"hash"`  // of the plan: plan.Plan.Hash
	Tasks    int    `json:"tasks"` // of the whole plan
	Compiler string `json:"compiler"`
	Target   string `json:"target"`
	Device   string `json:"device"`  // "cpu (2 threads)"
	Machine  string `json:"machine"` // of the host, as far as it can be told
	Unit     string `json:"unit"`    // of all times: "ns"
	// Untimed are the wall times of steady steps that were not timed, in seconds, for the cost
	// of timing.
	Untimed []float64 `json:"untimed"`
	// DeviceBytes and HostBytes are the memory in use: of the GPU, whoever uses it, and the most that
	// the process had of the host's; 0: not known. On a CPU all of it is the host's.
	DeviceBytes int64 `json:"device_bytes,omitempty"`
	HostBytes   int64 `json:"host_bytes,omitempty"`
	// Saved says that the run had saved a checkpoint, for which state passes through the host's memory.
	Saved bool          `json:"saved,omitempty"`
	Steps []ProfileStep `json:"steps"`
}

// ProfileStep is a step. Its wall time is in seconds.
type ProfileStep struct {
	Step    int64         `json:"step"`
	List    string        `json:"list"`
	Seconds float64       `json:"seconds"`
	Tasks   []ProfileTask `json:"tasks"`
}

// ProfileTask is [task, start, end]: the task's number in the plan, and nanoseconds. The times
// of all steps and lanes have one origin.
type ProfileTask [3]int64

// Write writes the profile, a task a line.
func (p *Profile) Write(w io.Writer) error {
	head := *p
	head.Steps = []ProfileStep{}
	text, err := json.MarshalIndent(head, "", "  ")
	if err != nil {
		return err
	}
	const end = "[]\n}"
	b := text[:len(text)-len(end)]
	b = append(b, '[')
	for i, s := range p.Steps {
		if i > 0 {
			b = append(b, ',')
		}
		b = fmt.Appendf(b, "\n    {\"step\": %d, \"list\": %q, \"seconds\": ", s.Step, s.List)
		b = strconv.AppendFloat(b, s.Seconds, 'g', -1, 64)
		b = append(b, `, "tasks": [`...)
		for k, t := range s.Tasks {
			if k > 0 {
				b = append(b, ',')
			}
			b = fmt.Appendf(b, "\n      [%d, %d, %d]", t[0], t[1], t[2])
		}
		b = append(b, "\n    ]}"...)
	}
	b = append(b, "\n  ]\n}\n"...)
	_, err = w.Write(b)
	return err
}

// maxTime and maxBytes bound what a profile says: about 11 days, and a pebibyte.
const (
	maxTime  = 1e15
	maxBytes = 1 << 50
)

// ReadProfile reads a profile and checks all that can be said of it without its plan. Errors
// are *fault.Error.
func ReadProfile(path string) (*Profile, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		var pe *os.PathError
		if errors.As(err, &pe) {
			err = pe.Err
		}
		return nil, fault.New("MT0628", path, "the profile cannot be read").Wrap(err).
			Help("`mtc run --profile` writes one")
	}
	p := &Profile{}
	if err = jsontext.Read(text, p, jsontext.Whole); err == nil || p.Version != 0 && p.Version != ProfileVersion {
		err = jsontext.Explain(text, p.check())
	}
	if err != nil {
		return nil, fault.New("MT0628", path, "this is not a profile of a run").Wrap(err).
			Help("`mtc run --profile` writes one anew")
	}
	return p, nil
}

func (p *Profile) check() error {
	switch {
	case p.Version != ProfileVersion:
		return jsontext.In("version", fmt.Errorf("its version is %d, this mtc reads version %d", p.Version, ProfileVersion))
	case p.Hash == "" || p.Model == "":
		return jsontext.In("hash", errors.New("it names no plan"))
	case p.Target != "cpu" && p.Target != "cuda":
		return jsontext.In("target", fmt.Errorf("its target is %q, not cpu or cuda", p.Target))
	case p.Unit != "ns":
		return jsontext.In("unit", fmt.Errorf("its unit is %q, not ns", p.Unit))
	case len(p.Steps) == 0:
		return jsontext.In("steps", errors.New("it has no steps"))
	}
	for _, x := range []struct {
		field string
		n     int64
	}{{"device_bytes", p.DeviceBytes}, {"host_bytes", p.HostBytes}} {
		if x.n < 0 || x.n > maxBytes {
			return jsontext.In(x.field, fmt.Errorf("%d bytes of the device and %d of the host were in use", p.DeviceBytes, p.HostBytes))
		}
	}
	for _, x := range []struct{ field, text string }{{"model", p.Model}, {"hash", p.Hash}, {"compiler", p.Compiler}, {"device", p.Device}, {"machine", p.Machine}} {
		if len(x.text) > 200 || strings.ContainsFunc(x.text, func(r rune) bool { return !unicode.IsPrint(r) }) {
			return jsontext.In(x.field, fmt.Errorf("its %s, %.40q, is not a line of text that can be shown", x.field, x.text))
		}
	}
	for i, s := range p.Untimed {
		if !(s > 0 && s < maxTime/1e9) {
			return jsontext.In(fmt.Sprintf("untimed[%d]", i), fmt.Errorf("a step of %v seconds", s))
		}
	}
	for i, s := range p.Steps {
		if s.Step < 0 {
			return jsontext.In(fmt.Sprintf("steps[%d].step", i), fmt.Errorf("a step of the number %d", s.Step))
		}
		if i > 0 && s.Step <= p.Steps[i-1].Step {
			return jsontext.In(fmt.Sprintf("steps[%d].step", i), fmt.Errorf("step %d stands behind step %d", s.Step, p.Steps[i-1].Step))
		}
		if task, err := s.check(p.Tasks); err != nil {
			return jsontext.In(fmt.Sprintf("steps[%d]%s", i, task), err)
		}
	}
	return nil
}

// check says what is wrong with a step of a plan of so many tasks, and with what of it.
func (s *ProfileStep) check(tasks int) (what string, err error) {
	switch {
	case !(s.Seconds > 0 && s.Seconds < maxTime/1e9):
		return ".seconds", fmt.Errorf("step %d takes %v seconds", s.Step, s.Seconds)
	case s.List != "steady":
		return ".list", fmt.Errorf("step %d is one of the list %q, not a steady one", s.Step, s.List)
	case len(s.Tasks) == 0:
		return ".tasks", fmt.Errorf("step %d has no tasks", s.Step)
	}
	seen := make(map[int64]bool, len(s.Tasks))
	for i, t := range s.Tasks {
		switch what = fmt.Sprintf(".tasks[%d]", i); {
		case t[0] < 0 || t[0] >= int64(tasks):
			return what, fmt.Errorf("step %d has a task %d, the plan has %d", s.Step, t[0], tasks)
		case seen[t[0]]:
			return what, fmt.Errorf("step %d has task %d twice", s.Step, t[0])
		case t[1] < 0 || t[2] < t[1] || t[2] > maxTime:
			return what, fmt.Errorf("task %d of step %d runs from %d to %d", t[0], s.Step, t[1], t[2])
		}
		seen[t[0]] = true
	}
	return "", nil
}
