"""Equivalence: whether two acyclic acceptors give the same weight to all strings."""

from __future__ import annotations

import numpy as np

from dotadd.automata.addition import add
from dotadd.automata.automaton import Automaton
from dotadd.automata.determinization import determinize
from dotadd.automata.distance import total


def equivalent(a: Automaton, b: Automaton, tolerance: float = 1e-9) -> bool:
    """Whether sum_x |A(x) - B(x)| <= tolerance * sum_x (|A(x)| + |B(x)|), over all strings x."""
    return _size(add([a, b], [1.0, -1.0])) <= tolerance * (_size(a) + _size(b))


def _size(a: Automaton) -> float:
    """sum_x |A(x)|: in a deterministic automaton, that of a path is the product of the sizes of its weights."""
    offsets, ilabels, olabels, targets, weights, finals = determinize(a).arrays
    return total(Automaton.made(offsets, ilabels, olabels, targets, np.abs(weights), np.abs(finals)))
