"""Draft: an automaton as it stands in a text file, before its labels have numbers and its states count from 0.

Files give costs, -log of a weight, as OpenFst and Kaldi do: the weight in the real semiring is exp(-cost), an infinite
cost is the weight 0, and sums of weights over paths are what their log semiring computes. In a file of the "real"
semiring, weights stand as they are.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from itertools import chain

import numpy as np

from dotadd.automata.automaton import EPSILON, Automaton
from dotadd.automata.minimization import posterior
from dotadd.automata.symbols import EPSILON_NAME, LARGEST, HashedSymbols, SymbolTable
from dotadd.errors import AutomatonError, DataError

SEMIRINGS = ("log", "real")
LARGEST_EXPONENT = 700.0  # exp of more is beyond float64


@dataclass(frozen=True)
class Options:
    """How text is read.

    semiring: "log" for costs, "real" for weights as they are.
    acceptor: whether four columns are an acceptor's arc with its weight, and not a transducer's without one; None looks
        at what stands there.
    acoustic_scale: what the second of the two costs of Kaldi's lattices is multiplied with.
    normalize: make the weights of all paths sum to 1, in logarithms, so that large costs neither over- nor underflow.
    """

    semiring: str = "log"
    acceptor: bool | None = None
    acoustic_scale: float = 1.0
    normalize: bool = False

    def __post_init__(self) -> None:
        if self.semiring not in SEMIRINGS:
            raise AutomatonError(f"semiring has to be 'log' or 'real', and not {self.semiring!r}")

    @property
    def one(self) -> float:
        """What a weight that is not written stands for."""
        return 0.0 if self.semiring == "log" else 1.0


class Numbering:
    """Which number a label has: that of a symbol table, or else the one that is written, or else the next one.

    Without a table, the first automaton decides whether labels are numbers or names for all of a file. Names that are
    hashed may have to be `known` to another table, by which numbers become names.
    """

    def __init__(self, symbols: SymbolTable | None = None, known: SymbolTable | None = None) -> None:
        self.symbols, self.known = symbols, known
        self.numeric: bool | None = None
        self.fixed = symbols is not None

    def number_of(self, words: set[str]) -> dict[str, int | str]:
        """The number of each word, or what is wrong with it."""
        words = words - {EPSILON_NAME}
        plain = all(word.isascii() and word.isdecimal() for word in words)
        empty: dict[str, int | str] = {EPSILON_NAME: EPSILON}
        table = self.symbols
        if isinstance(table, HashedSymbols):
            if self.known is not None:
                return empty | _hashed_names(table, self.known, words, plain)
            numbers = {word: table.number(word) for word in words}
            return empty | numbers | ({"0": EPSILON} if plain else {})  # among numbers, 0 is the empty word
        if self.numeric is None and words:
            self.numeric = plain and (table is None or not all(word in table for word in words))
        if self.numeric:
            return empty | {word: self._written(word) for word in words}
        if table is None:
            table = self.symbols = SymbolTable()
        if not self.fixed:
            return empty | {word: table.add(word) for word in sorted(words)}
        return empty | {word: table.number(word) if word in table else _unknown(word) for word in words}

    def _written(self, word: str) -> int | str:
        if not (word.isascii() and word.isdecimal()):
            return f"the label {word!r} is not a number, unlike those before it; give a symbol table"
        if len(word) > 10 or int(word) > LARGEST:
            return f"the label {word} is beyond {LARGEST}"
        if self.symbols is not None and not self.symbols.has(int(word)):
            return _no_name(word)
        return int(word)


def _unknown(word: str) -> str:
    return f"the symbol {word!r} is not in the symbol table"


def _no_name(number: str) -> str:
    return f"no symbol of the table has the number {number}"


def _hashed_names(table: HashedSymbols, known: SymbolTable, words: set[str], plain: bool) -> dict[str, int | str]:
    """The hash of each word's name, or what is wrong with it. Numbers that are not all names are those of names."""
    by_number = plain and not all(word in known for word in words)
    found: dict[str, int | str] = {}
    for word in words:
        if by_number and not known.has(int(word)):
            found[word] = _no_name(word)
        elif not by_number and word not in known:
            found[word] = _unknown(word)
        else:
            name = known.name(int(word)) if by_number else word
            found[word] = table.number(name) if known.number(name) else EPSILON
    return found


@dataclass
class Draft:
    """Arcs in the order in which they stand in the file, with the line of each; labels are words.

    `costs` says whether weights are costs. `label` is what the automaton is an example of, where the file says so.
    """

    path: str | None
    line: int
    costs: bool
    name: str = ""
    label: str | None = None
    start: int | None = None
    sources: list[int] = field(default_factory=list)
    targets: list[int] = field(default_factory=list)
    inputs: list[str] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)
    weights: list[float] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)
    finals: dict[int, float] = field(default_factory=dict)

    def error(self, message: str, line: int | None = None) -> DataError:
        return DataError(message, self.path, self.line if line is None else line)

    def on_outputs(self) -> Draft:
        """The acceptor of what is written: in a lattice of Kaldi's, the words."""
        self.inputs = self.outputs
        return self

    def automaton(self, numbering: Numbering, normalize: bool = False) -> Automaton:
        """The automaton. States keep their numbers if these count from 0 without a gap, and their order if not."""
        reads, writes = self.labels(numbering)
        leaves, leads, final, start = self.states()
        sources, targets, ilabels, olabels = (np.array(column, np.int64) for column in (leaves, leads, reads, writes))
        weights, ends = np.array(self.weights, np.float64), np.array(final, np.float64)
        try:
            if normalize and self.costs:
                return posterior(sources, targets, ilabels, olabels, weights, ends, start, numbering.symbols)
            if self.costs:
                weights, ends = self._exp(weights), np.exp(-ends)
            return Automaton.from_arrays(sources, targets, ilabels, olabels, weights, ends, start, numbering.symbols)
        except AutomatonError as error:
            raise self.error(str(error)) from None

    def _exp(self, costs: np.ndarray) -> np.ndarray:
        if len(bad := np.flatnonzero(costs < -LARGEST_EXPONENT)):
            message = f"exp of minus the cost {costs[bad[0]]:g} is too large a weight; normalize=True divides it out"
            raise self.error(message, self.lines[bad[0]])
        return np.exp(-costs)

    def labels(self, numbering: Numbering) -> tuple[list[int], list[int]]:
        """What each arc reads and writes, by number."""
        number_of = numbering.number_of(set(chain(self.inputs, self.outputs)))
        wrong = {word for word, number in number_of.items() if isinstance(number, str)}
        if wrong:
            for read, written, line in zip(self.inputs, self.outputs, self.lines, strict=True):
                if read in wrong or written in wrong:
                    raise self.error(str(number_of[read if read in wrong else written]), line)
        numbers = {word: number for word, number in number_of.items() if not isinstance(number, str)}
        reads = [numbers[word] for word in self.inputs]
        return reads, reads if self.inputs is self.outputs else [numbers[word] for word in self.outputs]

    def states(self) -> tuple[list[int], list[int], list[float], int]:
        """Where arcs leave and lead to, what the final weight of each state is, and the start; states from 0."""
        if self.start is None:
            raise self.error("has no states")
        known = {*self.sources, *self.finals}
        if not known.issuperset(self.targets):
            arc = next(arc for arc, target in enumerate(self.targets) if target not in known)
            message = (
                f"an arc leads to state {self.targets[arc]}, which is missing: no arc leaves it and it is not final"
            )
            raise self.error(message, self.lines[arc])
        states = sorted({*known, self.start})
        final = [math.inf if self.costs else 0.0] * len(states)
        if states[-1] == len(states) - 1:
            for state, weight in self.finals.items():
                final[state] = weight
            return self.sources, self.targets, final, self.start
        at = {state: place for place, state in enumerate(states)}
        for state, weight in self.finals.items():
            final[at[state]] = weight
        sources, targets = ([at[state] for state in column] for column in (self.sources, self.targets))
        return sources, targets, final, at[self.start]
