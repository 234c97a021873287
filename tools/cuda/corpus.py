"""Makes token shards for GPT-2 of the source files on this machine, for train_peers.py.

  corpus.py OUT [FOLDER...]

The text is every .go and .py file below the folders (default: the Go distribution and Python's
standard library), in the order of their paths, without test data and repeated files, each behind
an end-of-text token. A byte-level BPE of 50,257 tokens, as GPT-2's, is trained on it, unless OUT
has one. OUT gets tokenizer.json, train.bin (uint16 tokens behind the header that mtc reads) and
train.bin.gz, which on-device.sh wants in build/cuda/shard.
"""
import array
import glob
import gzip
import hashlib
import os
import struct
import sys
import sysconfig

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

VOCAB, END = 50257, "<|endoftext|>"


def texts(folders, most=96_000_000):
    seen, size = set(), 0
    for folder in folders:
        names = [f for kind in ("go", "py") for f in glob.glob(f"{folder}/**/*.{kind}", recursive=True)]
        for name in sorted(names):
            if "testdata" in name or not os.path.isfile(name) or os.path.getsize(name) > 1_000_000:
                continue
            text = open(name, "rb").read()
            digest = hashlib.sha256(text).digest()
            if digest in seen or size + len(text) > most:
                continue
            seen.add(digest)
            size += len(text)
            yield text.decode("utf-8", "replace")


def main(out, folders):
    os.makedirs(out, exist_ok=True)
    docs = list(texts(folders))
    print(f"{len(docs)} files, {sum(map(len, docs)) / 1e6:.1f} M characters", flush=True)
    if os.path.exists(f"{out}/tokenizer.json"):
        t = Tokenizer.from_file(f"{out}/tokenizer.json")
    else:
        t = Tokenizer(models.BPE())
        t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        t.decoder = decoders.ByteLevel()
        t.train_from_iterator(docs, trainers.BpeTrainer(
            vocab_size=VOCAB, special_tokens=[END], initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False))
        t.save(f"{out}/tokenizer.json")
    end = t.token_to_id(END)
    ids = array.array("H")
    for at in range(0, len(docs), 256):
        for e in t.encode_batch(docs[at : at + 256]):
            ids.append(end)
            ids.extend(e.ids)
    body = ids.tobytes()
    raw = struct.pack("<256i", 20240520, 1, len(ids), *[0] * 253) + body
    open(f"{out}/train.bin", "wb").write(raw)
    packed = gzip.compress(raw, 1)
    open(f"{out}/train.bin.gz", "wb").write(packed)
    print(f"vocabulary {t.get_vocab_size()}, {len(ids)} tokens, largest {max(ids)}, packed {len(packed) / 1e6:.1f} MB")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:] or ["/usr/local/go/src", sysconfig.get_paths()["stdlib"]])
