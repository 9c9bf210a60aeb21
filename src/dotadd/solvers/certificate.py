"""The proof of how good an answer is (proof.py), for examples that pass by: they are read once more.

w_alpha = sum_i alpha_i y_i phi(z_i) is built in float64 while the margins of w are computed. Where it takes too much
memory it is built one stretch of slots after the other, with a reading for each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing

import numpy as np

from dotadd.ahead import ReadAhead
from dotadd.block import squared_length
from dotadd.expand import squared_distance
from dotadd.solvers.flow import Flow
from dotadd.solvers.free_intercept import best_intercept
from dotadd.solvers.problem import Intercept, Problem
from dotadd.solvers.proof import Certificate, Rounding, RowSums

SUM_BYTES = 64 << 20  # of sums in float64 that are built at once, beside the examples in memory
ROWS = 1 << 16  # of a memory map that are worked on at a time


def certify(
    flow: Flow,
    ws: Sequence[np.ndarray],
    intercepts: Sequence[float],
    alphas: Sequence[np.ndarray],
    check: Callable[[], None],
    *,
    which: Sequence[int] | None = None,
    tol: float = np.inf,
    together: bool = True,
) -> list[Certificate]:
    """The certificate of an answer (w, b, alpha) to each binary problem, or to those of these numbers only.

    check() is called after each piece. Dual variables may lie on a memory map.

    A free intercept is found anew, and dual variables belong to it only if sum_i alpha_i y_i = 0. So those of the
    heavier side are scaled down, also in `alphas` itself, unless the gap is then above `tol`, or that of any problem is
    if they go on `together`: an answer that is to be improved goes on with the alpha that its w was made of.
    """
    answers = zip(range(flow.problems) if which is None else which, ws, intercepts, alphas, strict=True)
    if flow.intercept is Intercept.FREE:
        cost = flow.column(np.float64)
        judges: list[_Judge] = [_FreeJudge(flow, k, w, alpha, cost) for k, w, _, alpha in answers]
    else:
        judges = [_Judge(flow, k, w, alpha, intercept) for k, w, intercept, alpha in answers]
    room, vectors = SUM_BYTES, sum(judge.sums for judge in judges)
    slots = max(1, room // (8 * max(1, vectors)))
    shared = 8 * flow.phi.dim * vectors * flow.threads <= room  # each thread may have sums of its own
    for number, stretch in enumerate(_stretches(flow, slots)):
        first, stop = stretch
        sums = [[np.zeros(stop - first) for _ in range(judge.sums)] for judge in judges]
        flat = [one for some in sums for one in some]
        with ReadAhead(flow.pieces(), ahead=flow.threads > 1) as pieces:
            for piece in pieces:
                problem = flow.problem(piece)
                mine = slice(piece.first_row, piece.first_row + len(piece))
                if number == 0:
                    outputs, norms, terms = problem.examples.see(list(ws))
                    for judge, output in zip(judges, outputs, strict=True):
                        judge.see(problem, mine, output, norms, terms)
                coefficients = [some for judge in judges for some in judge.coefficients(problem, mine)]
                if shared:
                    problem.examples.add(coefficients, flat)
                else:
                    problem.examples.add_within(coefficients, stretch, slots, flat)
                check()
        if number == 0:
            for judge in judges:
                judge.conclude()
        for judge, some in zip(judges, sums, strict=True):
            judge.compare(judge.w[first:stop], some)
    certificates = [judge.certificate() for judge in judges]
    good = [certificate.gap <= tol for certificate in certificates]
    for judge, done in zip(judges, good, strict=True):
        if all(good) if together else done:
            judge.settle()
    return certificates


def _stretches(flow: Flow, slots: int) -> list[tuple[int, int]]:
    """w in stretches of so many slots; where there are several, maps may need to see examples to tell them."""
    if flow.phi.dim > slots:
        with closing(flow.pieces()) as pieces:
            for piece in pieces:
                return flow.problem(piece).examples.stretches(slots)
    return [(0, flow.phi.dim)]


class _Judge:
    """What a reading tells of the answer to binary problem k."""

    sums = 1
    """How many vectors as long as w are built."""

    def __init__(self, flow: Flow, k: int, w: np.ndarray, alpha: np.ndarray, intercept: float) -> None:
        self.flow, self.k, self.w, self.alpha, self.intercept = flow, k, w, alpha, intercept
        self.length = float(np.sqrt(squared_length(w)))
        self.rows, self.drifted, self.distance = RowSums(), 0.0, 0.0

    def see(self, problem: Problem, mine: slice, output: np.ndarray, norms: np.ndarray, terms: int) -> None:
        """Take the losses and the local gaps of these rows into account."""
        alpha, sign = np.asarray(self.alpha[mine]), problem.signs[self.k]
        self.count(problem.margins(output, self.intercept, self.k), alpha, sign, problem.cost, norms, terms)

    def count(
        self,
        margins: np.ndarray,
        alpha: np.ndarray,
        sign: np.ndarray,
        cost: np.ndarray,
        norms: np.ndarray,
        terms: int,
    ) -> None:
        rounding = Rounding(terms, self.length, self.intercept)
        self.rows += RowSums.of(self.flow.loss, margins, alpha, sign, cost, norms, rounding)

    def coefficients(self, problem: Problem, mine: slice) -> list[np.ndarray]:
        """What these rows are multiplied with in each of the sums."""
        return [np.asarray(self.alpha[mine]) * problem.signs[self.k]]

    def conclude(self) -> None:
        """All rows were seen."""

    def compare(self, w: np.ndarray, sums: list[np.ndarray]) -> None:
        """Take into account how far w is from its sum, in these slots."""
        self.distance += squared_distance(w, sums[0])

    def settle(self) -> None:
        """Make alpha the one that the certificate is about."""

    def certificate(self) -> Certificate:
        return self.rows.certificate(self.w, self.flow.intercept, self.intercept, self.distance)


class _FreeJudge(_Judge):
    """The same for a free intercept. The best one is known when all outputs are, so these and the signs are held, where
    dual variables are: in memory or on a memory map.

    Only then is it known by how much which side's dual variables are scaled down, so each side has a sum of its own.
    """

    sums = 2

    def __init__(self, flow: Flow, k: int, w: np.ndarray, alpha: np.ndarray, cost: np.ndarray) -> None:
        super().__init__(flow, k, w, alpha, 0.0)
        self.output, self.sign = flow.column(np.float64, flow.problems), flow.column(np.int8, flow.problems)
        self.cost = cost
        self.totals = np.zeros(2)
        self.factors = np.ones(2)
        self.farthest, self.terms = 0.0, 0  # the largest |phi(z)|^2, which stands for that of each row

    def see(self, problem: Problem, mine: slice, output: np.ndarray, norms: np.ndarray, terms: int) -> None:
        self.farthest, self.terms = max(self.farthest, float(norms.max())), max(self.terms, terms)
        self.output[mine], self.sign[mine], self.cost[mine] = output, problem.signs[self.k], problem.cost
        self.totals += [np.abs(side).sum() for side in self.coefficients(problem, mine)]

    def coefficients(self, problem: Problem, mine: slice) -> list[np.ndarray]:
        both = np.asarray(self.alpha[mine]) * problem.signs[self.k]
        return [np.maximum(both, 0.0), np.minimum(both, 0.0)]

    def conclude(self) -> None:
        self.intercept = best_intercept(self.flow.loss, self.output, self.sign, self.cost)
        self.factors = np.divide(self.totals.min(), self.totals, out=np.ones(2), where=self.totals > 0.0)
        for mine in self._stretches_of_rows():
            margins = (self.output[mine] + self.intercept) * self.sign[mine]
            alpha, norms = self.alpha[mine] * self._scales(mine), np.full(len(margins), self.farthest)
            self.count(margins, alpha, self.sign[mine], self.cost[mine], norms, self.terms)

    def compare(self, w: np.ndarray, sums: list[np.ndarray]) -> None:
        positive, negative = sums
        positive += negative
        self.drifted += squared_distance(w, positive)
        positive -= negative
        positive *= self.factors[0]
        negative *= self.factors[1]
        positive += negative
        self.distance += squared_distance(w, positive)

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
        return [slice(first, first + ROWS) for first in range(0, self.flow.rows, ROWS)]
