"""The operations on automata that need only a few lines on their arrays, and what they compute.

    sum             (c A + d B)(x, y) = c A(x, y) + d B(x, y)
    concatenation   (A B)(x, y) = sum of A(x1, y1) B(x2, y2) over all x1 x2 = x and y1 y2 = y
    closure         A*(x, y) = sum of A^n(x, y) over n = 0, 1, 2, ..., where A^0 accepts the empty string alone
    inverse         A^-1(x, y) = A(y, x)
    projection      sum over y of A(x, y) on the inputs, sum over x of A(x, y) on the outputs, as an acceptor

Composition, epsilon removal, determinization, pushing and minimization have modules of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from dotadd.automata.automaton import EPSILON, MAX_STATES, Automaton, common_symbols
from dotadd.automata.determinization import determinize
from dotadd.automata.paths import total
from dotadd.automata.scratch import sort_arcs
from dotadd.errors import AutomatonError


def add(automata: Sequence[Automaton], coefficients: Sequence[float] | np.ndarray | None = None) -> Automaton:
    """The sum of automata, each times its coefficient: a new start with an epsilon arc to each of their starts.

    The arcs of the new start are in the order of the automata, and their weights are the coefficients.
    """
    if not automata:
        raise AutomatonError("a sum has at least one automaton")
    factors = np.ones(len(automata)) if coefficients is None else np.array(coefficients, np.float64)
    if factors.shape != (len(automata),) or not np.isfinite(factors).all():
        raise AutomatonError(f"a sum of {len(automata)} automata has as many coefficients, all of them finite")
    first, (offsets, ilabels, olabels, targets, weights, finals) = side_by_side(automata, 1)
    starts = first + np.array([automaton.start for automaton in automata])
    m = len(automata)
    epsilons = np.full(m, EPSILON, np.int32)
    return Automaton.made(
        np.concatenate([[0], offsets + m]),
        np.concatenate([epsilons, ilabels]),
        np.concatenate([epsilons, olabels]),
        np.concatenate([starts.astype(np.int32), targets]),
        np.concatenate([factors, weights]),
        np.concatenate([[0.0], finals]),
        symbols=common_symbols(*automata),
    )


def scale(automaton: Automaton, number: float) -> Automaton:
    """The automaton with its final weights times a number."""
    if not np.isfinite(number):
        raise AutomatonError(f"an automaton is multiplied with a finite number, and not with {number!r}")
    *arcs, finals = automaton.arrays
    return Automaton.made(*arcs, finals * float(number), start=automaton.start, symbols=automaton.symbols)


def concatenate(a: Automaton, b: Automaton) -> Automaton:
    """A path of A and then one of B: an epsilon arc, weighted by the final weight, leads from A's ends to B's start."""
    (_, first), arrays = side_by_side([a, b], 0)
    ends = np.flatnonzero(a.finals)
    offsets, *columns, finals = with_epsilons(arrays, ends, np.full(len(ends), first + b.start), a.finals[ends])
    finals[:first] = 0.0
    return Automaton.made(offsets, *columns, finals, start=a.start, symbols=common_symbols(a, b))


def closure(a: Automaton) -> Automaton:
    """Any number of paths of A after one another, through a new start that is the one final state.

    Where A accepts the empty string this makes a cycle of epsilons; its weight has to be below 1 for sums to exist.
    """
    _, (offsets, *columns, _finals) = side_by_side([a], 1)
    ends = np.flatnonzero(a.finals)
    sources = np.concatenate([[0], ends + 1])
    targets = np.concatenate([[a.start + 1], np.zeros(len(ends), np.int64)])
    weights = np.concatenate([[1.0], a.finals[ends]])
    bare = (np.concatenate([[0], offsets]), *columns, np.concatenate([[1.0], np.zeros(a.n_states)]))
    return Automaton.made(*with_epsilons(bare, sources, targets, weights), symbols=a.symbols)


def invert(a: Automaton) -> Automaton:
    """The transducer that reads what A writes, and writes what A reads."""
    return _labelled(a, a.olabels, a.ilabels)


def project(a: Automaton, side: Literal["input", "output"]) -> Automaton:
    """The acceptor of what A reads, or of what it writes. All paths stay."""
    if side not in ("input", "output"):
        raise AutomatonError(f"a transducer is projected on its 'input' or its 'output', and not on {side!r}")
    labels = a.ilabels if side == "input" else a.olabels
    return _labelled(a, labels, labels)


def _labelled(a: Automaton, reads: np.ndarray, writes: np.ndarray) -> Automaton:
    """The same arcs with other labels."""
    offsets, _, _, targets, weights, finals = a.arrays
    arcs = reads.copy(), writes.copy(), targets.copy(), weights.copy()
    sort_arcs(offsets, *arcs)
    return Automaton.made(offsets, *arcs, finals, start=a.start, symbols=a.symbols)


def equivalent(a: Automaton, b: Automaton, tolerance: float = 1e-9) -> bool:
    """Whether sum_x |A(x) - B(x)| <= tolerance * sum_x (|A(x)| + |B(x)|), over all strings x."""
    return _size(add([a, b], [1.0, -1.0])) <= tolerance * (_size(a) + _size(b))


def _size(a: Automaton) -> float:
    """sum_x |A(x)|: in a deterministic automaton, that of a path is the product of the sizes of its weights."""
    offsets, ilabels, olabels, targets, weights, finals = determinize(a).arrays
    return total(Automaton.made(offsets, ilabels, olabels, targets, np.abs(weights), np.abs(finals)))


def side_by_side(automata: Sequence[Automaton], first: int) -> tuple[np.ndarray, tuple[np.ndarray, ...]]:
    """The arrays of automata one after the other, states numbered from `first`; and the first state of each."""
    states = first + np.concatenate([[0], np.cumsum([automaton.n_states for automaton in automata])])
    if states[-1] > MAX_STATES:
        raise AutomatonError(f"together the automata have {states[-1]} states, more than {MAX_STATES}")
    arcs = np.concatenate([[0], np.cumsum([automaton.n_arcs for automaton in automata])])
    ilabels, olabels, targets, weights, finals = (
        np.concatenate([automaton.arrays[field] for automaton in automata]) for field in range(1, 6)
    )
    offsets = [automaton.offsets[:-1] + at for automaton, at in zip(automata, arcs[:-1], strict=True)]
    targets += np.repeat(states[:-1], np.diff(arcs)).astype(np.int32)
    return states[:-1], (np.concatenate([*offsets, arcs[-1:]]), ilabels, olabels, targets, weights, finals)


def with_epsilons(
    arrays: tuple[np.ndarray, ...], sources: np.ndarray, targets: np.ndarray, weights: np.ndarray
) -> tuple[np.ndarray, ...]:
    """The arrays of an automaton with further epsilon arcs; epsilon is the least label, so they come first."""
    offsets, *columns, finals = arrays
    order = np.argsort(sources, kind="stable")
    at = offsets[sources[order]]
    epsilons = np.full(len(sources), EPSILON)
    new = (epsilons, epsilons, targets[order], weights[order])
    columns = [np.insert(column, at, values) for column, values in zip(columns, new, strict=True)]
    added = np.concatenate([[0], np.cumsum(np.bincount(sources, minlength=len(finals)))])
    return (offsets + added, *columns, finals)
