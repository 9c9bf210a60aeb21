"""Minimization of acyclic deterministic acceptors: the fewest states among all deterministic ones of the same weights.

After pushing, two states can be one if they have the same final weight and the same arcs: labels, weights, and targets
that are one already. So one pass from the ends to the start finds them all, in time linear in the arcs.
"""

from __future__ import annotations

import numpy as np

from dotadd._jit import inner, kernel
from dotadd.automata.automaton import Automaton, check_acceptor, offsets_of
from dotadd.automata.connection import topological_order
from dotadd.automata.pushing import push
from dotadd.automata.scratch import WIDTH, bucket_of, mixed, near
from dotadd.errors import AutomatonError


def minimize(a: Automaton, tolerance: float = 1e-9) -> Automaton:
    """The minimal deterministic acceptor, its weights pushed towards the start.

    tolerance: pushed weights that differ by less, relative to their size, are taken for the same. At most 1e-7.
    """
    if not 0.0 <= tolerance <= WIDTH / 10:
        raise AutomatonError(f"the tolerance is from 0 to {WIDTH / 10:g}, and not {tolerance!r}")
    check_acceptor(a, "minimization")
    if (state := a.first_ambiguity()) is not None:
        raise AutomatonError(f"state {state} has two arcs for one label, or one for epsilon: determinize it first")
    a = push(a)
    offsets, labels, _, targets, weights, finals = a.arrays
    same = _merged(offsets, labels, targets, weights, finals, topological_order(a), a.start, float(tolerance))
    kept = same == np.arange(a.n_states)
    new = (np.cumsum(kept) - 1).astype(np.int32)
    sources = a.sources
    arcs = kept[sources]
    return Automaton.made(
        offsets_of(new[sources[arcs]], int(kept.sum())),
        labels[arcs],
        labels[arcs],
        new[same[targets[arcs]]],
        weights[arcs],
        finals[kept],
        start=int(new[a.start]),
        symbols=a.symbols,
    )


@inner
def _alike(q, r, offsets, labels, targets, weights, finals, same, tolerance):
    lo, other = offsets[q], offsets[r]
    if offsets[q + 1] - lo != offsets[r + 1] - other or not near(finals[q], finals[r], tolerance):
        return False
    for k in range(offsets[q + 1] - lo):
        if labels[lo + k] != labels[other + k] or same[targets[lo + k]] != same[targets[other + k]]:
            return False
        if not near(weights[lo + k], weights[other + k], tolerance):
            return False
    return True


@kernel
def _merged(offsets, labels, targets, weights, finals, order, start, tolerance):
    """For each state the one that stands for it."""
    n = len(finals)
    same = np.arange(n).astype(np.int32)
    size = 64
    while size < 2 * n:
        size *= 2
    mask = np.uint64(size - 1)
    table = np.full(size, -1, np.int32)
    keys = np.empty(n, np.uint64)
    for q in order[::-1]:
        if q == start:
            continue  # what it accepts is longer than what any other state does
        key, number = np.uint64(offsets[q + 1] - offsets[q]), 0.5 * finals[q]
        for k in range(offsets[q], offsets[q + 1]):
            key = mixed(mixed(key, labels[k]), same[targets[k]])
            number += weights[k] * (0.5 + np.float64(key >> np.uint64(40)) * 2.0**-25)
        bucket, neighbour = bucket_of(number)
        place = np.uint64(0)
        for side in (neighbour, bucket):  # the last place that is looked at is where the state belongs
            keys[q] = mixed(key, side)
            place = keys[q] & mask
            while table[place] >= 0 and same[q] == q:
                r = table[place]
                if keys[r] == keys[q] and _alike(q, r, offsets, labels, targets, weights, finals, same, tolerance):
                    same[q] = r
                place = (place + np.uint64(1)) & mask
            if same[q] != q:
                break
        if same[q] == q:
            table[place] = q
    return same
