"""ADD and DOT of one example in each form of w, beside the O(.) of COFFIN's table 1.

Weighted degree features of windows around AG: of human chromosome 19 if it is in the folder DOTADD_DATA, of simulated
ones otherwise. Times are for a feature, with its expansion, in blocks of some examples, rows in random order, one core;
"learn" is the pass that gives slots to the features that occur. Bytes are those of w in float32 and of its index. In
O(.), x is the number of features of an example, m that of examples, w that of weights, n the size of the space, and d
the depth of the trie. The paper has no exact hash table, and merges sorted arrays where we search
(`features/forms.py` says why).

    python -m benchmarks.forms [--tiny] [--rows N]
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter

import numpy as np

from benchmarks import datasets
from dotadd import WeightedDegree
from dotadd.core import block as blocks
from dotadd.core.block import Block
from dotadd.data.batches import Strings
from dotadd.features.base import MAX_WEIGHTS, FeatureMap, Shape
from dotadd.features.terms import Term
from dotadd.problem.examples import InMemory

ROWS = 10_000
DEGREES = (8, 20)
COLUMNS = ["form", "slots", "w, MB", "index, MB", "bytes a slot", "learn, ns", "ADD, ns", "DOT, ns"]
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
    """None if no machine could hold w."""
    phi = phi.resolve(Shape.of(batch))
    phi.learn(batch.slice(0, 1))  # compiles
    began = perf_counter()
    phi = phi.learn(batch)
    learn = perf_counter() - began
    if phi.dim > MAX_WEIGHTS:
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


def report(*, tiny: bool = False, rows: int | None = None) -> str:
    """The tables, in Markdown."""
    batch = windows(rows or (50 if tiny else ROWS), tiny)
    lines = []
    for degree in DEGREES:
        phi = WeightedDegree(degree).resolve(Shape.of(batch))
        lines += [
            f"WeightedDegree({degree}), n = {phi.dim:.2g}, {len(batch):,} windows of {phi.bound(batch):,} features:\n",
            f"| {' | '.join(COLUMNS)} |",
            "|---" * len(COLUMNS) + "|",
        ]
        for form in FORMS:
            ends = f"{form.paper} | {form.here} | {form.memory} |"
            found = measure(form.put(phi), batch)
            if found is None:
                lines.append(f"| {form.name} | {phi.dim:.2g} | {4e-6 * phi.dim:.2g} | | 4.0 | | | | {ends}")
                continue
            cells = [
                f"{found.slots:,}",
                f"{found.weights / 1e6:,.1f}",
                f"{found.index / 1e6:,.1f}" if found.index else "",
                f"{(found.weights + found.index) / found.slots:.1f}",
                f"{found.learn:.1f}" if found.index else "",
                f"{found.add:.1f}",
                f"{found.dot:.1f}",
            ]
            lines.append(f"| {form.name} | " + " | ".join(cells) + f" | {ends}")
        lines.append("")
    return "\n".join(lines)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--rows", type=int)
    arguments = parser.parse_args()
    print(report(tiny=arguments.tiny, rows=arguments.rows))
