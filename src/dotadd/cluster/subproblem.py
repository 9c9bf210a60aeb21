"""What a part solves in a round of CoCoA+: the dual restricted to its own rows, the others seen through a model.

With u = (w, b), D(alpha) = sum_i t_i(alpha_i) - 1/2 |u_alpha|^2 and a change delta_k of part k's dual variables, let
v_k = sum_i delta_i y_i phi(z_i) over its rows. If all parts change at once, the cross terms <v_j, v_k> are what no part
knows. As |sum_k v_k|^2 <= sigma' sum_k |v_k|^2 with sigma' = K, and often with far less,

    D(alpha + delta) >= -1/2 |u|^2 + sum_k G_k(delta_k),
    G_k(delta) = sum_i t_i(alpha_i + delta_i) - <u, v_k> - sigma'/2 |v_k|^2,

and each part raises its own G_k. Two things make this plain dual coordinate descent:

- The gradient of the last two terms is that of a w that moves sigma' times as fast: u + sigma' v_k.
- Dual terms are homogeneous, t(s alpha; s C) = s t(alpha; C). So with beta = sigma' alpha and costs sigma' C,

      sigma' G_k = sum_i t(beta_i; sigma' C_i) - 1/2 |u + sum_i (beta_i - sigma' alpha_i) y_i phi(z_i)|^2 + 1/2 |u|^2,

  which is the dual of an SVM whose w starts at u. The `sweep` of solvers/sweep.py solves it as it is: multiply dual
  variables and costs by sigma', start at the shared w, and divide the way that w has gone by sigma'.

Momentum (Nesterov's; FISTA with this model in place of a gradient step) takes the model around the point
alpha + m (alpha - alpha_before), which need not be feasible, while the descent begins at alpha. Then the local w starts
at u + m (u - u_before) - sigma' m v_before, v_before being what the part itself has added in the round before. Nothing
more crosses the network for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter
from typing import NamedTuple

import numpy as np

from dotadd.cluster.shard import Order
from dotadd.core.block import inner_product, row_numbers, squared_length
from dotadd.core.losses import Loss, total_dual_term, total_loss
from dotadd.problem.problem import Intercept, Piece
from dotadd.solvers.run import shuffle
from dotadd.solvers.sweep import INTERCEPT, Descent, Variables, sweep, would_move


class Step(NamedTuple):
    """What a part tells of one binary problem after a round. Sums are over its own rows."""

    losses: float
    """sum_i C_i loss(m_i) at the shared w."""
    gaps: float
    """The local gaps at the shared w and the dual variables that it was made of."""
    terms: float
    """The dual terms of these."""
    balance: float
    """sum_i alpha_i y_i of these, which is b; 0 where there is no intercept."""
    terms_gained: float
    """What the new dual variables have more, of both."""
    balance_gained: float
    length: float
    """|v_k|^2, from where the model was taken: what sigma' is measured by."""
    active: int
    """Rows that would move."""


class Subproblem:
    """One binary problem on one part during one round: w, and b of the order, are shared; `local` and `v` are scratch
    as long as w.

    order.change is what all parts have added to w in the round before, v and v_b what this one has. v becomes the w
    that the descent starts with.
    """

    def __init__(self, order: Order, w: np.ndarray, local: np.ndarray, v: np.ndarray, v_b: float) -> None:
        self.order, self.k, self.b, self.sigma = order, order.k, order.b, order.sigma
        self.w, self.local, self.v, self.b_before = w, local, v, v_b
        self.losses = self.gaps = self.terms = self.balance = self.terms_gained = self.balance_gained = 0.0
        self.active = 0
        if order.momentum:
            v *= w.dtype.type(-self.sigma)
            order.change.add_to(v)
            v *= w.dtype.type(order.momentum)
            v += w
        else:
            v[:] = w
        local[:] = v
        self.descent = Descent(local, Intercept.NONE)
        self.descent.numbers[INTERCEPT] = self.b + order.momentum * (order.b_change - self.sigma * v_b)
        self.moved = order.momentum != 0.0

    def see(self, problem: Piece, margins: np.ndarray, alpha: np.ndarray) -> None:
        """Take these rows into account, with their margins of the shared w."""
        cost = problem.columns.cost(self.k)
        losses, terms = total_loss(problem.loss, margins, cost), total_dual_term(problem.loss, alpha, cost)
        self.losses += losses
        self.terms += terms
        self.gaps += losses - terms + inner_product(alpha, margins)
        self.balance += balance(problem, self.k, alpha)

    def finish(self) -> Step:
        """Make v what this part adds to w."""
        np.subtract(self.local, self.v, out=self.v)
        self.v *= self.w.dtype.type(1.0 / self.sigma)
        self.local -= self.w
        momentum = self.order.momentum
        if momentum:
            self.local -= self.w.dtype.type(momentum) * self.order.change.vector()
        away = self.balance_gained - momentum * self.b_before
        length = squared_length(self.local) / self.sigma**2 + away**2
        gained = self.terms_gained, self.balance_gained
        return Step(self.losses, self.gaps, self.terms, self.balance, *gained, length, self.active)


class _Work:
    """Some rows of a subproblem, scaled by sigma'."""

    def __init__(self, sub: Subproblem, problem: Piece, margins: np.ndarray, alpha: np.ndarray) -> None:
        self.sub, self.problem, self.alpha = sub, problem, alpha
        cost = problem.columns.cost(sub.k)
        column = problem.columns[sub.k]
        self.column = column._replace(costs=sub.sigma * column.costs)
        self.beta = sub.sigma * alpha
        self.active = would_move(int(problem.loss), margins, cost, alpha)
        self.first_gap: float | None = None
        sub.active += int(np.count_nonzero(self.active))
        sub.descent.forget_thresholds()

    @property
    def variables(self) -> Variables:
        return Variables(self.column, self.beta, self.active)

    def settled(self, accuracy: float) -> bool:
        """Whether the last sweep found the gap of this subproblem to be so much smaller than the first one did."""
        gap = self.sub.descent.gap
        if self.first_gap is None:
            self.first_gap = gap
        return gap <= accuracy * self.first_gap

    def finish(self) -> None:
        """Back to dual variables as they are. What stands at its upper bound stands there exactly."""
        problem, cost = self.problem, self.problem.columns.cost(self.sub.k)
        alpha = self.beta / self.sub.sigma
        if problem.loss is not Loss.SQUARED_HINGE:
            alpha = np.where(self.beta >= self.column.cost(), cost, np.minimum(alpha, cost))
        before = total_dual_term(problem.loss, self.alpha, cost)
        self.sub.terms_gained += total_dual_term(problem.loss, alpha, cost) - before
        self.sub.balance_gained += balance(problem, self.sub.k, alpha - self.alpha)
        self.alpha[:] = alpha
        self.sub.moved = True


def descend_rows(
    problem: Piece,
    subs: Sequence[Subproblem],
    alphas: Sequence[np.ndarray],
    norms: np.ndarray,
    rng: np.ndarray,
    accuracy: float,
    sweeps: int,
    until: float,
) -> None:
    """See these rows, and raise the models by coordinate descent over those that would move.

    It ends for each binary problem when the gap of its subproblem is `accuracy` times what it was, after so many
    sweeps, or at the time `until`. Where blocks must be expanded, all problems work on each block while it is there.
    """
    moved = [sub for sub in subs if sub.moved]
    outputs = problem.outputs([sub.w for sub in subs] + [sub.local for sub in moved])
    elsewhere = dict(zip((sub.k for sub in moved), outputs[len(subs) :], strict=True))
    works = []
    for sub, alpha, output in zip(subs, alphas, outputs, strict=False):
        margins = problem.margins(output, sub.b, sub.k)
        sub.see(problem, margins, alpha)
        if sub.moved:
            margins = problem.margins(elsewhere[sub.k], sub.descent.b, sub.k)
        works.append(_Work(sub, problem, margins, alpha))
    for group in [[work] for work in works] if problem.examples.in_memory else [works]:
        for _ in range(sweeps):
            if not group or perf_counter() >= until:
                break
            _sweep(problem, group, norms, rng)
            group = [work for work in group if not work.settled(accuracy)]
    for work in works:
        work.finish()


def _sweep(problem: Piece, works: Sequence[_Work], norms: np.ndarray, rng: np.ndarray) -> None:
    """One sweep over the active rows in random order."""
    order = row_numbers(np.logical_or.reduce([work.active for work in works]))
    shuffle(order, rng)
    step = 1.0 if problem.intercept is Intercept.REGULARIZED else 0.0
    for work in works:
        work.sub.descent.begin_sweep()
    sweep(problem.examples, order, [(work.sub.descent, work.variables) for work in works], norms, step, problem.loss)
    for work in works:
        work.sub.descent.end_sweep()


def balance(problem: Piece, k: int, alpha: np.ndarray) -> float:
    """What these dual variables add to b: sum_i alpha_i y_i, or nothing where there is no intercept."""
    return inner_product(alpha, problem.columns.sign(k)) if problem.intercept is Intercept.REGULARIZED else 0.0
