"""Shortest distance in the real semiring: sums over the paths that lead to a state, or on from it; and D(A).

Without cycles the sums are made state by state in topological order. With cycles they solve a linear system, as long as
the sums exist: with M the matrix of arc weights, sum_n |M|^n is finite if and only if x = 1 + |M| x has a solution with
x >= 1 everywhere, which is tested by solving it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dotadd._jit import kernel
from dotadd.automata.automaton import Automaton
from dotadd.automata.connection import accessible, coaccessible, connect, depth_first
from dotadd.errors import AutomatonError

TOO_LONG = 1e12  # weights whose sum over all paths is larger are taken to have none


def total(a: Automaton) -> float:
    """D(A): the sum of the weights of all accepting paths."""
    if not a.is_acyclic:
        a = connect(a)  # cycles that lead nowhere have no say
    return float(shortest_distance(a, backward=True)[a.start])


def shortest_distance(a: Automaton, backward: bool = False) -> np.ndarray:
    """For each state q the sum of the weights of all paths from the start to q.

    Backward, that of all paths from q to a final state, times its final weight.
    """
    offsets, _, _, targets, weights, finals = a.arrays
    order, cycle = depth_first(a)
    if cycle < 0:
        return (_backward if backward else _forward)(offsets, targets, weights, finals, order, a.start)
    if backward:
        useful, ends = coaccessible(a, a.finals != 0.0), a.finals
    else:
        useful, ends = accessible(a), np.arange(a.n_states) == a.start
    inverse = closed_sum(a, useful, cycle)
    return inverse.solve(ends.astype(np.float64), "N" if backward else "T") * useful


def closed_sum(a: Automaton, useful: np.ndarray, cycle: int) -> Any:
    """sum_n M^n = (I - M)^-1 for arcs between useful states, as a factorization. The cycle is named in the error."""
    from scipy.sparse import csc_array, eye_array
    from scipy.sparse.linalg import splu

    sources = a.sources
    arcs = useful[sources] & useful[a.targets]
    places = (sources[arcs], a.targets[arcs])
    one = eye_array(a.n_states, format="csc")
    try:
        absolute = splu(one - csc_array((np.abs(a.weights[arcs]), places), one.shape))
        sums = absolute.solve(np.ones(a.n_states))
        if sums.min() >= 1 - 1e-9 and sums.max() < TOO_LONG:
            return splu(one - csc_array((a.weights[arcs], places), one.shape))
    except RuntimeError:  # the matrix is singular
        pass
    raise AutomatonError(
        f"the paths have no finite sum: the automaton has a cycle through state {cycle}, and the weights of "
        "all ways around its cycles have to come to less than 1"
    )


@kernel
def _forward(offsets, targets, weights, finals, order, start):
    sums = np.zeros(len(finals))
    sums[start] = 1.0
    for q in order:
        if sums[q] != 0.0:
            for k in range(offsets[q], offsets[q + 1]):
                sums[targets[k]] += sums[q] * weights[k]
    return sums


@kernel
def _backward(offsets, targets, weights, finals, order, start):
    sums = np.empty(len(finals))
    for q in order[::-1]:
        total = finals[q]
        for k in range(offsets[q], offsets[q + 1]):
            total += weights[k] * sums[targets[k]]
        sums[q] = total
    return sums
