"""Tables of all l-mers over four letters, by which DOT and ADD of mismatch features touch w once an l-mer.

phi(z) = M c(z): c(z) are the counts of the l-mers of a string, and M spreads each over its neighbours, f(m) on those
with m mismatches. While w stands still, <w, phi(z)> is a sum over the l-mers of z of entries of the table M w; and
sum_i a_i phi(z_i) is M times the table sum_i a_i c(z_i). M is diagonal in the characters of the letters
(gkm_weights.py). Written as two bits a letter, these are Walsh's functions, so M is a fast Walsh-Hadamard transform, a
factor for each entry, and the same transform again: 4 l additions an entry, whatever f is and however far it reaches.

Three layouts of w:

- "one": a slot for each l-mer, its number with two bits a letter;
- "both": an l-mer and its reverse complement are one feature, in the slot of the smaller number;
- "half": the same for odd l, without slots that nobody uses. Of an l-mer and its reverse complement exactly one has A
  or C in the middle. Its slot is that bit, then the other letters, its flanks. So w is two slabs, one for A and one for
  C, and M w is worked out on these alone: the slabs of T and G are theirs with the flanks reversed and complemented,
  which in the transform is a reversal of letters and a sign.

All of it is in float64, as proofs count on. Threads share out stretches of the table, each of which is worked on in an
order of its own, so the bits are the same for any number of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np

from dotadd._jit import inner, kernel
from dotadd._util.threads import for_each
from dotadd.features.alphabet import FOREIGN
from dotadd.features.gkm_weights import LETTERS, eigenvalues, kernel_weights

ROW = 1 << 14  # entries of 8 bytes: a row of them fits into a usual L2 cache
STRIP = 64  # columns that are transformed together
TILE = 64  # entries of 8 bytes: eight cache lines, which are fetched ahead
CALL = 1 << 22  # entries, or letters, that one kernel call goes through, so that Ctrl-C is answered in time
LONGEST = 12  # letters of an l-mer: a table of 128 MB

LAYOUTS = {"one": 0, "both": 1, "half": 2}


@dataclass(frozen=True)
class MismatchTable:
    """M for l-mers of `order` letters: f(0), f(1), .. and the layout of w.

    palindrome: what the value of an l-mer that is its own reverse complement is multiplied with.
    """

    order: int
    weights: tuple[float, ...]
    layout: str
    palindrome: float = 1.0

    @property
    def dim(self) -> int:
        """Slots of w."""
        return LETTERS**self.order // (2 if self.layout == "half" else 1)

    @cached_property
    def eigenvalues(self) -> np.ndarray:
        """Those of M, over the number of entries, by which two transforms multiply."""
        slab = LETTERS ** (self.order - (self.layout == "half"))
        return np.array([float(value / slab) for value in eigenvalues(self.weights, self.order)])

    @cached_property
    def half_words(self) -> tuple[np.ndarray, ...]:
        """Of each word of half the flanks: its number with the letters reversed, how many letters are not the first,
        and the sign that it brings. And of two of them, one with so many letters and another: the factor for what
        differs between letters in the middle, and a quarter of how much that for the rest is larger."""
        count = (self.order - 1) // 2
        words = np.arange(LETTERS**count, dtype=np.int64)
        digits = words[:, None] >> 2 * np.arange(count) & 3
        turned = (digits << 2 * np.arange(count - 1, -1, -1)).sum(axis=1)
        letters = (digits != 0).sum(axis=1)
        sign = 1.0 - 2.0 * (((digits & 1) + (digits >> 1)).sum(axis=1) % 2)
        many = np.add.outer(np.arange(count + 1), letters)
        rest = self.eigenvalues[many + 1]
        return turned, letters, sign, rest, 0.25 * (self.eigenvalues[many] - rest)

    @cached_property
    def squared(self) -> MismatchTable:
        """M M, which is a table, too: what two strings have in common is c(z)' M M c(z')."""
        return replace(self, weights=kernel_weights(self.weights, self.order))

    def spread(self, w: np.ndarray, threads: int) -> np.ndarray:
        """The table M w, in which `look_up` finds what l-mers count."""
        table = w.astype(np.float64)
        if self.layout == "both":
            _stretches(
                len(table), lambda first, stop: _unfold(w, self.order, self.palindrome, first, stop, table), threads
            )
        self.apply(table, threads)
        return table

    def gather(self, table: np.ndarray, w: np.ndarray, threads: int) -> None:
        """w += M times the table of `count`, which is used up."""
        self.apply(table, threads)
        if self.layout == "both":
            _stretches(
                len(table), lambda first, stop: _fold(table, self.order, self.palindrome, first, stop, w), threads
            )
        else:
            _stretches(len(table), lambda first, stop: _add(table[first:stop], w[first:stop]), threads)

    def apply(self, table: np.ndarray, threads: int) -> None:
        """table = M table."""
        slabs = [table] if self.layout != "half" else [table[: len(table) // 2], table[len(table) // 2 :]]
        _transform(slabs, threads)
        if self.layout != "half":
            _stretches(len(table), lambda first, stop: _scale(table, self.eigenvalues, first, stop), threads)
        else:
            turned, letters, sign, rest, shared = self.half_words
            a, c, tile = slabs[0], slabs[1], min(TILE, len(turned))
            work = partial(_scale_half, a, c, turned, letters, sign, rest, shared)
            for_each(range(0, len(turned), tile), lambda at: work(at, tile), threads)
        _transform(slabs, threads)


def _stretches(length: int, work: Callable[[int, int], None], threads: int) -> None:
    """work(first, stop) for stretches of a table that do not depend on the number of threads."""
    step = min(CALL, max(1, -(-length // 16)))
    for_each(range(0, length, step), lambda first: work(first, min(first + step, length)), threads)


def _transform(slabs: list[np.ndarray], threads: int) -> None:
    """The Walsh-Hadamard transform of each slab: of rows that fit into the L2 cache, and then of the columns."""
    columns = min(len(slabs[0]), ROW)
    matrices = [slab.reshape(-1, columns) for slab in slabs]
    rows, strip = len(matrices[0]), min(STRIP, columns)
    some = max(1, rows // 8)
    pieces = [(matrix, first) for matrix in matrices for first in range(0, rows, some)]
    for_each(pieces, lambda piece: _transform_rows(piece[0][piece[1] : piece[1] + some]), threads)
    wide = max(strip, columns // 8)
    pieces = [(matrix, first) for matrix in matrices for first in range(0, columns, wide)] if rows > 1 else []
    for_each(pieces, lambda piece: _transform_columns(piece[0], piece[1], piece[1] + wide, strip), threads)


@kernel
def _transform_rows(matrix):
    """Each row, a stretch that fits into the L1 cache after the other, and then all of them together."""
    columns = np.uint64(matrix.shape[1])
    short = min(columns, np.uint64(1024))
    for r in range(matrix.shape[0]):
        for first in range(np.uint64(0), columns, short):
            _butterflies(matrix[r, first : first + short], short, np.uint64(1))
        _butterflies(matrix[r], columns, short)


@kernel
def _transform_columns(matrix, first, stop, width):
    """Some columns at a time are copied to where they lie in the cache together: in place they would push each other
    out, since rows lie a power of two apart."""
    rows, step = matrix.shape[0], np.uint64(width)
    copy = np.empty((rows, width), np.float64)
    flat = copy.reshape(-1)
    for left in range(first, stop, width):
        for r in range(rows):
            copy[r, :] = matrix[r, left : left + width]
        _butterflies(flat, np.uint64(len(flat)), step)
        for r in range(rows):
            matrix[r, left : left + width] = copy[r, :]


@inner
def _butterflies(x, n, half):
    """The transform over the bits of the index from `half` on, two bits at a time."""
    while half * np.uint64(4) <= n:
        for block in range(np.uint64(0), n, half * np.uint64(4)):
            a, b, c, d = block, block + half, block + np.uint64(2) * half, block + np.uint64(3) * half
            for i in range(half):
                p, q, r, s = x[a + i], x[b + i], x[c + i], x[d + i]
                x[a + i], x[b + i] = (p + q) + (r + s), (p - q) + (r - s)
                x[c + i], x[d + i] = (p + q) - (r + s), (p - q) - (r - s)
        half *= np.uint64(4)
    if half < n:
        for i in range(half):
            p, q = x[i], x[half + i]
            x[i], x[half + i] = p + q, p - q


@inner
def _letters_set(number):
    """How many letters of this word are not the first."""
    x = np.uint64((number | number >> np.uint64(1)) & np.uint64(0x5555555555555555))
    count = np.uint64(0)
    while x:
        x &= x - np.uint64(1)
        count += np.uint64(1)
    return count


@kernel
def _scale(table, values, first, stop):
    low = np.empty(256, np.uint64)
    for y in range(np.uint64(len(low))):
        low[y] = _letters_set(y)
    high, before = np.uint64(0), np.uint64(1) << np.uint64(63)
    for y in range(np.uint64(first), np.uint64(stop)):
        if y >> np.uint64(8) != before:
            before = y >> np.uint64(8)
            high = _letters_set(before)
        table[y] *= values[high + low[y & np.uint64(255)]]


@kernel
def _scale_half(with_a, with_c, turned, letters, sign, rest, shared, first, tile):
    """The factors of M between two transforms of the flanks, and M of the letter in the middle.

    Word y and its reversal z belong together: slab T is slab A at z, and slab G is slab C at z, all with the sign of y.
    On what is the same for all letters in the middle, M acts as on y, on the rest as on a word with one letter more.
    With the first halves of words in the order of their reversals, y -> z is the transposition of a matrix. These are
    the tiles in the rows from `first` on, above its diagonal, and what they belong to. What else is given is of half
    words (see `half_words`).
    """
    size = len(turned)
    theirs = np.empty((2, tile, tile))  # of slab A and slab C, as they stand in the tile
    for left in range(first, size, tile):
        for b in range(tile):
            z = turned[left + b] * size + first
            for a in range(tile):
                theirs[0, a, b], theirs[1, a, b] = with_a[z + a], with_c[z + a]
        for a in range(tile):
            y, some = turned[first + a] * size + left, letters[first + a]
            mine_a, mine_c = with_a[y : y + tile], with_c[y : y + tile]
            their_a, their_c = theirs[0, a], theirs[1, a]
            for b in range(tile):
                signed, one, many = sign[first + a] * sign[left + b], rest[some, left + b], shared[some, left + b]
                total = many * (mine_a[b] + mine_c[b] + signed * (their_a[b] + their_c[b]))
                mine_a[b], mine_c[b] = one * mine_a[b] + total, one * mine_c[b] + total
                their_a[b], their_c[b] = one * their_a[b] + signed * total, one * their_c[b] + signed * total
        if left == first:  # it is its own transposition, and has been read before it was written
            continue
        for b in range(tile):
            z = turned[left + b] * size + first
            for a in range(tile):
                with_a[z + a], with_c[z + a] = theirs[0, a, b], theirs[1, a, b]


@inner
def _complement(number, order):
    """The number of the reverse complement."""
    other = np.uint64(0)
    for _ in range(order):
        other = other << np.uint64(2) | (number & np.uint64(3))
        number >>= np.uint64(2)
    return other ^ ((np.uint64(1) << np.uint64(2 * order)) - np.uint64(1))


@kernel
def _unfold(w, order, palindrome, first, stop, table):
    """w of l-mers that share a slot with their reverse complement, for each of them."""
    for u in range(np.uint64(first), np.uint64(stop)):
        other = _complement(u, order)
        table[u] = w[min(u, other)] * (palindrome if u == other else 1.0)


@kernel
def _fold(table, order, palindrome, first, stop, w):
    for u in range(np.uint64(first), np.uint64(stop)):
        other = _complement(u, order)
        if u < other:
            w[u] += table[u] + table[other]
        elif u == other:
            w[u] += table[u] * palindrome


@kernel
def _add(table, w):
    for u in range(np.uint64(len(w))):
        w[u] += table[u]


@inner
def half_slot(number, other, order):
    """The slot of an l-mer or its reverse complement, `other`, whichever has A or C in the middle."""
    one, below = np.uint32(1), np.uint32(order - 1)  # bits of the letters after the middle
    chosen = other if number >> np.uint32(below + one) & one else number
    before = np.uint32(chosen >> np.uint32(below + np.uint32(2))) << below
    after = chosen & np.uint32(np.uint32(one << below) - one)
    return np.uint32(np.uint32(np.uint32(chosen >> below & one) << np.uint32(below + below)) | before | after)


@inner
def read_lmers(letters, first, stop, codes, order, layout, entry, other, where):
    """The entries of the table that the l-mers of a string touch, and at which place each begins; how many there are.

    With the layout "half", `other` is used for the numbers of the reverse complements.
    """
    mask = np.uint32((np.uint64(1) << np.uint64(2 * order)) - np.uint64(1))
    top, two = np.uint32(2 * (order - 1)), np.uint32(2)
    number = back = np.uint32(0)
    run, count, shift = 0, np.uint64(0), np.uint32(order - 1)
    for i in range(np.uint64(stop - first)):
        code = codes[letters[np.uint64(first) + i]]
        if code == FOREIGN:
            run = 0
            continue
        number = np.uint32(np.uint32(number << two) | np.uint32(code)) & mask
        back = np.uint32(back >> two) | np.uint32(np.uint32(np.uint32(3) - np.uint32(code)) << top)
        run += 1
        entry[count], other[count], where[count] = number, back, np.uint32(np.uint32(i) - shift)
        count += np.uint64(run >= order)
    if layout == 2:
        for i in range(count):
            entry[i] = half_slot(entry[i], other[i], order)
    return count


@inner
def place_weight(places, count, at):
    """What an l-mer counts that begins at a place of `count`: by its distance from the middle, if that matters."""
    away = abs(count // 2 - np.int64(at))
    return places[min(away, len(places) - 1)]


@kernel
def look_up(letters, starts, ends, codes, order, layout, places, table, out):
    """out[j] += the sum over the l-mers of string j of their entries, times the weight of their places."""
    entry, other, where = _room(starts, ends)
    for j in range(len(starts)):
        count = read_lmers(letters, starts[j], ends[j], codes, order, layout, entry, other, where)
        total, slots = 0.0, ends[j] - starts[j] - order + 1
        if len(places) == 1:
            for i in range(count):
                total += table[entry[i]]
            total *= places[0]
        else:
            for i in range(count):
                total += table[entry[i]] * place_weight(places, slots, where[i])
        out[j] += total


@kernel
def count(letters, starts, ends, codes, order, layout, places, coefficients, first, table):
    """table[entry - first] += coefficients[j] times the weight of its place, for the l-mers of string j with an entry
    in this part of the table."""
    entry, other, where = _room(starts, ends)
    low, length = np.uint32(first), np.uint32(len(table))
    for j in range(len(starts)):
        found = read_lmers(letters, starts[j], ends[j], codes, order, layout, entry, other, where)
        mine, slots = np.uint64(0), ends[j] - starts[j] - order + 1
        for i in range(found):  # without a branch that nobody can foresee
            entry[mine], where[mine] = np.uint32(entry[i] - low), where[i]
            mine += np.uint64(entry[mine] < length)
        if len(places) == 1:
            for i in range(mine):
                table[entry[i]] += coefficients[j] * places[0]
        else:
            for i in range(mine):
                table[entry[i]] += coefficients[j] * place_weight(places, slots, where[i])


@inner
def _room(starts, ends):
    longest = np.int64(1)
    for j in range(len(starts)):
        longest = max(longest, ends[j] - starts[j])
    return np.empty(longest, np.uint32), np.empty(longest, np.uint32), np.empty(longest, np.uint32)
