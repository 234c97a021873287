"""Prints N bytes of text that is the same everywhere: words of a small language, drawn by a
generator of its own. For loss curves that are compared between machines.

  text.py N [SEED]
"""
import sys


def text(n, seed=1):
    state = seed * 2654435761 % 2**32

    def draw(k):
        nonlocal state
        state = (state * 1664525 + 1013904223) % 2**32
        return (state >> 8) % k

    syllables = [c + v for c in "bdfgklmnprstvz" for v in "aeiou"]
    words = ["".join(syllables[draw(len(syllables))] for _ in range(1 + draw(3))) for _ in range(400)]
    out, size = [], 0
    while size < n:
        # Frequent words come first: the smaller of two draws.
        line = " ".join(words[min(draw(400), draw(400))] for _ in range(4 + draw(9))).capitalize() + ".\n"
        out.append(line)
        size += len(line)
    return "".join(out)[:n]


if __name__ == "__main__":
    sys.stdout.write(text(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1))
