"""Outputs: what a transducer writes, as sparse vectors over ids of strings; and n-grams with gaps of plain strings.

The id of a string of labels is a number below 2**63, made label by label. A string of up to seven labels that are bytes
is its own number, the bytes one after the other, so that no two of them meet and the text can be read off. Others are a
hash of 62 bits and stand above all of these. The empty string is 0.

N-grams with gaps of any length are counted in tables of all n-grams of the letters that a string has. With gaps, a text
of 800 letters has most n-grams of its letters, so tables that are not sparse are the better ones: one for each length
j < n, A_j[u] = the weight of all occurrences of u so far, each symbol skipped since having cost a factor of decay.
Letter c at the next place makes A_{j+1}[u c] grow by A_j[u], for all u at once: with c as the leading digit of the
number of u c, that is one stretch of A_{j+1} and all of A_j. The first letters are taken one after the other, so that
the tables stay in the cache.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from dotadd._jit import inner, kernel, plain
from dotadd.automata.scratch import longer
from dotadd.data.batches import Strings

WRITTEN_OUT = 7  # bytes
EMPTY = np.uint64(0)
_ROOM = np.uint64(1 << 8 * (WRITTEN_OUT - 1))  # what is below it has room for one more byte
_HASHED = np.uint64(1 << 62)


@inner
def extended(prefix, label):
    """The id of a string, given that of all but its last label."""
    if prefix < _ROOM and label < np.uint64(256):
        return np.uint64(prefix << np.uint64(8) | label)
    h = np.uint64((prefix + label) * np.uint64(0x9E3779B97F4A7C15) + label)
    h = np.uint64((h ^ (h >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9))
    h = np.uint64((h ^ (h >> np.uint64(27))) * np.uint64(0x94D049BB133111EB))
    return np.uint64((h ^ (h >> np.uint64(31))) & (_HASHED - np.uint64(1)) | _HASHED)


def id_of(labels: Sequence[int]) -> int:
    """The id of a string of labels."""
    number = EMPTY
    for label in labels:
        number = extended(number, np.uint64(label))
    return int(number)


def letters_of(number: int) -> bytes | None:
    """The bytes of a string that is its own number; None of a hash."""
    return int(number).to_bytes(WRITTEN_OUT, "big").lstrip(b"\0") if number < 1 << 8 * WRITTEN_OUT else None


LEAST = 2.0**-24  # of the weight of a whole lattice, what a float32 keeps: prefixes with gaps that count less go
MOST = 1 << 20  # entries of the longest table
NEGLIGIBLE = 2.0**-16  # of what counts least: there may be many occurrences of it
OFTEN = 64  # places after which weights that are too small to count become 0; arithmetic with tinier ones is slow
NOTHING = 1e-100


class Outputs(NamedTuple):
    """Row r has the outputs ids[offsets[r]:offsets[r + 1]], each once, and their weights beside them."""

    offsets: np.ndarray
    ids: np.ndarray
    values: np.ndarray

    @property
    def nbytes(self) -> int:
        return self.ids.nbytes + self.values.nbytes

    @classmethod
    def joined(cls, parts: Sequence[Outputs]) -> Outputs:
        lengths = [np.diff(part.offsets) for part in parts]
        offsets = np.concatenate([[0], np.cumsum(np.concatenate([np.empty(0, np.int64), *lengths]))])
        ids = np.concatenate([np.empty(0, np.uint64), *(part.ids for part in parts)])
        return cls(offsets, ids, np.concatenate([np.empty(0), *(part.values for part in parts)]))


def dense_order(strings: Strings, n: int) -> bool:
    """Whether the n-grams of the letters of each string, with one first letter, fit into a table."""
    used = max((len(set(strings[row])) for row in range(len(strings))), default=0)
    return n > 1 and used ** (n - 1) <= MOST


def gappy_counts(strings: Strings, n: int, decay: float, factor: float) -> Outputs:
    """The outputs of gappy_ngram(n, decay), times a factor, for all rows. Those below LEAST are left out."""
    offsets = np.zeros(len(strings) + 1, np.int64)
    ids, values = np.empty(1 << 14, np.uint64), np.empty(1 << 14)
    starts, ends = strings.bounds(np.arange(len(strings), dtype=np.int64))
    done = 0
    while True:
        done = _count(plain(strings.letters), starts, ends, n, decay, factor, done, offsets, ids, values)
        if done == len(strings):
            return Outputs(offsets, ids[: offsets[-1]].copy(), values[: offsets[-1]].copy())
        ids, values = longer(ids, 2 * len(ids)), longer(values, 2 * len(values))


@kernel
def _count(letters, starts, ends, n, decay, factor, done, offsets, ids, values):
    """Go on with row `done` until all are done or there is no room."""
    least, horizon = 0.0, np.int64(1 << 62)
    if decay < 1.0:
        least, horizon = LEAST, np.int64(np.log(NEGLIGIBLE * LEAST) / np.log(decay) + n)
    codes, used = np.empty(256, np.int64), np.empty(256, np.uint8)
    base = np.empty(n + 2, np.int64)  # where A_j begins
    for row in range(done, len(starts)):
        codes[:] = -1
        size = np.int64(0)
        for i in range(starts[row], ends[row]):
            letter = letters[i]
            if letter != 0 and codes[letter] < 0:
                codes[letter], used[size] = size, letter
                size += 1
        base[1], length = 0, np.int64(1)
        for j in range(1, n + 1):
            base[j + 1] = base[j] + length
            length *= size
        a = np.empty(base[n + 1])
        count = offsets[row]
        for first in range(size):
            a[:] = 0.0
            places, since = 0, horizon
            for i in range(starts[row], ends[row]):
                if letters[i] == 0:
                    continue
                c = codes[letters[i]]
                since = np.int64(0) if c == first else since + np.int64(1)
                if since > horizon:  # what began with this letter no longer counts
                    if places > 0:
                        a[: base[n]] = 0.0
                    places = 0
                    continue
                places += 1
                for j in range(n - 1, 0, -1):
                    length = base[j + 1] - base[j]
                    if j + 1 < n:  # as far as it was read, this letter is skipped
                        for k in range(np.uint64(base[j + 1]), np.uint64(base[j + 2])):
                            a[k] *= decay
                    to, of = np.uint64(base[j + 1] + c * length), np.uint64(base[j])
                    for k in range(np.uint64(length)):
                        a[to + k] += a[of + k]
                a[0] = a[0] * decay + (1.0 if c == first else 0.0)
                if places % OFTEN == 0:
                    for k in range(np.uint64(base[n])):
                        if a[k] < NOTHING:
                            a[k] = 0.0
            for k in range(base[n], base[n + 1]):
                if a[k] <= least:
                    continue
                if count == len(ids):
                    return row
                number, rest = extended(EMPTY, np.uint64(used[first])), k - base[n]
                for _ in range(n - 1):
                    number = extended(number, np.uint64(used[rest % size]))
                    rest //= size
                ids[count], values[count] = number, factor * a[k]
                count += 1
        offsets[row + 1] = count
    return len(starts)
