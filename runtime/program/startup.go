package program

import (
	"fmt"
	"strings"
	"time"

	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/telemetry"
)

// startup is how long a start took and what its parts did.
type startup struct {
	total  time.Duration
	phases []device.Phase
}

// settle waits for what the device still does beside the program, and takes the time of the
// start; weights is what the weights' first values or those of a checkpoint took. A device that is
// there at once has no start to speak of.
func (s *session) settle(weights time.Duration) error {
	d, ok := s.engine.Device().(device.Starter)
	if !ok {
		return nil
	}
	if err := d.Settle(); err != nil {
		return err
	}
	name := "init"
	if s.from != nil || s.foreign != nil {
		name = "load"
	}
	s.startup = startup{time.Since(s.began), append([]device.Phase{{Name: name, Time: weights}}, d.Phases()...)}
	return nil
}

// text is one line: "11.4 s: init 9.1 s, GPU 0.3 s, memory 0.1 s, kernels 2.0 s; beside them pin 8.2 s".
func (u startup) text() string {
	var own, beside []string
	for _, p := range u.phases {
		t := fmt.Sprintf("%s %.1f s", p.Name, p.Time.Seconds())
		if p.Beside {
			beside = append(beside, t)
		} else {
			own = append(own, t)
		}
	}
	s := fmt.Sprintf("%.1f s: %s", u.total.Seconds(), strings.Join(own, ", "))
	if len(beside) > 0 {
		s += "; beside them " + strings.Join(beside, ", ")
	}
	return s
}

// recordStart writes the start to the metrics.
func (s *session) recordStart() error {
	if s.startup.phases == nil {
		return nil
	}
	start := telemetry.Start{Step: s.engine.State().Step, Seconds: s.startup.total.Seconds()}
	for _, p := range s.startup.phases {
		start.Parts = append(start.Parts, telemetry.Part{Name: strings.ToLower(p.Name), Seconds: p.Time.Seconds()})
	}
	return s.metrics.Start(start)
}
