"""Inner products of sparse rows, and of phi(z) for any map: some rows side by side, and every column through them once.

Every feature of some 32 rows gets a place, and lane r of a place holds the feature's value in row r. A column then asks
for the place of each of its features, and adds all lanes, times its value, to 32 sums: vectorised, however short the
rows are, and features that none of the rows has cost a look into a table. That table has an entry for each slot of the
space, or is a hash table where there are too many. Nothing is kept but a scratch of 64 MB at most.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import NamedTuple

import numpy as np

from dotadd._jit import inner, kernel
from dotadd._util.threads import for_each, row_pieces
from dotadd.kernel_svm.products import Into, Products, require_finite
from dotadd.problem.examples import InMemory

LANES = 32  # rows side by side, at most
SCRATCH = 1 << 23  # float64 values of the lanes: 64 MB
SLOTS = 1 << 20  # of a table with an entry for each slot: a larger one is outside of the cache, and hashing is faster


class PlaceTable(NamedTuple):
    """Which place a slot of the space has."""

    keys: np.ndarray | None
    """The slot of each entry, plus 1; None if every slot has an entry of its own."""
    places: np.ndarray
    """Numbered from 1; 0 is none."""
    taken: np.ndarray
    """Entries that have a place, to be cleared."""


class SparseProducts(Products):
    """Products of the rows of two expansions of one map, summed up in float64 and rounded when they are written.

    distances: whether minus half the squared distances are wanted in their place; the subtraction is in float64, too.
    """

    column_bytes = 0

    def __init__(
        self, a: InMemory, b: InMemory, *, scale: float = 1.0, distances: bool = False, threads: int = 1
    ) -> None:
        self.a, self.b, self.square, self.threads = a, b, scale * scale, threads
        self.shape = len(a), len(b)
        self.dim = max(a.dim, b.dim)
        bound = np.asarray(a.phi.bound(a.batch), np.int64)
        self.bounds = np.broadcast_to(bound, len(a))
        self.row_terms = self.a_norms / 2 if distances else np.zeros(len(a))
        self.column_terms = self.b_norms / 2 if distances else np.zeros(len(b))

    @cached_property
    def a_norms(self) -> np.ndarray:
        return self._norms(self.a)

    @cached_property
    def b_norms(self) -> np.ndarray:
        return self.a_norms if self.b is self.a else self._norms(self.b)

    def _norms(self, expansion: InMemory) -> np.ndarray:
        norms = self.square * expansion.squared_norms()
        require_finite(norms)
        return norms

    def of(self, rows: np.ndarray) -> Into:
        longest = max(1, int(self.bounds[rows].max(initial=1)))
        lanes = min(LANES, max(1, math.isqrt(SCRATCH // longest)))  # so that the lanes of all features fit
        groups = [rows[first : first + lanes] for first in range(0, len(rows), lanes)]
        most = max((int(self.bounds[some].sum()) for some in groups), default=0)
        table = _table(self.dim, min(self.dim, most))

        def into(columns: np.ndarray | slice, out: np.ndarray, first: int) -> None:
            if isinstance(columns, slice):
                columns = np.arange(*columns.indices(self.shape[1]))
            for number, some in enumerate(groups):
                self._multiply(some, columns, table, out[number * lanes :], first)

        return into

    def _multiply(self, rows: np.ndarray, columns: np.ndarray, table: PlaceTable, out: np.ndarray, first: int) -> None:
        """Products of a few rows with these columns."""
        keys, places, taken = table
        lanes = np.empty((min(len(taken), int(self.bounds[rows].sum())), len(rows)))
        count = done = 0
        for block, at, seen in self.a.blocks(rows):
            seats = block.start, block.end, at
            count = _place(seats, block.indices, block.values, keys, places, taken, count, done, lanes)
            done += len(seen)
        row_terms, column_terms = self.row_terms[rows], self.column_terms[columns]

        def work(piece: tuple[int, int]) -> None:
            lo, stop = piece
            for block, at, seen in self.b.blocks(columns[lo:stop]):
                seats, terms = (block.start, block.end, at), (row_terms, column_terms[lo : lo + len(seen)])
                _multiply(seats, block.indices, block.values, keys, places, lanes, self.square, terms, first + lo, out)
                lo += len(seen)

        for_each(row_pieces(len(columns), self.threads, 4), work, self.threads)
        places[taken[:count]] = 0
        if keys is not None:
            keys[taken[:count]] = 0


def _table(dim: int, features: int) -> PlaceTable:
    if dim <= SLOTS:
        return PlaceTable(None, np.zeros(dim, np.int32), np.empty(features, np.int64))
    size = 1 << (2 * features + 4).bit_length()
    return PlaceTable(np.zeros(size, np.uint64), np.zeros(size, np.int32), np.empty(features, np.int64))


@inner
def _entry(keys, places, slot):
    """Where the place of a slot is written, or would be."""
    if keys is None:
        return np.uint64(slot)
    last = np.uint64(len(keys) - 1)
    key = np.uint64(slot) + np.uint64(1)
    at = np.uint64(key * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(32) & last
    while keys[at] != np.uint64(0) and keys[at] != key:
        at = np.uint64(at + np.uint64(1)) & last
    return at


@kernel
def _place(seats, indices, values, keys, places, taken, count, first, lanes):
    """Write rows at[j] of a block to the lanes from `first` on; the number of places that are taken then."""
    start, end, at = seats
    for j in range(len(at)):
        lo = np.uint64(start[at[j]])
        for k in range(lo, np.uint64(end[at[j]])):
            slot = k - lo if indices is None else np.uint64(indices[k])
            entry = _entry(keys, places, slot)
            if places[entry] == 0:
                if keys is not None:
                    keys[entry] = slot + np.uint64(1)
                taken[count] = entry
                for r in range(lanes.shape[1]):
                    lanes[count, r] = 0.0
                count += 1
                places[entry] = count
            lanes[places[entry] - 1, first + j] += 1.0 if values is None else np.float64(values[k])
    return count


@kernel
def _multiply(seats, indices, values, keys, places, lanes, square, terms, first, out):
    """out[r, first + j] = square <row r of the lanes, row at[j] of the block> - row_terms[r] - column_terms[j]"""
    start, end, at = seats
    row_terms, column_terms = terms
    rows = lanes.shape[1]
    sums = np.empty(rows)
    for j in range(len(at)):
        for r in range(rows):
            sums[r] = 0.0
        lo = np.uint64(start[at[j]])
        for k in range(lo, np.uint64(end[at[j]])):
            slot = k - lo if indices is None else np.uint64(indices[k])
            place = places[_entry(keys, places, slot)]
            if place > 0:
                value = 1.0 if values is None else np.float64(values[k])
                for r in range(np.uint64(rows)):
                    sums[r] += value * lanes[np.uint64(place - 1), r]
        for r in range(rows):
            out[r, first + j] = square * sums[r] - row_terms[r] - column_terms[j]
