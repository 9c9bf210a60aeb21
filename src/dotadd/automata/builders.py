"""Builders: the transducers T of common kernels, described without an alphabet.

With T, phi(x) has a feature for each string z, of value T(x, z), and the kernel is K(x, y) = sum_z T(x, z) T(y, z). A
builder says which T, and makes it when the number of symbols is known: `ngram(4).transducer(64)`. Builders add
(`ngram(3) + ngram(4)`) and scale (`0.5 * ngram(3)`) as transducers do, and for each, `parse(repr(builder)) == builder`.
That text, as in `ngram(3) + 0.5 * gappy_ngram(4, 0.8)`, is read and never run.
"""

from __future__ import annotations

import ast
import math
import sys
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dotadd._util.expression import Reader, call_repr, is_number, quoted
from dotadd.automata.algebra import add, scale
from dotadd.automata.automaton import EPSILON, Automaton
from dotadd.errors import AutomatonError

MAX_LENGTH = 1000
MAX_ARCS = 2**27


class Builder:
    """What a transducer will be, once the number of symbols is known."""

    def transducer(self, n_symbols: int) -> Automaton:
        """The transducer over the symbols 1 .. n_symbols."""
        raise NotImplementedError

    def __add__(self, other: Builder) -> Builder:
        return TransducerSum(_terms(self) + _terms(other)) if isinstance(other, Builder) else NotImplemented

    def __mul__(self, number: float) -> Builder:
        if isinstance(number, bool) or not isinstance(number, int | float | np.number):
            return NotImplemented
        if not abs(number) <= sys.float_info.max:
            raise AutomatonError(f"a transducer is multiplied with a finite number, and not with {quoted(number)}")
        inner, factor = (self.of, self.factor * number) if isinstance(self, ScaledTransducer) else (self, float(number))
        if not math.isfinite(factor):
            raise AutomatonError(f"a transducer is multiplied with a finite number, and not with {factor!r}")
        return inner if factor == 1.0 else ScaledTransducer(float(factor), inner)

    __rmul__ = __mul__


@dataclass(frozen=True, repr=False)
class NGram(Builder):
    """T(x, z) = how often z, of n symbols, occurs in x.

    Figure 2 of Allauzen, Cortes and Mohri: skip any symbols, copy n of them, skip the rest.
    """

    n: int

    def __post_init__(self) -> None:
        _check_int("n", self.n, 1, MAX_LENGTH)

    def __repr__(self) -> str:
        return call_repr("ngram", self.n)

    def transducer(self, n_symbols: int) -> Automaton:
        return _counting(self, self.n, 0.0, n_symbols)


@dataclass(frozen=True, repr=False)
class GappyNGram(Builder):
    """T(x, z) = sum of decay^(span - n) over all places at which z, of n symbols, is a subsequence of x.

    The span runs from the first of the n symbols to the last, so that each symbol skipped between them costs a factor
    of decay. Above 0, and at most 1, where nothing is lost by a gap. With `gaps`, at most so many are skipped in all.
    """

    n: int
    decay: float
    gaps: int | None = None

    def __post_init__(self) -> None:
        _check_int("n", self.n, 1, MAX_LENGTH)
        decay = self.decay
        if isinstance(decay, bool) or not isinstance(decay, int | float | np.number) or not 0 < decay <= 1:
            raise AutomatonError(f"decay has to be a number above 0 and at most 1, and not {decay!r}")
        if self.gaps is not None:
            _check_int("gaps", self.gaps, 0, MAX_LENGTH)

    def __repr__(self) -> str:
        limit = {} if self.gaps is None else {"gaps": self.gaps}
        return call_repr("gappy_ngram", self.n, float(self.decay), **limit)

    def transducer(self, n_symbols: int) -> Automaton:
        if self.gaps is None:
            return _counting(self, self.n, float(self.decay), n_symbols)
        # state 0 before the first symbol, then (copied, skipped), and the end
        wide, end = self.gaps + 1, (self.n - 1) * (self.gaps + 1) + 1
        symbols = _symbols(self, n_symbols, 2 * (end + 1) * n_symbols)
        arcs = _Arcs()
        arcs.loop(0, symbols)
        arcs.loop(end, symbols)
        arcs.append(0, 1 if self.n > 1 else end, symbols, symbols)
        for copied in range(1, self.n):
            for skipped in range(wide):
                state = 1 + (copied - 1) * wide + skipped
                arcs.append(state, state + wide if copied + 1 < self.n else end, symbols, symbols)
                if skipped < self.gaps:
                    arcs.append(state, state + 1, symbols, EPSILON, float(self.decay))
        return arcs.automaton(end)


@dataclass(frozen=True, repr=False)
class Mismatch(Builder):
    """T(x, z) = how many substrings of x, of k symbols, differ from z in at most m places."""

    k: int
    m: int

    def __post_init__(self) -> None:
        _check_int("k", self.k, 1, MAX_LENGTH)
        _check_int("m", self.m, 0, self.k)

    def __repr__(self) -> str:
        return call_repr("mismatch", self.k, self.m)

    def transducer(self, n_symbols: int) -> Automaton:
        states = {(0, 0): 0}  # (symbols read, of which so many were changed); those at the end are one
        for read in range(1, self.k):
            for changed in range(min(read, self.m) + 1):
                states[read, changed] = len(states)
        end = len(states)
        symbols = _symbols(self, n_symbols, len(states) * n_symbols * (n_symbols if self.m else 1))
        reads, writes = (side.ravel() for side in np.meshgrid(symbols, symbols, indexing="ij"))
        changes = reads != writes
        arcs = _Arcs()
        arcs.loop(0, symbols)
        arcs.loop(end, symbols)
        for (read, changed), state in states.items():
            arcs.append(state, states.get((read + 1, changed), end), symbols, symbols)
            if changed < self.m:
                arcs.append(state, states.get((read + 1, changed + 1), end), reads[changes], writes[changes])
        return arcs.automaton(end)


@dataclass(frozen=True, repr=False)
class ScaledTransducer(Builder):
    """A number times a transducer."""

    factor: float
    of: Builder

    def __repr__(self) -> str:
        return (
            f"{self.factor!r} * ({self.of!r})"
            if isinstance(self.of, TransducerSum)
            else f"{self.factor!r} * {self.of!r}"
        )

    def transducer(self, n_symbols: int) -> Automaton:
        return scale(self.of.transducer(n_symbols), self.factor)


@dataclass(frozen=True, repr=False)
class TransducerSum(Builder):
    """The sum of transducers: a feature that several of them have gets the sum of its values."""

    terms: tuple[Builder, ...]

    def __repr__(self) -> str:
        return " + ".join(repr(term) for term in self.terms)

    def transducer(self, n_symbols: int) -> Automaton:
        return add([term.transducer(n_symbols) for term in self.terms])


ngram, gappy_ngram, mismatch = NGram, GappyNGram, Mismatch


class _Arcs:
    """Arcs of a transducer, many at a time."""

    def __init__(self) -> None:
        self.columns: list[tuple[np.ndarray, ...]] = []

    def append(
        self, source: int, target: int, reads: np.ndarray, writes: np.ndarray | int, weight: float = 1.0
    ) -> None:
        columns = np.broadcast_arrays(source, target, reads, writes, weight)
        self.columns.append(tuple(columns))

    def loop(self, state: int, symbols: np.ndarray, weight: float = 1.0) -> None:
        """Skip any symbol."""
        self.append(state, state, symbols, EPSILON, weight)

    def automaton(self, end: int) -> Automaton:
        finals = np.zeros(end + 1)
        finals[end] = 1.0
        columns = (np.concatenate(column) for column in zip(*self.columns, strict=True))
        sources, targets, reads, writes, weights = columns
        return Automaton.from_arrays(sources, targets, reads, writes, weights, finals)


def _counting(builder: Builder, n: int, decay: float, n_symbols: int) -> Automaton:
    """Skip any symbols, copy n of them, skip the rest; a symbol skipped on the way costs a factor of `decay`."""
    symbols = _symbols(builder, n_symbols, (2 * n + 1) * n_symbols)
    arcs = _Arcs()
    arcs.loop(0, symbols)
    arcs.loop(n, symbols)
    for state in range(n):
        arcs.append(state, state + 1, symbols, symbols)
        if state and decay:
            arcs.loop(state, symbols, decay)
    return arcs.automaton(n)


def _symbols(builder: Builder, n_symbols: int, n_arcs: int) -> np.ndarray:
    _check_int("the number of symbols", n_symbols, 1, 2**31 - 1)
    if n_arcs > MAX_ARCS:
        raise AutomatonError(f"{builder!r} has {n_arcs:.3g} arcs over {n_symbols} symbols, more than {MAX_ARCS}")
    return np.arange(1, n_symbols + 1)


def _terms(builder: Builder) -> tuple[Builder, ...]:
    return builder.terms if isinstance(builder, TransducerSum) else (builder,)


def _check_int(name: str, value: object, low: int, high: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or not low <= value <= high:
        raise AutomatonError(f"{name} has to be an integer from {low} to {high}, and not {value!r}")


KNOWN: dict[str, Callable[..., Builder]] = {"ngram": ngram, "gappy_ngram": gappy_ngram, "mismatch": mismatch}


def parse(text: str) -> Builder:
    """The builder that an expression describes."""
    return _Transducers(KNOWN).read(text)


class _Transducers(Reader):
    where = subject = "transducer"
    makes, whole, one = Builder, "a transducer", "transducer"
    example = "ngram(4)"
    understood = "transducers, numbers, + and *"
    operators = (ast.Add, ast.Mult)
    error_class = AutomatonError

    def combined(self, node: ast.AST, operator: ast.operator, left: object, right: object) -> object:
        try:
            if isinstance(operator, ast.Add) and isinstance(left, Builder) and isinstance(right, Builder):
                return left + right
            if isinstance(operator, ast.Mult) and is_number(left) and (is_number(right) or isinstance(right, Builder)):
                return left * right
            if isinstance(operator, ast.Mult) and isinstance(left, Builder) and is_number(right):
                return left * right
        except AutomatonError as error:
            raise self.error(node, str(error)) from None
        raise self.error(node, "transducers are added to transducers, and multiplied with numbers")
