package main

import (
	"encoding/json"
	"time"

	"github.com/spf13/cobra"

	"github.com/megatrain/mtc/runtime/aside"
	"github.com/megatrain/mtc/runtime/data/pack"
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
	enumFlag(fs, &o.loss, "loss", "", "what is learned", pack.Losses...)
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
	o := pack.Options{In: in, Out: f.out, Name: f.tokenizer,
		Format: f.format, Key: f.key, Loss: f.loss, Apart: f.apart, Seq: f.seq, Overlong: f.overlong, Strict: f.strict,
		ShardTokens: f.shard, MaxRecord: f.record, Workers: f.workers, Progress: pack.Meter(e.err)}
	if o.Loss == "auto" {
		o.Loss = ""
	}
	if err := o.Speak(tok, files, f.template); err != nil {
		return err
	}
	began := time.Now()
	defer aside.OnSignal()()
	r, err := pack.Run(o)
	if err != nil {
		return err
	}
	if f.json {
		return json.NewEncoder(e.out).Encode(map[string]any{"folder": f.out, "manifest": r.Manifest, "left_out": leftOut(r),
			"hidden": r.Hidden, "empty": r.Empty, "seconds": time.Since(began).Seconds()})
	}
	r.Print(e.out, f.out, time.Since(began))
	return nil
}

// leftOut is never null.
func leftOut(r *pack.Result) []pack.Left { return append([]pack.Left{}, r.Left...) }
