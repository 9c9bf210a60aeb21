"""OnDisk: phi over rows that do not fit in memory, and are read again and again.

It has the face of InMemory as far as DOT and ADD of all rows go, and holds no rows: a piece is there while it is worked
on, and the next one is read meanwhile, unless there is but one thread. What is asked for several w at once shares one
reading. Labels and costs travel with their examples; what is kept for every row is its dual variables alone.
"""

from __future__ import annotations

import mmap
import os
import tempfile
from collections.abc import Callable, Generator, Iterator, Sequence

import numpy as np

from dotadd._util.ahead import ReadAhead
from dotadd._util.memory import words
from dotadd.core.block import LONG
from dotadd.data.batches import Batch
from dotadd.errors import DataError, DotaddError
from dotadd.features.base import FeatureMap, require_room
from dotadd.problem.columns import Columns
from dotadd.problem.examples import Asked, InMemory, Seen

PIECES = 10  # that the memory would hold: some are being read, decoded and worked on while the rest is kept
IN_FLIGHT = 3  # pieces that are being read, decoded and worked on at a time
LARGEST, SMALLEST = 8 << 20, 1 << 20  # bytes of a piece: more are not read faster, fewer are not worth a walk over w
FEWEST, FEWEST_KEPT = 4, 8  # pieces that a small memory would hold; more of them where that leaves more room for rows
FEATURE_BYTES = 32 << 20  # of features that are kept while several things are asked of a piece, beside the memory
ROW_BYTES = 8  # of memory for each row, or all of the least: what its dual variable takes anyway
LEAST = 4 << 20  # bytes that all data can be read with


def piece_bytes(memory: int, fewest: int = FEWEST) -> int:
    """How large pieces should be, so many of which a small memory would hold."""
    return max(1, min(max(memory // PIECES, SMALLEST), LARGEST, memory // fewest))


def least_memory(rows: int) -> int:
    """The memory for examples below which so many of them are read in pieces too small to be worth the trouble."""
    return min(LEAST, ROW_BYTES * rows)


class OnDisk:
    """phi over so many rows, which `read` brings in pieces of at most about so many bytes, from the first row on.

    `memory` is what examples may take in bytes: those that are kept, and those that are being read. With `keep`, their
    features are kept meanwhile where they take longer to be made than to be read.
    """

    first_row = 0
    in_memory = False
    """Rows are read and expanded for each request."""

    def __init__(
        self,
        phi: FeatureMap,
        read: Callable[[int], Iterator[tuple[Batch, Columns]]],
        rows: int,
        memory: int,
        *,
        dtype: type = np.float32,
        threads: int = 1,
        keep: bool = True,
    ) -> None:
        require_room(phi)
        self.keep = keep
        self.phi = self.given = phi
        self.read, self.memory, self.dtype, self.threads = read, memory, dtype, threads
        self._rows = rows
        self.passes = 0  # readings of all rows, to answer requests

    def __len__(self) -> int:
        return self._rows

    @property
    def dim(self) -> int:
        return self.phi.dim

    @property
    def bulk(self) -> bool:
        """Whether `dot` of many rows is much faster than visiting them one by one."""
        return self.phi.bulk

    @property
    def piece_bytes(self) -> int:
        """How large pieces are. Small ones leave room for rows that are kept; a walk over w costs more than that gains
        (windows of a chromosome in 1 MB: 3.1 s of computing, and 4.8 with pieces half as large)."""
        return piece_bytes(self.memory, FEWEST if self.bulk else FEWEST_KEPT)

    @property
    def reads_ahead(self) -> bool:
        return self.threads > 1

    def column(self, dtype: type, count: int = 1) -> np.ndarray:
        """Zeros for all rows; in a file where so many such columns would take more than the memory for examples."""
        if np.dtype(dtype).itemsize * len(self) * count <= self.memory:
            return np.zeros(len(self), dtype)
        return _zeros_in_a_file(len(self), dtype)

    def over(self, batch: Batch, first_row: int = 0, *, beside_a_reader: bool = False) -> InMemory:
        """phi over some of the rows, in memory."""
        threads = self.threads
        return InMemory(
            self.phi, batch, dtype=self.dtype, threads=threads, first_row=first_row, beside_a_reader=beside_a_reader
        )

    def asked_again(self, piece: InMemory) -> InMemory:
        """A piece of which several things are asked: features are kept meanwhile, unless a row is so long that merging
        its equal indices takes a table of many megabytes."""
        return piece.keeping(FEATURE_BYTES) if self.keep and piece.longest <= LONG else piece

    def pieces(
        self, nbytes: int | None = None, *, after: int = 0
    ) -> Generator[tuple[InMemory, Columns | None], None, None]:
        """The pieces of one reading with their columns, but for empty ones and the rows before `after`.

        A reading that brings another number of rows than told is refused.
        """
        seen = 0
        for batch, columns in self.read(self.piece_bytes if nbytes is None else nbytes):
            first, seen = seen, seen + len(batch)
            if seen > len(self):
                raise self._changed("more")
            if first < after < seen:
                batch, columns = batch.slice(after - first, len(batch)), columns.take(slice(after - first, None))
                first = after
            if len(batch) and first >= after:
                yield self.over(batch, first, beside_a_reader=True), columns
            del batch, columns  # or they would stay in memory while the next ones are read
        if seen < len(self):
            raise self._changed(f"only {seen}")

    def squared_norms(self) -> np.ndarray:
        """|phi(z_i)|^2 of every row."""
        out = np.empty(len(self))

        def measure(mine: slice, examples: InMemory) -> None:
            out[mine] = examples.squared_norms()

        self._read(measure)
        return out

    def see(self, ws: Sequence[np.ndarray]) -> Seen:
        """What a proof asks of all rows, in one reading."""
        seen = Seen([np.empty(len(self)) for _ in ws], np.empty(len(self)), 0)

        def look(mine: slice, examples: InMemory) -> None:
            nonlocal seen
            outputs, seen.norms[mine], terms = examples.see(ws)
            for output, theirs in zip(seen.outputs, outputs, strict=True):
                output[mine] = theirs
            seen = seen._replace(terms=max(seen.terms, terms))

        self._read(look)
        return seen

    def dot(self, ws: Sequence[np.ndarray], rows: np.ndarray | None = None) -> list[np.ndarray]:
        """<w, phi(z_i)> of these rows (all by default) for each of several w."""
        outputs = [np.empty(len(self)) for _ in ws]

        def dot(mine: slice, examples: InMemory) -> None:
            for output, theirs in zip(outputs, examples.dot(ws), strict=True):
                output[mine] = theirs

        self._read(dot)
        return outputs if rows is None else [output[rows] for output in outputs]

    def add(
        self, coefficients: Sequence[np.ndarray], ws: Sequence[np.ndarray], squares: Sequence[np.ndarray] = ()
    ) -> None:
        """w += sum_i coefficient_i phi(z_i) for each of several w; the same of phi's squared values, if wanted."""
        self._read(lambda mine, examples: examples.add([some[mine] for some in coefficients], ws, squares))

    def dot_add(self, scales: Sequence[np.ndarray], vs: Sequence[np.ndarray], ws: Sequence[np.ndarray]) -> None:
        """w += sum_i scale_i <v, phi(z_i)> phi(z_i) for each of several scales, v and w."""
        self._read(lambda mine, examples: examples.dot_add([some[mine] for some in scales], vs, ws))

    def add_products(self, scales: Sequence[np.ndarray], sums: Sequence[np.ndarray]) -> None:
        """out + out' += sum_i scale_i phi(z_i) phi(z_i)' for each of several scales and matrices out."""
        self._read(lambda mine, examples: examples.add_products([some[mine] for some in scales], sums))

    def dense(self, asked: Sequence[Asked]) -> None:
        """Write some rows out in full: out[at[j]] += phi(z_rows[j]) for each of several requests, in one reading."""

        def write(mine: slice, examples: InMemory) -> None:
            for rows, at, out in asked:
                inside = (mine.start <= rows) & (rows < mine.stop)
                if inside.any():
                    examples.dense([(rows[inside] - mine.start, at[inside], out)])

        self._read(write)

    def _read(self, work: Callable[[slice, InMemory], None]) -> None:
        """work(which rows these are, phi over them) for each piece."""
        self.passes += 1
        with ReadAhead(self.pieces(), ahead=self.reads_ahead) as pieces:
            for examples, _ in pieces:
                first = examples.first_row
                work(slice(first, first + len(examples)), examples)

    def _changed(self, brings: str) -> DataError:
        return DataError(
            f"the data had {len(self)} rows, and now brings {brings}: leave it as it is while training runs"
        )


def _zeros_in_a_file(count: int, dtype: type) -> np.ndarray:
    """Zeros in a temporary file that goes with them.

    Their room on the disk is taken now: writing to a map of a file that finds none would end the process by a signal.
    """
    size = count * np.dtype(dtype).itemsize
    try:
        with tempfile.TemporaryFile() as file:
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(file.fileno(), 0, size)
            return np.asarray(np.memmap(file, dtype, "w+", shape=(count,)))
    except OSError as error:
        raise DotaddError(
            f"{tempfile.gettempdir()}: {words(size)} beside the examples cannot be written there "
            f"({error.strerror or error}): set TMPDIR to a folder that has room, or raise memory (--memory)"
        ) from None


def let_go(*columns: np.ndarray) -> None:
    """Give back the memory of columns that lie in a file: pages of a map count as the process's own once touched."""
    for column in columns:
        whole = column.base
        if isinstance(whole, np.memmap) and whole.mode == "w+" and hasattr(mmap, "MADV_DONTNEED"):
            pages = whole.base
            assert isinstance(pages, mmap.mmap)
            pages.madvise(mmap.MADV_DONTNEED)  # what was written stays: the map is shared with the file
