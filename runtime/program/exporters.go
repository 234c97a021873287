package program

import (
	"fmt"
	"io"

	"github.com/megatrain/mtc/runtime/telemetry/export"
)

// exports says which other programs a run tells of itself.
type exports struct {
	tensorboard string // folder of event files
	csv         string // file
	prometheus  string // address
}

// check refuses what is a mistake of the command line; everything else is for the run to
// survive.
func (x *exports) check() error {
	if x.prometheus == "" {
		return nil
	}
	if _, err := export.Address(x.prometheus); err != nil {
		return usagef("%v", err).hint("a port alone, `--prometheus 9090`, is reached from this machine only")
	}
	return nil
}

// start opens the exporters for the steps after done; warnings go to errw.
func (x *exports) start(errw io.Writer, model string, done int64) (list []*export.Feed) {
	add := func(name, value string, open func() (export.Exporter, error)) {
		if value != "" {
			list = append(list, export.Start(name, errw, open))
		}
	}
	add("tensorboard", x.tensorboard, func() (export.Exporter, error) {
		e, err := export.OpenTensorBoard(x.tensorboard, done)
		return opened(e, err)
	})
	add("csv", x.csv, func() (export.Exporter, error) {
		e, err := export.OpenCSV(x.csv, done)
		return opened(e, err)
	})
	add("prometheus", x.prometheus, func() (export.Exporter, error) {
		e, err := export.OpenPrometheus(x.prometheus, model)
		if err == nil {
			fmt.Fprintf(errw, "note: metrics at http://%s/metrics\n", e.Addr())
		}
		return opened(e, err)
	})
	return list
}

// opened keeps a nil exporter from becoming an interface that is not nil.
func opened[E export.Exporter](e E, err error) (export.Exporter, error) {
	if err != nil {
		return nil, err
	}
	return e, nil
}
