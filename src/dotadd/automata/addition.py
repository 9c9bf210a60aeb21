"""Sum and multiples: (c A + d B)(x, y) = c A(x, y) + d B(x, y)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dotadd.automata.automaton import EPSILON, Automaton, common_symbols
from dotadd.automata.joining import side_by_side
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
