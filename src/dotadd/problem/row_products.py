"""The Gram matrix of some rows of phi.

Features that many of the rows have are columns of a dense matrix, whose products are BLAS's, as are those of dense
rows. Of the others the pairs of rows that share one are gone through, feature by feature. What one row alone has counts
on the diagonal only.
"""

from __future__ import annotations

import numpy as np

from dotadd._jit import kernel
from dotadd.core.block import Block, count_features, every_row
from dotadd.core.kept import merge
from dotadd.problem.examples import InMemory

OFTEN = 0.25  # of the rows: where a column of a dense matrix costs as much as the pairs of rows that have the feature
COLUMNS = 1 << 10  # of the dense matrix at a time
FAR = 1 << 24  # slots, beyond which those that occur are sorted to be numbered


def row_products(examples: InMemory, rows: np.ndarray) -> np.ndarray:
    """<phi(z_i), phi(z_j)> of these rows, in float64."""
    matrix = _dense(examples, rows)
    if matrix is None:
        return _products_of(gathered(examples, rows), examples.squared_norms(rows))
    products = matrix @ matrix.T
    products[np.diag_indices(len(rows))] = examples.squared_norms(rows)
    return products


def _dense(examples: InMemory, rows: np.ndarray) -> np.ndarray | None:
    """These rows as a matrix, if they are dense."""
    parts = []
    for block, at, _ in examples.blocks(rows):
        if block.indices is not None or block.values is None:
            return None
        parts.append(block.values[block.start[at][:, None] + np.arange(examples.dim)].astype(np.float64))
    return np.concatenate(parts)


def _products_of(block: Block, squared_norms: np.ndarray) -> np.ndarray:
    """<phi(z_i), phi(z_j)> of the rows of a block that was gathered, and |phi(z_i)|^2 as given."""
    count, indices = len(block), block.indices
    assert indices is not None
    counts = np.zeros(int(indices.max(initial=0)) + 1, np.int64)
    slots = len(counts)
    count_features(block.start, block.end, indices, every_row(count), counts)
    products = np.zeros((count, count))
    often = np.flatnonzero(counts >= max(2.0, OFTEN * count))
    column = np.full(slots, -1, np.int64)
    for first in range(0, len(often), COLUMNS):
        some = often[first : first + COLUMNS]
        column[some] = np.arange(len(some))
        dense = np.zeros((count, len(some)))
        write_columns(block.start, block.end, indices, block.values, column, dense)
        column[some] = -1
        products += dense @ dense.T
    counts[often] = 0
    shared = np.where(counts > 1, counts, 0)
    begins = np.cumsum(shared) - shared
    owners, values = np.empty(int(shared.sum()), np.uint32), np.empty(int(shared.sum()))
    _turn(block.start, block.end, indices, block.values, shared, begins.copy(), owners, values)
    _add_pairs(begins, shared, owners, values, products)
    below = np.tril(products, -1)
    products = below + below.T
    products[np.diag_indices(count)] = squared_norms
    return products


def gathered(examples: InMemory, rows: np.ndarray) -> Block:
    """These rows in one block: equal indices merged, dense rows written as sparse ones, and features numbered by those
    that occur."""
    starts, ends, indices, values = [], [], [], []
    base = 0
    for block, at, _ in examples.blocks(rows):
        part = Block.scratch((block.end - block.start)[at], examples.dim, dtype=np.float64)
        _copy(block.start, block.end, block.indices, block.values, at, part.end, part.indices, part.values)
        if not block.distinct:
            merge(part.start, part.end, part.indices, part.values, len(at))
        assert part.indices is not None
        assert part.values is not None
        starts.append(part.start + base)
        ends.append(part.end + base)
        indices.append(part.indices)
        values.append(part.values)
        base += len(part.values)
    start, end, met, numbers = (np.concatenate(arrays) for arrays in (starts, ends, indices, values))
    return Block(start, end, _numbered(start, end, met, examples.dim), numbers, distinct=True)


def _numbered(start: np.ndarray, end: np.ndarray, indices: np.ndarray, dim: int) -> np.ndarray:
    """These indices, numbered by those that rows have: an index that none has, left over from merging, gets any."""
    if dim > FAR:
        return np.unique(indices, return_inverse=True)[1].astype(np.uint32)
    counts = np.zeros(dim, np.int64)
    count_features(start, end, indices, every_row(len(start)), counts)
    number = np.maximum(np.cumsum(counts > 0) - 1, 0).astype(np.uint32)
    return number[indices]


@kernel
def _copy(start, end, indices, values, at, cursor, out_indices, out_values):
    for j in range(len(at)):
        p, lo = np.uint64(cursor[j]), np.uint64(start[at[j]])
        for k in range(lo, np.uint64(end[at[j]])):
            out_indices[p] = k - lo if indices is None else indices[k]
            out_values[p] = 1.0 if values is None else values[k]
            p += np.uint64(1)
        cursor[j] = p


@kernel
def write_columns(start, end, indices, values, column, out):
    """Write features that have a column to it."""
    for r in range(len(start)):
        for k in range(np.uint64(start[r]), np.uint64(end[r])):
            c = column[indices[k]]
            if c >= 0:
                out[r, c] = values[k]


@kernel
def _turn(start, end, indices, values, counts, cursor, owners, out_values):
    """The rows that have each feature, one feature after the other; `cursor` is where each of them begins."""
    for r in range(len(start)):
        for k in range(np.uint64(start[r]), np.uint64(end[r])):
            slot = np.uint64(indices[k])
            if counts[slot] > 1:
                p = np.uint64(cursor[slot])
                owners[p], out_values[p] = r, values[k]
                cursor[slot] = p + np.uint64(1)


@kernel
def _add_pairs(begins, counts, owners, values, out):
    """out[i, j] += v_i v_j for all rows i > j that share a feature."""
    for slot in range(len(counts)):
        if counts[slot] < 2:
            continue
        lo = np.uint64(begins[slot])
        for a in range(lo + np.uint64(1), lo + np.uint64(counts[slot])):
            row, value = out[np.uint64(owners[a])], values[a]
            for b in range(lo, a):
                row[np.uint64(owners[b])] += value * values[b]
