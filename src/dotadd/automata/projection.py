"""Projection on the inputs, sum over y of A(x, y), or on the outputs, sum over x of A(x, y), as an acceptor."""

from __future__ import annotations

from typing import Literal

from dotadd.automata.automaton import Automaton
from dotadd.automata.scratch import sort_arcs
from dotadd.errors import AutomatonError


def project(a: Automaton, side: Literal["input", "output"]) -> Automaton:
    """The acceptor of what A reads, or of what it writes. All paths stay."""
    if side not in ("input", "output"):
        raise AutomatonError(f"a transducer is projected on its 'input' or its 'output', and not on {side!r}")
    offsets, reads, writes, targets, weights, finals = a.arrays
    labels = reads if side == "input" else writes
    arcs = labels.copy(), labels.copy(), targets.copy(), weights.copy()
    sort_arcs(offsets, *arcs)
    return Automaton.made(offsets, *arcs, finals, start=a.start, symbols=a.symbols)
