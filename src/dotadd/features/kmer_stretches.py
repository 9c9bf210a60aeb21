"""DOT and lengths of many places at once: what a stretch of text has is computed once for all places that cross it.

Places are windows of one width in a text that they share (`data/places.py`), many of them in a stretch of it, as in a
scan of a genome. Then

- a spectrum's k-mers are looked up once a letter and summed up along the stretch: if P(i) is the sum of the weights of
  all k-mers of at most K letters that end before i, a window [s, e) has the output P(e) - P(s + K - 1), and what the
  first K - 1 letters of the window have by themselves;
- the squared length of a spectrum follows from that of the window one letter before: a k-mer that enters and was there
  c times adds 2 c + 1, one that leaves takes as much away;
- where each position has tables of its own, the slots of the k-mers that begin at a letter are found once, and not for
  each window that the letter stands in: DOT is look-ups alone.

Each needs fewer steps a letter than the other way (`kmer_tables.py`) needs a window. How many letters a window there
may be is a constant that was measured, below.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dotadd._jit import inner, kernel, plain
from dotadd.data.places import Places
from dotadd.features.alphabet import FOREIGN
from dotadd.features.kmer_layout import finish, orders_on_a_line, position_stir, step, unpacked, within
from dotadd.features.kmer_tables import FOLD, SHARED_FOLD, fold_tables, powers, tail

GAP_BITS = 10  # of a number of letters without a place that no stretch reaches over
MOST = 64  # stretches
SUMMED = 1 << 12  # letters over which sums run on, so that they stay small beside those of a window
FEWEST = 256  # places that are worth it
SPARSE = 24  # letters a window, above which a window is quicker looked at by itself: for spectra
CLOSE = 10  # the same for lengths of short windows, of which `pair_lengths` takes half as long
SHORT, LONGEST = 64, 1 << 15  # letters
DENSE = 1.5  # the same where each position has tables of its own
NARROW = 1 << 16  # slots of a group of orders that share lines: they are numbered in two bytes


class Stretch(NamedTuple):
    """Some places that lie near each other: their numbers among those asked for, the first letter, and where each of
    them begins, counted from that."""

    rows: np.ndarray
    first: int
    at: np.ndarray


def stretches(starts: np.ndarray, sparse: float) -> list[Stretch] | None:
    """The places that begin here in stretches of the text; None where they are fewer than that many letters allow."""
    if len(starts) < FEWEST:
        return None
    low = int(starts.min())
    shift = max(GAP_BITS, ((int(starts.max()) - low) // (16 * len(starts))).bit_length())
    bins = (starts - low) >> shift
    used = np.zeros(int(bins.max()) + 1, np.bool_)
    used[bins] = True
    edges = np.flatnonzero(np.diff(used, prepend=False, append=False))
    if len(edges) > 2 * MOST or (np.count_nonzero(used) << shift) > sparse * len(starts):
        return None
    found = []
    for first, stop in edges.reshape(-1, 2).tolist():
        rows = np.flatnonzero((bins >= first) & (bins < stop))
        begin = low + (first << shift)
        found.append(Stretch(rows, begin, starts[rows] - begin))
    return found


class SharedWindows(NamedTuple):
    """Windows of one length in letters that they share. What it is asked for, it does or says that it does not pay."""

    batch: Places
    starts: np.ndarray
    length: int

    def spectrum_dot(self, codes: np.ndarray, plan: np.ndarray, w: np.ndarray, out: np.ndarray) -> bool:
        """out[j] += <w, phi(window j)>, by running sums."""
        found = stretches(self.starts, SPARSE)
        for stretch in found or ():
            sums = np.zeros(len(stretch.rows))
            _spectrum_dot(self._letters(stretch), codes, plan, w, self.length, stretch.at, sums)
            out[stretch.rows] += sums
        return found is not None

    def spectrum_lengths(self, codes: np.ndarray, plan: np.ndarray, dim: int, out: np.ndarray) -> bool:
        """out[j] = |phi(window j)|^2, one after the other."""
        if self.length > LONGEST:
            return False
        found = stretches(self.starts, SPARSE if self.length > SHORT else CLOSE)
        for stretch in found or ():
            squared = np.empty(len(stretch.rows))
            _spectrum_lengths(self._letters(stretch), codes, plan, dim, self.length, stretch.at, squared)
            out[stretch.rows] = squared
        return found is not None

    def tables_dot(self, codes: np.ndarray, plan: np.ndarray, w: np.ndarray, out: np.ndarray) -> bool:
        """out[j] += <w, phi(window j)>, w being the tables of all positions; no window may have a foreign letter."""
        explicit, stride, bits, group = (int(number) for number in plan[1:5])
        narrow = group << bits <= NARROW and explicit == folds(plan) and len(w) == self.length * stride
        found = stretches(self.starts, DENSE) if narrow else None
        for stretch in found or ():
            sums, slots = np.zeros(len(stretch.rows)), _slots(self._letters(stretch), codes, plan, explicit)
            _tables_dot(slots, plan, w, self.length, explicit, stretch.at, sums)
            out[stretch.rows] += sums
        return found is not None

    def _letters(self, stretch: Stretch) -> np.ndarray:
        first = stretch.first
        return plain(self.batch.letters[first : first + int(stretch.at.max()) + self.length])


def folds(plan: np.ndarray) -> int:
    """How many orders are summed up into one table."""
    size, explicit = int(plan[0]), int(plan[1])
    return sum(size**k <= FOLD for k in range(1, explicit + 1))


@kernel
def _spectrum_dot(letters, codes, plan, w, length, at, sums):
    """Short orders are looked up at once, in a table of what all of them add where a k-mer ends; the first letters of a
    window, whose k-mers would reach out of it, for each window. Longer ones have sums of their own."""
    size, _, _, _, _, _, offsets, values = unpacked(plan)
    orders, n = len(values) - 1, len(letters)
    power, mask = powers(size, orders)
    folded = 0
    while folded < orders and size ** (folded + 1) <= SHARED_FOLD:
        folded += 1
    begins, fold = _folds(w, values, offsets, size, folded)
    code, room = _read(letters, codes, size, orders, power, mask)
    here = np.empty(n)
    for i in range(np.uint64(n)):
        k = min(room[i], folded)
        here[i] = fold[begins[k] + tail(code[i], power, mask, k)]
    before, blocks = _running_sums(here)
    head = min(np.int64(folded - 1), length)
    for j in range(np.uint64(len(at))):
        begin = np.uint64(at[j])
        total = _between(before, blocks, begin + np.uint64(head), begin + np.uint64(length))
        for d in range(head):
            letter = begin + np.uint64(d)
            short = min(room[letter], np.int32(d + 1))
            total += fold[begins[short] + tail(code[letter], power, mask, short)]
        sums[j] += total
    for order in range(folded + 1, min(orders, length) + 1):
        if values[order] == 0.0:
            continue
        first = np.uint64(offsets[order])
        for i in range(np.uint64(n)):
            here[i] = np.float64(w[first + tail(code[i], power, mask, order)]) if room[i] >= order else 0.0
        before, blocks = _running_sums(here)
        for j in range(np.uint64(len(at))):
            begin = np.uint64(at[j])
            total = _between(before, blocks, begin + np.uint64(order - 1), begin + np.uint64(length))
            sums[j] += values[order] * total


@inner
def _running_sums(numbers):
    """Of the numbers before each one, those of its own block, and of all numbers of each block."""
    n = len(numbers)
    before, blocks = np.empty(n + 1), np.zeros(n // SUMMED + 1)
    total = 0.0
    for i in range(np.uint64(n)):
        if i % np.uint64(SUMMED) == np.uint64(0):
            total = 0.0
        before[i] = total
        total += numbers[i]
        blocks[i // np.uint64(SUMMED)] = total
    before[n] = 0.0 if n % SUMMED == 0 else total
    return before, blocks


@inner
def _between(before, blocks, first, stop):
    """The sum of the numbers first..stop-1."""
    block, last = first // np.uint64(SUMMED), stop // np.uint64(SUMMED)
    if block == last:
        return before[stop] - before[first]
    total = blocks[block] - before[first]
    for between in range(block + np.uint64(1), last):
        total += blocks[between]
    return total + before[stop]


@inner
def _folds(w, values, offsets, size, folded):
    """For each number of letters, and each string u of so many: sum over orders k of value_k w_k[last k letters of u].
    Where those of each length begin, and all of them."""
    begins = np.zeros(folded + 2, np.uint64)
    for k in range(folded + 1):
        begins[k + 1] = begins[k] + np.uint64(size**k)
    fold = np.zeros(begins[folded + 1])
    for k in range(1, folded + 1):
        below, n = begins[k - 1], np.uint64(size ** (k - 1))
        for u in range(n * np.uint64(size)):
            own = 0.0 if values[k] == 0.0 else values[k] * np.float64(w[offsets[k] + u])
            fold[begins[k] + u] = fold[below + u % n] + own
    return begins, fold


@inner
def _read(letters, codes, size, orders, power, mask):
    """The number of the last letters at each place, and how many of them count."""
    n = len(letters)
    code, room = np.empty(n, np.uint64), np.empty(n, np.int32)
    now, have = np.uint64(0), np.int32(0)
    for i in range(np.uint64(n)):
        letter = codes[letters[i]]
        have = np.int32(0) if letter == np.uint16(FOREIGN) else np.int32(min(have + 1, orders))
        now = tail(now, power, mask, orders - 1) * np.uint64(size) + np.uint64(letter)
        code[i], room[i] = now, have
    return code, room


@kernel
def _spectrum_lengths(letters, codes, plan, dim, length, at, out):
    size, _, _, _, _, _, offsets, values = unpacked(plan)
    orders, n = len(values) - 1, len(letters)
    power, mask = powers(size, orders)
    code, room = _read(letters, codes, size, orders, power, mask)
    lengths = np.zeros(n - length + 1)  # of the windows that begin at each letter
    counts = np.zeros(dim, np.uint16)
    for k in range(1, min(orders, length) + 1):
        if values[k] == 0.0:
            continue
        square, table, squares = values[k] * values[k], counts[offsets[k] :], np.int64(0)
        first, whole = np.uint64(k - 1), np.uint64(length)
        for i in range(first, np.uint64(n)):  # where the k-mer ends that enters
            if room[i] >= k:
                slot = tail(code[i], power, mask, k)
                squares += np.int64(2) * np.int64(table[slot]) + np.int64(1)
                table[slot] += np.uint16(1)
            if i + np.uint64(1) < whole:
                continue
            begin = i + np.uint64(1) - whole
            lengths[begin] += square * np.float64(squares)
            if room[begin + first] >= k:
                slot = tail(code[begin + first], power, mask, k)
                table[slot] -= np.uint16(1)
                squares -= np.int64(2) * np.int64(table[slot]) + np.int64(1)
        for i in range(np.uint64(n) - whole + np.uint64(k), np.uint64(n)):  # tables may be shared by orders
            if room[i] >= k:
                table[tail(code[i], power, mask, k)] = np.uint16(0)
    for j in range(np.uint64(len(at))):
        out[j] = lengths[at[j]]


@kernel
def _slots(letters, codes, plan, folded):
    """Of the k-mers that begin at each letter: the number of that of the longest folded order, and then the slots of
    the hashed ones, within the tables of their group. Foreign letters count as the first one, as those behind the end
    do: what stands there is not looked up."""
    size, explicit, _, bits, group, group_bits, _, values = unpacked(plan)
    degree, n = len(values) - 1, len(letters)
    text = np.zeros(n + degree, np.uint32)
    for i in range(np.uint64(n)):
        letter = codes[letters[i]]
        text[i] = np.uint32(0) if letter == np.uint16(FOREIGN) else np.uint32(letter)
    slots = np.empty((1 + degree - explicit, n), np.uint16)
    number, slot, m = np.zeros(n, np.uint32), np.zeros(n, np.uint32), np.uint64(n)
    for k in range(np.uint64(explicit)):
        for i in range(m):
            number[i] = np.uint32(number[i] * np.uint32(size)) + text[k + i]
    slots[0] = number
    shortest, beyond = 0, 0
    for k in range(explicit + 1, degree + 1):
        step(number, text, np.uint64(k - 1), m)
        if k >= beyond:
            together = orders_on_a_line(group, degree - k + 1)
            shortest, beyond = k, k + together
            finish(number, bits, together, group_bits, m, slot)
        out = slots[k - explicit]
        for i in range(m):
            out[i] = within(slot[i], number[i], text[np.uint64(k - 1) + i], np.uint64(k - shortest), group_bits)
    return slots


@kernel
def _tables_dot(slots, plan, w, length, folded, at, sums):
    size, explicit, stride, bits, group, _, offsets, values = unpacked(plan)
    degree = len(values) - 1
    fold, spare = np.zeros(size**folded), np.zeros(size**folded)
    for p in range(length):
        tables = w[p * stride : (p + 1) * stride]
        room = length - p
        orders = min(folded, room)
        fold, spare = fold_tables(tables, values, offsets, size, orders, np.uint32(position_stir(p, bits)), fold, spare)
        shorter = np.uint64(size ** (folded - orders))  # the last positions have only the first letters of the number
        _look_up_one(fold, slots[0, p:], shorter, at, sums)
        k = explicit + 1
        while k <= min(degree, room):
            together = orders_on_a_line(group, degree - k + 1)
            table, column = tables[offsets[k] :], k - explicit
            last = min(k + together, room + 1)
            if last - k == 4:
                _look_up_four(table, slots[column : column + 4, p:], values[k : k + 4], at, sums)
            else:
                for order in range(k, last):
                    _look_up(table, slots[order - explicit, p:], values[order], at, sums)
            k += together


@inner
def _look_up_one(fold, slots, shorter, at, sums):
    if shorter == np.uint64(1):
        for j in range(np.uint64(len(at))):
            sums[j] += fold[slots[at[j]]]
    else:
        for j in range(np.uint64(len(at))):
            sums[j] += fold[np.uint64(slots[at[j]]) // shorter]


@inner
def _look_up(table, slots, value, at, sums):
    for j in range(np.uint64(len(at))):
        sums[j] += value * np.float64(table[slots[at[j]]])


@inner
def _look_up_four(table, slots, values, at, sums):
    """Four orders, which lie on one cache line."""
    first, second, third, fourth = slots[0], slots[1], slots[2], slots[3]
    a, b, c, d = values[0], values[1], values[2], values[3]
    for j in range(np.uint64(len(at))):
        i = np.uint64(at[j])
        low = a * np.float64(table[first[i]]) + b * np.float64(table[second[i]])
        sums[j] += low + (c * np.float64(table[third[i]]) + d * np.float64(table[fourth[i]]))
