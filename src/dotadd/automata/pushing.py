"""Weight pushing: weights move towards the start as far as they can, and all strings keep theirs.

What leaves a state q is divided by N(q), and what leads there multiplied with it. When all weights from q on are c
times as large N(q) has to be so too, and it must not be 0, which their sum may be where they have both signs. So

    N(q) = sign of the first path from q on * sum of |weight| over all paths from q on

Over non-negative weights it is the sum, and what leaves a state adds up to 1 as usual. In a deterministic automaton,
paths are strings: N(q) depends on what is accepted from q on and on nothing else.
"""

from __future__ import annotations

import numpy as np

from dotadd._jit import kernel
from dotadd.automata.automaton import Automaton
from dotadd.automata.connection import connect
from dotadd.automata.order import check_acyclic, topological_order
from dotadd.errors import AutomatonError


def push(a: Automaton) -> Automaton:
    """The acyclic automaton, connected, with |final weight| + sum of |arc weights| = 1 at all states but the start."""
    check_acyclic(a)
    a = connect(a)
    offsets, ilabels, olabels, targets, weights, finals = a.arrays
    with np.errstate(over="ignore"):
        sums = _signed_sums(offsets, targets, weights, finals, topological_order(a))
    sums[a.start] = 1.0  # nothing leads there, so that what arrives stays at its arcs
    if not (np.isfinite(sums).all() and (np.abs(sums) > np.finfo(np.float64).tiny).all()):
        raise AutomatonError(
            "weights cannot be pushed: their products along paths are too large or too small for float64"
        )
    pushed = weights * sums[targets] / sums[a.sources]
    return Automaton.made(offsets, ilabels, olabels, targets, pushed, finals / sums, start=a.start, symbols=a.symbols)


@kernel
def _signed_sums(offsets, targets, weights, finals, order):
    sums = np.zeros(len(finals))
    for q in order[::-1]:
        size, sign = abs(finals[q]), np.sign(finals[q])
        for k in range(offsets[q], offsets[q + 1]):
            term = weights[k] * sums[targets[k]]
            size += abs(term)
            if sign == 0.0:
                sign = np.sign(term)
        sums[q] = sign * size
    return sums
