"""Block: a scratch of sparse rows, and the two operations every solver is made of, DOT and ADD.

Row r of a block is `indices[start[r]:end[r]]` with the values beside them. Two arrays may be missing, and kernels are
compiled without them: `values is None` means that every value is 1, `indices is None` that the row is dense, its k-th
value belonging to slot k. Indices are unsigned (a signed index costs a comparison at each access in Numba), of 32 or
64 bits. An index may occur twice in a row unless the block says `distinct`; its values then add up.
"""

from __future__ import annotations

import numpy as np

from dotadd._jit import inner, kernel, plain, prefetch

FAR = 1 << 20  # bytes of w that are more than a usual L2 cache holds, so that slots are asked for ahead of their turn
AHEAD = np.uint64(64)  # non-zeros ahead
ROWS_AHEAD = 6
SMALL_TABLE = 1 << 12  # entries
MOST_ROWS = 1 << 32  # that numbers of 32 bits tell apart
LONG = 1 << 16  # non-zeros of a row, for which a table to find repeated ones in is worth a look at their slots first


class Block:
    """Sparse rows that a feature map fills and a solver reads.

    `base` and `scale` are what a map adds to each index and multiplies each value with: a stack of maps moves them
    between its parts, so that no part knows of the others. A block is `cold` if its rows lie in memory and not yet in
    the cache.
    """

    def __init__(
        self,
        start: np.ndarray,
        end: np.ndarray,
        indices: np.ndarray | None,
        values: np.ndarray | None,
        *,
        distinct: bool = False,
        base: int = 0,
        scale: float = 1.0,
        cold: bool = False,
    ) -> None:
        self.start, self.end, self.indices, self.values = start, end, indices, values
        self.distinct, self.base, self.scale, self.cold = distinct, base, scale, cold
        self.mid: np.ndarray | None = None
        """Where rows are laid out in two parts: where the second one begins in each (core/kept.py)."""

    @classmethod
    def scratch(cls, bounds: np.ndarray, dim: int, *, distinct: bool = False, dtype: type = np.float32) -> Block:
        """An empty block with room for `bounds[r]` non-zeros in row r."""
        start = np.zeros(len(bounds) + 1, np.int64)
        bounds.cumsum(out=start[1:])
        capacity = int(start[-1])
        indices = np.empty(capacity, np.uint32 if dim <= 2**32 else np.uint64)
        start = start[:-1]
        return cls(start, start.copy(), indices, np.empty(capacity, dtype), distinct=distinct)

    def __len__(self) -> int:
        return len(self.start)

    def placed(self, base: int, scale: float) -> Block:
        """The same memory for a part of a stack: indices from `base` on, values times `scale`."""
        return Block(
            self.start,
            self.end,
            self.indices,
            self.values,
            distinct=self.distinct,
            base=self.base + base,
            scale=self.scale * scale,
        )

    def append(self, row: int, indices: np.ndarray, values: np.ndarray | float) -> None:
        """Append non-zeros to a row; for maps written in NumPy."""
        assert self.indices is not None
        assert self.values is not None
        first = int(self.end[row])
        stop = first + len(indices)
        self.indices[first:stop] = np.asarray(indices, self.indices.dtype) + self.base
        self.values[first:stop] = np.asarray(values) * self.scale
        self.end[row] = stop

    def dot(self, w: np.ndarray) -> np.ndarray:
        """DOT of each row with w."""
        out = np.empty(len(self), np.float64)
        dot(self.start, self.end, self.indices, self.values, every_row(len(self)), w, out)
        return out

    def add(self, coefficients: np.ndarray, w: np.ndarray) -> None:
        """ADD of each row to w, times its coefficient."""
        add(self.start, self.end, self.indices, self.values, every_row(len(self)), coefficients, w)

    def dot_add(self, scales: np.ndarray, v: np.ndarray, w: np.ndarray) -> None:
        """ADD of each row to w, times its scale and its DOT with v."""
        dot_add(self.start, self.end, self.indices, self.values, every_row(len(self)), scales, v, w)

    def squared_norms(self) -> np.ndarray:
        """Squared length of each row; an index that occurs twice counts with the sum of its values."""
        out = np.empty(len(self), np.float64)
        squared_norms(self.start, self.end, self.indices, self.values, every_row(len(self)), self.distinct, out)
        return out


def row_type(count: int) -> type:
    """The one type of the numbers of so many rows: unsigned, of 32 bits as long as these suffice. Each further type
    would be another compilation of every kernel that takes them."""
    return np.uint32 if count <= MOST_ROWS else np.uint64


def every_row(count: int) -> np.ndarray:
    """The numbers of all of so many rows."""
    return np.arange(count, dtype=row_type(count))


def some_rows(rows: np.ndarray | None, first: int, stop: int, count: int) -> np.ndarray:
    """rows[first:stop], of all of so many rows by default, as numbers of their one type."""
    if rows is None:
        return np.arange(first, stop, dtype=row_type(count))
    return rows[first:stop].astype(row_type(count), copy=False)


def row_numbers(wanted: np.ndarray) -> np.ndarray:
    """The numbers of the rows for which this is true."""
    return np.flatnonzero(wanted).astype(row_type(len(wanted)))


def view(offsets: np.ndarray, indices: np.ndarray | None, values: np.ndarray | None, *, distinct: bool) -> Block:
    """A block over rows that exist already, with no copy."""
    offsets = plain(offsets)
    if indices is not None:
        indices = plain(indices)
        indices = indices.view(np.uint32 if indices.dtype.itemsize == 4 else np.uint64)
    values = None if values is None else plain(values)
    return Block(offsets[:-1], offsets[1:], indices, values, distinct=distinct, cold=True)


@inner
def row_dot(indices, values, lo, hi, w):
    """<w, row>, summed in float64."""
    total = 0.0
    for k in range(np.uint64(lo), np.uint64(hi)):
        slot = k - np.uint64(lo) if indices is None else indices[k]
        if values is None:
            total += np.float64(w[slot])
        else:
            total += np.float64(w[slot]) * np.float64(values[k])
    return total


@inner
def row_add(indices, values, lo, hi, coefficient, w):
    """w += coefficient * row."""
    for k in range(np.uint64(lo), np.uint64(hi)):
        slot = k - np.uint64(lo) if indices is None else indices[k]
        if values is None:
            w[slot] += coefficient
        else:
            w[slot] += coefficient * values[k]


@inner
def _far_dot(indices, values, lo, hi, w):
    """row_dot that asks for slots ahead of their turn, those of the rows that lie behind this one among them."""
    if indices is None or np.uint64(hi) + AHEAD > np.uint64(len(indices)):
        return row_dot(indices, values, lo, hi, w)
    total = 0.0
    for k in range(np.uint64(lo), np.uint64(hi)):
        prefetch(w, np.uint64(indices[k + AHEAD]))
        total += np.float64(w[indices[k]]) * (1.0 if values is None else np.float64(values[k]))
    return total


@inner
def _far_add(indices, values, lo, hi, coefficient, w):
    """row_add that asks for slots ahead of their turn."""
    if indices is None or np.uint64(hi) + AHEAD > np.uint64(len(indices)):
        row_add(indices, values, lo, hi, coefficient, w)
        return
    for k in range(np.uint64(lo), np.uint64(hi)):
        prefetch(w, np.uint64(indices[k + AHEAD]))
        w[indices[k]] += coefficient if values is None else coefficient * values[k]


@inner
def _fetch_row(start, indices, values, at, j):
    """Ask for the beginning of row at[j]: where few rows of many are wanted, the hardware does not foresee it."""
    first = np.uint64(start[np.uint64(at[min(j, len(at) - 1)])])
    if indices is not None:
        prefetch(indices, first)
    if values is not None:
        prefetch(values, first)


@kernel
def dot(start, end, indices, values, at, w, out):
    """out[j] = <w, row at[j]>."""
    far = w.size * w.itemsize > FAR
    for j in range(len(at)):
        lo, hi = start[at[j]], end[at[j]]
        out[j] = _far_dot(indices, values, lo, hi, w) if far else row_dot(indices, values, lo, hi, w)


@kernel
def add(start, end, indices, values, at, coefficients, w):
    """w += sum_j coefficients[j] * row at[j]."""
    far = w.size * w.itemsize > FAR
    for j in range(len(at)):
        _fetch_row(start, indices, values, at, j + ROWS_AHEAD)
        if coefficients[j] != 0.0:
            lo, hi = start[at[j]], end[at[j]]
            if far:
                _far_add(indices, values, lo, hi, coefficients[j], w)
            else:
                row_add(indices, values, lo, hi, coefficients[j], w)


@kernel
def add_squares(start, end, indices, values, at, coefficients, w):
    """w += sum_j coefficients[j] * the squared values of row at[j]."""
    for j in range(len(at)):
        if coefficients[j] != 0.0:
            lo = np.uint64(start[at[j]])
            for k in range(lo, np.uint64(end[at[j]])):
                value = 1.0 if values is None else np.float64(values[k])
                w[k - lo if indices is None else indices[k]] += coefficients[j] * value * value


@kernel
def dot_add(start, end, indices, values, at, scales, v, w):
    """w += sum_j scales[j] * <v, row at[j]> * row at[j].

    The second touch of a row finds it in the L1 cache; unless v and w are far, when they would be in each other's way.
    """
    far = v.size * v.itemsize + w.size * w.itemsize > FAR
    products = np.zeros(len(at) if far else 0, np.float64)
    for j in range(len(at)):
        _fetch_row(start, indices, values, at, j + ROWS_AHEAD)
        if scales[j] != 0.0:
            lo, hi = start[at[j]], end[at[j]]
            if far:
                products[j] = scales[j] * _far_dot(indices, values, lo, hi, v)
            else:
                row_add(indices, values, lo, hi, scales[j] * row_dot(indices, values, lo, hi, v), w)
    for j in range(len(products)):
        if products[j] != 0.0:
            _far_add(indices, values, start[at[j]], end[at[j]], products[j], w)


@kernel
def add_products(start, end, indices, values, at, scales, width, out):
    """out + out' += sum_j scales[j] * row at[j] * row at[j]', out being a matrix of so many columns written as one
    vector: two features of a row are met once, on one side of the diagonal or the other, and a half is added on it."""
    for j in range(len(at)):
        if scales[j] == 0.0:
            continue
        lo = np.uint64(start[at[j]])
        for a in range(lo, np.uint64(end[at[j]])):
            value = 1.0 if values is None else np.float64(values[a])
            slot = np.uint64(a - lo if indices is None else indices[a])
            row, scaled = out[slot * np.uint64(width) : (slot + np.uint64(1)) * np.uint64(width)], scales[j] * value
            for b in range(lo, a):
                other = 1.0 if values is None else np.float64(values[b])
                row[b - lo if indices is None else indices[b]] += scaled * other
            row[slot] += 0.5 * scaled * value


@inner
def table_size(count):
    """Places of a hash table, a power of two. So many entries fill a quarter of it at most, so that few of them meet;
    of a large one a half."""
    places = np.uint64(count) * np.uint64(4 if count < SMALL_TABLE else 2)
    size = np.uint64(4)
    while size < places:
        size *= np.uint64(2)
    return size


def squared_norms(
    start: np.ndarray,
    end: np.ndarray,
    indices: np.ndarray | None,
    values: np.ndarray | None,
    at: np.ndarray,
    distinct: bool,
    out: np.ndarray,
) -> None:
    """out[j] = |row at[j]|^2."""
    if distinct or indices is None:
        _sum_squares(start, end, values, at, out)
    else:
        _sum_merged_squares(start, end, indices, values, at, out)


@kernel
def _sum_squares(start, end, values, at, out):
    for j in range(len(at)):
        total = 0.0
        for k in range(np.uint64(start[at[j]]), np.uint64(end[at[j]])):
            value = 1.0 if values is None else np.float64(values[k])
            total += value * value
        out[j] = total


@kernel
def _sum_merged_squares(start, end, indices, values, at, out):
    """Rows that may repeat an index go through a hash table, of which each uses and clears no more than the front that
    is large enough for it: one long row costs the others nothing."""
    longest = np.int64(0)
    for j in range(len(at)):
        longest = max(longest, np.int64(end[at[j]] - start[at[j]]))
    if longest > LONG:  # no more places than there are slots, however long a row is
        highest = np.int64(0)
        for j in range(len(at)):
            for k in range(np.uint64(start[at[j]]), np.uint64(end[at[j]])):
                highest = max(highest, np.int64(indices[k]))
        longest = min(longest, highest + 1)
    keys = np.zeros(table_size(longest), np.uint64)  # the index + 1; 0 is an empty place
    sums = np.zeros(len(keys), np.float64)
    for j in range(len(at)):
        lo, hi = np.uint64(start[at[j]]), np.uint64(end[at[j]])
        total = 0.0
        size = min(table_size(hi - lo), np.uint64(len(keys)))  # a shorter row may ask for more than the longest
        # (s + v)^2 = s^2 + v (2 s + v): the squared length grows with each non-zero that arrives
        for k in range(lo, hi):
            value = 1.0 if values is None else np.float64(values[k])
            key = np.uint64(indices[k]) + np.uint64(1)
            place = (key * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(32) & (size - np.uint64(1))
            while keys[place] != np.uint64(0) and keys[place] != key:
                place = (place + np.uint64(1)) & (size - np.uint64(1))
            keys[place] = key
            total += value * (2.0 * sums[place] + value)
            sums[place] += value
        for place in range(size):
            keys[place] = np.uint64(0)
            sums[place] = 0.0
        out[j] = total


@kernel
def count_features(start, end, indices, at, out):
    """Count how many of these rows have each of the features, in which no index occurs twice."""
    for j in range(len(at)):
        for k in range(np.uint64(start[at[j]]), np.uint64(end[at[j]])):
            out[indices[k]] += 1


@kernel
def squared_length(w):
    """|w|^2 in float64, without a float64 copy of w."""
    total = 0.0
    for k in range(np.uint64(len(w))):
        total += np.float64(w[k]) * np.float64(w[k])
    return total


@kernel
def inner_product(a, b):
    """<a, b> in float64."""
    total = 0.0
    for k in range(np.uint64(len(a))):
        total += np.float64(a[k]) * np.float64(b[k])
    return total
