"""Kleene closure: A*(x, y) = sum of A^n(x, y) over n = 0, 1, 2, ..., where A^0 accepts the empty string alone."""

from __future__ import annotations

import numpy as np

from dotadd.automata.automaton import Automaton
from dotadd.automata.joining import side_by_side, with_epsilons


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
