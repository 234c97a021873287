package main

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/megatrain/mtc/runtime/bench"
	"github.com/megatrain/mtc/runtime/jsontext"
	"github.com/megatrain/mtc/runtime/op"
)

// readResults reads what programs printed elsewhere: of one machine, one of each precision.
func readResults(paths []string) ([]*bench.Result, error) {
	var out []*bench.Result
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, inputErrorf("%s cannot be read: %v", path, reasonOf(err)).hint("--result takes what the program of `mtc bench --program FILE` prints")
		}
		r := &bench.Result{}
		if err = jsontext.Read(text, r, jsontext.Whole); err == nil {
			err = jsontext.Explain(text, checkResult(r, out))
		}
		if err != nil {
			return nil, inputErrorf("%s is not what the program of `mtc bench --program` prints: %v", path, err).
				hint("run that program again, and keep its standard output as it is")
		}
		out = append(out, r)
	}
	return out, nil
}

// checkResult says what is wrong with a result of a measurement beside those before it. What becomes of its
// rates is checked in the profile.
func checkResult(r *bench.Result, before []*bench.Result) error {
	if r.Target != "cpu" && r.Target != "cuda" {
		return jsontext.In("target", fmt.Errorf("target is %q, not cpu or cuda", r.Target))
	}
	if r.Precision != "f32" && r.Precision != "bf16" {
		return jsontext.In("precision", fmt.Errorf("precision is %q, not f32 or bf16", r.Precision))
	}
	for _, o := range before {
		if o.Target != r.Target || o.Device != r.Device {
			return jsontext.In("device", fmt.Errorf("it is of %s (%s), and one before of %s (%s)", r.Device, r.Target, o.Device, o.Target))
		}
		if o.Precision == r.Precision {
			return jsontext.In("precision", errors.New("there is a result in "+r.Precision+" already"))
		}
	}
	for i, k := range r.Kernels {
		in := fmt.Sprintf("kernels[%d]", i)
		switch {
		case k.Name == "":
			return jsontext.In(in+".name", errors.New("a kernel has no name"))
		case !(k.Seconds > 0 && k.Seconds < 1e6):
			return jsontext.In(in+".seconds", fmt.Errorf("%s takes %v seconds", k.Name, k.Seconds))
		case k.FLOPs < 0 || k.Bytes < 1:
			return jsontext.In(in, fmt.Errorf("%s has %d FLOPs and %d bytes", k.Name, k.FLOPs, k.Bytes))
		case !slices.Contains([]op.Class{0, op.Product, op.Attending}, k.Shape.Class):
			return jsontext.In(in+".shape.class", fmt.Errorf("%s is of class %d, which does not exist", k.Name, k.Shape.Class))
		}
	}
	return nil
}
