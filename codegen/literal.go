package codegen

import (
	"bytes"
	"fmt"
	"reflect"
	"strconv"

	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/plan"
)

// literals writes plan values as Go composite literals, zero fields left out. It works by
// reflection, so that the plan's types can grow without a change here.
type literals struct {
	out    *bytes.Buffer
	device bool // package device is named
	step   bool // writing the step of a run, whose zeros mean that nothing changes
}

// plan writes thePlan and a variable for each of its tables, one element a line.
func (l *literals) plan(p *plan.Plan) {
	l.out.WriteString("\n// Short names that keep the rows of the tables short.\ntype (\n\tids   = []plan.BufID\n\twaits = []plan.Wait\n)\n")
	l.out.WriteString("\n// thePlan is the static plan of a run; its tables follow.\nvar thePlan = plan.Plan{\n")
	v := reflect.ValueOf(p).Elem()
	var tables []int
	width := 0
	for i := range v.NumField() {
		if !v.Field(i).IsZero() {
			width = max(width, len(v.Type().Field(i).Name))
		}
	}
	for i := range v.NumField() {
		f, name := v.Field(i), v.Type().Field(i).Name
		if f.IsZero() {
			continue
		}
		fmt.Fprintf(l.out, "\t%s:%*s", name, width-len(name)+1, "")
		if f.Kind() == reflect.Slice {
			tables = append(tables, i)
			l.out.WriteString("the" + name)
		} else {
			l.value(f, true)
		}
		l.out.WriteString(",\n")
	}
	l.out.WriteString("}\n")
	for _, i := range tables {
		l.table(v.Type().Field(i).Name, v.Field(i))
	}
}

// table writes one slice of the plan.
func (l *literals) table(name string, v reflect.Value) {
	if v.Len() > longTable && v.Type().Elem().Kind() == reflect.Struct {
		l.runs(name, v)
		return
	}
	fmt.Fprintf(l.out, "\nvar the%s = %s{\n", name, l.typeName(v.Type()))
	for i := range v.Len() {
		l.out.WriteByte('\t')
		l.value(v.Index(i), false)
		l.out.WriteString(",\n")
	}
	l.out.WriteString("}\n")
}

// value writes a value; typed says that a composite names its type.
func (l *literals) value(v reflect.Value, typed bool) {
	if name, ok := l.constant(v); ok {
		l.out.WriteString(name)
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		if typed {
			l.out.WriteString(l.typeName(v.Type()))
		}
		l.out.WriteByte('{')
		first := true
		for i := range v.NumField() {
			f := v.Field(i)
			if f.IsZero() && (l.step || f.Type() != reflect.TypeFor[plan.Kind]()) {
				continue
			}
			if !first {
				l.out.WriteString(", ")
			}
			first = false
			l.out.WriteString(v.Type().Field(i).Name)
			l.out.WriteString(": ")
			l.value(f, true)
		}
		l.out.WriteByte('}')
	case reflect.Slice, reflect.Array:
		if typed {
			l.out.WriteString(l.typeName(v.Type()))
		}
		l.out.WriteByte('{')
		if v.Type().Elem() == reflect.TypeFor[plan.Param]() {
			for i := range v.Len() {
				l.out.WriteString("\n\t\t")
				l.value(v.Index(i), false)
				l.out.WriteByte(',')
			}
			l.out.WriteString("\n\t}")
			return
		}
		for i := range v.Len() {
			if i > 0 {
				l.out.WriteString(", ")
			}
			l.value(v.Index(i), false)
		}
		l.out.WriteByte('}')
	case reflect.String:
		l.out.WriteString(strconv.Quote(v.String()))
	case reflect.Bool:
		l.out.WriteString(strconv.FormatBool(v.Bool()))
	case reflect.Float64, reflect.Float32:
		l.out.WriteString(strconv.FormatFloat(v.Float(), 'g', -1, 64))
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		l.out.Write(strconv.AppendInt(l.out.AvailableBuffer(), v.Int(), 10))
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uint:
		l.out.Write(strconv.AppendUint(l.out.AvailableBuffer(), v.Uint(), 10))
	default:
		panic("the plan holds a " + v.Kind().String() + ", which has no literal")
	}
}

// typeName is a type as the generated file writes it.
func (l *literals) typeName(t reflect.Type) string {
	switch t {
	case reflect.TypeFor[[]plan.BufID]():
		return "ids"
	case reflect.TypeFor[[]plan.Wait]():
		return "waits"
	}
	switch t.Kind() {
	case reflect.Slice:
		return "[]" + l.typeName(t.Elem())
	case reflect.Array:
		return "[" + strconv.Itoa(t.Len()) + "]" + l.typeName(t.Elem())
	}
	if t.PkgPath() == pkgDevice {
		l.device = true
	}
	return t.String()
}

// constant names a value of an enumeration.
func (l *literals) constant(v reflect.Value) (string, bool) {
	if v.Kind() != reflect.Uint8 {
		return "", false
	}
	names, ok := enums[v.Type()]
	if !ok || v.Uint() >= uint64(len(names)) {
		return "", false
	}
	if v.Type().PkgPath() == pkgDevice {
		l.device = true
	}
	return names[v.Uint()], true
}

// enums are the names of the constants of each enumeration in the plan.
var enums = map[reflect.Type][]string{
	reflect.TypeFor[plan.Kind](): {"plan.Feed", "plan.Prefetch", "plan.Compute", "plan.Norm", "plan.Offload", "plan.Accumulate",
		"plan.Reduce", "plan.Report", "plan.Update", "plan.Save", "plan.Restore", "plan.Round"},
	reflect.TypeFor[plan.Func]():     {"plan.NoFunc", "plan.Forward", "plan.Recompute", "plan.Backward", "plan.Loss", "plan.EvalLoss", "plan.Infer", "plan.Again", "plan.Advance"},
	reflect.TypeFor[plan.List]():     {"plan.First", "plan.Steady", "plan.Drain", "plan.Eval", "plan.Prefill", "plan.Decode"},
	reflect.TypeFor[plan.InitKind](): {"plan.InitZero", "plan.InitOne", "plan.InitNormal", "plan.InitUniform"},
	reflect.TypeFor[device.Lane]():   {"device.Compute", "device.H2D", "device.D2H", "device.Host"},
	reflect.TypeFor[device.Memory](): {"device.DeviceMemory", "device.HostMemory"},
}
