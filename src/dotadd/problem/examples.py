"""InMemory: phi over rows in memory. With OnDisk (on_disk.py) the narrow waist between maps and solvers.

Solvers that take examples one by one read `blocks`, in any order of rows; none of them knows whether a block is a
scratch just filled by a feature map or a view of rows that lay in memory anyway. What is asked of many examples at once
while w stands still, `dot` and `add`, runs on all threads, and maps may bring an order of touching w of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from dotadd._jit import kernel
from dotadd._util.memory import Budget
from dotadd._util.threads import PIECE, for_each, row_pieces
from dotadd.core import block as blocks
from dotadd.core.block import Block
from dotadd.data.batches import Batch
from dotadd.features.base import FeatureMap, Part, require_room, squared_norms_of
from dotadd.features.filling import CALL_NONZEROS, Filling, Picked
from dotadd.features.linear import Linear
from dotadd.problem.columns import Columns

Stretch = tuple[int, int]  # rows, or slots of w, from the first up to the second


class Seen(NamedTuple):
    """What a proof asks of all rows: <w, phi(z_i)> for each w, |phi(z_i)|^2, and how many non-zeros one has at most."""

    outputs: list[np.ndarray]
    norms: np.ndarray
    terms: int


Asked = tuple[np.ndarray, np.ndarray, np.ndarray]  # numbers of rows, where each is to be written to, and the array

SHARE = 8  # pieces of rows for each thread, so that all end at about the same time
TILES = 4  # tiles of w for each thread
CALL_LEAST = 1 << 15  # non-zeros that are worth a kernel call and a change of threads
CALL_LEAST_DENSE = 1 << 18  # the same of dense rows, which are read several times as fast
PARTS = 1 << 25  # slots that the parts of all threads may have together
SLOTS_A_NONZERO = 1.0  # slots that a part may have for each non-zero: they have to be cleared and joined
CACHE_LINE = 64  # bytes
SHORT = 1 << 18  # slots of a tile of which each thread may have one
WIDE = 1 << 14  # non-zeros of a row that are more than a visit should touch, where a table does without


class InMemory:
    """phi over one batch in memory; `dot` and `add` use so many threads.

    With a budget, rows of phi are kept once they were made, as far as it has room. Rows that are a piece of more know
    by `first_row` where they stand; if they are read while others are worked on, `beside_a_reader` says so. Where rows
    are gone through `once`, blocks of them are made without preparing the map for a second time.
    """

    def __init__(
        self,
        phi: FeatureMap,
        batch: Batch,
        *,
        dtype: type = np.float32,
        threads: int = 1,
        first_row: int = 0,
        beside_a_reader: bool = False,
        budget: Budget | None = None,
        once: bool = False,
    ) -> None:
        require_room(phi)
        self.batch, self.dtype, self.first_row = batch, dtype, first_row
        self.passes = 0  # so often all rows were gone through
        self._norms: np.ndarray | None = None  # where they are asked for again and again
        self.on_norms: Callable[[np.ndarray], None] | None = None  # told when a solver asks for them
        self._phi, self._threads, self._beside_a_reader, self._budget = phi, threads, beside_a_reader, budget
        self._once = once and not phi.bulk

    def __len__(self) -> int:
        return len(self.batch)

    @property
    def given(self) -> FeatureMap:
        """The map as it was given."""
        return self._phi

    @cached_property
    def phi(self) -> FeatureMap:
        """The map, with what it has prepared for these rows when they are first worked on."""
        return self._phi if self._once else self._phi.prepared(self.batch, self._threads)

    @cached_property
    def _filling(self) -> Filling:
        return Filling(self.phi, self.batch, self.dtype, self._budget)

    @cached_property
    def threads(self) -> int:
        """A DOT of rows that need no filling is faster than their reader, who needs a thread, too."""
        alone = self._beside_a_reader and self._filling.given is not None
        return max(1, self._threads - 1) if alone else self._threads

    @property
    def dim(self) -> int:
        return self._phi.dim

    @property
    def in_memory(self) -> bool:
        """Whether blocks are views of rows in memory, which cost nothing to hand out, but are not yet in the cache; or
        will be as soon as all rows were made once."""
        return self._filling.stays

    def alone(self) -> InMemory:
        """The same for one thread among others, where nothing has to be made any more."""
        assert self.ready
        other = copy(self)
        other._threads = other.threads = 1
        other.passes, other.on_norms = 0, None
        return other

    @property
    def ready(self) -> bool:
        """Whether nothing has to be made any more, so that several threads may go through rows at a time."""
        return self._filling.view is not None

    @property
    def view(self) -> Block | None:
        """A block of all rows, where nothing has to be made any more."""
        return self._filling.view

    @property
    def kept(self) -> tuple[int, int]:
        """How many rows of phi are kept, and in how many bytes."""
        rows = self._filling.kept if "_filling" in self.__dict__ else None  # nothing is made to say this
        return (0, 0) if rows is None else (rows.count, rows.nbytes)

    def make_kept(self) -> None:
        """Make the rows that are kept now: who goes on from a checkpoint had them, and sums with them, before it."""
        if self._filling.kept is not None:
            _ = self.mean_length  # as it was told before they were made
            self.squared_norms()

    @contextmanager
    def narrowed(self) -> Iterator[InMemory]:
        """The same for a while with a w of those slots alone that rows have, where all rows are kept and most slots are
        empty: many machines are trained faster if their w stays in the cache (10,000 mails by words have 85,494 of
        2^20 slots). One machine is not worth it."""
        self.make_kept()
        kept = self._filling.kept
        narrow = kept.renumbered(self.dim) if kept is not None and kept.complete and not self.bulk else None
        if narrow is None:
            yield self
            return
        other = copy(self)
        other._filling = copy(self._filling)
        other._filling.kept, dim = narrow
        other._phi = other.phi = Linear(n_features=dim)
        try:
            yield other
        finally:
            narrow[0].let_go()

    @property
    def bulk(self) -> bool:
        """Whether `dot` of many rows is much faster than visiting them one by one."""
        return self._phi.bulk

    @property
    def whole(self) -> bool:
        """Whether a row is so wide, and `dot` of all so much faster, that visiting them one by one is out of the
        question."""
        return self._phi.whole and self.mean_length > WIDE

    def take(self, rows: np.ndarray) -> InMemory:
        """phi over these rows, of which nothing is kept."""
        return InMemory(self._phi, self.batch.take(rows), dtype=self.dtype, threads=self._threads)

    reads_ahead = False
    """Nothing has to be read."""

    def pieces(
        self, nbytes: int | None = None, *, after: int = 0
    ) -> Generator[tuple[InMemory, Columns | None], None, None]:
        """All rows in pieces, which is one; its columns are those of the whole."""
        yield self, None

    def keeping(self, nbytes: int) -> InMemory:
        """The same, of which features are kept in at most so many bytes, while several things are asked of some
        rows."""
        other = copy(self)
        other._budget = Budget(nbytes)
        other.__dict__.pop("_filling", None)
        return other

    def asked_again(self, piece: InMemory) -> InMemory:
        """A piece of which several things are asked: it keeps what it may."""
        return piece

    def column(self, dtype: type, count: int = 1) -> np.ndarray:
        """Zeros for all rows."""
        return np.zeros(len(self), dtype)

    def blocks(self, rows: np.ndarray | None = None, *, ahead: bool = False, focus: bool = False) -> Iterator[Picked]:
        """The rows in this order (all of them, first to last, by default), a block at a time.

        A block is valid until the next one is asked for. With `ahead`, the next one is filled meanwhile, if there is
        more than one thread. With `focus`, room for kept rows goes to these first.
        """
        rows = self._all() if rows is None else rows
        return self._filling.blocks(rows, ahead=ahead and self.threads > 1, focus=focus)

    def squared_norms(self, rows: np.ndarray | None = None) -> np.ndarray:
        """|phi(z_i)|^2 of these rows (all by default), which the caller may change."""
        if rows is None and self._norms is not None:
            return self._norms.copy()
        if self._filling.kept is None:
            squared = squared_norms_of(self.phi, self.batch, self.threads, rows)
        else:
            squared = self._squared_norms(rows)
        if self.on_norms is not None and rows is None:
            self.on_norms(squared)
        return squared

    def hold_norms(self) -> None:
        """Keep the lengths of all rows, for many fits on the same examples."""
        self._norms = self.squared_norms()

    def _squared_norms(self, rows: np.ndarray | None) -> np.ndarray:
        """The same by blocks, so that rows that are made for it are kept."""
        squared = np.empty(len(self) if rows is None else len(rows))

        def work(piece: Stretch) -> None:
            first, stop = piece
            for block, at, seen in self._filling.blocks(blocks.some_rows(rows, first, stop, len(self))):
                out = squared[first : first + len(seen)]
                blocks.squared_norms(block.start, block.end, block.indices, block.values, at, block.distinct, out)
                first += len(seen)

        for_each(self._pieces(rows), work, self.threads)
        return squared

    def see(self, ws: Sequence[np.ndarray]) -> Seen:
        """What a proof asks of all rows."""
        return Seen(self.dot(ws), self.squared_norms(), self.longest)

    def dot(self, ws: Sequence[np.ndarray], rows: np.ndarray | None = None) -> list[np.ndarray]:
        """<w, phi(z_i)> of these rows (all by default) for each of several w."""
        self.passes += rows is None
        outputs = [np.zeros(len(self) if rows is None else len(rows)) for _ in ws]

        def work(job: tuple[Stretch, Sequence[int]]) -> None:
            (first, stop), ks = job
            some = blocks.some_rows(rows, first, stop, len(self))
            if self.phi.bulk:
                self.phi.dots(self.batch, some, ws, [output[first:stop] for output in outputs])
                return
            for block, at, seen in self._filling.blocks(some):  # expanded once for all w
                for k in ks:
                    out = outputs[k][first : first + len(seen)]
                    blocks.dot(block.start, block.end, block.indices, block.values, at, ws[k], out)
                first += len(seen)

        if self.ready and not self.phi.bulk and len(ws) >= 2 * self.threads > 2:
            # Rows are read again at no cost, and each w stays in the cache of the thread that has it.
            jobs: list[tuple[Stretch, Sequence[int]]] = [((0, len(outputs[0])), [k]) for k in range(len(ws))]
        else:
            jobs = [(piece, range(len(ws))) for piece in self._pieces(rows)]
        for_each(jobs, work, self.threads)
        return outputs

    def add(
        self, coefficients: Sequence[np.ndarray], ws: Sequence[np.ndarray], squares: Sequence[np.ndarray] = ()
    ) -> None:
        """w += sum_i coefficient_i phi(z_i) for each of several w; the same of phi's squared values, if wanted."""
        self.passes += 1
        if self.phi.bulk and not squares:
            add_up(self._sums_of_tiles(coefficients, ws), self.threads)
            return

        def sum_of(ks: Sequence[int]) -> Sum:
            def work(block: Block, at: np.ndarray, rows: slice | np.ndarray, sums: Sequence[np.ndarray]) -> None:
                for k, out in zip(ks, sums, strict=False):
                    theirs = coefficients[k][rows]
                    blocks.add(block.start, block.end, block.indices, block.values, at, theirs, out)
                for k, out in zip(ks, sums[len(ks) :], strict=False):
                    theirs = coefficients[k][rows]
                    blocks.add_squares(block.start, block.end, block.indices, block.values, at, theirs, out)

            outs = [*(ws[k] for k in ks), *(squares[k] for k in ks if squares)]
            return self._sum_of_blocks(work, [coefficients[k] for k in ks], outs)

        if self.ready and len(ws) > 1:  # rows are read again at no cost, so that threads can share out the sums
            sums = [sum_of([k])._replace(parts=1) for k in range(len(ws))]
        else:
            sums = [sum_of(range(len(ws)))]
        add_up(sums, self.threads)

    def products(self, coefficients: Sequence[np.ndarray], rooms: Sequence[list[np.ndarray]]) -> list[np.ndarray]:
        """sum_j coefficient_j <phi(z_j), phi(z_i)> for each i, for each of several coefficients: ADD and then DOT.

        Vectors that are needed for it stay in a room for each, for the next time: fresh ones of gigabytes would take
        longer to be cleared than rows to be added."""
        if not self.phi.whole:
            for room in rooms:
                if not room:
                    room += np.empty(self.dim), aligned_zeros(self.given, self.dtype)
                self._fill(room[0], 0.0)
            self.add(coefficients, [sums for sums, _ in rooms])
            for sums, vector in rooms:
                self._fill(vector, sums)
            return self.dot([vector for _, vector in rooms])
        self.passes += 2
        outputs = [np.zeros(len(self)) for _ in coefficients]
        for some, output in zip(coefficients, outputs, strict=True):
            self.phi.products(self.batch, self._all(), some, output)
        return outputs

    def _fill(self, vector: np.ndarray, value: float | np.ndarray) -> None:
        """vector = value, on all threads."""
        values = np.broadcast_to(value, vector.shape)

        def some(first: int) -> None:
            vector[first : first + PIECE] = values[first : first + PIECE]

        for_each(range(0, len(vector), PIECE), some, self.threads)

    def dot_add(self, scales: Sequence[np.ndarray], vs: Sequence[np.ndarray], ws: Sequence[np.ndarray]) -> None:
        """w += sum_i scale_i <v, phi(z_i)> phi(z_i) for each of several scales, v and w: a Hessian times v.

        Rows with a scale of 0 are not touched.
        """
        if self.phi.bulk:
            coefficients = []
            for some, v in zip(scales, vs, strict=True):
                used = blocks.row_numbers(some)
                theirs = np.zeros(len(self))
                theirs[used] = some[used] * self.dot([v], used)[0]
                coefficients.append(theirs)
            self.add(coefficients, ws)
            return

        def work(block: Block, at: np.ndarray, rows: slice | np.ndarray, sums: Sequence[np.ndarray]) -> None:
            for some, v, out in zip(scales, vs, sums, strict=True):
                blocks.dot_add(block.start, block.end, block.indices, block.values, at, some[rows], v, out)

        self.passes += 1
        add_up([self._sum_of_blocks(work, scales, ws)], self.threads)

    def add_products(self, scales: Sequence[np.ndarray], sums: Sequence[np.ndarray]) -> None:
        """out + out' += sum_i scale_i phi(z_i) phi(z_i)' for each of several scales and matrices out, each written as
        one vector: a Hessian as it is. For few features; rows with a scale of 0 are not touched."""

        def work(block: Block, at: np.ndarray, rows: slice | np.ndarray, sums: Sequence[np.ndarray]) -> None:
            for some, out in zip(scales, sums, strict=True):
                blocks.add_products(block.start, block.end, block.indices, block.values, at, some[rows], self.dim, out)

        self.passes += 1
        add_up([self._sum_of_blocks(work, scales, sums)], self.threads)

    def dense(self, asked: Sequence[Asked]) -> None:
        """Write some rows out in full, which is no pass: out[at[j]] += phi(z_rows[j]) for each of several requests."""
        for rows, at, out in asked:
            first = 0
            for block, here, some in self._filling.blocks(rows):
                to = at[first : first + len(some)]
                _write_out(block.start, block.end, block.indices, block.values, here, to, out)
                first += len(some)

    def stretches(self, slots: int) -> list[Stretch]:
        """w cut into neighbouring stretches (first, stop) of at most so many slots, as far as phi comes in tiles."""
        if not self.phi.bulk:
            return [(first, min(first + slots, self.dim)) for first in range(0, max(self.dim, 1), slots)]
        cuts = [0]
        for first, tile in self._tiles(slots):
            if cuts[-1] < first and first + tile.dim > cuts[-1] + slots:
                cuts.append(first)
        return list(pairwise([*cuts, self.dim]))

    def add_within(
        self, coefficients: Sequence[np.ndarray], stretch: Stretch, slots: int, sums: Sequence[np.ndarray]
    ) -> None:
        """One stretch of w += sum_i coefficient_i phi(z_i) for each of several, `stretch` being among stretches(slots).

        It needs no memory beside these sums, and so has fewer threads to share the work than `add`.
        """
        first, stop = stretch
        if not self.phi.bulk:
            for block, at, rows in self.blocks(_used(coefficients), ahead=True):
                for some, part in zip(coefficients, sums, strict=True):
                    _add_within(block.start, block.end, block.indices, block.values, at, some[rows], first, part)
            return

        def add(one: tuple[int, Part, np.ndarray, np.ndarray]) -> None:
            begin, tile, some, part = one
            used = blocks.row_numbers(some)
            tile.add(self.batch, used, some[used], part[begin - first : begin - first + tile.dim])

        tiles = [(begin, tile) for begin, tile in self._tiles(slots) if first <= begin and begin + tile.dim <= stop]
        for_each([(*tile, *one) for one in zip(coefficients, sums, strict=True) for tile in tiles], add, self.threads)

    def _tiles(self, slots: int) -> list[tuple[int, Part]]:
        """phi in tiles, some for each thread in so many slots."""
        return self.phi.tiles(max(1, slots // (self.threads * TILES)))

    def _all(self) -> np.ndarray:
        return blocks.every_row(len(self.batch))

    def _lengths(self) -> int | np.ndarray:
        """At most so many non-zeros in any row, or in each of them."""
        view = self._filling.view
        return self.phi.bound(self.batch) if view is None else view.end - view.start

    @cached_property
    def longest(self) -> int:
        """At most so many non-zeros in any row."""
        return int(np.max(self._lengths())) if len(self) else 0

    @cached_property
    def mean_length(self) -> float:
        """Non-zeros of a row on average, at most."""
        return max(1.0, float(np.mean(self._lengths()))) if len(self) else 1.0

    def _pieces(self, rows: np.ndarray | None = None) -> list[Stretch]:
        """These rows (all by default) in consecutive pieces (first, stop) for the threads.

        A piece of rows in memory is large enough to be worth a kernel call and small enough for Ctrl-C, and if all rows
        are asked for, each piece has about as many non-zeros.
        """
        n, view = len(self) if rows is None else len(rows), self._filling.view
        if self.phi.bulk:
            return [(0, n)] if self.phi.whole else row_pieces(n, self.threads)
        if view is None:
            return row_pieces(n, self.threads, SHARE)
        nonzeros = int(n * self.mean_length)
        wanted = self.threads * SHARE if self.threads > 1 else 1
        least = CALL_LEAST if view.indices is not None else CALL_LEAST_DENSE
        count = max(1, min(wanted, nonzeros // least), nonzeros // CALL_NONZEROS)
        cuts = np.linspace(0, n, count + 1).astype(np.int64)
        if rows is None and count > 1:
            cuts[1:-1] = np.searchsorted(view.end, np.linspace(view.start[0], view.end[-1], count + 1)[1:-1])
            np.maximum.accumulate(cuts, out=cuts)
        return list(pairwise(cuts.tolist()))

    def _sum_of_blocks(
        self,
        work: Callable[[Block, np.ndarray, slice | np.ndarray, Sequence[np.ndarray]], None],
        coefficients: Sequence[np.ndarray],
        ws: Sequence[np.ndarray],
    ) -> Sum:
        """The sum of what work(block, at, rows, sums) adds for some rows, over all rows that count.

        Each block is expanded once for all w, by one thread.
        """
        view, used = self._filling.view, _used(coefficients)

        def add(piece: Stretch, sums: Sequence[np.ndarray]) -> None:
            if view is not None:
                work(view, used[slice(*piece)], used[slice(*piece)], sums)
                return
            for block, at, rows in self._filling.blocks(used[slice(*piece)]):
                work(block, at, rows, sums)

        pieces = self._pieces(used)
        slots = (self.threads - 1) * self.dim
        few = slots <= SLOTS_A_NONZERO * len(used) * self.mean_length and slots * len(ws) <= PARTS
        return Sum(add, pieces, ws, min(self.threads, len(pieces)) if few else 1)

    def _sums_of_tiles(self, coefficients: Sequence[np.ndarray], ws: Sequence[np.ndarray]) -> list[Sum]:
        """The sums of maps that bring an `add` of their own: threads share out w, and the rows where w is short."""
        sums = []
        tiles = self.phi.tiles(-(-self.dim // (self.threads * TILES))) if self.threads > 1 else [(0, self.phi)]
        for some, w in zip(coefficients, ws, strict=True):
            used = blocks.row_numbers(some)
            for first, part in tiles:
                add = _adding(part, self.batch, used, some[used])
                short = part.dim <= SHORT and not part.whole
                pieces = row_pieces(len(used), self.threads) if short else [(0, len(used))]
                sums.append(Sum(add, pieces, [w[first : first + part.dim]], min(self.threads, len(pieces))))
        return sums


class Sum(NamedTuple):
    """Rows to be added up in some vectors: add(piece, sums) for each piece of them.

    With several parts, pieces are dealt out to them in turn, and each adds to vectors of its own, joined at the end.
    """

    add: Callable[[Stretch, Sequence[np.ndarray]], None]
    pieces: list[Stretch]
    outs: Sequence[np.ndarray]
    parts: int


def add_up(sums: Sequence[Sum], threads: int) -> None:
    """Compute these sums. Their rounding depends on the number of threads, and not on which of them was faster."""
    parts = [(one, number) for one in sums for number in range(one.parts)]
    found: list[Sequence[np.ndarray]] = [[] for _ in parts]

    def add(at: int) -> None:
        one, number = parts[at]
        found[at] = outs = [np.zeros(len(out), out.dtype) for out in one.outs] if number else one.outs
        for piece in one.pieces[number :: one.parts]:
            one.add(piece, outs)

    def join(stretch: tuple[np.ndarray, np.ndarray]) -> None:
        np.add(*stretch, out=stretch[0])

    for_each(range(len(parts)), add, threads)
    for (one, number), outs in zip(parts, found, strict=True):
        if number:
            for out, part in zip(one.outs, outs, strict=True):
                stretches = [slice(first, first + PIECE) for first in range(0, len(out), PIECE)]
                for_each([(out[some], part[some]) for some in stretches], join, threads)


def aligned_zeros(phi: FeatureMap, dtype: type) -> np.ndarray:
    """A w of zeros that lies in memory as maps that group features by the cache line count on."""
    size = np.dtype(dtype).itemsize
    room: np.ndarray = np.zeros(phi.dim + CACHE_LINE // size, dtype)
    first = -(room.ctypes.data + phi.anchor * size) % CACHE_LINE // size
    return room[first : first + phi.dim]


def _adding(part: Part, batch: Batch, rows: np.ndarray, coefficients: np.ndarray) -> Callable[..., None]:
    def add(piece: Stretch, sums: Sequence[np.ndarray]) -> None:
        part.add(batch, rows[slice(*piece)], coefficients[slice(*piece)], sums[0])

    return add


def _used(coefficients: Sequence[np.ndarray]) -> np.ndarray:
    """The rows that count in any of the sums."""
    return blocks.row_numbers(np.logical_or.reduce([some != 0.0 for some in coefficients]))


@kernel
def squared_distance(a, b):
    total = 0.0
    for k in range(np.uint64(len(a))):
        difference = np.float64(a[k]) - np.float64(b[k])
        total += difference * difference
    return total


@kernel
def _write_out(start, end, indices, values, at, to, out):
    """out[to[j]] += row at[j]."""
    for j in range(len(at)):
        blocks.row_add(indices, values, start[at[j]], end[at[j]], out.dtype.type(1.0), out[to[j]])


@kernel
def _add_within(start, end, indices, values, at, coefficients, first, out):
    """ADD, for the slots from `first` on that `out` has room for."""
    low, high = np.uint64(first), np.uint64(first + len(out))
    for j in range(len(at)):
        lo = np.uint64(start[at[j]])
        for k in range(lo, np.uint64(end[at[j]])):
            slot = k - lo if indices is None else np.uint64(indices[k])
            if low <= slot < high:
                out[slot - low] += coefficients[j] * (1.0 if values is None else np.float64(values[k]))
