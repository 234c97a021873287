package codegen

import (
	"encoding/binary"
	"math"
	"reflect"

	"github.com/megatrain/mtc/runtime/plan"
)

// longTable is how many rows a table may have before what it repeats is written as runs. A
// table of 100,000 rows would take the Go compiler a minute.
const longTable = 1000

// longestPeriod is how many rows may repeat together.
const longestPeriod = 4

// fewestRepeats is how many repeats make a run worth writing.
const fewestRepeats = 3

// flatRow is a row of a table as its numbers and everything else.
type flatRow struct {
	shape int // rows of equal shape differ in numbers only
	nums  []int64
	names []int // which of nums are numbers inside names: they may grow by one only
}

// run is rows [start, start+period) repeated.
type run struct{ start, period, times int }

// findRuns cuts a table into runs; rows that do not repeat are runs of one.
func findRuns(table reflect.Value) ([]run, []flatRow) {
	rows := make([]flatRow, table.Len())
	shapes := map[string]int{}
	var buf []byte
	for i := range rows {
		buf = buf[:0]
		rows[i].flatten(table.Index(i), &buf)
		id, ok := shapes[string(buf)]
		if !ok {
			id = len(shapes)
			shapes[string(buf)] = id
		}
		rows[i].shape = id
	}
	var out []run
	for i := 0; i < len(rows); {
		best := run{i, 1, 1}
		for p := 1; p <= longestPeriod && i+fewestRepeats*p <= len(rows); p++ {
			if n := repeats(rows, i, p); n >= fewestRepeats && n*p > best.period*best.times {
				best = run{i, p, n}
			}
		}
		out = append(out, best)
		i += best.period * best.times
	}
	return out, rows
}

// repeats counts how often the p rows from i on repeat with a constant step.
func repeats(rows []flatRow, i, p int) int {
	n := 1
	for {
		for j := range p {
			at := i + n*p + j
			if at >= len(rows) || !follows(&rows[i+j], &rows[i+p+j], &rows[at], int64(n)) {
				return n
			}
		}
		n++
	}
}

// follows tells whether row is first + n * (second - first).
func follows(first, second, row *flatRow, n int64) bool {
	if first.shape != second.shape || first.shape != row.shape {
		return false
	}
	for k, x := range first.nums {
		if row.nums[k] != x+n*(second.nums[k]-x) {
			return false
		}
	}
	for _, k := range first.names {
		if d := second.nums[k] - first.nums[k]; d != 0 && d != 1 {
			return false
		}
	}
	return true
}

// flatten appends a value's numbers to the row, and all else to its shape.
func (r *flatRow) flatten(v reflect.Value, shape *[]byte) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			r.flatten(v.Field(i), shape)
		}
	case reflect.Array:
		for i := range v.Len() {
			r.flatten(v.Index(i), shape)
		}
	case reflect.Slice:
		n := v.Len()
		if v.IsNil() {
			n = -1
		}
		*shape = binary.AppendVarint(*shape, int64(n))
		for i := range v.Len() {
			r.flatten(v.Index(i), shape)
		}
	case reflect.Int, reflect.Int32, reflect.Int64:
		r.nums = append(r.nums, v.Int())
	case reflect.String:
		before, n, after := plan.LastNumber(v.String())
		*shape = append(append(append(append(*shape, before...), 0), after...), 0)
		r.names = append(r.names, len(r.nums))
		r.nums = append(r.nums, n)
	case reflect.Uint8:
		*shape = append(*shape, byte(v.Uint()))
	case reflect.Bool:
		b := byte(0)
		if v.Bool() {
			b = 1
		}
		*shape = append(*shape, b)
	case reflect.Float64:
		*shape = binary.LittleEndian.AppendUint64(*shape, math.Float64bits(v.Float()))
	default:
		panic("a table of the plan holds a " + v.Kind().String() + ", which runs cannot compare")
	}
}

// step is the difference of two rows of one shape, as a row.
func step(a, b reflect.Value) reflect.Value {
	d := reflect.New(a.Type()).Elem()
	subtract(d, a, b)
	return d
}

func subtract(d, a, b reflect.Value) {
	switch a.Kind() {
	case reflect.Struct:
		for i := range a.NumField() {
			subtract(d.Field(i), a.Field(i), b.Field(i))
		}
	case reflect.Array:
		for i := range a.Len() {
			subtract(d.Index(i), a.Index(i), b.Index(i))
		}
	case reflect.Slice:
		s := reflect.MakeSlice(a.Type(), a.Len(), a.Len())
		grows := false
		for i := range a.Len() {
			subtract(s.Index(i), a.Index(i), b.Index(i))
			grows = grows || !s.Index(i).IsZero()
		}
		if grows {
			d.Set(s)
		}
	case reflect.Int, reflect.Int32, reflect.Int64:
		d.SetInt(b.Int() - a.Int())
	case reflect.String:
		if a.String() != b.String() {
			d.SetString("+1")
		}
	}
}

// runs writes a long table as runs.
func (l *literals) runs(name string, v reflect.Value) {
	list, _ := findRuns(v)
	row := l.typeName(v.Type().Elem())
	rows := "[]" + row
	// The runs are a variable of their own, so that they are data and not code.
	l.out.WriteString("\nvar the" + name + " = plan.Expand(runsOf" + name + ")\n\nvar runsOf" + name + " = []plan.Run[" + row + "]{\n")
	for i := 0; i < len(list); {
		r := list[i]
		end := i + 1
		for r.times == 1 && end < len(list) && list[end].times == 1 {
			end++
		}
		from, to := r.start, r.start+r.period
		if r.times == 1 {
			to = from + end - i
		}
		l.out.WriteString("\t{Times: ")
		l.value(reflect.ValueOf(r.times), false)
		l.out.WriteString(", First: " + rows + "{\n")
		for k := from; k < to; k++ {
			l.row(v.Index(k))
		}
		if r.times > 1 {
			l.out.WriteString("\t}, Step: " + rows + "{\n")
			l.step = true
			for k := from; k < to; k++ {
				l.row(step(v.Index(k), v.Index(k+r.period)))
			}
			l.step = false
		}
		l.out.WriteString("\t}},\n")
		i = end
	}
	l.out.WriteString("}\n")
}

func (l *literals) row(v reflect.Value) {
	l.out.WriteString("\t\t")
	l.value(v, false)
	l.out.WriteString(",\n")
}
