"""Table 5 of the rational kernels paper: the size of W', and what its forms cost.

W' is that of Algorithm 2 with C = 1 on the stories of table 4, whose features are not scaled here: a trie of the
strings of its support vectors; the minimal deterministic automaton of the same strings and weights, found by pushing
weights and merging states; and the minimal automaton of the strings alone, with the weights in a vector beside it,
under the numbers that counting strings gives them. The paper shifts weights to be positive before it minimizes; here
either sign is minimized as it is, and comes out about as small. Its tries are larger: those here have the strings of
support vectors alone. With gaps ours are the larger ones: here an n-gram counts as long as it weighs more than 2^-24,
which is to skip 24 letters, and the paper does not say how far its gaps reach.

Gappy 5-grams are bounded by memory: a story has 2.5 million of them in the median, four stories come to 8.3 million
transitions, and a transition takes some 200 bytes while W' is minimized. Their line is of eight stories, with the
paper's figures for 466 beside it.

The second table answers the paper's open question, whether a minimal automaton can be updated at a cost that does not
depend on its size: two passes of Algorithm 2 over 466 stories with each form of W', milliseconds a story of the second
pass. `made anew` is minimized after each update, on 40 stories. `incremental` keeps the automaton minimal, weights and
all; `weights beside` keeps the structure minimal. `w` is the flat array that training uses.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks import automata, reuters
from benchmarks.paper.coffin import Table, tell
from dotadd import LinearSVM
from dotadd.automata import Automaton, Builder, NumberedMinimal, WeightTrie, feature_automaton, minimize, parse
from dotadd.automata.builders import GappyNGram
from dotadd.data.batches import Strings
from dotadd.features.string_counts import gappy_counts

ORDERS = (4, 5, 6, 7)
FEW = 8  # stories of which gappy 5-grams fit into memory
TINY = 20
COLUMNS = ["stories", "kernel", "support vectors", "trie", "minimal", "trie / minimal", "minimal, weights beside"]
COLUMNS += ["paper: trie", "minimal", "trie / minimal"]
FORM_COLUMNS = ["kernel", "W'", "stories", "transitions", "gradient, ms", "update, ms"]


class Line(NamedTuple):
    """A line of the paper's table."""

    stories: int | None  # drawn at random; None is all
    builder: str
    trie: int
    minimal: int


LINES = [
    Line(reuters.SUBSET, "ngram(4)", 66_331, 34_785),
    Line(reuters.SUBSET, "ngram(5)", 154_460, 63_643),
    Line(reuters.SUBSET, "ngram(6)", 283_856, 103_459),
    Line(reuters.SUBSET, "ngram(7)", 452_881, 157_390),
    Line(reuters.SUBSET, "ngram(10)", 1_151_217, 413_878),
    Line(reuters.SUBSET, "gappy_ngram(3, 0.5)", 103_353, 66_650),
    Line(reuters.SUBSET, "gappy_ngram(4, 0.5)", 1_213_281, 411_939),
    Line(FEW, "gappy_ngram(5, 0.5)", 6_423_447, 1_403_744),
    Line(None, "ngram(4)", 242_570, 106_640),
    Line(None, "ngram(5)", 787_514, 237_783),
    Line(None, "ngram(6)", 1_852_634, 441_242),
    Line(None, "ngram(7)", 3_570_741, 727_743),
]


def weights(stories: reuters.Stories, builder: str) -> tuple[WeightTrie, NumberedMinimal, int]:
    """W' as a trie and with its structure minimal, and the number of support vectors."""
    svm = LinearSVM(f"Rational({builder})", C=1.0, tol=0.01, solver="dcd", random_state=0)
    alpha = svm.fit(stories.texts, stories.about).result_.alpha
    trie, numbered = WeightTrie(), NumberedMinimal()
    used = np.flatnonzero(alpha)
    for row in used:
        phi = features(stories.texts[row].encode("latin-1", "replace"), parse(builder))
        for w in (trie, numbered):
            w.add(float(alpha[row]) * stories.signs[row], phi)
    numbered.settle()
    return trie, numbered, len(used)


def features(text: bytes, builder: Builder) -> Automaton:
    """Phi' of a story. With gaps, X o T has a state for each place and each number of letters, and its determinization
    takes minutes; the strings are listed first then, and their trie does as well."""
    if not isinstance(builder, GappyNGram):
        letters = np.frombuffer(text, np.uint8).astype(np.int32)
        return feature_automaton(Automaton.from_string(letters), builder.transducer(automata.SYMBOLS))
    _, ids, values = gappy_counts(Strings.from_list([text]), builder.n, builder.decay, 1.0)
    order, byte = np.argsort(ids), np.uint64(8)
    levels = [np.unique(ids >> np.uint64(k) * byte) for k in range(builder.n)][::-1]
    first = np.cumsum([1, *(len(level) for level in levels)])
    sources = [np.zeros(len(levels[0]), np.int64)]
    for depth in range(1, builder.n):
        sources.append(first[depth - 1] + np.searchsorted(levels[depth - 1], levels[depth] >> byte))
    labels = (np.concatenate(levels) & np.uint64(255)).astype(np.int64)
    finals = np.concatenate([np.zeros(first[-2]), values[order]])
    targets = np.arange(1, first[-1])
    return Automaton.from_arrays(np.concatenate(sources), targets, labels, labels, np.ones(len(labels)), finals)


def sizes(line: Line, stories: reuters.Stories) -> list[str]:
    """The cells of a line."""
    trie, numbered, used = weights(stories, line.builder)
    minimal = minimize(trie.automaton()).n_arcs
    return [
        f"{len(stories.texts):,}", line.builder, f"{used:,}", f"{trie.transitions:,}", f"{minimal:,}",
        f"{trie.transitions / minimal:.1f}", f"{numbered.transitions:,}",
        f"{line.trie:,}", f"{line.minimal:,}", f"{line.trie / line.minimal:.1f}",
    ]  # fmt: skip


def main(*, tiny: bool = False, page: Path | None = None, only: str = "") -> None:
    """Both tables, printed as they come and kept in the page; or the lines of the first whose kernel has this in it."""
    every = reuters.load(tiny=tiny)
    subsets = {line.stories: every if line.stories is None else every.subset(TINY if tiny else line.stories)
               for line in LINES}  # fmt: skip
    order = [(f"{len(subsets[line.stories].texts):,}", line.builder) for line in LINES]
    table = Table("rational_size", COLUMNS, order, page)
    for line in LINES[:: 8 if tiny else 1]:
        if only in line.builder:
            tell(f"size of W': {line.builder}, {len(subsets[line.stories].texts):,} stories")
            table.add(*sizes(line, subsets[line.stories]))
    if only:
        return
    print()
    some = subsets[reuters.SUBSET]
    orders = (3,) if tiny else ORDERS
    names = [*automata.FORMS, "w"]
    forms = Table("rational_forms", FORM_COLUMNS, [(f"{n}-gram", name) for n in orders for name in names], page)
    for n in orders:
        phis = automata.vectors(some.texts, some.signs, n)
        for name, form in automata.FORMS.items():
            tell(f"forms of W': {n}-gram, {name}")
            fewer = phis[: automata.SLOW_ROWS if form in automata.SLOW else None]
            automata.measure(form(), fewer[:2])  # compiles
            found = automata.measure(form(), fewer)
            beside = f" + {found.beside:,} weights" if found.beside else ""
            times = f"{found.gradient:.3f}", f"{found.update:.3f}"
            forms.add(f"{n}-gram", name, f"{len(fewer):,}", f"{found.transitions:,}{beside}", *times)
        forms.add(f"{n}-gram", "w", f"{len(some.texts):,}", "", *(f"{ms:.3f}" for ms in automata.flat(some.texts, n)))
