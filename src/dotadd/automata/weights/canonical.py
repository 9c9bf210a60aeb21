"""Canonical states: a store in which states that are alike exist once, and sums that touch only what they change.

A state is its final weight and its arcs, sorted by label, which lead to states that were there before. Its weights are
normalised as in `pushing`: their absolute values sum to 1, and the first of them is positive. The factor that was taken
out goes to the arc that leads here. So two states of multiples of the same weighted language have the same numbers;
each new state is looked up, and made only if it is new. Whatever can be reached from a state of such a store is the
minimal deterministic automaton of its language, always.

The sum a W_q + b Phi_p goes from the start along the strings of Phi: arcs of q that Phi does not have are taken over as
they are, with the states behind them, and only states on the paths of Phi are made anew. States that nothing leads to
any more stay until they are as many as those in use, when the others are moved together.

Without weights ("plain"), a state is a set of strings, and the number of an arc says how many strings of its state come
before those that go along it: the sum of the numbers along a string's path is the string's place in the sorted list.
"""

from __future__ import annotations

import numpy as np

from dotadd._jit import inner, kernel
from dotadd.automata.automaton import Automaton
from dotadd.automata.scratch import bucket_of, enter, mixed, more_room, near, rebuilt

NONE = -1
TOLERANCE = 1e-10  # two weights are the same if they differ by less, relative to their size
CANCELLED = 1e-13  # a sum so small beside its two terms is rounding, and 0
MORE_STATES, MORE_ARCS, MORE_SCRATCH = 1, 2, 3


class CanonicalStates:
    """States by number; those that an arc leads to have smaller numbers than the one that it leaves.

    `arrays` is what kernels are given: begins, keys, finals and strings of the states, labels, targets and weights of
    the arcs, and the table in which states are found by their keys.
    """

    def __init__(self, plain: bool) -> None:
        self.plain, self.states, self.arcs = plain, 0, 0
        self._used = 1 << 10  # arcs in use when they were last moved together
        self._scratch = 1 << 10
        self.arrays: tuple[np.ndarray, ...] = (
            np.zeros(257, np.int64), np.empty(256, np.uint64), np.empty(256), np.empty(256, np.int64),
            np.empty(1024, np.int32), np.empty(1024, np.int32), np.empty(1024), np.full(512, NONE, np.int32),
        )  # fmt: skip

    def sum(self, root: int, a: float, phi: Automaton, b: float) -> tuple[int, float]:
        """The state of a W_root + b Phi, and the factor that was taken out; NONE if nothing is left."""
        while True:
            missing, node, factor, self.states, self.arcs = _sum(
                a, root, b, phi.arrays, phi.start, self.plain, self._scratch, self.arrays, self.states, self.arcs
            )
            if not missing:
                return int(node), float(factor)
            self._grow(missing)

    def _grow(self, missing: int) -> None:
        states, arcs, table = self.arrays[:4], self.arrays[4:7], self.arrays[7]
        if missing == MORE_SCRATCH:
            self._scratch *= 2
        elif missing == MORE_ARCS:
            arcs = more_room(arcs, len(arcs[0]))
        else:
            states = more_room(states, len(states[1]))
            table = np.full(2 * len(table), NONE, np.int32)
            rebuilt(table, states[1], self.states)
        self.arrays = (*states, *arcs, table)

    def collected(self, root: int, at_once: bool = False) -> int:
        """Let go of all that cannot be reached from the root, if that is worth it; returns the root's new number."""
        if not at_once and self.arcs <= 2 * self._used:
            return root
        root, self.states, self.arcs = _collect(root, self.states, self.arrays)
        _rekey(self.plain, self.states, self.arrays)
        self._used = max(self.arcs, 1 << 10)
        return int(root)

    def automaton(self, root: int, factor: float) -> Automaton:
        """All states, which have to be those that can be reached from the root, as an automaton."""
        if root == NONE:
            return Automaton.from_arcs([], {})
        begins, _, finals, _, labels, targets, weights, _ = self.arrays
        labels, targets, weights = labels[: self.arcs], targets[: self.arcs], weights[: self.arcs].copy()
        finals = finals[: self.states].copy()
        weights[begins[root] : begins[root + 1]] *= factor
        finals[root] *= factor
        sources = np.repeat(np.arange(self.states), np.diff(begins[: self.states + 1]))
        return Automaton.from_arrays(sources, targets, labels, labels, weights, finals, root)


@inner
def _fingerprint(plain, final, lo, hi, labels, targets, weights):
    """A hash of labels and targets, and a number from -1 to 1 that is nearly the same for weights nearly the same."""
    key, number = np.uint64(hi - lo), 0.5 * final
    for k in range(lo, hi):
        key = mixed(mixed(key, labels[k]), targets[k])
        if not plain:
            number += weights[k] * (0.5 + np.float64(key >> np.uint64(40)) * 2.0**-25)
    return key, number


@inner
def _alike(plain, final, lo, hi, r, begins, finals, labels, targets, weights):
    """Whether the arcs lo .. hi and the final weight are those of state r."""
    if begins[r + 1] - begins[r] != hi - lo or not near(final, finals[r], TOLERANCE):
        return False
    for k in range(hi - lo):
        other = begins[r] + k
        if labels[lo + k] != labels[other] or targets[lo + k] != targets[other]:
            return False
        if not plain and not near(weights[lo + k], weights[other], TOLERANCE):
            return False
    return True


@inner
def _registered(plain, final, lo, hi, begins, keys, finals, labels, targets, weights, table):
    """The state like this one or NONE, the place where it belongs in the table, and its key."""
    key, number = _fingerprint(plain, final, lo, hi, labels, targets, weights)
    bucket, neighbour = bucket_of(number)
    mask = np.uint64(len(table)) - np.uint64(1)
    place = full = np.uint64(0)
    for side in (neighbour, bucket):  # the last place that is looked at is where the state belongs
        full = mixed(key, side)
        place = full & mask
        while table[place] >= 0:
            r = table[place]
            if keys[r] == full and _alike(plain, final, lo, hi, r, begins, finals, labels, targets, weights):
                return np.int64(r), place, full
            place = (place + np.uint64(1)) & mask
    return np.int64(NONE), place, full


@inner
def _total(one, other):
    """The sum of two weights, 0 where they cancel."""
    total = one + other
    return 0.0 if abs(total) <= CANCELLED * (abs(one) + abs(other)) else total


@kernel
def _sum(a, root, b, phi, p_start, plain, scratch, store, states, arcs):
    """a W_root + b Phi: what is missing, or 0; the sum's state and factor; how many states and arcs there are now."""
    p_offsets, p_labels, _, p_targets, p_weights, p_finals = phi
    begins, keys, finals, strings, labels, targets, weights, table = store
    depths = len(p_finals) + 1
    old, new = np.empty(depths, np.int64), np.empty(depths, np.int64)  # the two states of each pair on the path
    old_factor, new_factor = np.empty(depths), np.empty(depths)
    old_arc, new_arc = np.empty(depths, np.int64), np.empty(depths, np.int64)
    first = np.empty(depths + 1, np.int64)  # where the arcs of the sum begin among those that wait
    wait_labels, wait_targets = np.empty(scratch, np.int32), np.empty(scratch, np.int32)
    wait_weights = np.empty(scratch)
    old[0], new[0], old_factor[0], new_factor[0] = root, p_start, a, b
    old_arc[0], new_arc[0], first[0] = begins[root] if root >= 0 else 0, p_offsets[p_start], 0
    depth, waiting = 0, np.int64(0)
    while True:
        q, p = old[depth], new[depth]
        old_stop = begins[q + 1] if q >= 0 else np.int64(0)
        descends = False
        while old_arc[depth] < old_stop or new_arc[depth] < p_offsets[p + 1]:
            i, j = old_arc[depth], new_arc[depth]
            if waiting + 1 >= scratch:
                return MORE_SCRATCH, np.int64(NONE), 0.0, states, arcs
            if j == p_offsets[p + 1] or (i < old_stop and labels[i] < p_labels[j]):
                wait_labels[waiting], wait_targets[waiting] = labels[i], targets[i]
                wait_weights[waiting] = old_factor[depth] * weights[i]
                waiting += 1
                old_arc[depth] += 1
                continue
            new_arc[depth] += 1
            both = i < old_stop and labels[i] == p_labels[j]
            old[depth + 1] = targets[i] if both else NONE
            old_factor[depth + 1] = old_factor[depth] * weights[i] if both and not plain else 0.0
            new[depth + 1], new_factor[depth + 1] = p_targets[j], new_factor[depth] * p_weights[j]
            if both:
                old_arc[depth] += 1
                old_arc[depth + 1] = begins[targets[i]]
            else:
                old_arc[depth + 1] = 0
            new_arc[depth + 1] = p_offsets[p_targets[j]]
            wait_labels[waiting] = p_labels[j]  # the rest of this arc comes back from below
            waiting += 1
            depth += 1
            first[depth] = waiting
            descends = True
            break
        if descends:
            continue
        # All arcs of this pair are there: normalise them and look the state up.
        lo = first[depth]
        if plain:
            final = 1.0 if (q >= 0 and finals[q] != 0.0) or p_finals[p] != 0.0 else 0.0
        else:
            final = _total(old_factor[depth] * finals[q] if q >= 0 else 0.0, new_factor[depth] * p_finals[p])
        size, leading = abs(final), final
        for k in range(lo, waiting):
            size += abs(wait_weights[k])
            if leading == 0.0:
                leading = wait_weights[k]
        node, factor = np.int64(NONE), 0.0
        if waiting > lo or final != 0.0:
            factor = 1.0 if plain else (size if leading > 0.0 else -size)
            if states == len(finals) or 2 * states >= len(table):
                return MORE_STATES, node, factor, states, arcs
            if arcs + waiting - lo > len(labels):
                return MORE_ARCS, node, factor, states, arcs
            count = np.int64(final != 0.0)
            for k in range(lo, waiting):
                to = arcs + k - lo
                labels[to], targets[to] = wait_labels[k], wait_targets[k]
                weights[to] = np.float64(count) if plain else wait_weights[k] / factor
                count += strings[wait_targets[k]]
            stop = arcs + waiting - lo
            node, place, key = _registered(
                plain, final / factor, arcs, stop, begins, keys, finals, labels, targets, weights, table
            )
            if node < 0:
                node = np.int64(states)
                begins[states], begins[states + 1] = arcs, stop
                keys[states], finals[states], strings[states] = key, final / factor, count
                table[place] = node
                states += 1
                arcs = stop
        waiting = lo
        if depth == 0:
            return 0, node, factor, states, arcs
        depth -= 1
        if node < 0:
            waiting -= 1  # the arc leads nowhere
        else:
            wait_targets[waiting - 1], wait_weights[waiting - 1] = node, factor


@kernel
def _rekey(plain, states, store):
    """Enter all states anew, since the numbers of those that their arcs lead to have changed."""
    begins, keys, finals, _, labels, targets, weights, table = store
    for place in range(len(table)):
        table[place] = NONE
    for q in range(states):
        key, number = _fingerprint(plain, finals[q], begins[q], begins[q + 1], labels, targets, weights)
        keys[q] = mixed(key, bucket_of(number)[0])
        enter(table, keys[q], q)


@kernel
def _collect(root, states, store):
    """Move the states that can be reached from the root together; the root, states and arcs there are then."""
    begins, _, finals, strings, labels, targets, weights, _ = store
    used = np.zeros(states, np.bool_)
    if root >= 0:
        used[root] = True
    for q in range(states - 1, -1, -1):
        if used[q]:
            for k in range(begins[q], begins[q + 1]):
                used[targets[k]] = True
    new = np.empty(states, np.int64)
    count, arcs, stop = np.int64(0), np.int64(0), np.int64(0)
    lo = begins[0]
    for q in range(states):
        stop = begins[q + 1]
        if used[q]:
            new[q] = count
            finals[count], strings[count] = finals[q], strings[q]
            begins[count] = arcs
            for k in range(lo, stop):
                labels[arcs], targets[arcs], weights[arcs] = labels[k], new[targets[k]], weights[k]
                arcs += 1
            count += 1
        lo = stop
    begins[count] = arcs
    return (new[root] if root >= 0 else np.int64(NONE)), count, arcs
