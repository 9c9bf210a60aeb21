"""Composition: (A o B)(x, y) = sum over z of A(x, z) B(z, y), in time O(|A| |B|).

A state of the result is a pair of states, and remembers what the filter needs. Where A writes epsilon it moves alone,
where B reads epsilon it moves alone, and to let them do so in any order would make many paths of one. The filter lets
one order pass: between two symbols that both take part in, first A moves alone and then B. So after a move of B alone,
A may not move alone until both have moved together. Where A's state writes no epsilon the filter has nothing to say,
and the two states of the filter are one.
"""

from __future__ import annotations

import numpy as np

from dotadd._jit import inner, kernel
from dotadd.automata.automaton import Automaton, common_symbols
from dotadd.automata.scratch import mixed, more_room, power_of_two, rebuilt, sort_state


def compose(a: Automaton, b: Automaton) -> Automaton:
    """`a @ b`: what A writes is what B reads. Has only states that can be reached.

    Goes through A's arcs and looks each label up among B's, so of two automata the one with the fewer arcs a state is
    better on the left.
    """
    symbols = common_symbols(a, b)
    likely = b.n_states + 2 if b.n_states <= 16 else 2  # arcs for one of A's: a small B may be in any state at each
    room = power_of_two(max(64, likely * a.n_arcs, b.n_states))  # each new state comes with an arc
    pairs, keys = np.empty((2, room + 1), np.uint64)
    table = np.full(2 * room, -1, np.int32)
    ilabels, olabels, targets = np.empty((3, room), np.int32)
    made: tuple[np.ndarray, ...]
    made = np.empty(room + 2, np.int64), ilabels, olabels, targets, np.empty(room), np.empty(room + 1)
    at = count = arcs = 0
    while True:
        at, count, arcs = _compose(a.arrays, a.start, b.arrays, b.start, at, count, arcs, (pairs, keys, table), made)
        if at == count:
            break
        (pairs, keys), made = more_room((pairs, keys), 3 * room), more_room(made, 3 * room)
        room *= 4
        table = np.full(2 * room, -1, np.int32)
        rebuilt(table, keys, count)
    parts = [column[:arcs].copy() for column in made[1:5]]
    return Automaton.made(made[0][: count + 1].copy(), *parts, made[5][:count].copy(), symbols=symbols)


@inner
def _state_of(p, q, filtered, pairs, keys, count, table):
    """The number of a state of the result: that which it has, or the next, which is `count`."""
    pair = np.uint64(p) << np.uint64(32) | np.uint64(q) << np.uint64(1) | np.uint64(filtered)
    key = mixed(np.uint64(0), pair)
    mask = np.uint64(len(table)) - np.uint64(1)
    place = key & mask
    while table[place] >= 0:
        if pairs[table[place]] == pair:
            return np.int64(table[place])
        place = (place + np.uint64(1)) & mask
    table[place] = count
    pairs[count], keys[count] = pair, key
    return np.int64(count)


@inner
def _first_with(label, labels, lo, hi):
    """The first of the sorted labels lo .. hi that is not below this one.

    Where a state has arcs for all labels, as many for each, it is where it is guessed to be.
    """
    if lo == hi or labels[hi - 1] < label:
        return hi
    least = labels[lo]
    if label <= least:
        return lo
    guess = lo + np.int64(np.float64(label - least) * np.float64(hi - lo) / np.float64(labels[hi - 1] - least + 1))
    if labels[guess] < label:
        lo = guess + 1
    elif labels[guess - 1] < label:
        return guess
    else:
        hi = guess
    while lo < hi:
        middle = (lo + hi) >> 1
        if labels[middle] < label:
            lo = middle + 1
        else:
            hi = middle
    return lo


@kernel
def _compose(a, a_start, b, b_start, at, count, arcs, known, made):
    """Go on with state `at`, until all states are done or there is no room: then that state is begun again."""
    a_offsets, a_in, a_out, a_to, a_weights, a_finals = a
    b_offsets, b_in, b_out, b_to, b_weights, b_finals = b
    pairs, keys, table = known
    offsets, ilabels, olabels, targets, weights, finals = made
    room = len(targets)
    if count == 0:
        _state_of(a_start, b_start, 0, pairs, keys, 0, table)
        count = 1
    while at < count:
        pair = pairs[at]
        p, q = np.int64(pair >> np.uint64(32)), np.int64((pair >> np.uint64(1)) & np.uint64(2**31 - 1))
        filtered = pair & np.uint64(1) != np.uint64(0)
        offsets[at] = first_arc = arcs
        finals[at] = a_finals[p] * b_finals[q]
        lo, hi = b_offsets[q], b_offsets[q + 1]
        heard = lo  # arcs that read epsilon come first
        while heard < hi and b_in[heard] == 0:
            heard += 1
        silent = False  # whether A may move alone here

        for k in range(a_offsets[p], a_offsets[p + 1]):
            label = a_out[k]
            if label == 0:
                silent = True
                if filtered:
                    continue
                if arcs == room:
                    return at, count, first_arc
                to = _state_of(a_to[k], q, 0, pairs, keys, count, table)
                ilabels[arcs], olabels[arcs], targets[arcs], weights[arcs] = a_in[k], 0, to, a_weights[k]
                arcs += 1
                count = max(count, to + 1)
                continue
            m = _first_with(label, b_in, heard, hi)
            while m < hi and b_in[m] == label:
                if arcs == room:
                    return at, count, first_arc
                to = _state_of(a_to[k], b_to[m], 0, pairs, keys, count, table)
                ilabels[arcs], olabels[arcs], targets[arcs] = a_in[k], b_out[m], to
                weights[arcs] = a_weights[k] * b_weights[m]
                arcs += 1
                count = max(count, to + 1)
                m += 1

        for m in range(lo, heard):
            if arcs == room:
                return at, count, first_arc
            to = _state_of(p, b_to[m], silent, pairs, keys, count, table)
            ilabels[arcs], olabels[arcs], targets[arcs], weights[arcs] = 0, b_out[m], to, b_weights[m]
            arcs += 1
            count = max(count, to + 1)
        sort_state(first_arc, arcs, ilabels, olabels, targets, weights)
        at += 1
    offsets[count] = arcs
    return at, count, arcs
