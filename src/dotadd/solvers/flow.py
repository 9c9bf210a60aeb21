"""Flow: a problem whose examples pass by, read again and again, because they do not fit in memory.

Labels and costs travel with their examples; what is kept for every row is its dual variables alone.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass

import numpy as np

from dotadd.batch import Batch
from dotadd.errors import DataError
from dotadd.expand import Expansion
from dotadd.features.base import FeatureMap
from dotadd.losses import Loss
from dotadd.solvers.problem import Intercept, Problem, aligned_zeros
from dotadd.streamed import Streamed

PIECES = 10  # that the memory would hold: some are being read, decoded and worked on while the rest is kept
LARGEST, SMALLEST = 8 << 20, 1 << 20  # bytes of a piece: more are not read faster, fewer are not worth a walk over w


ROW_BYTES = 8  # of memory for each row, or all of the least: what its dual variable takes anyway
LEAST = 4 << 20  # bytes that all data can be read with


def piece_bytes(memory: int) -> int:
    """How large pieces should be."""
    return max(1, min(max(memory // PIECES, SMALLEST), LARGEST, memory // 4))


def least_memory(rows: int) -> int:
    """The memory for examples below which so many of them are read in pieces too small to be worth the trouble."""
    return min(LEAST, ROW_BYTES * rows)


@dataclass(frozen=True)
class Piece:
    """Some consecutive examples: raw rows, the number of the first one, the signs of each binary problem, the costs."""

    batch: Batch
    first_row: int
    signs: list[np.ndarray]
    cost: np.ndarray

    def __len__(self) -> int:
        return len(self.batch)

    def slice(self, first: int, stop: int) -> Piece:
        """The rows from the first up to the second, counted from the beginning of the piece."""
        mine = slice(first, stop)
        signs = [sign[mine] for sign in self.signs]
        return Piece(self.batch.slice(first, stop), self.first_row + first, signs, self.cost[mine])


@dataclass(frozen=True)
class Flow:
    """phi over so many rows, which `read` brings in pieces of at most about so many bytes, from the first row on.

    `memory` is what examples may take in bytes: those that are kept, and those that are being read.
    """

    phi: FeatureMap
    read: Callable[[int], Iterator[Piece]]
    rows: int
    problems: int
    memory: int
    loss: Loss = Loss.HINGE
    intercept: Intercept = Intercept.REGULARIZED
    dtype: type = np.float32
    threads: int = 1

    @property
    def beside(self) -> int:
        """Bytes that an example in memory takes beside its raw row: number, cost, length, offsets; and for each binary
        problem alpha, sign and whether it is active."""
        return 48 + 10 * self.problems

    def zeros(self) -> np.ndarray:
        """A w of zeros."""
        return aligned_zeros(self.phi, self.dtype)

    def dual_variables(self) -> np.ndarray:
        """Zeros for all rows, for one of the binary problems."""
        return self.column(np.float64, self.problems)

    def column(self, dtype: type, count: int = 1) -> np.ndarray:
        """Zeros for all rows; in a file where so many such columns would take more than the memory for examples."""
        if np.dtype(dtype).itemsize * self.rows * count <= self.memory:
            return np.zeros(self.rows, dtype)
        with tempfile.TemporaryFile() as file:
            return np.asarray(np.memmap(file, dtype, "w+", shape=(self.rows,)))

    def pieces(self, nbytes: int | None = None, *, after: int = 0) -> Generator[Piece, None, None]:
        """The pieces of one reading, but for empty ones and the rows before `after`.

        A reading that brings another number of rows than told is refused.
        """
        seen = 0
        for piece in self.read(piece_bytes(self.memory) if nbytes is None else nbytes):
            seen += len(piece)
            if seen > self.rows:
                raise self._changed("more")
            if piece.first_row < after < seen:
                piece = piece.slice(after - piece.first_row, len(piece))
            if len(piece) and piece.first_row >= after:
                yield piece
            del piece  # or it would stay in memory while the next one is read
        if seen < self.rows:
            raise self._changed(f"only {seen}")

    def _changed(self, brings: str) -> DataError:
        return DataError(
            f"the data had {self.rows} rows, and now brings {brings}: leave it as it is while training runs"
        )

    def problem(self, piece: Piece) -> Problem:
        """The problem that these examples alone would be."""
        examples = Expansion(self.phi, piece.batch, dtype=self.dtype, threads=self.threads)
        if examples.in_memory:  # a DOT of such rows is faster than their reader, who needs a thread too
            examples.threads = max(1, self.threads - 1)
        return Problem(examples, piece.signs, piece.cost, self.loss, self.intercept)

    def whole_problem(self) -> Problem:
        """The problem for a solver that asks for DOT and ADD of all examples: labels and costs are held, no example."""
        signs = [np.empty(self.rows, np.int8) for _ in range(self.problems)]
        cost = np.empty(self.rows)
        for piece in self.pieces():
            mine = slice(piece.first_row, piece.first_row + len(piece))
            cost[mine] = piece.cost
            for sign, theirs in zip(signs, piece.signs, strict=True):
                sign[mine] = theirs

        def batches() -> Iterator[Batch]:
            return (piece.batch for piece in self.pieces())

        examples = Streamed(self.phi, batches, self.rows, dtype=self.dtype, threads=self.threads)
        return Problem(examples, signs, cost, self.loss, self.intercept)  # type: ignore[arg-type]
