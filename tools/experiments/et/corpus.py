"""Makes the text that the comparison of routers trains on: C sources and documentation below some
folders, such as an unpacked linux-source-6.1 of Debian.

  corpus.py OUT FOLDER... [--bytes 270000000]

OUT gets train.jsonl and valid.jsonl, a document (a file) a line, and tokenizer.json,
a byte-level BPE of 8,192 tokens trained on a part of train. Whether a file is taken, and on which side
it falls, depends on the hash of its text alone: repeated files are taken once, 1 in 18 is held out.
Left out are files over 150 kB,
as those are mostly tables, and headers that are little but definitions of registers.
"""
import argparse
import glob
import hashlib
import json
import os

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

KINDS = (".c", ".h", ".rst", ".txt", ".py", ".go", ".md")
END = "<|endoftext|>"


def registers(name, data):
    """Tells whether a header is a dump of definitions: they are more than half of its lines."""
    return name.endswith(".h") and len(data) > 8000 and 2 * data.count(b"#define") > data.count(b"\n")


def main():
    p = argparse.ArgumentParser()
    p.add_argument("out")
    p.add_argument("folders", nargs="+")
    p.add_argument("--bytes", type=int, default=270_000_000)
    a = p.parse_args()
    found = {}
    for folder in a.folders:
        for name in glob.iglob(f"{folder}/**/*", recursive=True):
            if not name.endswith(KINDS) or os.path.islink(name) or not os.path.isfile(name) or os.path.getsize(name) > 150_000:
                continue
            with open(name, "rb") as f:
                data = f.read()
            try:
                text = data.decode("utf-8")
            except UnicodeDecodeError:
                continue
            if len(data) >= 200 and not registers(name, data):
                found.setdefault(hashlib.sha256(data).digest(), (name, text))
    os.makedirs(a.out, exist_ok=True)
    taken, size = {}, 0
    for digest in sorted(found):
        if size < a.bytes:
            taken[digest] = "valid" if digest[-1] < 14 else "train"
            size += len(found[digest][1].encode())
    sample = []
    sizes = {side: [0, 0] for side in ("train", "valid")}
    files = {side: open(f"{a.out}/{side}.jsonl", "w", encoding="utf-8") for side in sizes}
    for digest in sorted(taken, key=lambda d: found[d][0]):  # in the order of their paths: packs best
        text, side = found[digest][1], taken[digest]
        files[side].write(json.dumps({"text": text}, ensure_ascii=False) + "\n")
        sizes[side][0] += 1
        sizes[side][1] += len(text.encode())
        if side != "valid" and digest[-2] < 22:
            sample.append(text)
    for f in files.values():
        f.close()
    t = Tokenizer(models.BPE())
    t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    t.decoder = decoders.ByteLevel()
    t.train_from_iterator(sample, trainers.BpeTrainer(
        vocab_size=8192, special_tokens=[END], initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    t.save(f"{a.out}/tokenizer.json")
    for side, (n, size) in sizes.items():
        print(f"{side}: {n} documents, {size} bytes")


main()
