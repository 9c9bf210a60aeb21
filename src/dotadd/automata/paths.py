"""Paths through an automaton: which states lie on accepting ones, an order of the states, and sums of weights.

Connection takes away the states and arcs that no accepting path uses. In topological order, each state comes before
those that its arcs lead to.

Shortest distance in the real semiring is the sum over the paths that lead to a state, or on from it, and D(A) that over
all accepting paths. Without cycles the sums are made state by state in topological order. With cycles they solve a
linear system, as long as the sums exist: with M the matrix of arc weights, sum_n |M|^n is finite if and only if
x = 1 + |M| x has a solution with x >= 1 everywhere, which is tested by solving it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dotadd._jit import kernel
from dotadd.automata.automaton import Automaton
from dotadd.errors import AutomatonError

if TYPE_CHECKING:
    from scipy.sparse.linalg import SuperLU


def connect(a: Automaton) -> Automaton:
    """The states that lie on a path from the start to a final state, in their old order, and the start.

    An arc of weight 0 is none, and goes too.
    """
    useful, arcs = _on_paths(a)
    useful[a.start] = True
    return a if useful.all() and arcs.all() else a.part(useful, arcs)


def _on_paths(a: Automaton) -> tuple[np.ndarray, np.ndarray]:
    """Which states and arcs lie on accepting paths."""
    useful = accessible(a) & coaccessible(a, a.finals != 0.0)
    return useful, useful[a.sources] & useful[a.targets] & (a.weights != 0.0)


def accessible(a: Automaton) -> np.ndarray:
    """Which states can be reached from the start by arcs whose weights are not 0."""
    offsets, _, _, targets, weights, _ = a.arrays
    reached = np.zeros(a.n_states, np.bool_)
    reached[a.start] = True
    _spread(offsets, targets, weights, reached)
    return reached


def coaccessible(a: Automaton, ends: np.ndarray) -> np.ndarray:
    """From which states one of the ends, a mask, can be reached by arcs whose weights are not 0."""
    offsets, _, _, targets, weights, _ = a.arrays
    reached = np.array(ends)
    back = _reversed(offsets, targets, weights)
    _spread(back[0], back[1], back[2], reached)
    return reached


@kernel
def _reversed(offsets, targets, weights):
    """The arcs the other way round: offsets, targets and weights."""
    n = len(offsets) - 1
    ends = np.zeros(n + 1, np.int64)
    for target in targets:
        ends[target] += 1
    for q in range(1, n + 1):
        ends[q] += ends[q - 1]
    to, weight = np.empty(len(targets), np.int32), np.empty(len(targets), np.float64)
    for q in range(n):
        for k in range(offsets[q], offsets[q + 1]):
            ends[targets[k]] -= 1
            to[ends[targets[k]]], weight[ends[targets[k]]] = q, weights[k]
    return ends, to, weight


@kernel
def _spread(offsets, targets, weights, reached):
    """Mark all that can be reached from what is marked."""
    stack = np.empty(len(reached), np.int32)
    waiting = 0
    for q in range(len(reached)):
        if reached[q]:
            stack[waiting] = q
            waiting += 1
    while waiting > 0:
        waiting -= 1
        q = stack[waiting]
        for k in range(offsets[q], offsets[q + 1]):
            if not reached[targets[k]] and weights[k] != 0.0:
                reached[targets[k]] = True
                stack[waiting] = targets[k]
                waiting += 1


def topological_order(a: Automaton) -> np.ndarray:
    """All states of an acyclic automaton, each before those that its arcs lead to."""
    order, cycle = depth_first(a)
    if cycle >= 0:
        raise AutomatonError(f"the automaton has a cycle through state {cycle}; this needs one without cycles")
    return order


def check_acyclic(a: Automaton) -> None:
    """Refuse an automaton with a cycle on an accepting path. One that leads nowhere does no harm."""
    if depth_first(a)[1] < 0:
        return
    _, arcs = _on_paths(a)
    topological_order(a.part(np.ones(a.n_states, np.bool_), arcs))


def depth_first(a: Automaton) -> tuple[np.ndarray, int]:
    """The states in topological order, and -1; or nothing of use, and a state that lies on a cycle."""
    offsets, _, _, targets, *_ = a.arrays
    order, cycle = _depth_first(offsets, targets, a.start)
    return order, int(cycle)


@kernel
def _depth_first(offsets, targets, start):
    n = len(offsets) - 1
    order = np.empty(n, np.int32)
    left = n  # states are entered from the end of the order, each when all that follow it are there
    entered = np.zeros(n, np.bool_)
    done = np.zeros(n, np.bool_)
    stack = np.empty(n, np.int32)
    arc = np.empty(n, np.int64)
    for k in range(-1, n):
        root = start if k < 0 else k
        if entered[root]:
            continue
        stack[0], arc[0], depth = root, offsets[root], 1
        entered[root] = True
        while depth > 0:
            q = stack[depth - 1]
            if arc[depth - 1] == offsets[q + 1]:
                depth -= 1
                left -= 1
                order[left] = q
                done[q] = True
                continue
            target = targets[arc[depth - 1]]
            arc[depth - 1] += 1
            if not entered[target]:
                entered[target] = True
                stack[depth], arc[depth] = target, offsets[target]
                depth += 1
            elif not done[target]:
                return order, np.int64(target)
    return order, np.int64(-1)


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


def closed_sum(a: Automaton, useful: np.ndarray, cycle: int) -> SuperLU:
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
