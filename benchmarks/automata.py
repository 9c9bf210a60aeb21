"""Forms of W' (Allauzen, Cortes and Mohri, tables 3 and 5) on stories of Reuters-21578, and the open question.

Two passes of the paper's Algorithm 2 over the same stories with each form: the first fills W', in the second all
strings are known. Times are the mean of a gradient, D(Phi' o W'), and of an update, W' + alpha Phi', with Phi' computed
before as a minimal automaton. The naive sum and the automaton that is minimized anew go over a few stories only. `w` is
a flat array under the numbers of strings, which `Rational` has.

    python -m benchmarks.automata [--tiny] [--rows N] [--n N ...]
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from time import perf_counter
from typing import NamedTuple

import numpy as np

from benchmarks import reuters
from dotadd import Rational
from dotadd.automata import (
    Automaton,
    IncrementalMinimal,
    NaiveSum,
    NumberedMinimal,
    RecomputedMinimal,
    WeightAutomaton,
    WeightTrie,
    feature_automaton,
    minimize,
    ngram,
    total,
)
from dotadd.core import block as blocks
from dotadd.data.batches import Strings
from dotadd.features.base import Shape
from dotadd.problem.examples import InMemory

ORDERS = (4, 5, 6, 7)
SLOW_ROWS = 40  # stories for forms whose cost grows with those before
SYMBOLS = 255
FORMS: dict[str, type[WeightAutomaton]] = {
    "naive sum": NaiveSum,
    "trie": WeightTrie,
    "minimal, made anew": RecomputedMinimal,
    "minimal, incremental": IncrementalMinimal,
    "minimal, weights beside": NumberedMinimal,
}
SLOW = (NaiveSum, RecomputedMinimal)
COLUMNS = ["W'", "stories", "transitions", "weights beside", "gradient, ms", "update, ms", "first pass: update, ms"]


class Measured(NamedTuple):
    """Transitions after two passes, and milliseconds."""

    transitions: int
    beside: int
    gradient: float
    update: float
    first_update: float
    alpha: np.ndarray
    w: WeightAutomaton


def vectors(texts: Sequence[str], y: np.ndarray, n: int) -> list[Automaton]:
    """Phi'_i, labels and all."""
    transducer = ngram(n).transducer(SYMBOLS)
    strings = [np.frombuffer(text.encode("latin-1", "replace"), np.uint8).astype(np.int32) for text in texts]
    return [
        feature_automaton(float(label) * Automaton.from_string(string), transducer)
        for string, label in zip(strings, y, strict=True)
    ]


def measure(w: WeightAutomaton, phis: list[Automaton], C: float = 1.0, passes: int = 2) -> Measured:
    """Passes of Algorithm 2 in the order of the examples."""
    squares = [total(phi @ phi) for phi in phis]
    alpha = np.zeros(len(phis))
    times = np.zeros((passes, 2))
    for turn in range(passes):
        for i, phi in enumerate(phis):
            began = perf_counter()
            gradient = w.score(phi) - 1.0
            scored = perf_counter()
            new = min(max(alpha[i] - gradient / squares[i], 0.0), C) if squares[i] else C
            w.add(new - alpha[i], phi)
            times[turn] += scored - began, perf_counter() - scored
            alpha[i] = new
        if isinstance(w, NumberedMinimal):
            w.settle()
    milliseconds = 1000.0 * times / len(phis)
    beside = w.n_strings if isinstance(w, NumberedMinimal) else 0
    return Measured(w.transitions, beside, *milliseconds[-1], milliseconds[0, 1], alpha, w)


def flat(texts: Sequence[str], n: int, repeat: int = 3) -> tuple[float, float]:
    """Milliseconds of a DOT and of an ADD with the same features under their hashes, expansion included."""
    batch = Strings.from_list([text.encode("latin-1", "replace") for text in texts])
    phi = Rational(ngram(n)).resolve(Shape.of(batch))
    examples, w = InMemory(phi, batch), np.zeros(phi.dim, np.float32)
    out, ones = np.empty(len(batch)), np.ones(len(batch))
    times = np.full(2, np.inf)
    for _ in range(repeat + 1):  # the first one compiles
        spent = np.zeros(2)
        mark = perf_counter()
        for block, at, _ in examples.blocks():
            filled = perf_counter()
            blocks.dot(block.start, block.end, block.indices, block.values, at, w, out[: len(at)])
            dotted = perf_counter()
            blocks.add(block.start, block.end, block.indices, block.values, at, ones[: len(at)], w)
            spent += dotted - mark, filled - mark + perf_counter() - dotted
            mark = perf_counter()
        times = np.minimum(times, spent)
    return tuple(1000.0 * times / len(batch))  # type: ignore[return-value]


def report(*, tiny: bool = False, rows: int | None = None, orders: Sequence[int] = ORDERS) -> str:
    """The tables, in Markdown."""
    stories = reuters.load(tiny=tiny).subset(12 if tiny else rows or reuters.SUBSET)
    texts, y = stories.texts, stories.signs
    lines = []
    for n in orders[:1] if tiny else orders:
        phis = vectors(texts, y, n)
        lines += [f"{n}-grams of characters:\n", f"| {' | '.join(COLUMNS)} |", "|---" * len(COLUMNS) + "|"]
        for name, form in FORMS.items():
            some = phis[: SLOW_ROWS if form in SLOW else None]
            measure(form(), some[:2])  # compiles
            found = measure(form(), some)
            beside = f"{found.beside:,}" if found.beside else ""
            cells = f"{len(some):,} | {found.transitions:,} | {beside} | {found.gradient:.3f} | {found.update:.3f}"
            lines.append(f"| {name} | {cells} | {found.first_update:.3f} |")
            if form is WeightTrie:
                fewest = minimize(found.w.automaton()).n_arcs
        dot, add = flat(texts, n)
        lines += [
            f"| w | {len(texts):,} | | | {dot:.3f} | {add:.3f} | |",
            f"\nThe trie, minimized at the end, has {fewest:,} transitions.\n",
        ]
    return "\n".join(lines)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--rows", type=int)
    parser.add_argument("--n", type=int, nargs="+", default=ORDERS)
    arguments = parser.parse_args()
    print(report(tiny=arguments.tiny, rows=arguments.rows, orders=arguments.n))
