"""ADD and DOT of one example in each form of w, beside the O(.) of COFFIN's table 1.

Weighted degree features of windows around AG: of human chromosome 19 if it is in the folder DOTADD_DATA, of simulated
ones otherwise. Times are for a feature, with its expansion, in blocks of some examples, rows in random order, one core;
"learn" is the pass that gives slots to the features that occur. Bytes are those of w in float32 and of its index, for a
slot and for a letter of the windows. In O(.), x is the number of features of an example, m that of examples, w that of
weights, n the size of the space, and d the depth of the trie. The paper has no exact hash table, and merges sorted
arrays where we search (`features/forms.py` says why); its suffix arrays are those of Teo and Vishwanathan (2006), with
substrings of all lengths in 19 bytes a letter.

That is `AllSubstrings`, in the tables at the end, for DNA and for mails (Enron): nanoseconds of one core for a letter,
to build the index, for DOT of all rows the first time, and for DOT and ADD of all rows after that. `exponent` tells by
what power of the letters the time to build has grown since the row above.

    python -m benchmarks.forms [--tiny] [--rows N] [--letters N]
"""

from __future__ import annotations

import argparse
import json
import lzma
from collections.abc import Callable
from dataclasses import dataclass
from math import log
from time import perf_counter, process_time

import numpy as np

from benchmarks import datasets
from dotadd import AllSubstrings, Spectrum, WeightedDegree
from dotadd._util.memory import available
from dotadd.core import block as blocks
from dotadd.core.block import Block
from dotadd.data.batches import Strings
from dotadd.features.base import FeatureMap, Shape
from dotadd.features.terms import Term
from dotadd.problem.examples import InMemory

ROWS = 10_000
MAPS = (WeightedDegree(8), WeightedDegree(20), Spectrum(20))
LETTERS = 10**7
COLUMNS = ["form", "slots", "w, MB", "index, MB", "bytes a slot", "a letter", "learn, ns", "ADD, ns", "DOT, ns"]
COLUMNS += ["paper: ADD, DOT", "here", "memory"]
FASTA = datasets.FOLDER / "human_chr19" / "chr19.fa.xz"


@dataclass(frozen=True)
class Form:
    """A form of w, how a map is put into it, and what table 1 (and we, where that differs) say of its cost."""

    name: str
    put: Callable[[FeatureMap], FeatureMap]
    paper: str
    here: str
    memory: str


FORMS = [
    Form("Dense", lambda phi: phi, "O(x)", "", "O(n)"),
    Form("Hashed, 12 bits", lambda phi: phi.hashed(12), "O(x)", "", "O(2^bits)"),
    Form("SortedArray", lambda phi: phi.indexed("sorted_array"), "O(w + x)", "O(x log w)", "O(m x)"),
    Form("HashTable", lambda phi: phi.indexed("hash_table"), "", "O(x)", "O(m x)"),
    Form("Trie", lambda phi: phi.indexed("trie"), "O(d x)", "", "O(m x)"),
    Form("SuffixArray", lambda phi: phi.indexed("suffix_array"), "O(x)", "k-mers O(x), others O(x log w)", "O(m x)"),
]
ALL_LENGTHS: list[FeatureMap] = [
    AllSubstrings(decay=0.8),
    AllSubstrings(decay=0.8, up_to=20),
    Spectrum(20).indexed("suffix_array"),
    Spectrum(20).indexed("hash_table"),
    Spectrum(20).indexed("trie"),
]


def windows(rows: int, tiny: bool) -> Strings:
    """So many windows of 141 letters."""
    if tiny or not FASTA.exists():
        from dotadd.genome.simulate import splice_windows

        return splice_windows(rows)[0]
    from dotadd.genome.windows import Windows

    batch = Windows(FASTA, signal="acceptor", sample=rows).load().batch
    assert isinstance(batch, Strings)
    return batch


@dataclass(frozen=True)
class Measured:
    """Slots, bytes of w and of its index, and nanoseconds a feature."""

    slots: int
    weights: int
    index: int
    learn: float
    add: float
    dot: float


def measure(phi: FeatureMap, batch: Strings, repeat: int = 3) -> Measured | None:
    """None if this machine cannot hold w."""
    phi = phi.resolve(Shape.of(batch))
    phi.learn(batch.slice(0, 1))  # compiles
    began = perf_counter()
    phi = phi.learn(batch)
    learn = perf_counter() - began
    if 4 * phi.dim > available():
        return None
    w = np.zeros(phi.dim, np.float32)
    rows = np.random.default_rng(0).permutation(len(batch))[: max(1, len(batch) // 5)]
    out, ones = np.empty(len(rows)), np.ones(len(rows))

    def dot(block: Block, at: np.ndarray) -> None:
        blocks.dot(block.start, block.end, block.indices, block.values, at, w, out[: len(at)])

    def add(block: Block, at: np.ndarray) -> None:
        blocks.add(block.start, block.end, block.indices, block.values, at, ones[: len(at)], w)

    def seconds(operation: Callable[[Block, np.ndarray], None], rows: np.ndarray) -> float:
        examples = InMemory(phi, batch)
        began = perf_counter()
        for block, at, _ in examples.blocks(rows):
            operation(block, at)
        return perf_counter() - began

    def best(operation: Callable[[Block, np.ndarray], None]) -> float:
        seconds(operation, rows[:1])  # compiles
        return min(seconds(operation, rows) for _ in range(repeat))

    features = int(np.max(phi.bound(batch)))
    a_feature = 1e9 / (len(rows) * features)
    index = phi.index.nbytes if isinstance(phi, Term) and phi.index is not None else 0
    learned = learn * 1e9 / (len(batch) * features) if index else 0.0
    return Measured(phi.dim, w.nbytes, index, learned, best(add) * a_feature, best(dot) * a_feature)


def report(*, tiny: bool = False, rows: int | None = None, letters: int = LETTERS) -> str:
    """The tables, in Markdown."""
    batch = windows(rows or (50 if tiny else ROWS), tiny)
    lines = []
    for leaf in MAPS:
        phi = leaf.resolve(Shape.of(batch))
        lines += [
            f"{leaf!r}, n = {phi.dim:.2g}, {len(batch):,} windows of {phi.bound(batch):,} features:\n",
            f"| {' | '.join(COLUMNS)} |",
            "|---" * len(COLUMNS) + "|",
        ]
        for form in FORMS:
            ends = f"{form.paper} | {form.here} | {form.memory} |"
            found = measure(form.put(phi), batch)
            if found is None:
                lines.append(f"| {form.name} | {phi.dim:.2g} | {4e-6 * phi.dim:.2g} | | 4.0 | | | | | {ends}")
                continue
            cells = [
                f"{found.slots:,}",
                f"{found.weights / 1e6:,.1f}",
                f"{found.index / 1e6:,.1f}" if found.index else "",
                f"{(found.weights + found.index) / found.slots:.1f}",
                f"{(found.weights + found.index) / len(batch.letters):.1f}",
                f"{found.learn:.1f}" if found.index else "",
                f"{found.add:.1f}",
                f"{found.dot:.1f}",
            ]
            lines.append(f"| {form.name} | " + " | ".join(cells) + f" | {ends}")
        lines.append("")
    for name, of in (
        ("DNA", lambda letters: windows(max(1, letters // WINDOW), tiny)),
        ("Mails", lambda letters: mails(letters, tiny)),
    ):
        lines += [f"{name}:\n", f"| {' | '.join(LETTER_COLUMNS)} |", "|---" * len(LETTER_COLUMNS) + "|"]
        for phi in ALL_LENGTHS[: None if name == "DNA" else 2]:
            before: Built | None = None
            for size in (2_000, 4_000) if tiny else (letters // 100, letters // 10, letters):
                before = by_letter(phi, of(size), before, lines)
        lines.append("")
    return "\n".join(lines)


WINDOW = 141
LETTER_COLUMNS = ["map", "letters", "slots", "build, ns", "exponent", "first look, ns", "DOT, ns", "ADD, ns"]
LETTER_COLUMNS += ["index, bytes", "with w"]


def mails(letters: int, tiny: bool) -> Strings:
    """Texts, as many as have so many letters."""
    path = datasets.FOLDER / "enron_spam" / "enron_spam.jsonl.xz"
    if tiny or not path.exists():
        rng = np.random.default_rng(0)
        words = np.array(["".join(rng.choice(list("etaoins"), rng.integers(2, 9))) for _ in range(500)])
        return Strings.from_list([" ".join(rng.choice(words, 50)) for _ in range(max(1, letters // 300))])
    texts, total = [], 0
    with lzma.open(path, "rt") as file:
        for line in file:
            texts.append(json.loads(line)["text"].encode())
            total += len(texts[-1])
            if total >= letters:
                break
    return Strings.from_list(texts)


@dataclass(frozen=True)
class Built:
    """Letters, and the seconds in which their index was built."""

    letters: int
    seconds: float


def since(began: float) -> float:
    """Seconds of the processor since then, never none: some systems count them in ticks of 10 ms."""
    return max(process_time() - began, 1e-9)


def by_letter(phi: FeatureMap, batch: Strings, before: Built | None, lines: list[str]) -> Built:
    """A line about a map and these strings, times for a letter."""
    phi = phi.resolve(Shape.of(batch))
    if before is None:  # compiles
        few = InMemory(phi.learn(batch.slice(0, 1)), batch.slice(0, 1))
        few.add([few.dot([np.zeros(few.dim, np.float32)])[0] + 1.0], [np.zeros(few.dim, np.float32)])
    count = int(batch.lengths().sum())
    began = process_time()
    learned = phi.learn(batch)
    built = Built(count, since(began))
    w, ones = np.zeros(learned.dim, np.float32), np.ones(len(batch))
    examples = InMemory(learned, batch)

    def seconds(work: Callable[[], object]) -> float:
        began = process_time()
        work()
        return since(began)

    first = seconds(lambda: examples.dot([w]))
    dot, add = (min(seconds(work) for _ in range(3)) for work in (
        lambda: examples.dot([w]), lambda: examples.add([ones], [w])
    ))  # fmt: skip
    grown = "" if before is None else f"{log(built.seconds / before.seconds) / log(count / before.letters):.2f}"
    index = sum(array.nbytes for array in learned.state().values())
    times = [f"{1e9 * taken / count:,.0f}" for taken in (first, dot, add)]
    cells = [f"`{phi!r}`", f"{count:,}", f"{learned.dim:,}", f"{1e9 * built.seconds / count:,.0f}", grown, *times]
    cells += [f"{index / count:.1f}", f"{(index + w.nbytes) / count:.1f}"]
    lines.append(f"| {' | '.join(cells)} |")
    return built


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--rows", type=int)
    parser.add_argument("--letters", type=int, default=LETTERS)
    arguments = parser.parse_args()
    print(report(tiny=arguments.tiny, rows=arguments.rows, letters=arguments.letters))
