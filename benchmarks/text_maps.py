"""How long maps of text take to write a non-zero: words and n-grams of Enron's mails and of 20 newsgroups.

Nanoseconds of one thread's own time for a non-zero as it is written, before equal ones are merged, and for a byte of
text; the best of several passes over blocks of 256 texts whose memory is there already.

    python -m benchmarks.text_maps [--tiny] [expression ...]
"""

from __future__ import annotations

import argparse
from time import thread_time

import numpy as np

from benchmarks import everyday
from dotadd import parse
from dotadd.core.block import Block
from dotadd.data.batches import Strings
from dotadd.features.base import FeatureMap

ROWS, STEP, PASSES = 4_000, 256, 7
MAPS = (
    "BagOfWords()",
    "BagOfWords(unicode=False)",
    "BagOfWords(stop='english')",
    "BagOfWords(shortest_word=2)",
    "BagOfWords(tokens='urls')",
    "BagOfWords(tokens='identifiers')",
    "BagOfWords(binary=True)",
    "WordNGrams((1, 2))",
    "NGrams(3)",
    "NGrams((3, 5))",
    "NGrams((3, 5), unit='characters')",
    "NGrams((3, 5), within='words')",
)


def measure(phi: FeatureMap, batch: Strings, passes: int = PASSES) -> tuple[float, int]:
    """Seconds of the best pass, and non-zeros."""
    bounds = np.broadcast_to(phi.bound(batch), len(batch))
    pieces = [np.arange(at, min(at + STEP, len(batch)), dtype=np.uint32) for at in range(0, len(batch), STEP)]
    made = [Block.scratch(bounds[rows], phi.dim) for rows in pieces]
    phi.fill(batch, pieces[0], made[0])  # compiles
    best = np.inf
    for _ in range(passes):
        seconds = 0.0
        for rows, block in zip(pieces, made, strict=True):
            block.end[:] = block.start
            began = thread_time()
            phi.fill(batch, rows, block)
            seconds += thread_time() - began
        best = min(best, seconds)
    return best, sum(int((block.end - block.start).sum()) for block in made)


def report(expressions: tuple[str, ...] = MAPS, *, tiny: bool = False) -> str:
    """The table, in Markdown."""
    texts = {"mails": everyday.mails(tiny)[0][0], "news": everyday.news(tiny)[0][0]}
    batches = {name: Strings.from_list(rows[:ROWS]) for name, rows in texts.items()}
    lines = ["| map | texts | non-zeros | ns a non-zero | ns a byte |", "|---|---|---|---|---|"]
    for expression in expressions:
        for name, batch in batches.items():
            seconds, count = measure(parse(expression), batch, 2 if tiny else PASSES)
            a_byte = 1e9 * seconds / max(1, len(batch.letters))
            lines.append(
                f"| `{expression}` | {name} | {count:,} | {1e9 * seconds / max(1, count):.2f} | {a_byte:.2f} |"
            )
    return "\n".join(lines)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("expressions", nargs="*", default=MAPS)
    arguments = parser.parse_args()
    print(report(tuple(arguments.expressions), tiny=arguments.tiny))
