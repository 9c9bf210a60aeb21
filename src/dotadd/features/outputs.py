"""Outputs: what a transducer without cycles writes, as sparse vectors: the id of each string, and its weight.

States are taken in topological order. Each has a list of what the paths that lead to it have written so far: the ids of
these prefixes, the same prefix once, with the sum of its paths' weights. Where nothing more can be written, what
follows is one number, the weight of all paths to the end, and the prefix is an output. So a prefix is extended once for
each state and not once for each path, which is what determinization would do, without an automaton being built.

For n-gram counters the composition of a lattice with the transducer is not computed: its states are pairs of a state
of the lattice and the number of symbols copied, and its arcs are known.
"""

from __future__ import annotations

import numpy as np

from dotadd._jit import inner, kernel, plain
from dotadd.automata.automaton import Automaton
from dotadd.automata.paths import connect, topological_order
from dotadd.data.batches import Strings
from dotadd.data.lattices import Lattices
from dotadd.data.ragged import item_places
from dotadd.features.string_counts import EMPTY, LEAST, Outputs, extended

OUT_OF_ENTRIES, OUT_OF_ROOM = -1, -2


class _Room:
    """Scratch for kernels, which return when something is too small: prefixes under way and outputs, each with a hash
    table. Kernels look at the rows of `entries` and `found` through views of their types, see `_views`."""

    def __init__(self, entries: int, outputs: int) -> None:
        self._make_entries(entries)
        self._make_outputs(outputs)

    def _make_entries(self, count: int) -> None:
        self.entries, self.meeting = np.empty((3, count), np.int64), np.empty(_table_size(count), np.int64)

    def _make_outputs(self, count: int) -> None:
        self.found, self.table = np.empty((2, count), np.int64), np.empty(_table_size(count), np.int64)

    def grow(self, missing: int) -> None:
        if missing == OUT_OF_ENTRIES:
            self._make_entries(4 * self.entries.shape[1])
        else:
            before = self.found
            self._make_outputs(2 * before.shape[1])
            self.found[:, : before.shape[1]] = before

    @property
    def arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        return self.entries, self.meeting, self.found, self.table

    def outputs(self, offsets: np.ndarray) -> Outputs:
        ids, values = self.found[:, : offsets[-1]]
        return Outputs(offsets, ids.view(np.uint64).copy(), values.view(np.float64).copy())


@inner
def _views(entries, found):
    """Prefixes under way, the weight of each and the next of its list; and ids and values of outputs."""
    prefixes, weights, links = entries[0].view(np.uint64), entries[1].view(np.float64), entries[2]
    return prefixes, weights, links, found[0].view(np.uint64), found[1].view(np.float64)


def _table_size(count: int) -> int:
    return 1 << (2 * count - 1).bit_length()


def counted(lattices: Lattices, counters: np.ndarray, *, posteriors: bool) -> Outputs:
    """The outputs of a sum of n-gram counters for all rows; a counter is (n, decay, factor, gaps).

    A decay of 0 is for no gaps at all, and -1 gaps for any number of them.

    With `posteriors`, a lattice counts as if all of its paths had the weight 1 together.
    """
    room = _Room(1 << 12, 1 << 14)
    offsets = np.zeros(len(lattices) + 1, np.int64)
    states, arcs, labels, targets, weights, finals = (
        plain(array.astype(dtype, copy=False))
        for array, dtype in (
            (lattices.state_offsets, np.int64),
            (lattices.arc_offsets, np.int64),
            (lattices.labels, np.int64),
            (lattices.targets, np.int32),
            (lattices.weights, np.float64),
            (lattices.finals, np.float64),
        )
    )
    done = 0
    while done < len(lattices):
        done, missing = _count(
            done, states, arcs, labels, targets, weights, finals, counters, posteriors, *room.arrays, offsets
        )
        if done < len(lattices):
            room.grow(missing)
    return room.outputs(offsets)


def chains(strings: Strings) -> Lattices:
    """Strings as lattices of one path each. Labels are bytes, and byte 0 is the empty word."""
    strings = strings.together()
    lengths = strings.lengths().astype(np.int64)
    letters = np.zeros(len(strings) + 1, np.int64)
    np.cumsum(lengths, out=letters[1:])
    states = letters + np.arange(len(strings) + 1)
    finals = np.zeros(states[-1])
    finals[states[1:] - 1] = 1.0
    within = np.arange(states[-1]) - np.repeat(states[:-1], lengths + 1)
    arc_offsets = np.append(np.arange(states[-1]) - np.repeat(np.arange(len(strings)), lengths + 1), letters[-1])
    begin = 0 if strings.offsets is None else int(strings.offsets[0])
    labels = strings.letters[begin : begin + int(letters[-1])].astype(np.int64)
    return Lattices(states, arc_offsets, labels, within[within > 0].astype(np.int32), np.ones(len(labels)), finals)


def written(automaton: Automaton, factor: float = 1.0) -> Outputs:
    """What an automaton without cycles writes, times a factor, as the outputs of one row."""
    used = connect(automaton)
    order = topological_order(used)
    new = np.empty(used.n_states, np.int32)
    new[order] = np.arange(used.n_states, dtype=np.int32)
    offsets, arcs = item_places(used.offsets, order)
    room = _Room(1 << 10, 1 << 10)
    while True:
        count = _write(
            offsets, used.olabels[arcs], new[used.targets[arcs]], used.weights[arcs], used.finals[order], factor,
            *room.arrays,
        )  # fmt: skip
        if count >= 0:
            return room.outputs(np.array([0, count]))
        room.grow(count)


@inner
def _place(number, size):
    return np.int64(np.uint64(number * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(20)) & (size - 1)


@inner
def _clear(table, count):
    """Empty the front of a table, which then has room for so many; returns its size."""
    size = np.int64(16)
    while size < 2 * count:
        size *= 2
    table[:size] = -1
    return size


@inner
def _emit(number, value, first, count, size, table, ids, values):
    """Add to an output of the row that begins at `first`. Returns how many outputs there are and the table's size."""
    if value == 0.0:
        return count, size
    place = _place(number, size)
    while table[place] >= 0:
        if ids[table[place]] == number:
            values[table[place]] += value
            return count, size
        place = (place + 1) & (size - 1)
    if count == len(ids):
        return np.int64(OUT_OF_ROOM), size
    ids[count], values[count] = number, value
    table[place] = count
    count += 1
    if 2 * (count - first) > size:
        size = _clear(table, count - first)
        for k in range(first, count):
            place = _place(ids[k], size)
            while table[place] >= 0:
                place = (place + 1) & (size - 1)
            table[place] = k
    return count, size


@inner
def _merge(head, prefixes, weights, links, free, meeting):
    """A list of prefixes with each once. Returns where the list begins and the list of free entries."""
    length = np.int64(0)
    at = head
    while at >= 0:
        length += 1
        at = links[at]
    if length < 2:
        return head, free
    size = _clear(meeting, length)
    kept = np.int64(-1)
    at = head
    while at >= 0:
        following = links[at]
        place = _place(prefixes[at], size)
        while meeting[place] >= 0 and prefixes[meeting[place]] != prefixes[at]:
            place = (place + 1) & (size - 1)
        if meeting[place] >= 0:
            weights[meeting[place]] += weights[at]
            links[at], free = free, at
        else:
            meeting[place] = at
            links[at], kept = kept, at
        at = following
    return kept, free


@inner
def _outputs(
    n_states, offsets, olabels, targets, arc_weights, finals, start_weight, least, heads, after, most, silent,
    prefixes, weights, links, meeting, table, ids, values, first, count, size,
):  # fmt: skip
    """Append what the automaton writes to the row that begins at `first`; the outputs so far, and the table's size.

    after[q] is the weight of all paths from q on, most[q] that of their absolute values: a prefix that can come to less
    than `least` is left out. Where a state is silent, nothing is written from there on.
    """
    for q in range(n_states - 1, -1, -1):
        heads[q] = -1
        after[q], most[q], silent[q] = finals[q], abs(finals[q]), True
        for k in range(offsets[q], offsets[q + 1]):
            to = targets[k]
            after[q] += arc_weights[k] * after[to]
            most[q] += abs(arc_weights[k]) * most[to]
            if most[to] != 0.0 and (olabels[k] != 0 or not silent[to]):
                silent[q] = False
    if n_states == 0 or most[0] == 0.0:
        return count, size
    if silent[0]:
        return _emit(EMPTY, start_weight * after[0], first, count, size, table, ids, values)
    prefixes[0], weights[0], links[0], heads[0] = EMPTY, start_weight, -1, 0
    free, fresh = np.int64(-1), np.int64(1)
    for q in range(n_states):
        at, free = _merge(heads[q], prefixes, weights, links, free, meeting)
        while at >= 0:
            prefix, weight = prefixes[at], weights[at]
            following = links[at]
            links[at], free = free, at
            at = following
            if abs(weight) * most[q] < least:
                continue
            count, size = _emit(prefix, weight * finals[q], first, count, size, table, ids, values)
            for k in range(offsets[q], offsets[q + 1]):
                to = targets[k]
                if most[to] == 0.0 or count < 0:
                    continue
                longer_one = prefix if olabels[k] == 0 else extended(prefix, np.uint64(olabels[k]))
                moved = weight * arc_weights[k]
                if silent[to]:
                    count, size = _emit(longer_one, moved * after[to], first, count, size, table, ids, values)
                    continue
                if free >= 0:
                    place, free = free, links[free]
                elif fresh < len(prefixes):
                    place = fresh
                    fresh += 1
                else:
                    return np.int64(OUT_OF_ENTRIES), size
                prefixes[place], weights[place], links[place] = longer_one, moved, heads[to]
                heads[to] = place
            if count < 0:
                return count, size
    return count, size


@kernel
def _write(offsets, olabels, targets, arc_weights, finals, factor, entries, meeting, found, table):
    prefixes, weights, links, ids, values = _views(entries, found)
    n = len(finals)
    heads, after, most, silent = np.empty(n, np.int64), np.empty(n), np.empty(n), np.empty(n, np.bool_)
    count, _ = _outputs(
        n, offsets, olabels, targets, arc_weights, finals, factor, 0.0, heads, after, most, silent,
        prefixes, weights, links, meeting, table, ids, values, np.int64(0), np.int64(0), _clear(table, 1),
    )  # fmt: skip
    return count


@inner
def _levels(n, gaps):
    """States of a counter: how many symbols were copied, and, where that is limited, how many were skipped since."""
    return n + 1 if gaps < 0 else (n - 1) * (gaps + 1) + 2


@inner
def _copies(n, decay, gaps, q_first, q_stop, arc_offsets, labels, targets, weights, finals, out):
    """Compose a lattice with a counter: state (q, level) is q * levels + level. Returns the number of states.

    From level 0 one may skip freely, at the last one all symbols are copied. A level between them is 1 + skipped +
    (copied - 1) * wide, with wide = gaps + 1, or 1 if gaps are not limited.
    """
    offsets, olabels, ends, arc_weights, last = out
    arcs = np.int64(0)
    levels = _levels(n, gaps)
    wide = np.int64(1) if gaps < 0 else gaps + 1
    for q in range(q_stop - q_first):
        lo, hi = arc_offsets[q_first + q], arc_offsets[q_first + q + 1]
        for level in range(levels):
            state = q * levels + level
            offsets[state] = arcs
            outside = level == 0 or level == levels - 1
            last[state] = finals[q_first + q] if level == levels - 1 else 0.0
            copied = level + wide if level > 0 else np.int64(1)  # the level after one more symbol is copied
            copied = min(copied, levels - 1)
            skipped = level if outside or gaps < 0 else level + 1
            full = gaps >= 0 and not outside and (level - 1) % wide == gaps
            for k in range(lo, hi):
                to = targets[k] * levels
                silent = labels[k] == 0
                skip = 1.0 if outside or silent else (0.0 if full else decay)
                if skip != 0.0:
                    olabels[arcs], ends[arcs] = 0, to + (level if silent else skipped)
                    arc_weights[arcs] = skip * weights[k]
                    arcs += 1
                if silent or level == levels - 1:
                    continue
                olabels[arcs], ends[arcs], arc_weights[arcs] = labels[k], to + copied, weights[k]
                arcs += 1
    states = (q_stop - q_first) * levels
    offsets[states] = arcs
    return states


@kernel
def _count(
    done, state_offsets, arc_offsets, labels, targets, weights, finals, counters, posteriors,
    entries, meeting, found, table, out_offsets,
):  # fmt: skip
    """Go on with row `done` until all are done or there is no room; says what is missing."""
    prefixes, entry_weights, links, ids, values = _views(entries, found)
    levels, states, arcs = np.int64(0), np.int64(0), np.int64(0)
    for t in range(len(counters)):
        levels = max(levels, _levels(np.int64(counters[t, 0]), np.int64(counters[t, 3])))
    for j in range(done, len(state_offsets) - 1):
        first, stop = state_offsets[j], state_offsets[j + 1]
        states = max(states, np.int64(stop - first))
        arcs = max(arcs, np.int64(arc_offsets[stop] - arc_offsets[first]))
    offsets = np.empty(states * levels + 1, np.int64)
    olabels, ends = np.empty(2 * arcs * levels, np.int64), np.empty(2 * arcs * levels, np.int64)
    arc_weights = np.empty(2 * arcs * levels)
    last, after, most = np.empty(states * levels), np.empty(states * levels), np.empty(states * levels)
    heads, silent = np.empty(states * levels, np.int64), np.empty(states * levels, np.bool_)
    composed = (offsets, olabels, ends, arc_weights, last)
    for j in range(done, len(state_offsets) - 1):
        first, stop = np.int64(state_offsets[j]), np.int64(state_offsets[j + 1])
        for q in range(stop - first - 1, -1, -1):
            after[q], most[q] = finals[first + q], abs(finals[first + q])
            for k in range(arc_offsets[first + q], arc_offsets[first + q + 1]):
                after[q] += weights[k] * after[targets[k]]
                most[q] += abs(weights[k]) * most[targets[k]]
        whole, weight = (after[0], most[0]) if stop > first else (0.0, 0.0)
        start = 1.0 / whole if posteriors and whole > 0.0 else 1.0
        begin = count = np.int64(out_offsets[j])
        size = _clear(table, 1)
        for t in range(len(counters)):
            n, decay, factor, gaps = np.int64(counters[t, 0]), counters[t, 1], counters[t, 2], np.int64(counters[t, 3])
            least = LEAST * weight * abs(start * factor) if 0.0 < decay < 1.0 else 0.0
            n_states = _copies(n, decay, gaps, first, stop, arc_offsets, labels, targets, weights, finals, composed)
            count, size = _outputs(
                n_states, offsets, olabels, ends, arc_weights, last, start * factor, least, heads, after, most, silent,
                prefixes, entry_weights, links, meeting, table, ids, values, begin, count, size,
            )  # fmt: skip
            if count < 0:
                return j, count
        out_offsets[j + 1] = count
    return len(state_offsets) - 1, np.int64(0)
