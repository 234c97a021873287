package program

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/megatrain/mtc/runtime/fold"
)

// Flag describes one flag of a command, for the program's own parser and for `mtc run`, which
// takes the same ones and passes them on.
type Flag struct {
	Name string
	Arg  string // what the value is, "" for a flag without one
	Doc  string
	// Optional says that the value may be left out.
	Optional bool
	// Many says that the flag may be given several times.
	Many bool
}

// TrainFlags are the flags of training.
var TrainFlags = []Flag{
	{Name: "steps", Arg: "N", Doc: "train until N steps are done"},
	{Name: "epochs", Arg: "N", Doc: "train N times over the data, instead of a number of steps; the last step of an epoch has the rows that are left"},
	{Name: "data", Arg: "PATH", Doc: "files to train on: file, folder or pattern, or a folder that mtc data pack wrote; text and conversations are tokenized into OUT/data where the model has a tokenizer", Many: true},
	{Name: "eval-data", Arg: "PATH", Doc: "files to evaluate on", Many: true},
	{Name: "holdout", Arg: "SHARE", Doc: "evaluate on this share of the training data: of documents, or of files that are read as they are"},
	{Name: "loss", Arg: "WHAT", Doc: "of text and conversations, what is learned: auto (default), assistant or all"},
	{Name: "overlong", Arg: "WHAT", Doc: "what becomes of a conversation longer than seq: error (default), drop, split or cut"},
	{Name: "format", Arg: "KIND", Doc: "of records: auto (default), jsonl, messages, sharegpt, alpaca, or text"},
	{Name: "key", Arg: "NAME", Doc: "field of a record that holds its text (default text)"},
	{Name: "template", Arg: "FILE", Doc: "chat template, or chatml (default: the model's own)"},
	{Name: "strict", Doc: "the first record that cannot be taken over is an error"},
	{Name: "ask", Arg: "TEXT", Doc: "after every evaluation, print what the model answers: with its chat template, or else by going on from the text", Many: true},
	{Name: "eval-every", Arg: "N", Doc: "evaluate after every N steps; 0: only at the end"},
	{Name: "save-every", Arg: "N", Doc: "write a checkpoint after every N steps; 0: only at the end"},
	{Name: "no-best", Doc: "do not keep the weights with the lowest evaluation loss in OUT/best"},
	{Name: "moved", Doc: "say at the end how many weights differ from their first values"},
	{Name: "no-save", Doc: "write no checkpoint, not at the end either: for timing"},
	{Name: "out", Arg: "DIR", Doc: "folder of the run (default runs/MODEL)"},
	{Name: "metrics", Arg: "FILE", Doc: "JSON lines of every step (default OUT/metrics.jsonl)"},
	{Name: "from", Arg: "DIR", Doc: "take the weights from a Hugging Face folder; with --steps 0 the run only takes them. Of a run with adapters: the frozen ones, also where they are now"},
	{Name: "tensorboard", Arg: "DIR", Doc: "write event files that TensorBoard reads"},
	{Name: "csv", Arg: "FILE", Doc: "write a table of steps and evaluations"},
	{Name: "prometheus", Arg: "ADDR", Doc: "answer /metrics there: a port of this machine, or HOST:PORT"},
	{Name: "seed", Arg: "S", Doc: "of the weights' start and the order of the data"},
	{Name: "set", Arg: "K=V", Doc: "a field of the train block: train.lr=\"cosine(peak = 1e-3)\"", Many: true},
	{Name: "resume", Arg: "WHICH", Doc: "go on from a checkpoint: latest (default), a step, or a folder", Optional: true},
	{Name: "max-skipped", Arg: "N", Doc: "stop after N steps in a row without a finite gradient (default 10; 0: never)"},
	{Name: "threads", Arg: "N", Doc: "processors to use (default: all)"},
	{Name: "no-memory-check", Doc: "start even if the machine says that its memory is too little: for a virtual machine whose memory grows with use"},
	{Name: "pinned-memory", Arg: "SIZE", Doc: "host memory that may be locked for a GPU, such as 32GiB (default: all that it streams from); the rest goes through a small locked ring, and is slower"},
	{Name: "profile", Arg: "N", Doc: "time every task of N steady steps (default 5) and write OUT/profile.json, for mtc inspect and mtc compare", Optional: true},
	{Name: "root", Arg: "DIR", Doc: "folder that the .mt's data paths are relative to (default: the working folder)"},
}

// ExportFlags are the flags of an export.
var ExportFlags = []Flag{
	{Name: "hf", Arg: "DIR", Doc: "folder to write in Hugging Face's layout; it must not be there yet"},
	{Name: "peft", Arg: "DIR", Doc: "folder to write as a PEFT adapter, of a run that trains adapters; it must not be there yet"},
	{Name: "from", Arg: "DIR", Doc: "where the frozen weights of a run that trains adapters are now"},
	{Name: "dtype", Arg: "TYPE", Doc: "f32, f16 or bf16 (default: as the weights came, else f32)"},
	{Name: "shard-size", Arg: "SIZE", Doc: "begin another file of weights above this size, such as 2GB (default 5GB)"},
}

// CalibrateFlags are the flags of a calibration.
var CalibrateFlags = []Flag{
	{Name: "data", Arg: "PATH", Doc: "files to calibrate on: file, folder or pattern, or a folder that mtc data pack wrote", Many: true},
	{Name: "batches", Arg: "N", Doc: "batches to count, each of a training step's size (default 16)"},
	{Name: "passes", Arg: "N", Doc: "times to go over them: what a layer sees depends on the cutoffs before it (default 3)"},
	{Name: "out", Arg: "DIR", Doc: "folder of a run to write, with the new cutoffs (default RUN-calibrated)"},
	{Name: "json", Doc: "print the report as JSON"},
	{Name: "threads", Arg: "N", Doc: "processors to use (default: all)"},
}

// GenerateFlags are the flags of generation.
var GenerateFlags = []Flag{
	{Name: "prompt", Arg: "TEXT", Doc: "text to continue; token ids where the run has no tokenizer"},
	{Name: "chat", Arg: "TEXT", Doc: "what a user says, written with the model's chat template; prints the answer"},
	{Name: "system", Arg: "TEXT", Doc: "what the system says before --chat"},
	{Name: "tokens", Arg: "N", Doc: "tokens to make (default 200); once seq tokens stand in the context, it goes on from the last half of them"},
	{Name: "stop-at-seq", Doc: "end where the context is full, after seq tokens with the prompt"},
	{Name: "temperature", Arg: "X", Doc: "0: the likeliest token; 1: as the model says (default 0.8)"},
	{Name: "top-k", Arg: "K", Doc: "choose among the K likeliest tokens; 0: all (default 0)"},
	{Name: "seed", Arg: "S", Doc: "same seed, same text (default 1)"},
	{Name: "from", Arg: "DIR", Doc: "where the frozen weights of a run that trains adapters are now"},
	{Name: "threads", Arg: "N", Doc: "processors to use (default: all)"},
}

// flagSet parses one command's flags into variables.
type flagSet struct {
	verb  string
	usage string // how the command is called
	list  []Flag
	vars  map[string]flag.Value
	seen  map[string]bool
}

func newFlagSet(verb string, list []Flag) *flagSet {
	return &flagSet{verb: verb, usage: verb + " [flags]", list: list, vars: map[string]flag.Value{}, seen: map[string]bool{}}
}

// bind gives a flag its variable: *string, *bool, *int64, *float64 or *[]string.
func (s *flagSet) bind(name string, to any) { s.vars[name] = variable{to} }

// given says whether a flag stood on the command line.
func (s *flagSet) given(name string) bool { return s.seen[name] }

// parse reads args and returns what is not a flag. `--help` prints the flags to out and gives
// flag.ErrHelp.
func (s *flagSet) parse(args []string, out io.Writer) (rest []string, err error) {
	for len(args) > 0 {
		arg := args[0]
		args = args[1:]
		if arg == "--" {
			return append(rest, args...), nil
		}
		if len(arg) < 2 || arg[0] != '-' {
			rest = append(rest, arg)
			continue
		}
		name, value, inline := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		if name == "help" || name == "h" {
			s.help(out)
			return nil, flag.ErrHelp
		}
		f := s.find(name)
		if f == nil {
			return nil, usagef("`%s` has no flag `--%s`", s.verb, name).hint("%s", didYouMean("--"+name, s.names()))
		}
		switch {
		case inline:
		case f.Optional:
			value = ""
		case f.Arg == "":
			value = "true"
		case len(args) == 0:
			return nil, usagef("`--%s` needs a value", name).hint("write `--%s %s`", name, f.Arg)
		default:
			value, args = args[0], args[1:]
		}
		if err := s.vars[name].Set(value); err != nil {
			return nil, usagef("`--%s` cannot be `%s`", name, value).hint("%v", err)
		}
		s.seen[name] = true
	}
	return rest, nil
}

func (s *flagSet) find(name string) *Flag {
	for i := range s.list {
		if s.list[i].Name == name {
			return &s.list[i]
		}
	}
	return nil
}

func (s *flagSet) names() []string {
	var out []string
	for _, f := range s.list {
		out = append(out, "--"+f.Name)
	}
	return out
}

// help lists the flags in two columns of 80 in all.
func (s *flagSet) help(w io.Writer) {
	fmt.Fprintf(w, "usage: PROGRAM %s\n\nflags:\n", s.usage)
	for _, f := range s.list {
		form := "--" + f.Name
		switch {
		case f.Optional:
			form += "[=" + f.Arg + "]"
		case f.Arg != "":
			form += " " + f.Arg
		}
		for i, line := range fold.Wrap(f.Doc, 54) {
			if i > 0 {
				form = ""
			}
			fmt.Fprintf(w, "  %-22s  %s\n", form, line)
		}
	}
}

// variable sets a variable from text.
type variable struct{ to any }

func (v variable) String() string { return "" }

func (v variable) Set(text string) error {
	switch to := v.to.(type) {
	case *string:
		*to = text
	case *[]string:
		*to = append(*to, text)
	case *bool:
		b, err := strconv.ParseBool(text)
		if err != nil {
			return errors.New("write true or false")
		}
		*to = b
	case *int64:
		if n, err := fmt.Sscanf(text+"\n", "%d\n", to); n != 1 || err != nil {
			return errors.New("write a whole number")
		}
	case *float64:
		if n, err := fmt.Sscanf(text+"\n", "%g\n", to); n != 1 || err != nil {
			return errors.New("write a number")
		}
	}
	return nil
}

// didYouMean proposes the nearest of some words, or lists them.
func didYouMean(word string, words []string) string {
	best, least := "", 1+len(word)/2
	for _, w := range words {
		if d := distance(word, w); d < least {
			best, least = w, d
		}
	}
	if best != "" {
		return "did you mean `" + best + "`?"
	}
	return "there are " + strings.Join(words, ", ")
}

// distance is the number of letters to insert, remove, change or swap with their neighbour.
func distance(a, b string) int {
	var older, old, now []int
	for i := 0; i <= len(a); i++ {
		older, old, now = old, now, make([]int, len(b)+1)
		for j := range now {
			switch {
			case i == 0 || j == 0:
				now[j] = i + j
				continue
			case a[i-1] == b[j-1]:
				now[j] = old[j-1]
			default:
				now[j] = 1 + min(old[j-1], old[j], now[j-1])
			}
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				now[j] = min(now[j], 1+older[j-2])
			}
		}
	}
	return now[len(b)]
}
