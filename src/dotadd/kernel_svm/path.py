"""The answers to many binary problems over the same examples, along a path of C, with kernel values that are made once.

Problem:  for each part of the examples, two classes of those that a fold is trained on, and each C of a rising list,
          the answer that a fit of its own would give
Given:    the Gram of all examples, the parts with their costs for C = 1
Returned: each answer as it is found, with its outputs for the rows that the part is tested on

The matrix of all examples is made first where half of the memory has room for it; parts read it. Otherwise a part makes
what it wants of its rows, as a fit of its own does. Each C starts from alpha of the one before: examples that stood at
their bound are the first to move. The parts are dealt out to threads; what one has of the memory does not depend on how
many there are, nor does its answer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from dotadd._util.threads import for_each, one_blas_thread
from dotadd.kernel_svm.gram import Gram, SomeRows
from dotadd.kernel_svm.one_against_one import HelpersClock
from dotadd.kernel_svm.problem import KernelProblem, KernelResult, KernelSettings, KernelSolver
from dotadd.kernel_svm.shared_rows import PLAIN, WholeGram
from dotadd.solvers.clock import Clock

AT_ONCE = 4  # parts, at most

Take = Callable[[int, int, np.ndarray, KernelResult], None]


class HeldOutPart(NamedTuple):
    """Rows of a Gram to be told apart, with signs and costs for C = 1, and rows for which the outputs are wanted."""

    rows: np.ndarray
    sign: np.ndarray
    cost: np.ndarray
    tested: np.ndarray


def whole_or_not(gram: Gram, memory: int, tol: float, check: Callable[[], None]) -> Gram:
    """A square Gram whose matrix is in memory, if that has room for it; else the same Gram. Sums of its values in
    float32 are exact to a tenth of the tolerance."""
    if gram.whole is not None or 4 * gram.shape[0] ** 2 > memory:
        return gram
    with one_blas_thread():
        return WholeGram.of(gram, check, PLAIN * max(1.0, 0.1 * tol / 1e-5))


def kernel_path(
    gram: Gram,
    parts: Sequence[HeldOutPart],
    Cs: Sequence[float],
    solve: KernelSolver,
    settings: KernelSettings,
    take: Take,
    clock: Clock,
) -> None:
    """take(i, k, outputs, result) for C number i and part k, from any thread; `gram` may be whole, beyond the memory of
    the settings. Raises StoppedError when the clock says so."""
    gram.diagonal()  # what is prepared when it is first asked for is so before threads ask

    def walk(k: int) -> None:
        part = parts[k]
        mine, memory = SomeRows(gram, part.rows), settings.memory // AT_ONCE
        own: Gram = mine
        if isinstance(gram, WholeGram) and 4 * len(part.rows) ** 2 <= memory // 2:
            everyone = np.arange(len(part.rows))
            own = WholeGram(gram, part.rows, mine.block(everyone), gram.plain)
        alpha = None
        for i, C in enumerate(Cs):
            clock.peek()
            one = replace(settings, memory=memory, clock=HelpersClock(clock, clock.left()), threads=1, on_progress=None)
            result = solve(KernelProblem(own, part.sign, C * part.cost), one, alpha)
            clock.peek()  # what was stopped on its way is no answer
            alpha = result.alpha
            support = np.flatnonzero(alpha)
            outputs = gram.times(part.rows[support], alpha[support] * part.sign[support], part.tested)
            take(i, k, outputs + result.intercept, result)

    with one_blas_thread():
        for_each(range(len(parts)), walk, min(settings.threads, AT_ONCE))
