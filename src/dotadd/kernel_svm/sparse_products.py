"""Inner products of sparse rows, and of phi(z) for any map: frequent features by BLAS, rare ones by the rows that have
them.

Features that many rows have are columns of a dense matrix. Of the others every group of rows is turned into lists: who
of the group has the feature, and with which value. A column then asks for the list of each of its features, and adds
what the rows on it share with it to their sums: work that is proportional to what rows have in common, and not to how
long they are. Lists begin in a table with an entry for each slot of the space, or in a hash table where there are too
many. Nothing else is kept: columns are read where they lie, or made again.
"""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np

from dotadd._jit import inner, kernel
from dotadd.kernel_svm.products import Into, Products, require_finite
from dotadd.problem.examples import InMemory

SCRATCH = 1 << 24  # non-zeros of a group of rows, at most
SLOTS = 1 << 20  # of a table with an entry for each slot: a larger one is outside of the cache, and hashing is faster
OFTEN = 0.06  # of the rows: where a column of a dense matrix costs as much as the pairs of rows that have the feature
COLUMNS = 1 << 13  # of a dense matrix, at most
COUNTED = 1 << 24  # slots of a space whose frequent features are looked for
FEWEST = 64  # rows on both sides that are worth a dense matrix
BESIDE = 16  # columns whose sums are written together: a line of the cache


class Lists(NamedTuple):
    """The rows of a group that have each feature: owners[begins[e] : begins[e + 1]] for entry e, with their values."""

    keys: np.ndarray | None
    """The slot of each entry, plus 1; None if every slot has an entry of its own."""
    begins: np.ndarray
    owners: np.ndarray
    values: np.ndarray


class SparseProducts(Products):
    """Products of the rows of two expansions of one map, summed up in float64 but for what BLAS does in float32.

    distances: whether minus half the squared distances are wanted in their place, all of them in float64.
    """

    column_bytes = 0

    def __init__(self, a: InMemory, b: InMemory, *, scale: float = 1.0, distances: bool = False) -> None:
        self.a, self.b, self.square = a, b, scale * scale
        self.shape = len(a), len(b)
        self.dim = max(a.dim, b.dim)
        bound = np.asarray(a.phi.bound(a.batch), np.int64)
        self.bounds = np.broadcast_to(bound, len(a))
        self.row_terms = self.a_norms / 2 if distances else np.zeros(len(a))
        self.column_terms = self.b_norms / 2 if distances else np.zeros(len(b))
        self.dtype: type = np.float64 if distances else np.float32

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

    @cached_property
    def frequent(self) -> np.ndarray:
        """Of each slot its column in dense matrices, which more pairs of rows share than BLAS minds, or -1; empty if
        there is none."""
        if self.dim > COUNTED or min(self.shape) < FEWEST:
            return np.empty(0, np.int64)
        counts = _counts(self.a, self.dim)
        shared = counts * (counts if self.b is self.a else _counts(self.b, self.dim)) / (self.shape[0] * self.shape[1])
        often = np.flatnonzero(shared >= OFTEN * OFTEN)
        if len(often) == 0:
            return np.empty(0, np.int64)
        often = often[np.argsort(-shared[often], kind="stable")[:COLUMNS]]
        column = np.full(self.dim, -1, np.int64)
        column[often] = np.arange(len(often))
        return column

    def of(self, rows: np.ndarray) -> Into:
        groups = [(some, self._lists(rows[some]), self._dense(self.a, rows[some])) for some in self._groups(rows)]

        def into(columns: np.ndarray | slice, out: np.ndarray, first: int) -> None:
            if isinstance(columns, slice):
                columns = np.arange(*columns.indices(self.shape[1]))
            right, column_terms = self._dense(self.b, columns), self.column_terms[columns]
            for some, lists, left in groups:
                dense = (right @ left.T).astype(np.float64, copy=False)
                part, terms, at = out[some], self.row_terms[rows[some]], 0
                for block, here, seen in self.b.blocks(columns):
                    stop = at + len(seen)
                    seats, both = (block.start, block.end, here), (terms, column_terms[at:stop])
                    arrays = block.indices, block.values, tuple(lists)
                    _multiply(seats, *arrays, self.square, dense[at:stop], both, part, first + at)
                    at = stop

        return into

    def _groups(self, rows: np.ndarray) -> list[slice]:
        """Neighbouring rows whose lists fit into the scratch."""
        groups, first, used = [], 0, 0
        for at, length in enumerate(self.bounds[rows].tolist()):
            if at > first and used + length > SCRATCH:
                groups.append(slice(first, at))
                first, used = at, 0
            used += length
        return [*groups, slice(first, len(rows))]

    @cached_property
    def _tabled(self) -> bool:
        """Whether the space is small enough for a table with an entry for each slot: no larger than all rows are."""
        theirs = np.broadcast_to(np.asarray(self.b.phi.bound(self.b.batch), np.int64), len(self.b))
        return self.dim <= min(SLOTS, int(self.bounds.sum()) + int(theirs.sum()))

    def _lists(self, rows: np.ndarray) -> Lists:
        if self._tabled:
            keys, cursor = None, np.zeros(self.dim + 1, np.int64)
        else:
            size = 1 << (2 * min(self.dim, int(self.bounds[rows].sum())) + 4).bit_length()
            keys, cursor = np.zeros(size, np.uint64), np.zeros(size + 1, np.int64)
        for block, at, _ in self.a.blocks(rows):
            _count((block.start, block.end, at), block.indices, keys, self.frequent, cursor)
        begins = np.cumsum(cursor) - cursor
        cursor[:] = begins
        owners, done = np.empty(int(begins[-1]), np.uint32), 0
        values: np.ndarray = np.empty(len(owners), self.dtype)
        for block, at, seen in self.a.blocks(rows):
            seats = block.start, block.end, at
            _turn(seats, block.indices, block.values, keys, self.frequent, cursor, done, owners, values)
            done += len(seen)
        return Lists(keys, begins.astype(np.uint32), owners, values)

    def _dense(self, examples: InMemory, rows: np.ndarray) -> np.ndarray:
        """The frequent features of these rows."""
        out: np.ndarray = np.zeros((len(rows), int(self.frequent.max(initial=-1)) + 1), self.dtype)
        if out.size:
            done = 0
            for block, at, seen in examples.blocks(rows):
                _write_columns((block.start, block.end, at), block.indices, block.values, self.frequent, out[done:])
                done += len(seen)
        return out


def _counts(examples: InMemory, dim: int) -> np.ndarray:
    """How many rows have each feature."""
    counts = np.zeros(dim, np.int64)
    for block, at, _ in examples.blocks():
        _count((block.start, block.end, at), block.indices, None, np.empty(0, np.int64), counts)
    return np.minimum(counts, len(examples)).astype(np.float64)  # an index may occur twice in a row


@inner
def _entry(keys, slot):
    """Where a slot is written, or would be."""
    if keys is None:
        return np.uint64(slot)
    last = np.uint64(len(keys) - 1)
    key = np.uint64(slot) + np.uint64(1)
    at = np.uint64(key * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(32) & last
    while keys[at] != np.uint64(0) and keys[at] != key:
        at = np.uint64(at + np.uint64(1)) & last
    return at


@kernel
def _count(seats, indices, keys, frequent, counts):
    """How many of these rows have each feature that is not frequent; new ones get an entry."""
    start, end, at = seats
    for j in range(len(at)):
        lo = np.uint64(start[at[j]])
        for k in range(lo, np.uint64(end[at[j]])):
            slot = k - lo if indices is None else np.uint64(indices[k])
            if len(frequent) == 0 or frequent[slot] < 0:
                entry = _entry(keys, slot)
                if keys is not None:
                    keys[entry] = slot + np.uint64(1)
                counts[entry] += 1


@kernel
def _turn(seats, indices, values, keys, frequent, cursor, first, owners, out_values):
    """Write rows, numbered from `first` on, to the lists of their features, which go on at the cursor."""
    start, end, at = seats
    for j in range(len(at)):
        lo = np.uint64(start[at[j]])
        for k in range(lo, np.uint64(end[at[j]])):
            slot = k - lo if indices is None else np.uint64(indices[k])
            if len(frequent) == 0 or frequent[slot] < 0:
                entry = _entry(keys, slot)
                p = np.uint64(cursor[entry])
                owners[p], out_values[p] = first + j, 1.0 if values is None else values[k]
                cursor[entry] = p + np.uint64(1)


@kernel
def _write_columns(seats, indices, values, column, out):
    """Add features that have a column to it."""
    start, end, at = seats
    for j in range(len(at)):
        lo = np.uint64(start[at[j]])
        for k in range(lo, np.uint64(end[at[j]])):
            c = column[k - lo if indices is None else np.uint64(indices[k])]
            if c >= 0:
                out[j, c] += 1.0 if values is None else values[k]


@kernel
def _multiply(seats, indices, values, lists, square, dense, terms, out, first):
    """out[r, first + j] = square (dense[j, r] + sum over the lists of row at[j] of the block) - row_terms[r]
    - column_terms[j]"""
    start, end, at = seats
    keys, begins, owners, theirs = lists
    row_terms, column_terms = terms
    rows = len(row_terms)
    sums = np.empty((BESIDE, rows + BESIDE // 2))  # columns must not lie powers of two apart
    for left in range(0, len(at), BESIDE):
        beside = min(BESIDE, len(at) - left)
        for c in range(beside):
            j, mine = left + c, sums[c]
            for r in range(np.uint64(rows)):
                mine[r] = dense[j, r]
            lo = np.uint64(start[at[j]])
            for k in range(lo, np.uint64(end[at[j]])):
                entry = _entry(keys, k - lo if indices is None else np.uint64(indices[k]))
                value = 1.0 if values is None else np.float64(values[k])
                for p in range(np.uint64(begins[entry]), np.uint64(begins[entry + np.uint64(1)])):
                    mine[np.uint64(owners[p])] += value * theirs[p]
        for r in range(rows):
            for c in range(beside):
                out[r, first + left + c] = square * sums[c, r] - row_terms[r] - column_terms[left + c]
