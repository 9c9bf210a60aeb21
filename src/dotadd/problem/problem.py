"""Problem: what a solver is given, and the one objective by which every answer is judged.

    P(w, b) = 1/2 |w|^2 [+ 1/2 b^2 if the intercept is regularized] + sum_i C_i loss(y_i (<w, phi(z_i)> + b))

Where an earlier model is updated, w and b are drawn to a Centre instead of 0: 1/2 |w - w0|^2 [+ 1/2 (b - b0)^2]. With
w = w0 + sum_i alpha_i y_i phi(z_i), margins, local gaps and every step of coordinate descent are what they are without
it; all that knows of a centre is where w begins, what the penalty is, and D(alpha), which gains the constant 1/2 |w0|^2
[+ 1/2 b0^2].

Several binary problems may share the examples (one against the rest): they are columns over the same rows, and a
solver expands each block once for all of them.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from enum import Enum
from typing import Generic, NamedTuple, TypeVar

import numpy as np

from dotadd._util.ahead import ReadAhead
from dotadd.core import block as blocks
from dotadd.core.losses import Loss, total_loss
from dotadd.problem.columns import Columns, PassingColumns
from dotadd.problem.examples import InMemory, aligned_zeros, squared_distance
from dotadd.problem.on_disk import OnDisk

Examples = InMemory | OnDisk
Over = TypeVar("Over", bound=Examples, covariant=True)
TALL = 10  # rows for each feature
LOOKED_AT, COUNTED = 500, 1 << 24  # rows that tell which features occur, and features among which they are counted


class Intercept(Enum):
    """What b is: absent, one more weight on a constant feature, or free of any penalty."""

    NONE = "none"
    REGULARIZED = "regularized"
    FREE = "free"


class Centre(NamedTuple):
    """What w and b are drawn to, in one binary problem."""

    w: np.ndarray
    b: float


def half_length(w: np.ndarray, b: float, intercept: Intercept, centre: Centre | None = None) -> float:
    """The penalty on w and b: half the square of how far they are from their centre."""
    square = blocks.squared_length(w) if centre is None else squared_distance(w, centre.w)
    return half_square(square, b, intercept, centre)


def half_square(square: float, b: float, intercept: Intercept, centre: Centre | None = None) -> float:
    """The same, given the square of how far w is from its centre."""
    half = 0.5 * square
    if intercept is Intercept.REGULARIZED:
        away = b if centre is None else b - centre.b
        half += 0.5 * away * away  # a power of a float raises where this is infinite
    return half


@dataclass(frozen=True)
class Problem(Generic[Over]):
    """Examples, the binary problems on them, loss and intercept. Of examples on disk, signs and costs come with the
    `pieces`, unless they are held."""

    examples: Over
    columns: Columns
    loss: Loss = Loss.HINGE
    intercept: Intercept = Intercept.REGULARIZED
    centres: Sequence[Centre] | None = None
    """Of each binary problem; None where all are 0."""

    def __len__(self) -> int:
        """How many binary problems there are."""
        return len(self.columns)

    def zeros(self) -> np.ndarray:
        """A w of zeros."""
        return aligned_zeros(self.examples.given, self.examples.dtype)

    def centre(self, k: int) -> Centre | None:
        """What w and b of binary problem k are drawn to, if that is not 0."""
        return None if self.centres is None else self.centres[k]

    def origin(self, k: int) -> np.ndarray:
        """The w of binary problem k that belongs to alpha = 0."""
        w, centre = self.zeros(), self.centre(k)
        if centre is not None:
            w[:] = centre.w
        return w

    def dual_variables(self) -> np.ndarray:
        """Zeros for all rows, for one of the binary problems."""
        return self.examples.column(np.float64, len(self))

    def pieces(self, nbytes: int | None = None, *, after: int = 0) -> Generator[Piece, None, None]:
        """The problem piece by piece, each in memory: what is in memory is one piece.

        Pieces of what is on disk have about so many bytes; rows before `after` are left out.
        """
        with closing(self.examples.pieces(nbytes, after=after)) as pieces:
            for examples, columns in pieces:
                if columns is None:  # all rows are in memory
                    columns = self.columns
                elif not isinstance(self.columns, PassingColumns):
                    columns = self.columns.take(slice(examples.first_row, examples.first_row + len(examples)))
                yield Problem(examples, columns, self.loss, self.intercept, self.centres)
                del examples, columns  # or they would stay in memory while the next ones are read

    def read(self, nbytes: int | None = None, *, after: int = 0) -> ReadAhead[Piece]:
        """The same, the next piece being read while this one is worked on, if there is more than one thread."""
        return ReadAhead(self.pieces(nbytes, after=after), ahead=self.examples.reads_ahead)

    def asked_again(self, piece: Piece) -> Piece:
        """A piece of this problem of which several things are asked, so that features are worth keeping meanwhile."""
        return replace(piece, examples=self.examples.asked_again(piece.examples))

    @property
    def rows(self) -> slice:
        """Which rows of the whole they are, where this is a piece."""
        return slice(self.examples.first_row, self.examples.first_row + len(self.examples))

    def hold(self) -> Problem[Over]:
        """The same with the signs and costs of all rows in memory, for solvers that ask for DOT and ADD of all rows."""
        return replace(self, columns=Columns.join([piece.columns for piece in self.pieces()]))

    def outputs(self, ws: list[np.ndarray], rows: np.ndarray | None = None) -> list[np.ndarray]:
        """<w, phi(z_i)> of these examples (all by default) for each of several w."""
        return self.examples.dot(ws, rows)

    def margins(self, output: np.ndarray, intercept: float, k: int) -> np.ndarray:
        """y_i (output_i + b) of binary problem k, written over the outputs: there may be many millions."""
        output += intercept
        output *= self.columns.sign(k)
        return output

    def primal(self, w: np.ndarray, intercept: float, margins: np.ndarray, k: int) -> float:
        """P(w, b) of binary problem k, given the margins of w and b."""
        penalty = half_length(w, intercept, self.intercept, self.centre(k))
        return penalty + total_loss(self.loss, margins, self.columns.cost(k))


Piece = Problem[InMemory]
"""Neighbouring rows of a problem in memory: some of them, or all."""


def features_met(examples: Examples) -> int:
    """How many features rows have among them, about: of a hash table that was made large most slots may be empty.

    Some rows tell. Those that only one of them has stand for as many more as there are rows for each that was looked
    at.
    """
    rows, dim = len(examples), examples.dim
    if not isinstance(examples, InMemory) or examples.bulk or not TALL * examples.mean_length <= rows < TALL * dim:
        return dim
    if dim > COUNTED:
        return dim
    some = np.linspace(0, rows - 1, min(rows, LOOKED_AT)).astype(np.uint32)
    times = np.zeros(dim, np.int64)
    for block, at, _ in examples.blocks(some):
        if block.indices is None:  # every row has all of them
            return dim
        blocks.count_features(block.start, block.end, block.indices, at, times)
    alone = int(np.count_nonzero(times == 1))
    return min(dim, int(np.count_nonzero(times)) + alone * (rows // len(some) - 1))
