"""Product, or concatenation: (A B)(x, y) = sum of A(x1, y1) B(x2, y2) over all x1 x2 = x and y1 y2 = y."""

from __future__ import annotations

import numpy as np

from dotadd.automata.automaton import Automaton, common_symbols
from dotadd.automata.joining import side_by_side, with_epsilons


def concatenate(a: Automaton, b: Automaton) -> Automaton:
    """A path of A and then one of B: an epsilon arc, weighted by the final weight, leads from A's ends to B's start."""
    (_, first), arrays = side_by_side([a, b], 0)
    ends = np.flatnonzero(a.finals)
    offsets, *columns, finals = with_epsilons(arrays, ends, np.full(len(ends), first + b.start), a.finals[ends])
    finals[:first] = 0.0
    return Automaton.made(offsets, *columns, finals, start=a.start, symbols=common_symbols(a, b))
