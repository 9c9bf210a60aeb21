"""Pool: raw rows that come and go one by one, in one piece of memory that a feature map reads like any batch.

Rows of one width have slots that are used again. Rows of any length are written one after the other, and those that
stay slide together once a quarter of the memory belongs to rows that have gone. Either way a row has a place, the
number under which the batch of all places knows it.

Memory is taken as rows come: who has few of them takes little, however much is allowed.
"""

from __future__ import annotations

import numpy as np

from dotadd._jit import kernel, plain
from dotadd.batch import Batch, DenseRows, SparseRows, Strings, item_places
from dotadd.lattices import Lattices

LOOSE = 0.25  # of the bytes may belong to rows that have gone


class Pool:
    """Room for rows like those of `batch` in at most so many bytes, `beside` of them for each row."""

    @staticmethod
    def like(batch: Batch, nbytes: int, beside: int) -> Pool:
        if isinstance(batch, Lattices):
            from dotadd.lattice_pool import LatticePool

            return LatticePool(batch, nbytes, beside)
        fixed = isinstance(batch, DenseRows) or (isinstance(batch, Strings) and batch.width is not None)
        return FixedPool(batch, nbytes, beside) if fixed else PackedPool(batch, nbytes, beside)

    @staticmethod
    def again(layout: dict[str, np.ndarray], kind: type[Batch], nbytes: int, beside: int) -> Pool | None:
        """A pool with room for rows of this kind that lay so in another, to be filled by `write` at layout["places"].

        None if they take more than so many bytes.
        """
        made: Pool
        if kind is Lattices:
            from dotadd.lattice_pool import LatticePool

            made = LatticePool(LatticePool.empty(layout), nbytes, beside)
        else:
            empty = _batch(kind, *(layout[name] for name in ("items", "values") if name in layout))
            made = (FixedPool if "spare" in layout else PackedPool)(empty, nbytes, beside)
        return made if made.reserve(layout) else None

    nbytes: int
    """Bytes that are used, rows that have gone included."""

    @property
    def room(self) -> int:
        """Bytes for rows that are taken from the system, in use or not; it grows with the rows."""
        raise NotImplementedError

    def __len__(self) -> int:
        """Places, free ones included."""
        raise NotImplementedError

    @property
    def batch(self) -> Batch:
        """The rows at all places; what is at a free one has no meaning."""
        raise NotImplementedError

    def takes(self, batch: Batch) -> bool:
        """Whether rows like these can be put here."""
        raise NotImplementedError

    def has_room(self, batch: Batch) -> bool:
        raise NotImplementedError

    def put(self, batch: Batch) -> np.ndarray:
        """Write these rows; returns their places."""
        raise NotImplementedError

    def free(self, places: np.ndarray) -> None:
        """Let the rows at these places go."""
        raise NotImplementedError

    def layout(self, places: np.ndarray) -> dict[str, np.ndarray]:
        """Where these rows, all that are there, lie, and in what form: what makes the same room `again`."""
        raise NotImplementedError

    def reserve(self, layout: dict[str, np.ndarray]) -> bool:
        """Make room, in an empty pool, for rows that lay so; says whether there is enough."""
        raise NotImplementedError

    def write(self, places: np.ndarray, batch: Batch) -> None:
        """Write these rows to places that were reserved for them."""
        raise NotImplementedError

    def squeeze(self, places: np.ndarray) -> bool:
        """Move the rows at these places, all that are there, in ascending order to the places from 0 on.

        Says whether they have moved; only then are there new places.
        """
        return False

    @property
    def loose(self) -> float:
        """The share of the bytes that belongs to rows that have gone and cannot be used again as it is."""
        return 0.0


class FixedPool(Pool):
    """Rows of one width. A row that comes takes the place of one that has gone."""

    def __init__(self, batch: Batch, nbytes: int, beside: int) -> None:
        rows = _values(batch)
        self._kind, self._row_bytes = type(batch), rows.itemsize * int(np.prod(rows.shape[1:])) + beside
        self._rows = np.zeros((0, *rows.shape[1:]), rows.dtype)
        self._most = max(1, nbytes // self._row_bytes)
        self._high = 0  # places that were ever used
        self._spare = np.empty(0, np.int64)  # free ones among them, the next to be used at the end

    @property
    def room(self) -> int:
        return self._rows.nbytes

    def __len__(self) -> int:
        return self._high

    @property
    def nbytes(self) -> int:  # type: ignore[override]
        return (self._high - len(self._spare)) * self._row_bytes

    @property
    def batch(self) -> Batch:
        return _batch(self._kind, self._rows[: self._high])

    def takes(self, batch: Batch) -> bool:
        if isinstance(batch, Strings) and batch.width is None:
            return False
        rows = _values(batch)
        return rows.shape[1:] == self._rows.shape[1:] and rows.dtype == self._rows.dtype

    def has_room(self, batch: Batch) -> bool:
        return len(batch) <= self._most - self._high + len(self._spare)

    def put(self, batch: Batch) -> np.ndarray:
        left = max(0, len(self._spare) - len(batch))
        fresh = len(batch) - (len(self._spare) - left)
        places = np.concatenate([self._spare[left:], np.arange(self._high, self._high + fresh)])
        self._spare, self._high = self._spare[:left], self._high + fresh
        self._rows = longer(self._rows, self._high, self._most)
        self._rows[places] = _values(batch)
        return places

    def free(self, places: np.ndarray) -> None:
        self._spare = np.concatenate([self._spare, places])

    def layout(self, places: np.ndarray) -> dict[str, np.ndarray]:
        return {"places": places, "spare": self._spare, "items": self._rows[:0]}

    def reserve(self, layout: dict[str, np.ndarray]) -> bool:
        self._spare = layout["spare"]
        self._high = len(layout["places"]) + len(self._spare)
        if self._high > self._most:
            return False
        self._rows = longer(self._rows, self._high, self._most)
        return True

    def write(self, places: np.ndarray, batch: Batch) -> None:
        self._rows[places] = _values(batch)


class PackedPool(Pool):
    """Rows of any length, one after the other."""

    def __init__(self, batch: Batch, nbytes: int, beside: int) -> None:
        self._kind, self._limit, self._beside = type(batch), nbytes, beside
        self._parts = [np.zeros(0, part.dtype) for part in _items(batch)]
        self._most = nbytes // _item_bytes(batch)
        self._offsets = np.zeros(1, np.int64)
        self._gone = np.zeros(0, np.bool_)
        self._n_features, self._distinct = 0, True
        self._item_bytes = _item_bytes(batch)

    @property
    def room(self) -> int:
        return sum(part.nbytes for part in self._parts)

    def __len__(self) -> int:
        return len(self._offsets) - 1

    @property
    def nbytes(self) -> int:  # type: ignore[override]
        return int(self._offsets[-1]) * self._item_bytes + len(self) * self._beside

    @property
    def batch(self) -> Batch:
        used = int(self._offsets[-1])
        parts = [part[:used] for part in self._parts]
        if self._kind is Strings:
            return Strings(parts[0], self._offsets)
        values = parts[1] if len(parts) == 2 else None
        return SparseRows(self._offsets, parts[0], values, self._n_features, distinct=self._distinct)

    def takes(self, batch: Batch) -> bool:
        theirs = _items(batch)
        return len(theirs) == len(self._parts) and all(
            part.dtype == mine.dtype for part, mine in zip(theirs, self._parts, strict=True)
        )

    def has_room(self, batch: Batch) -> bool:
        items = int(batch.row_bytes().sum()) // self._item_bytes
        return self.nbytes + items * self._item_bytes + len(batch) * self._beside <= self._limit

    def put(self, batch: Batch) -> np.ndarray:
        offsets = _offsets(batch)
        first, stop = int(offsets[0]), int(offsets[-1])
        at = int(self._offsets[-1])
        self._extend(at + stop - first)
        for mine, theirs in zip(self._parts, _items(batch), strict=True):
            mine[at : at + stop - first] = theirs[first:stop]
        places = np.arange(len(self), len(self) + len(batch))
        self._offsets = np.concatenate([self._offsets, offsets[1:] - first + at])
        self._gone = np.concatenate([self._gone, np.zeros(len(batch), np.bool_)])
        self._note(batch)
        return places

    def free(self, places: np.ndarray) -> None:
        self._gone[places] = True

    def layout(self, places: np.ndarray) -> dict[str, np.ndarray]:
        form = dict(zip(("items", "values"), (part[:0] for part in self._parts), strict=False))
        return {"places": places, "lengths": np.diff(self._offsets), **form}

    def reserve(self, layout: dict[str, np.ndarray]) -> bool:
        self._offsets = np.concatenate([[0], np.cumsum(layout["lengths"])])
        self._gone = np.ones(len(self), np.bool_)
        self._gone[layout["places"]] = False
        if self.nbytes > self._limit:
            return False
        self._extend(int(self._offsets[-1]))
        return True

    def _extend(self, items: int) -> None:
        self._parts = [longer(part, items, self._most) for part in self._parts]

    def write(self, places: np.ndarray, batch: Batch) -> None:
        _, to = item_places(self._offsets, places)
        first, stop = int(_offsets(batch)[0]), int(_offsets(batch)[-1])
        for mine, theirs in zip(self._parts, _items(batch), strict=True):
            mine[to] = theirs[first:stop]
        self._note(batch)

    def _note(self, batch: Batch) -> None:
        if isinstance(batch, SparseRows):
            self._n_features = max(self._n_features, batch.n_features)
            self._distinct = self._distinct and batch.distinct

    def squeeze(self, places: np.ndarray) -> bool:
        if not self._gone.any():
            return False
        lengths = np.diff(self._offsets)[places]
        for part in self._parts:
            slide(part, self._offsets, plain(places))
        self._offsets = np.concatenate([[0], np.cumsum(lengths)])
        self._gone = np.zeros(len(places), np.bool_)
        return True

    @property
    def loose(self) -> float:
        lost = int(np.diff(self._offsets)[self._gone].sum()) * self._item_bytes
        return (lost + np.count_nonzero(self._gone) * self._beside) / max(1, self.nbytes)


def longer(array: np.ndarray, length: int, most: int) -> np.ndarray:
    """The array with room for at least so many entries, never more than `most`: itself, or a copy with zeros behind.

    It doubles, so that what is copied is never more than what is new; and at more than half of the most it has all of
    it, so that two of them never take more. Memory counts when it is written to.
    """
    if length <= len(array):
        return array
    room = max(length, 2 * len(array))
    out = np.zeros((room if 2 * room <= most else max(length, most), *array.shape[1:]), array.dtype)
    out[: len(array)] = array
    return out


def _values(batch: Batch) -> np.ndarray:
    """The rows of one width as an array whose first dimension they are."""
    if isinstance(batch, Strings):
        assert batch.width is not None
        return batch.letters.reshape(len(batch), batch.width)
    assert isinstance(batch, DenseRows)
    return batch.values


def _batch(kind: type[Batch], items: np.ndarray, values: np.ndarray | None = None) -> Batch:
    """Rows of one width, or no rows of any."""
    if kind is SparseRows:
        return SparseRows(np.zeros(1, np.int64), items, values, 0)
    if kind is not Strings:
        return kind(items)  # type: ignore[call-arg]
    if items.ndim == 1:
        return Strings(items, np.zeros(1, np.int64))
    return Strings(items.reshape(-1), width=items.shape[1])


def _items(batch: Batch) -> list[np.ndarray]:
    """What rows of any length are made of."""
    if isinstance(batch, Strings):
        return [batch.letters]
    assert isinstance(batch, SparseRows)
    return [batch.indices] if batch.values is None else [batch.indices, batch.values]


def _item_bytes(batch: Batch) -> int:
    return sum(part.itemsize for part in _items(batch))


def _offsets(batch: Batch) -> np.ndarray:
    if isinstance(batch, Strings):
        batch = batch.with_offsets()
    return batch.offsets.astype(np.int64, copy=False)  # type: ignore[attr-defined]


@kernel
def slide(items, offsets, rows):
    """Move the items of these rows, which are in ascending order, to the front."""
    to = np.uint64(0)
    for j in range(len(rows)):
        for k in range(np.uint64(offsets[rows[j]]), np.uint64(offsets[rows[j] + 1])):
            items[to] = items[k]
            to += np.uint64(1)
