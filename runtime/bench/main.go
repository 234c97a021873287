package bench

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"

	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/tensor"
)

// Main is the program that `mtc bench` builds for a target: it measures the device that open
// opens and prints the Result as JSON. Its exit code is 3 where the machine cannot.
func Main(target string, open func(f32 bool) (device.Device, error)) {
	var o Options
	var bf16, quiet, processor bool
	flag.BoolVar(&bf16, "bf16", false, "activations and weights in bf16")
	flag.BoolVar(&o.Quick, "quick", false, "few cases")
	flag.StringVar(&o.Folder, "disk", "", "folder to measure the disk in")
	flag.BoolVar(&quiet, "quiet", false, "no progress")
	flag.BoolVar(&processor, "processor-time", false, "measure processor time; with GOMAXPROCS=1, on a machine that others use")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "error[MT0701]: `%s` is not a flag\n", flag.Arg(0))
		os.Exit(2)
	}
	o.Target = target
	if bf16 {
		o.DType = tensor.BF16
	}
	if processor {
		o.Clock = processorTime
	}
	if !quiet {
		o.Progress = os.Stderr
	}
	if err := measureAndPrint(o, open); err != nil {
		fmt.Fprintf(os.Stderr, "error[MT0703]: %v\n", err)
		os.Exit(3)
	}
}

func measureAndPrint(o Options, open func(f32 bool) (device.Device, error)) error {
	dev, err := open(o.DType == tensor.F32)
	if err != nil {
		return err
	}
	defer dev.Close()
	r, err := Run(dev, o)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(r)
}
