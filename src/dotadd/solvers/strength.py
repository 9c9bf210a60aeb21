"""How strongly an earlier model counts when it is updated with new rows.

Problem:  min_s of the expected error of min_w s/2 |w - w0|^2 + L(w), L the losses of n new rows, in place of the
          optimum of P_old(w) + L(w), where P_old has its minimum at w0 and is the objective of rows that are gone
Given:    w0, how many rows it stands for, n of which L is made
Returned: s

P_old is a quadratic around w0 near it, with the Hessian 1 + H_old; the old rows are taken to bend it as the new ones
bend L, so H_old = r H with r = rows / n. Slot by slot, with H's diagonal lambda_j in place of H, the new rows move w by
g_j / (s + lambda_j) and should move it by g_j / (1 + (1 + r) lambda_j). The gradient g_j at w0 is noise of a variance
in proportion to lambda_j, so the error in the joint objective is in proportion to

    sum_j lambda_j (1 + (1 + r) lambda_j) (1 / (s + lambda_j) - 1 / (1 + (1 + r) lambda_j))^2,

whose minimum is s. In wide spaces, where few rows meet in a slot, it is near 1: both sets of rows add up. Where rows
are many times the features, it is near r times a typical lambda_j, and w ends between w0 and the optimum of the new
rows alone, nearer to the side that has more rows.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dotadd.core.losses import Loss
from dotadd.problem.problem import Centre, Examples, Problem

BINS = 200  # of lambda, by its logarithm
TRIED = 400  # values of s, by theirs
NEAR_KINK = 0.5  # margins this near to 1 are taken for those that a hinge bends at


def curvature(problem: Problem[Examples], centres: Sequence[Centre]) -> np.ndarray:
    """lambda: the diagonal of the Hessian of the losses at the centres, the mean of all binary problems."""
    bend, unused = np.zeros(problem.examples.dim), np.zeros(problem.examples.dim)
    with problem.read() as pieces:
        for piece in pieces:
            total = np.zeros(len(piece.examples))
            for k, output in enumerate(piece.outputs([centre.w for centre in centres])):
                margins = piece.margins(output, centres[k].b, k)
                total += piece.columns.cost(k) * second_derivative(problem.loss, margins)
            piece.examples.add([total / len(problem)], [unused], [bend])
    return bend


def second_derivative(loss: Loss, margins: np.ndarray) -> np.ndarray:
    """loss''(m); that of the hinge is spread over margins near its kink."""
    if loss is Loss.LOGISTIC:
        share = 1.0 / (1.0 + np.exp(-np.abs(margins)))
        return share * (1.0 - share)
    if loss is Loss.SQUARED_HINGE:
        return np.where(margins < 1.0, 2.0, 0.0)
    return np.where(np.abs(1.0 - margins) < NEAR_KINK, 0.5 / NEAR_KINK, 0.0)


def strength(bend: np.ndarray, r: float) -> float:
    """s, for rows that are r times as many as those that bend so."""
    bend = bend[bend > 0.0]
    if not len(bend) or r == 0.0:
        return 1.0
    count, edges = np.histogram(np.log(bend), BINS)
    lam = np.exp(0.5 * (edges[:-1] + edges[1:]))
    s = np.exp(np.linspace(0.0, np.log1p(r * lam[-1]), TRIED))[:, None]
    right = 1.0 + (1.0 + r) * lam
    errors = (lam * right * (1.0 / (s + lam) - 1.0 / right) ** 2) @ count
    return float(s[np.argmin(errors), 0])
