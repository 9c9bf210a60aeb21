"""Lattices against their best paths: intents of SNIPS, dialogue acts of DSTC2.

A recogniser's lattice holds what else may have been said. Features are n-grams of words, in a lattice what is expected
of them over all of its paths, in 2^18 slots and scaled to unit length; the other columns have only the path that is
most likely. One against the rest, to a duality gap of 0.01 or for 200 passes. C is the one among 0.1, 1 and 10 that is
best when four fifths of the training examples predict the last fifth.

- SNIPS, 7 intents: 700 lattices to train on (the validation part) and 700 to test with; and with 13,084 sentences more
  to train on, of which there are the best paths alone.
- DSTC2: the kinds of dialogue act of the user (one class for each set of them that occurs), from confusion networks of
  3,934 turns of the development part. Five parts of neighbouring turns are predicted from the other four.
"""

from __future__ import annotations

import csv
import lzma
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

import dotadd
from benchmarks import datasets
from benchmarks.paper.coffin import Table, tell
from dotadd import LinearSVM
from dotadd.automata import Automaton
from dotadd.automata.symbols import HashedSymbols
from dotadd.data.lattices import Lattices
from dotadd.errors import NotConvergedWarning

FOLDER = datasets.FOLDER / "lattices"
KERNELS = ("ngram(1)", "ngram(1) + ngram(2)", "ngram(1) + ngram(2) + ngram(3)", "ngram(1) + gappy_ngram(2, 0.5)")
COSTS = (0.1, 1.0, 10.0)
FOLDS = 5
BITS = 18
COLUMNS = ["task", "kernel", "examples", "classes", "best path", "lattice", "words of best path", "arcs of lattice"]


class Examples(NamedTuple):
    """Lattices and their labels."""

    batch: Lattices
    y: np.ndarray

    def take(self, rows: np.ndarray) -> Examples:
        return Examples(self.batch.take(rows), self.y[rows])

    def and_also(self, other: Examples) -> Examples:
        return Examples(Lattices.concat([self.batch, other.batch]), np.concatenate([self.y, other.y]))

    def best(self) -> Examples:
        """The most likely path of each."""
        return Examples(Lattices.from_automata([best_path(self.batch, row) for row in range(len(self.y))]), self.y)


class Task(NamedTuple):
    """Parts to train on and to test with; `more` has been added to the former in either form."""

    name: str
    parts: list[tuple[Examples, Examples]]
    more: Examples | None = None


def best_path(batch: Lattices, row: int) -> Automaton:
    """The chain of words whose probability is highest. States come in topological order."""
    first, stop = (int(batch.state_offsets[row + k]) for k in (0, 1))
    score, come = np.full(stop - first, -np.inf), np.full((stop - first, 2), -1)
    score[0] = 0.0
    for state in range(first, stop):
        for arc in range(int(batch.arc_offsets[state]), int(batch.arc_offsets[state + 1])):
            target, weight = int(batch.targets[arc]), float(batch.weights[arc])
            if weight > 0.0 and score[state - first] + np.log(weight) > score[target]:
                score[target], come[target] = score[state - first] + np.log(weight), (state - first, arc)
    finals = np.asarray(batch.finals[first:stop], np.float64)
    state = int(np.argmax(np.where(finals > 0.0, score + np.log(np.maximum(finals, 1e-300)), -np.inf)))
    words: list[int] = []
    while state > 0:
        state, arc = (int(k) for k in come[state])
        if batch.labels[arc] != 0:
            words.append(int(batch.labels[arc]))
    return Automaton.from_string(words[::-1])


def tasks(tiny: bool = False) -> Iterator[Task]:
    """Read from the folder of the data; tiny stands for made-up ones."""
    if tiny:
        examples = _made_up(40)
        yield Task("made up", _folds(examples, 2))
        return
    valid, test = (_read(f"snips_lattice_{part}.csv.xz") for part in ("valid", "test"))
    yield Task("SNIPS", [(valid, test)])
    yield Task("SNIPS, more", [(valid, test)], _sentences("snips_asr1best_train.csv.xz"))
    turns = _read("dstc2_dev_wcn.txt.xz")
    yield Task("DSTC2", _folds(turns._replace(y=np.array([_kinds(acts) for acts in turns.y])), FOLDS))


def _read(name: str) -> Examples:
    chunk = dotadd.open(datasets.existing(FOLDER / name)).load()
    assert isinstance(chunk.batch, Lattices)
    assert chunk.y is not None
    return Examples(chunk.batch, chunk.y)


def _sentences(name: str) -> Examples:
    """Sentences as chains. Two blanks stand within a word there, `do  n't`, and nothing does in the lattices."""
    words = HashedSymbols()
    with lzma.open(datasets.existing(FOLDER / name), "rt", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    chains = [
        Automaton.from_string([words.add(word) for word in row["text"].replace("  ", "").split()]) for row in rows
    ]
    return Examples(Lattices.from_automata(chains), np.array([row["label"] for row in rows]))


def _kinds(acts: str) -> str:
    """The kinds of some dialogue acts, without what they are about: inform;request."""
    return ";".join(sorted({act.split("-")[0] for act in str(acts).split(";")}))


def _folds(examples: Examples, count: int) -> list[tuple[Examples, Examples]]:
    parts = np.array_split(np.arange(len(examples.y)), count)
    return [(examples.take(np.setdiff1d(np.arange(len(examples.y)), part)), examples.take(part)) for part in parts]


def _made_up(count: int) -> Examples:
    """Confusion networks of four words, of which the first tells the class by its second guess."""
    rng = np.random.default_rng(0)
    y = np.arange(count) % 2
    rows = []
    for label in y:
        arcs = [(0, 1, 1, 1, 0.6), (0, 1, 2 + int(label), 2 + int(label), 0.4)]
        arcs += [(k, k + 1, word, word, 1.0) for k, word in enumerate(rng.integers(4, 9, 3).tolist(), 1)]
        rows.append(Automaton.from_arcs(arcs, {4: 1.0}))
    return Examples(Lattices.from_automata(rows), y)


def accuracy(kernel: str, train: Examples, test: Examples) -> float:
    """Correct predictions of test examples, with the C that the last fifth of the training examples likes best."""
    order = np.random.default_rng(0).permutation(len(train.y))
    most, last = order[: 4 * len(order) // 5], order[4 * len(order) // 5 :]
    C = max(COSTS, key=lambda C: _correct(kernel, C, train.take(most), train.take(last)))
    return _correct(kernel, C, train, test)


def _correct(kernel: str, C: float, train: Examples, test: Examples) -> float:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotConvergedWarning)
        phi = f"Rational({kernel}, bits={BITS}).normalized()"
        svm = LinearSVM(phi, C=C, tol=0.01, max_passes=200, random_state=0).fit(*train)
    return float(np.mean(svm.predict(test.batch) == test.y))


def measure(task: Task, kernel: str, *, best: bool) -> float:
    """The mean of the parts, weighted by their sizes."""
    correct = total = 0.0
    for train, test in task.parts:
        if best:
            train, test = train.best(), test.best()
        if task.more is not None:
            train = train.and_also(task.more)
        correct += len(test.y) * accuracy(kernel, train, test)
        total += len(test.y)
    return correct / total


def main(*, tiny: bool = False, page: Path | None = None) -> None:
    """The table, printed as it comes and kept in the page."""
    every = list(tasks(tiny))
    table = Table("rational_lattices", COLUMNS, [(task.name, kernel) for task in every for kernel in KERNELS], page)
    for task in every:
        train, test = task.parts[0]
        best = test.best()
        count = len(train.y) + (0 if task.more is None else len(task.more.y))
        for kernel in KERNELS[:2] if tiny else KERNELS:
            tell(f"lattices: {task.name}, {kernel}")
            found = [f"{measure(task, kernel, best=which):.4f}" for which in (True, False)]
            arcs = [f"{len(some.batch.labels) / len(some.y):.1f}" for some in (best, test)]
            table.add(task.name, kernel, f"{count:,}", str(len(np.unique(train.y))), *found, *arcs)
