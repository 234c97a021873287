package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/megatrain/mtc/runtime/chat"
	"github.com/megatrain/mtc/runtime/data/pack"
	"github.com/megatrain/mtc/runtime/fault"
	"github.com/megatrain/mtc/runtime/telemetry"
	"github.com/megatrain/mtc/runtime/tokenizer"
)

// packFlags are the flags of data pack.
type packFlags struct {
	out, tokenizer, template, format, key, loss, overlong string
	seq, shard, record                                    int64
	apart, strict, json                                   bool
	workers                                               int
}

func newDataPackCmd(e *env) *cobra.Command {
	var o packFlags
	cmd := &cobra.Command{
		Use:   "pack IN... -o DIR --tokenizer T",
		Short: "tokenize text and conversations into a folder to train on",
		Long: `
Reads text files (one document each), folders, patterns, and records of JSON, one a line or
in one array: a text under --key, or a conversation (messages with role and content,
sharegpt's conversations, alpaca's instruction, input and output), which is written with the
model's chat template. Names that end in .gz or .zst are decompressed.

Of conversations the assistant's turns are learned, of text everything; --loss changes that.
What cannot be taken over is counted by reason and the first cases are named; --strict makes
the first one an error.`,
		Example: "  mtc data pack chats.jsonl -o packed --tokenizer qwen2.5-0.5b/\n" +
			"  mtc data pack books/ -o packed --tokenizer gpt2\n" +
			"  mtc data pack a.jsonl b.jsonl.gz -o packed --tokenizer llama/tokenizer.json --seq 2048 --overlong split",
		Args: argRange(1, -1),
		RunE: func(cmd *cobra.Command, args []string) error { return dataPack(e, args, &o) },
	}
	fs := cmd.Flags()
	fs.StringVarP(&o.out, "out", "o", "", "write the packed folder to `DIR`")
	fs.StringVar(&o.tokenizer, "tokenizer", "", "`T` is bytes, gpt2, o200k, a tokenizer.json or a folder with one")
	fs.StringVar(&o.template, "template", "", "chat template: a `FILE`, or chatml (default: the tokenizer's own)")
	enumFlag(fs, &o.format, "format", "", "what the records are", pack.Formats...)
	fs.StringVar(&o.key, "key", "text", "`NAME` of a record's field that holds the text")
	enumFlag(fs, &o.loss, "loss", "", "what is learned", "auto", "assistant", "all")
	fs.Int64Var(&o.seq, "seq", 0, "longest document: `N` inputs and as many targets; 0: any")
	enumFlag(fs, &o.overlong, "overlong", "", "what becomes of longer ones", pack.Overlongs...)
	fs.BoolVar(&o.apart, "apart", false, "keep documents of text apart, as conversations are")
	fs.BoolVar(&o.strict, "strict", false, "the first record that cannot be taken over is an error")
	fs.Int64Var(&o.shard, "shard-tokens", pack.DefaultShardTokens, "about `N` tokens a shard")
	fs.Int64Var(&o.record, "max-record", pack.DefaultMaxRecord, "largest record or text file, in `BYTES`")
	fs.IntVar(&o.workers, "workers", 0, "tokenize on `N` processors (default: all)")
	fs.BoolVar(&o.json, "json", false, "print the result as JSON")
	return cmd
}

// chatML is the template that `--template chatml` names.
const chatML = `{% for m in messages %}{{ '<|im_start|>' + m.role + '\n' + m.content + '<|im_end|>\n' }}{% endfor %}` +
	`{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}`

func dataPack(e *env, in []string, f *packFlags) error {
	switch {
	case f.out == "":
		return usageErrorf("`mtc data pack` needs a folder to write").hint("give one with `-o DIR`")
	case f.tokenizer == "":
		return usageErrorf("`mtc data pack` needs a tokenizer").hint("`--tokenizer` takes bytes, gpt2, o200k, or the folder of a model")
	case f.seq < 0 || f.shard < 1 || f.record < 1 || f.workers < 0:
		return usageErrorf("a number is out of range").hint("--seq and --workers are 0 or more, --shard-tokens and --max-record above")
	}
	tok, files, err := openTokenizer(f.tokenizer)
	if err != nil {
		return err
	}
	t, hash, err := packTemplate(f.template, tok, files)
	if err != nil {
		return err
	}
	o := pack.Options{In: in, Out: f.out, Tokenizer: tok, Name: tokenizerName(f.tokenizer), Template: t, TemplateHash: hash,
		Format: f.format, Key: f.key, Loss: f.loss, Apart: f.apart, Seq: f.seq, Overlong: f.overlong, Strict: f.strict,
		ShardTokens: f.shard, MaxRecord: f.record, Workers: f.workers, Files: files}
	if o.Loss == "auto" {
		o.Loss = ""
	}
	began := time.Now()
	o.Progress = packProgress(e.err, began)
	r, err := pack.Run(o)
	if err != nil {
		return err
	}
	if f.json {
		return json.NewEncoder(e.out).Encode(map[string]any{"folder": f.out, "manifest": r.Manifest, "left_out": leftOut(r),
			"hidden": r.Hidden, "empty": r.Empty, "seconds": time.Since(began).Seconds()})
	}
	packReport(e.out, f.out, r, time.Since(began))
	return nil
}

// tokenizerName is what people call a tokenizer: a word, or a path.
func tokenizerName(arg string) string { return arg }

// leftOut is never null.
func leftOut(r *pack.Result) []pack.Left { return append([]pack.Left{}, r.Left...) }

// packTemplate is the template of --template, else the tokenizer's; one of its own goes along
// with the data.
func packTemplate(arg string, tok *tokenizer.Folder, files map[string][]byte) (*chat.Template, string, error) {
	name, text := tok.TemplateFile, tok.Template
	switch {
	case arg == "chatml":
		name, text = arg, chatML
	case arg != "":
		b, err := os.ReadFile(arg)
		if err != nil {
			return nil, "", fault.New("MT0602", arg, "the chat template cannot be read").Wrap(pathless(err)).Help("`--template` takes a file, or chatml")
		}
		name, text = arg, string(b)
	}
	if text == "" {
		return nil, "", nil
	}
	if arg != "" {
		files["chat_template.jinja"] = []byte(text)
	}
	t, err := chat.Compile(name, text, tok.BOS, tok.EOS)
	if err != nil {
		return nil, "", err
	}
	sum := sha256.Sum256([]byte(text))
	return t, hex.EncodeToString(sum[:8]), nil
}

// pathless strips the path from an error that repeats it.
func pathless(err error) error {
	var pe *os.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}

// packProgress prints a line every two seconds.
func packProgress(w io.Writer, began time.Time) func(pack.Progress) {
	last := began
	return func(p pack.Progress) {
		if now := time.Now(); now.Sub(last) >= 2*time.Second {
			last = now
			rate := float64(p.Bytes) / now.Sub(began).Seconds()
			fmt.Fprintf(w, "packed %s of %s, %d documents, %d tokens, %.1f MB/s\n",
				telemetry.Bytes(p.Bytes), telemetry.Bytes(p.Of), p.Documents, p.Tokens, rate/1e6)
		}
	}
}

func packReport(w io.Writer, out string, r *pack.Result, took time.Duration) {
	m := &r.Manifest
	kind := "text"
	if m.Apart {
		kind = "documents apart"
	}
	fmt.Fprintf(w, "packed     %s: %d documents, %d tokens (u%d) in %s\n", out, m.Documents, m.Tokens, 8*m.Width, plural(len(m.Shards), "shard"))
	fmt.Fprintf(w, "learned    %d tokens, %.1f %% (loss: %s; %s)\n", m.Learned, 100*float64(m.Learned)/float64(m.Tokens), m.Loss, kind)
	fmt.Fprintf(w, "tokenizer  %s (%s), vocabulary %d\n", m.Tokenizer.Name, m.Tokenizer.Hash, m.Tokenizer.Vocab)
	fmt.Fprintf(w, "longest    %d tokens\n", m.Longest)
	fmt.Fprintf(w, "read       %s of %s in %.1f s\n", plural(int(m.Source.Records), "record"), plural(int(m.Source.Files), "file"), took.Seconds())
	if r.Hidden > 0 || r.Empty > 0 {
		fmt.Fprintf(w, "passed     %d hidden, %d empty\n", r.Hidden, r.Empty)
	}
	left := slices.Clone(r.Left)
	slices.SortStableFunc(left, func(a, b pack.Left) int { return strings.Compare(a.Reason, b.Reason) })
	for _, l := range left {
		fmt.Fprintf(w, "left out   %d: %s\n", l.Count, l.Reason)
		for _, c := range l.Cases {
			fmt.Fprintf(w, "             %s\n", c)
		}
		if more := l.Count - int64(len(l.Cases)); more > 0 {
			fmt.Fprintf(w, "             and %d more\n", more)
		}
	}
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
