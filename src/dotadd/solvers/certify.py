"""certify: the proof of how good answers are, from scratch, for examples in memory and on disk (proof.py).

A proof is a reduction. A `Judge` sees the rows of an answer piece by piece: their losses and local gaps add up, and so
does w_alpha = sum_i alpha_i y_i phi(z_i), in float64. What is in memory is one piece, what is on disk is read once
more, and parts of a cluster send what their rows add up to.

Where the sums of all answers take too much memory, they are built for some answers after the others, and if one of
them is too large still, for one stretch of slots after the other, each with a reading of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing

import numpy as np

from dotadd.core.block import squared_length
from dotadd.problem.examples import Stretch, squared_distance
from dotadd.problem.on_disk import OnDisk, let_go
from dotadd.problem.problem import Examples, Intercept, Piece, Problem
from dotadd.solvers.intercept_on_disk import ColumnOutputs
from dotadd.solvers.proof import Certificate, Rounding, RowSums

SUM_BYTES = 64 << 20  # of sums in float64 that are built at once, beside examples on disk of which some are in memory
SUM_BYTES_IN_MEMORY = 256 << 20  # the same beside examples that are in memory anyway
ROWS = 1 << 16  # of a memory map that are worked on at a time


class Judge:
    """What rows tell of the answer (w, b, alpha) to binary problem k. Dual variables may lie on a memory map."""

    sums = 1
    """How many vectors as long as w are built."""

    def __init__(self, problem: Problem[Examples], k: int, w: np.ndarray, alpha: np.ndarray, intercept: float) -> None:
        self.problem, self.k, self.w, self.alpha, self.intercept = problem, k, w, alpha, intercept
        self.length = float(np.sqrt(squared_length(w)))
        self.rows, self.drifted, self.distance = RowSums(), 0.0, 0.0
        self.seen = False
        self.centre = problem.centre(k)

    def see(
        self,
        piece: Problem[Examples],
        mine: slice,
        output: np.ndarray,
        norms: np.ndarray,
        terms: int,
        *,
        beside: float = 0.0,
    ) -> np.ndarray:
        """Take the losses and local gaps of these rows into account, given <w, phi(z_i)> and |phi(z_i)|^2 + beside.

        Returns the margins, which are written over the outputs.
        """
        margins = piece.margins(output, self.intercept, self.k)
        alpha, sign, cost = np.asarray(self.alpha[mine]), piece.columns.sign(self.k), piece.columns.cost(self.k)
        self.count(margins, alpha, sign, cost, norms, terms, beside)
        return margins

    def count(
        self,
        margins: np.ndarray,
        alpha: np.ndarray,
        sign: np.ndarray,
        cost: np.ndarray,
        norms: np.ndarray,
        terms: int,
        beside: float = 0.0,
    ) -> None:
        """The same, given the margins, and what lies beside these rows."""
        rounding = Rounding(terms, self.length, self.intercept)
        self.rows += RowSums.of(self.problem.loss, margins, alpha, sign, cost, norms, rounding, beside=beside)

    def coefficients(self, piece: Problem[Examples], mine: slice) -> list[np.ndarray]:
        """What these rows are multiplied with in each of the sums."""
        return [np.asarray(self.alpha[mine]) * piece.columns.sign(self.k)]

    def conclude(self) -> None:
        """All rows were seen."""
        self.seen = True

    def compare(self, slots: slice, sums: Sequence[np.ndarray]) -> None:
        """Take into account how far w is from its sum, in these slots."""
        self.distance += self._apart(slots, sums[0])

    def _apart(self, slots: slice, total: np.ndarray) -> float:
        """|w - w_alpha|^2 in these slots, for this sum."""
        return float(squared_distance(self.w[slots], total if self.centre is None else total + self.centre.w[slots]))

    def settle(self) -> None:
        """Make alpha the one that the certificate is about."""

    def certificate(self) -> Certificate:
        return self.rows.certificate(self.w, self.problem.intercept, self.intercept, self.distance, self.centre)


class FreeJudge(Judge):
    """The same for a free intercept on disk. The best one is known when all outputs are, so these and the signs are
    held, where dual variables are: in memory or on a memory map.

    Dual variables belong to it only if sum_i alpha_i y_i = 0. By how much those of one side are scaled down for that is
    known only when all rows were seen, so each side has a sum of its own.
    """

    sums = 2

    def __init__(self, problem: Problem[Examples], k: int, w: np.ndarray, alpha: np.ndarray, cost: np.ndarray) -> None:
        super().__init__(problem, k, w, alpha, 0.0)
        column = problem.examples.column
        self.output, self.sign = column(np.float64, len(problem)), column(np.int8, len(problem))
        self.cost = cost
        self.totals = np.zeros(2)
        self.factors = np.ones(2)
        self.farthest, self.terms = 0.0, 0  # the largest |phi(z)|^2, which stands for that of each row

    def see(
        self,
        piece: Problem[Examples],
        mine: slice,
        output: np.ndarray,
        norms: np.ndarray,
        terms: int,
        *,
        beside: float = 0.0,
    ) -> np.ndarray:
        self.farthest, self.terms = max(self.farthest, float(norms.max()) - beside), max(self.terms, terms)
        self.output[mine] = output
        self.sign[mine], self.cost[mine] = piece.columns.sign(self.k), piece.columns.cost(self.k)
        let_go(self.output, self.sign, self.cost)
        self.totals += [np.abs(side).sum() for side in self.coefficients(piece, mine)]
        return output

    def coefficients(self, piece: Problem[Examples], mine: slice) -> list[np.ndarray]:
        both = np.asarray(self.alpha[mine]) * piece.columns.sign(self.k)
        return [np.maximum(both, 0.0), np.minimum(both, 0.0)]

    def conclude(self) -> None:
        super().conclude()
        self.intercept = ColumnOutputs(self.output, self.sign, self.cost).best_intercept(self.problem.loss)
        self.factors = np.divide(self.totals.min(), self.totals, out=np.ones(2), where=self.totals > 0.0)
        for mine in self._stretches_of_rows():
            margins = (self.output[mine] + self.intercept) * self.sign[mine]
            alpha, norms = self.alpha[mine] * self._scales(mine), np.full(len(margins), self.farthest)
            self.count(margins, alpha, self.sign[mine], self.cost[mine], norms, self.terms)
            let_go(self.output, self.sign, self.cost)

    def compare(self, slots: slice, sums: Sequence[np.ndarray]) -> None:
        positive, negative = sums
        positive += negative
        self.drifted += self._apart(slots, positive)
        positive -= negative
        positive *= self.factors[0]
        negative *= self.factors[1]
        positive += negative
        self.distance += self._apart(slots, positive)

    def certificate(self) -> Certificate:
        """Scaling alpha down moves w_alpha, which is no rounding: further steps make up for it."""
        found = super().certificate()
        scaled = 0.5 * (self.distance - self.drifted) / found.primal if found.primal > 0.0 else 0.0
        return found._replace(drift=found.drift - scaled)

    def settle(self) -> None:
        for mine in self._stretches_of_rows():
            self.alpha[mine] *= self._scales(mine)

    def _scales(self, mine: slice) -> np.ndarray:
        positive, negative = self.factors
        return np.where(self.sign[mine] > 0, positive, negative)

    def _stretches_of_rows(self) -> list[slice]:
        return [slice(first, first + ROWS) for first in range(0, len(self.problem.examples), ROWS)]


def judges_of(
    problem: Problem[Examples],
    ks: Sequence[int],
    ws: Sequence[np.ndarray],
    bs: Sequence[float],
    alphas: Sequence[np.ndarray],
) -> list[Judge]:
    """A judge for each answer to binary problem k. A free intercept is found anew."""
    answers = list(zip(ks, ws, alphas, bs, strict=True))
    if problem.intercept is not Intercept.FREE:
        return [Judge(problem, *answer) for answer in answers]
    cost = problem.examples.column(np.float64)
    return [FreeJudge(problem, k, w, alpha, cost) for k, w, alpha, _ in answers]


def certify(
    problem: Problem[Examples],
    judges: Sequence[Judge],
    check: Callable[[], None] = lambda: None,
    *,
    tol: float = np.inf,
    together: bool = True,
) -> list[Certificate]:
    """The certificates of these answers; check() is called after each piece. Judges that have seen the rows already are
    not shown them again.

    Where a free intercept made a judge scale dual variables down, they are scaled in `alpha` itself, too, unless the
    gap is then above `tol`, or that of any problem is if they go on `together`: an answer that is to be improved goes
    on with the alpha that its w was made of.
    """
    room = SUM_BYTES if isinstance(problem.examples, OnDisk) else SUM_BYTES_IN_MEMORY
    for group, stretch, slots in _readings(problem, judges, room):
        first, stop = stretch
        blind = [judge for judge in judges if not judge.seen]
        sums = [[np.zeros(stop - first) for _ in range(judge.sums)] for judge in group]
        flat = [one for some in sums for one in some]
        with problem.read() as pieces:
            for piece in pieces:
                if blind:
                    piece = problem.asked_again(piece)
                    show(piece, blind)
                coefficients = [some for judge in group for some in judge.coefficients(piece, piece.rows)]
                if slots is None:
                    piece.examples.add(coefficients, flat)
                else:
                    piece.examples.add_within(coefficients, stretch, slots, flat)
                check()
        for judge in blind:
            judge.conclude()
        for judge, some in zip(group, sums, strict=True):
            judge.compare(slice(first, stop), some)
    certificates = [judge.certificate() for judge in judges]
    good = [certificate.gap <= tol for certificate in certificates]
    for judge, done in zip(judges, good, strict=True):
        if all(good) if together else done:
            judge.settle()
    return certificates


def show(piece: Piece, judges: Sequence[Judge]) -> None:
    """Let these judges see the rows of a piece, whose features are made once for all of them."""
    outputs, norms, terms = piece.examples.see([judge.w for judge in judges])
    for judge, output in zip(judges, outputs, strict=True):
        judge.see(piece, piece.rows, output, norms, terms)


def _readings(
    problem: Problem[Examples], judges: Sequence[Judge], room: int
) -> list[tuple[Sequence[Judge], Stretch, int | None]]:
    """Which judges have their sums built in each reading, for which slots, and how many of these at a time if w has to
    be cut. All of it together takes at most about so many bytes of memory."""
    dim, threads = problem.examples.dim, problem.examples.threads
    one = 8 * dim * max((judge.sums for judge in judges), default=1)
    if one * threads <= room:  # each thread may have sums of its own
        together = max(1, room // (one * threads))
        groups = [judges[first : first + together] for first in range(0, len(judges), together)]
        return [(group, (0, dim), None) for group in groups]
    vectors = sum(judge.sums for judge in judges)
    slots = max(1, room // (8 * max(1, vectors)))
    return [(judges, stretch, slots) for stretch in _stretches(problem, slots)]


def _stretches(problem: Problem[Examples], slots: int) -> list[Stretch]:
    """w in stretches of so many slots; maps may need to see examples to tell them."""
    with closing(problem.pieces()) as pieces:
        for piece in pieces:
            return piece.examples.stretches(slots)
    return [(0, problem.examples.dim)]
