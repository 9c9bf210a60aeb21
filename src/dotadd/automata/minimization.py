"""Pushing and minimization of acyclic acceptors.

Pushing moves weights towards the start as far as they can go, and all strings keep theirs. What leaves a state q is
divided by N(q), and what leads there is multiplied with it. When all weights from q on are c times as large, N(q) has
to be so too, and it must not be 0, which their sum may be where they have both signs. So

    N(q) = sign of the first path from q on * sum of |weight| over all paths from q on

Over non-negative weights it is the sum, and what leaves a state adds up to 1 as usual. In a deterministic automaton,
paths are strings: N(q) depends on what is accepted from q on and on nothing else.

So after pushing, two states of a deterministic acceptor can be one if they have the same final weight and the same
arcs: labels, weights, and targets that are one already. One pass from the ends to the start finds them all, in time
linear in the arcs, and leaves the fewest states among all deterministic acceptors of the same weights.

The posterior of an automaton of costs is pushed in the same way: a path of cost c gets exp(-c) / sum over all paths of
exp(-cost), and each state's arcs and its final weight sum to 1, too. That is done in logarithms, since the costs of
lattices are in the thousands.
"""

from __future__ import annotations

import numpy as np

from dotadd._jit import inner, kernel
from dotadd.automata.automaton import Automaton, check_acceptor, check_deterministic
from dotadd.automata.paths import check_acyclic, connect, topological_order
from dotadd.automata.scratch import WIDTH, bucket_of, mixed, near
from dotadd.automata.symbols import SymbolTable
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


def posterior(
    sources: np.ndarray,
    targets: np.ndarray,
    ilabels: np.ndarray,
    olabels: np.ndarray,
    costs: np.ndarray,
    final_costs: np.ndarray,
    start: int = 0,
    symbols: SymbolTable | None = None,
) -> Automaton:
    """The automaton of these arcs, in any order. An infinite cost means that there is no such arc or end."""
    there = np.isfinite(costs)
    sources, targets, ilabels, olabels, costs = (a[there] for a in (sources, targets, ilabels, olabels, costs))
    ends = np.isfinite(final_costs).astype(np.float64)
    structure = Automaton.from_arrays(sources, targets, ilabels, olabels, costs, ends, start, symbols)
    offsets, reads, writes, leads, weights, _ = structure.arrays
    weights = weights.copy()
    finals = final_costs.astype(np.float64)
    if not _normalize(offsets, leads, weights, finals, topological_order(structure), start):
        raise AutomatonError("no path leads from the start to a final state")
    return Automaton.made(offsets, reads, writes, leads, weights, finals, start=start, symbols=symbols)


@kernel
def _normalize(offsets, targets, weights, finals, order, start):
    """Costs become probabilities, in place; whether there is any path."""
    n = len(finals)
    rest = np.full(n, -np.inf)  # log of the sum over all ways from a state to an end
    for place in range(n - 1, -1, -1):
        q = order[place]
        most = -finals[q]
        for arc in range(offsets[q], offsets[q + 1]):
            most = max(most, rest[targets[arc]] - weights[arc])
        if most == -np.inf:
            finals[q] = 0.0
            for arc in range(offsets[q], offsets[q + 1]):
                weights[arc] = 0.0
            continue
        total = np.exp(-finals[q] - most)
        for arc in range(offsets[q], offsets[q + 1]):
            total += np.exp(rest[targets[arc]] - weights[arc] - most)
        rest[q] = most + np.log(total)
        finals[q] = np.exp(-finals[q] - rest[q])
        for arc in range(offsets[q], offsets[q + 1]):
            weights[arc] = np.exp(rest[targets[arc]] - weights[arc] - rest[q])
    return rest[start] != -np.inf


def minimize(a: Automaton, tolerance: float = 1e-9) -> Automaton:
    """The minimal deterministic acceptor, its weights pushed towards the start.

    tolerance: pushed weights that differ by less, relative to their size, are taken for the same. At most 1e-7.
    """
    if not 0.0 <= tolerance <= WIDTH / 10:
        raise AutomatonError(f"the tolerance is from 0 to {WIDTH / 10:g}, and not {tolerance!r}")
    check_acceptor(a, "minimization")
    check_deterministic(a)
    a = push(a)
    offsets, labels, _, targets, weights, finals = a.arrays
    same = _merged(offsets, labels, targets, weights, finals, topological_order(a), a.start, float(tolerance))
    kept = same == np.arange(a.n_states)
    return a.part(kept, kept[a.sources], same)


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
