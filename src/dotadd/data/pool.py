"""Pool: raw rows that come and go one by one, in one piece of memory that a feature map reads like any batch.

Rows of one width have slots that are used again. Rows of any length are written one after the other, and those that
stay slide together once a quarter of the memory belongs to rows that have gone. Either way a row has a place, the
number under which the batch of all places knows it.

Memory is taken as rows come: who has few of them takes little, however much is allowed.
"""

from __future__ import annotations

import numpy as np

from dotadd._jit import kernel, plain
from dotadd.data.batches import Batch
from dotadd.data.ragged import Parts, Ragged, item_places

LOOSE = 0.25  # of the bytes may belong to rows that have gone


class Pool:
    """Room for rows like those of `batch` in at most so many bytes, `beside` of them for each row."""

    @staticmethod
    def like(batch: Batch, nbytes: int, beside: int) -> Pool:
        assert isinstance(batch, Ragged)
        return (PackedPool if batch.parts().offsets else FixedPool)(batch, nbytes, beside)

    @staticmethod
    def again(layout: dict[str, np.ndarray], kind: type[Batch], nbytes: int, beside: int) -> Pool | None:
        """A pool with room for rows of this kind that lay so in another, to be filled by `write` at layout["places"].

        None if they take more than so many bytes.
        """
        assert issubclass(kind, Ragged)
        levels = _numbered(layout, "lengths")
        made = Pool.like(kind.of([np.zeros(1, np.int64)] * len(levels), _numbered(layout, "items")), nbytes, beside)
        return made if made.reserve(layout) else None

    @property
    def nbytes(self) -> int:
        """Bytes that are used, rows that have gone included."""
        raise NotImplementedError

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

    def __init__(self, batch: Ragged, nbytes: int, beside: int) -> None:
        rows = batch.parts().arrays[0]
        self._like, self._row_bytes = batch.take(np.empty(0, np.int64)), batch.parts().item_bytes()[0] + beside
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
    def nbytes(self) -> int:
        return (self._high - len(self._spare)) * self._row_bytes

    @property
    def batch(self) -> Batch:
        return self._like.made((), (self._rows[: self._high],))

    def takes(self, batch: Batch) -> bool:
        parts = _parts(batch)
        rows = parts.arrays[0]
        alike = not parts.offsets and (rows.dtype, rows.shape[1:]) == (self._rows.dtype, self._rows.shape[1:])
        return alike and self._like.mixes(batch)

    def has_room(self, batch: Batch) -> bool:
        return len(batch) <= self._most - self._high + len(self._spare)

    def put(self, batch: Batch) -> np.ndarray:
        left = max(0, len(self._spare) - len(batch))
        fresh = len(batch) - (len(self._spare) - left)
        places = np.concatenate([self._spare[left:], np.arange(self._high, self._high + fresh)])
        self._spare, self._high = self._spare[:left], self._high + fresh
        self._rows = longer(self._rows, self._high, self._most)
        self.write(places, batch)
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
        assert isinstance(batch, type(self._like))
        self._like = self._like.alike(batch)[0]
        self._rows[places] = _parts(batch).arrays[0]


class PackedPool(Pool):
    """Rows of any length, one after the other. Of each level, the items of a row lie together."""

    def __init__(self, batch: Ragged, nbytes: int, beside: int) -> None:
        self._like = batch.take(np.empty(0, np.int64))
        self._limit, self._beside = nbytes, beside
        empty = self._like.parts()
        self._levels, self._sizes = empty.levels, empty.item_bytes()
        self._arrays = [np.zeros(0, array.dtype) for array in empty.arrays]
        self._offsets = np.zeros(1, np.int64)
        self._deeper = [np.zeros(1, np.int64) for _ in empty.offsets[1:]]  # offsets of further levels, with room
        self._gone = np.zeros(0, np.bool_)

    @property
    def room(self) -> int:
        return sum(array.nbytes for array in (*self._arrays, *self._deeper))

    def __len__(self) -> int:
        return len(self._offsets) - 1

    def _begins(self) -> list[np.ndarray]:
        """Of level 1 and further ones, where the items of each row begin, and where those of the last one end."""
        begins = [self._offsets]
        for offsets in self._deeper:
            begins.append(offsets[begins[-1]])
        return begins

    def _bytes(self, items: list[int], rows: int) -> int:
        return sum(n * size for n, size in zip(items, self._sizes[1:], strict=True)) + rows * self._beside

    @property
    def nbytes(self) -> int:
        return self._bytes(self._used(), len(self))

    def _used(self) -> list[int]:
        """How many items of each level there are."""
        used = [int(self._offsets[-1])]
        for offsets in self._deeper:
            used.append(int(offsets[used[-1]]))
        return used

    @property
    def batch(self) -> Batch:
        used = self._used()
        deeper = [offsets[: n + 1] for offsets, n in zip(self._deeper, used, strict=False)]
        arrays = [array[: used[level - 1]] for array, level in zip(self._arrays, self._levels, strict=True)]
        return self._like.made([self._offsets, *deeper], arrays)

    def _fitted(self, batch: Batch) -> Parts:
        """The arrays of a batch in the form that rows have here, where there is one."""
        assert isinstance(batch, type(self._like))
        return self._like.alike(batch)[1].parts()

    def takes(self, batch: Batch) -> bool:
        theirs = self._fitted(batch)
        mine = [array.dtype for array in self._arrays]
        return theirs.levels == self._levels and [array.dtype for array in theirs.arrays] == mine

    def has_room(self, batch: Batch) -> bool:
        spans = self._fitted(batch).spans(len(batch))[1:]
        return self.nbytes + self._bytes([span.stop - span.start for span in spans], len(batch)) <= self._limit

    def put(self, batch: Batch) -> np.ndarray:
        theirs, places = self._fitted(batch), np.arange(len(self), len(self) + len(batch))
        rows, *spans = theirs.spans(len(batch))
        at = self._used()
        ends = [first + span.stop - span.start for first, span in zip(at, spans, strict=True)]
        self._extend(ends)
        for mine, array, level in zip(self._arrays, theirs.arrays, theirs.levels, strict=True):
            mine[at[level - 1] : ends[level - 1]] = array[spans[level - 1]]
        moved = [
            offsets[above.start + 1 : above.stop + 1] - span.start + first
            for offsets, above, span, first in zip(theirs.offsets, (rows, *spans), spans, at, strict=False)
        ]
        self._offsets = np.concatenate([self._offsets, moved[0]])
        for offsets, first, end, more in zip(self._deeper, at, ends, moved[1:], strict=False):
            offsets[first + 1 : end + 1] = more
        self._gone = np.concatenate([self._gone, np.zeros(len(batch), np.bool_)])
        self._note(batch)
        return places

    def free(self, places: np.ndarray) -> None:
        self._gone[places] = True

    def layout(self, places: np.ndarray) -> dict[str, np.ndarray]:
        lengths = [np.diff(begins) for begins in self._begins()]
        form = _named("lengths", lengths) | _named("items", [array[:0] for array in self._arrays])
        return {"places": places, **form}

    def reserve(self, layout: dict[str, np.ndarray]) -> bool:
        lengths = _numbered(layout, "lengths")
        items = [int(numbers.sum()) for numbers in lengths]
        if self._bytes(items, len(lengths[0])) > self._limit:
            return False
        self._extend(items)
        self._lay(lengths)
        self._gone = np.ones(len(self), np.bool_)
        self._gone[layout["places"]] = False
        return True

    def _extend(self, items: list[int]) -> None:
        """Room for so many items of each level; which of them will need more of the memory nobody knows."""
        most = [self._limit // max(1, size) for size in self._sizes[1:]]
        for k, level in enumerate(self._levels):
            self._arrays[k] = longer(self._arrays[k], items[level - 1], most[level - 1])
        for k in range(len(self._deeper)):
            self._deeper[k] = longer(self._deeper[k], items[k] + 1, most[k] + 1)

    def _lay(self, lengths: list[np.ndarray]) -> None:
        """Rows with so many items of each level; all that a row has of a further level belongs to its last item yet."""
        self._offsets = np.concatenate([[0], np.cumsum(lengths[0])])
        for offsets, above, counts in zip(self._deeper, lengths, lengths[1:], strict=False):
            ends = np.concatenate([[0], np.cumsum(counts)])
            offsets[: int(above.sum()) + 1] = np.append(np.repeat(ends[:-1], above), ends[-1])

    def write(self, places: np.ndarray, batch: Batch) -> None:
        theirs = self._fitted(batch)
        spans, mine = theirs.spans(len(batch)), self._begins()
        to = [item_places(begins, places)[1] for begins in mine]
        for array, more, level in zip(self._arrays, theirs.arrays, theirs.levels, strict=True):
            array[to[level - 1]] = more[spans[level]]
        begins = theirs.offsets[0]
        for k, offsets in enumerate(theirs.offsets[1:]):  # as theirs, each row moved by where its items are now
            counts, begins = np.diff(begins), offsets[begins]
            shift = np.repeat(mine[k + 1][places] - begins[:-1], counts)
            self._deeper[k][to[k]] = offsets[spans[k + 1]] + shift
        self._note(batch)

    def _note(self, batch: Batch) -> None:
        """What is true of the rows that were there and of these is true of all."""
        assert isinstance(batch, type(self._like))
        self._like = self._like.alike(batch)[0]

    def squeeze(self, places: np.ndarray) -> bool:
        if not self._gone.any():
            return False
        places, begins = plain(places), self._begins()
        for array, level in zip(self._arrays, self._levels, strict=True):
            slide(array, begins[level - 1], places)
        for offsets, rows in zip(self._deeper, begins, strict=False):
            slide_offsets(offsets, rows, places)
        self._offsets = np.concatenate([[0], np.cumsum(np.diff(self._offsets)[places])])
        self._gone = np.zeros(len(places), np.bool_)
        return True

    @property
    def loose(self) -> float:
        lost = [int(np.diff(begins)[self._gone].sum()) for begins in self._begins()]
        return self._bytes(lost, int(np.count_nonzero(self._gone))) / max(1, self.nbytes)


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


def _parts(batch: Batch) -> Parts:
    assert isinstance(batch, Ragged)
    return batch.parts()


def _named(name: str, arrays: list[np.ndarray]) -> dict[str, np.ndarray]:
    return {f"{name}{k or ''}": array for k, array in enumerate(arrays)}


def _numbered(layout: dict[str, np.ndarray], name: str) -> list[np.ndarray]:
    """The inverse of `_named`."""
    found = [name]
    while found[-1] in layout:
        found.append(f"{name}{len(found)}")
    return [layout[one] for one in found[:-1]]


@kernel
def slide(items, offsets, rows):
    """Move the items of these rows, which are in ascending order, to the front."""
    to = np.uint64(0)
    for j in range(len(rows)):
        for k in range(np.uint64(offsets[rows[j]]), np.uint64(offsets[rows[j] + 1])):
            items[to] = items[k]
            to += np.uint64(1)


@kernel
def slide_offsets(offsets, rows_begin, rows):
    """The same where items have items of their own: offsets of those, as they are after these have moved to the front.

    It needs no second array: no entry is written before it was read, but for those that stay as they are.
    """
    to = np.uint64(0)
    for j in range(len(rows)):
        first, stop = np.uint64(rows_begin[rows[j]]), np.uint64(rows_begin[rows[j] + 1])
        shift = offsets[first] - offsets[to]
        for k in range(first, stop):
            offsets[to + np.uint64(1)] = offsets[k + np.uint64(1)] - shift
            to += np.uint64(1)
