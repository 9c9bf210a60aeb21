"""Determinization of acyclic acceptors: at most one path for each string.

A state of the result is a set of states of A, each with a factor: what the string so far has in weight there, up to a
common multiple that the arcs have taken. The factors are normalised to sum_q |r_q| = 1 with the first one positive, so
that two sets whose factors are multiples of each other are one, whatever the signs. Over non-negative weights this is
the usual construction.
"""

from __future__ import annotations

import numpy as np

from dotadd._jit import inner, kernel
from dotadd.automata.automaton import Automaton, check_acceptor
from dotadd.automata.epsilon_removal import remove_epsilon
from dotadd.automata.paths import check_acyclic, connect
from dotadd.automata.scratch import bucket_of, enter, mixed, more_room, near, power_of_two, rebuilt

CANCELLED = 1e-13  # a sum so small beside the terms that it was made of is rounding, and 0
ALIKE = 1e-12  # two factors are the same if they differ by less, relative to their size


def determinize(a: Automaton) -> Automaton:
    """The connected deterministic acceptor of the same weights. Strings whose weights cancel are not accepted.

    It may be exponentially larger, and never has more states than the strings that A accepts have prefixes.
    """
    check_acceptor(a, "determinization")
    check_acyclic(a)
    a = remove_epsilon(a)
    room = power_of_two(max(64, a.n_arcs))
    keys, table = np.empty(room, np.uint64), np.full(2 * room, -1, np.int64)
    sets: tuple[np.ndarray, ...] = np.zeros(room + 1, np.int64), np.empty(room, np.int32), np.empty(room)
    labels, targets, weights = np.empty(room, np.int32), np.empty(room, np.int32), np.empty(room)
    made: tuple[np.ndarray, ...] = np.zeros(room + 1, np.int64), labels, targets, weights, np.empty(room)
    scratch = np.empty(room, np.int64), np.empty(room)
    at = count = arcs = 0
    while True:
        at, count, arcs, needed = _determinize(a.arrays, a.start, at, count, arcs, keys, table, sets, made, scratch)
        if at == count:
            break
        extra = power_of_two(2 * needed) - room
        room += extra
        (keys,), sets, made = more_room((keys,), extra), more_room(sets, extra), more_room(made, extra)
        scratch = np.empty(room, np.int64), np.empty(room)
        table = np.full(2 * room, -1, np.int64)
        rebuilt(table, keys, count)
    offsets, labels, targets, weights, finals = made
    labels = labels[:arcs].copy()
    parts = offsets[: count + 1].copy(), labels, labels, targets[:arcs].copy(), weights[:arcs].copy()
    return connect(Automaton.made(*parts, finals[:count].copy(), symbols=a.symbols))


@inner
def _fingerprint(members, factors, lo, hi):
    """A hash of the set of states, and a number from -1 to 1 that is nearly the same for factors nearly the same."""
    key, number = np.uint64(hi - lo), 0.0
    for k in range(lo, hi):
        key = mixed(key, members[k])
        number += factors[k] * (0.5 + np.float64(key >> np.uint64(40)) * 2.0**-25)
    return key, number


@inner
def _same(members, factors, bounds, one, other):
    lo, other_lo = bounds[one], bounds[other]
    if bounds[one + 1] - lo != bounds[other + 1] - other_lo:
        return False
    for k in range(bounds[one + 1] - lo):
        if members[lo + k] != members[other_lo + k] or not near(factors[lo + k], factors[other_lo + k], ALIKE):
            return False
    return True


@inner
def _find(table, keys, key, members, factors, bounds, new):
    """The number of a set under this key that is the same as the new one, or -1."""
    mask = np.uint64(len(table)) - np.uint64(1)
    place = key & mask
    while table[place] >= 0:
        if keys[table[place]] == key and _same(members, factors, bounds, table[place], new):
            return table[place]
        place = (place + np.uint64(1)) & mask
    return np.int64(-1)


@inner
def _sort(reached, terms, n):
    """Sort what is reached, terms with it. Arcs of few states are nearly in order."""
    gap = 1
    while 3 * gap < n:
        gap = 3 * gap + 1
    while gap > 0:  # Shell's sort
        for k in range(gap, n):
            arc, term = reached[k], terms[k]
            j = k
            while j >= gap and reached[j - gap] > arc:
                reached[j], terms[j] = reached[j - gap], terms[j - gap]
                j -= gap
            reached[j], terms[j] = arc, term
        gap //= 3


@inner
def _gather(at, bounds, members, factors, a_offsets, a_labels, a_targets, a_weights, reached, terms):
    """The arcs that leave a set, each as a number that sorts by label and then by target, and how many there are."""
    n = 0
    for m in range(bounds[at], bounds[at + 1]):
        q, factor = members[m], factors[m]
        for k in range(a_offsets[q], a_offsets[q + 1]):
            reached[n] = np.int64(a_labels[k]) << np.int64(32) | np.int64(a_targets[k])
            terms[n] = factor * a_weights[k]
            n += 1
    return n


@inner
def _final(at, bounds, members, factors, a_finals):
    total = size = 0.0
    for m in range(bounds[at], bounds[at + 1]):
        term = factors[m] * a_finals[members[m]]
        total += term
        size += abs(term)
    return total if abs(total) > CANCELLED * size else 0.0


@kernel
def _determinize(a, start, at, count, arcs, keys, table, sets, made, scratch):
    """Go on with set `at`, until all sets are done or there is no room. Returns how much is needed, too."""
    a_offsets, a_labels, _, a_targets, a_weights, a_finals = a
    bounds, members, factors = sets
    offsets, labels, targets, weights, finals = made
    reached, terms = scratch
    if count == 0:
        bounds[1], members[0], factors[0] = 1, start, 1.0
        key, number = _fingerprint(members, factors, 0, 1)
        keys[0] = mixed(key, bucket_of(number)[0])
        enter(table, keys[0], 0)
        count = 1
    while at < count:
        needed = max(count, bounds[count], arcs) + 1
        for m in range(bounds[at], bounds[at + 1]):
            needed += a_offsets[members[m] + 1] - a_offsets[members[m]]
        if needed > len(keys):
            return at, count, arcs, needed
        offsets[at] = arcs
        finals[at] = _final(at, bounds, members, factors, a_finals)
        n = _gather(at, bounds, members, factors, a_offsets, a_labels, a_targets, a_weights, reached, terms)
        _sort(reached, terms, n)

        k = 0
        while k < n:  # one label at a time
            label = reached[k] >> np.int64(32)
            lo = hi = bounds[count]
            norm = 0.0
            while k < n and reached[k] >> np.int64(32) == label:  # one target at a time
                arc = reached[k]
                factor = size = 0.0
                while k < n and reached[k] == arc:
                    factor += terms[k]
                    size += abs(terms[k])
                    k += 1
                if abs(factor) > CANCELLED * size:
                    members[hi], factors[hi] = np.int32(arc & np.int64(2**32 - 1)), factor
                    norm += abs(factor)
                    hi += 1
            if hi == lo:
                continue
            if factors[lo] < 0.0:
                norm = -norm
            for m in range(lo, hi):
                factors[m] /= norm

            bounds[count + 1] = hi
            key, number = _fingerprint(members, factors, lo, hi)
            bucket, neighbour = bucket_of(number)
            to = _find(table, keys, mixed(key, bucket), members, factors, bounds, count)
            if to < 0:
                to = _find(table, keys, mixed(key, neighbour), members, factors, bounds, count)
            if to < 0:
                to = np.int64(count)
                keys[count] = mixed(key, bucket)
                enter(table, keys[count], count)
                count += 1
            labels[arcs], targets[arcs], weights[arcs] = label, to, norm
            arcs += 1
        at += 1
    offsets[count] = arcs
    return at, count, arcs, np.int64(0)
