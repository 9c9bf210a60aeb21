"""Epsilon removal: the same weights without arcs that neither read nor write."""

from __future__ import annotations

import numpy as np

from dotadd._jit import kernel
from dotadd.automata.automaton import EPSILON, Automaton
from dotadd.automata.paths import closed_sum, coaccessible, connect, depth_first, shortest_distance
from dotadd.automata.scratch import more_room

TOGETHER = 64  # so many states' paths through cycles of epsilons are summed at a time


def remove_epsilon(a: Automaton) -> Automaton:
    """An arc for each path of epsilons and the arc after it; arcs alike are made one. Connected.

    Cycles of epsilons are summed up; an error says so if their sum is not finite.
    """
    a = connect(a)  # a cycle of epsilons that leads nowhere does no harm
    epsilon = (a.ilabels == EPSILON) & (a.olabels == EPSILON)
    if not epsilon.any():
        return a
    sources = a.sources
    silent = a.part(np.ones(a.n_states, np.bool_), epsilon)
    finals = shortest_distance(silent, backward=True)
    # Paths of epsilons matter where one can stand after a symbol, and as far as they lead to the next one.
    begins = np.zeros(a.n_states, np.bool_)
    begins[a.start] = True
    begins[a.targets[~epsilon]] = True
    speaks = np.zeros(a.n_states, np.bool_)
    speaks[sources[~epsilon]] = True
    leads = coaccessible(silent, speaks)
    begin, through, factors = _silent_paths(silent, np.flatnonzero(begins & leads), leads)

    first = a.offsets[:-1] + np.diff(silent.offsets)  # epsilon is the least label: symbols come after it
    counts = (a.offsets[1:] - first)[through]
    arcs = np.repeat(first[through] - np.cumsum(counts) + counts, counts) + np.arange(counts.sum())
    joined = Automaton.from_arrays(
        np.repeat(begin, counts),
        a.targets[arcs],
        a.ilabels[arcs],
        a.olabels[arcs],
        np.repeat(factors, counts) * a.weights[arcs],
        finals,
        a.start,
        a.symbols,
        merge=True,
    )
    return connect(joined)


def _silent_paths(silent: Automaton, begins: np.ndarray, leads: np.ndarray) -> tuple[np.ndarray, ...]:
    """Triples of a state, one that paths of epsilons lead to from there, and the sum of these paths' weights."""
    offsets, _, _, targets, weights, _ = silent.arrays
    _, cycle = depth_first(silent)
    if cycle < 0:
        return _acyclic(offsets, targets, weights, begins.astype(np.int32), leads)
    inverse = closed_sum(silent, leads, cycle)
    found: list[tuple[np.ndarray, ...]] = []
    for some in np.array_split(begins, len(begins) // TOGETHER + 1):
        ends = np.zeros((silent.n_states, len(some)))
        ends[some, np.arange(len(some))] = 1.0
        sums = inverse.solve(ends, "T").T * leads
        rows, states = np.nonzero(sums)
        found.append((some[rows], states, sums[rows, states]))
    begin, through, factors = (np.concatenate(column) for column in zip(*found, strict=True))
    return begin, through, factors


def _acyclic(
    offsets: np.ndarray, targets: np.ndarray, weights: np.ndarray, begins: np.ndarray, leads: np.ndarray
) -> tuple[np.ndarray, ...]:
    n = len(leads)
    triples: tuple[np.ndarray, ...] = np.empty(2 * n, np.int32), np.empty(2 * n, np.int32), np.empty(2 * n)
    done = count = 0
    while True:
        done, count = _acyclic_paths(offsets, targets, weights, begins, leads, done, count, *triples)
        if done == len(begins):
            return tuple(column[:count] for column in triples)
        triples = more_room(triples, len(triples[0]))


@kernel
def _acyclic_paths(offsets, targets, weights, begins, leads, done, count, begin, through, factors):
    """Go on with begins[done], until all are done or there is no room for as many triples as there are states."""
    n = len(leads)
    seen = np.full(n, -1, np.int32)
    sums = np.zeros(n)
    stack, order = np.empty(n, np.int32), np.empty(n, np.int32)
    arc = np.empty(n, np.int64)
    while done < len(begins) and count + n <= len(begin):
        b = begins[done]
        left = n
        stack[0], arc[0], depth = b, offsets[b], 1
        seen[b] = b
        while depth > 0:  # depth first, so that the states are entered in topological order from the end
            q = stack[depth - 1]
            if arc[depth - 1] == offsets[q + 1]:
                depth -= 1
                left -= 1
                order[left] = q
                continue
            target = targets[arc[depth - 1]]
            arc[depth - 1] += 1
            if seen[target] != b and leads[target]:
                seen[target] = b
                stack[depth], arc[depth] = target, offsets[target]
                depth += 1
        sums[b] = 1.0
        for q in order[left:]:
            for k in range(offsets[q], offsets[q + 1]):
                if leads[targets[k]]:
                    sums[targets[k]] += sums[q] * weights[k]
            begin[count], through[count], factors[count] = b, q, sums[q]
            count += 1
            sums[q] = 0.0
        done += 1
    return done, count
