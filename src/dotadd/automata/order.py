"""Topological order: each state before those that its arcs lead to."""

from __future__ import annotations

import numpy as np

from dotadd._jit import kernel
from dotadd.automata.automaton import Automaton, offsets_of
from dotadd.automata.connection import accessible, coaccessible
from dotadd.errors import AutomatonError


def topological_order(a: Automaton) -> np.ndarray:
    """All states of an acyclic automaton, each before those that its arcs lead to."""
    order, cycle = depth_first(a)
    if cycle >= 0:
        raise _cyclic(cycle)
    return order


def check_acyclic(a: Automaton) -> None:
    """Refuse an automaton with a cycle on an accepting path. One that leads nowhere does no harm."""
    if depth_first(a)[1] < 0:
        return
    useful = accessible(a) & coaccessible(a, a.finals != 0.0)
    sources = a.sources
    arcs = useful[sources] & useful[a.targets] & (a.weights != 0.0)
    _, cycle = _depth_first(offsets_of(sources[arcs], a.n_states), a.targets[arcs], a.start)
    if cycle >= 0:
        raise _cyclic(int(cycle))


def _cyclic(state: int) -> AutomatonError:
    return AutomatonError(f"the automaton has a cycle through state {state}; this needs one without cycles")


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
