package plan

import (
	"reflect"
	"strconv"
)

// Run says briefly what a large plan repeats: First is a few rows of a table, the next rows
// are First with every number grown by that of Step, and so on, Times in all. A step with
// 256 micro-batches has thousands of rows that differ by their buffers and their number.
// Where Step holds a name, the last number of the row's name grows by one.
type Run[T any] struct {
	Times int
	First []T
	Step  []T // as long as First; nil when nothing grows
}

// Expand writes out the rows of runs.
func Expand[T any](runs []Run[T]) []T {
	n := 0
	for _, r := range runs {
		n += r.Times * len(r.First)
	}
	out := make([]T, 0, n)
	for _, r := range runs {
		for k := range r.Times {
			for i := range r.First {
				if k == 0 || r.Step == nil {
					out = append(out, r.First[i])
					continue
				}
				var row T
				grow(reflect.ValueOf(&row).Elem(), reflect.ValueOf(&r.First[i]).Elem(), reflect.ValueOf(&r.Step[i]).Elem(), int64(k))
				out = append(out, row)
			}
		}
	}
	return out
}

// grow sets dst to first + k * step, number by number.
func grow(dst, first, step reflect.Value, k int64) {
	switch first.Kind() {
	case reflect.Struct:
		for i := range first.NumField() {
			grow(dst.Field(i), first.Field(i), step.Field(i), k)
		}
	case reflect.Array:
		for i := range first.Len() {
			grow(dst.Index(i), first.Index(i), step.Index(i), k)
		}
	case reflect.Int, reflect.Int32, reflect.Int64:
		dst.SetInt(first.Int() + k*step.Int())
	case reflect.Slice:
		if step.Len() == 0 {
			dst.Set(first)
			return
		}
		dst.Set(reflect.MakeSlice(first.Type(), first.Len(), first.Len()))
		for i := range first.Len() {
			grow(dst.Index(i), first.Index(i), step.Index(i), k)
		}
	case reflect.String:
		if step.Len() == 0 {
			dst.Set(first)
			return
		}
		before, n, after := LastNumber(first.String())
		dst.SetString(before + strconv.FormatInt(n+k, 10) + after)
	default:
		dst.Set(first) // words and flags do not grow
	}
}

// LastNumber cuts a name around its last number: "layer[3].out" is "layer[", 3 and "].out".
// A name without one is returned whole.
func LastNumber(name string) (before string, n int64, after string) {
	end := len(name)
	for end > 0 && (name[end-1] < '0' || name[end-1] > '9') {
		end--
	}
	start := end
	for start > 0 && end-start < 18 && name[start-1] >= '0' && name[start-1] <= '9' {
		start--
	}
	n, err := strconv.ParseInt(name[start:end], 10, 64)
	if err != nil {
		return name, 0, ""
	}
	return name[:start], n, name[end:]
}
