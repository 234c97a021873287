package program

import (
	"fmt"
	"io"
	"strings"

	"github.com/megatrain/mtc/runtime/plan"
	"github.com/megatrain/mtc/runtime/telemetry"
)

// info prints what was compiled into the program.
func (p *Program) info(args []string, out io.Writer) error {
	fs := newFlagSet("info", nil)
	rest, err := fs.parse(args, out)
	if err == nil && len(rest) > 0 {
		err = usagef("`info` takes no arguments")
	}
	if err != nil {
		return err
	}
	rows := modelRows(p.Plan)
	dev, host := memory(p.Plan, false)
	rows = append(rows, telemetry.Setting{Name: "memory", Value: fmt.Sprintf("%s device, %s host", telemetry.Bytes(dev), telemetry.Bytes(host))})
	var lists []string
	for l := range plan.NumLists {
		r := p.Plan.Lists[l]
		lists = append(lists, fmt.Sprintf("%s %d", l, r.End-r.Start))
	}
	rows = append(rows,
		telemetry.Setting{Name: "tasks", Value: strings.Join(lists, ", ")},
		telemetry.Setting{Name: "compiled by", Value: "mtc " + p.Plan.Compiler + ", hash " + p.Plan.Hash})
	_, err = fmt.Fprint(out, telemetry.Table(rows))
	return err
}
