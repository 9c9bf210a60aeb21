"""Inverse: A^-1(x, y) = A(y, x)."""

from __future__ import annotations

from dotadd.automata.automaton import Automaton
from dotadd.automata.scratch import sort_arcs


def invert(a: Automaton) -> Automaton:
    """The transducer that reads what A writes, and writes what A reads."""
    offsets, reads, writes, targets, weights, finals = a.arrays
    arcs = writes.copy(), reads.copy(), targets.copy(), weights.copy()
    sort_arcs(offsets, *arcs)
    return Automaton.made(offsets, *arcs, finals, start=a.start, symbols=a.symbols)
